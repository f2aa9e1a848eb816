// Tensor: a reference to a strided view of a storage. The value that programs are about.
#pragma once

#include <optional>
#include <string>

#include "base/block_cache.h"
#include "base/error.h"
#include "base/ref.h"
#include "base/small_vector.h"
#include "tensor/dtype.h"
#include "tensor/storage.h"

namespace prong {

class Tensor;

// What a shape rule sees and gives: no data. Strides are those of a contiguous tensor unless a rule
// says otherwise.
struct TensorMeta {
  Dims sizes;
  DType dtype = DType::kFloat32;
  bool is_wrapped_number = false;  // a Python number: takes part in promotion by its category only
  int64_t rank() const { return static_cast<int64_t>(sizes.size()); }
  int64_t numel() const;
  friend bool operator==(const TensorMeta& a, const TensorMeta& b) = default;
};

struct TensorImpl final : RefCounted, Cached {
  Ref<Storage> storage;
  int64_t offset = 0;   // elements from the start of the storage
  Dims sizes, strides;  // strides in elements
  int64_t numel = 0;
  DType dtype = DType::kFloat32;
  bool is_contiguous = true;
  bool is_wrapped_number = false;
  bool requires_grad = false;
  bool is_inference = false;  // made under inference_mode
  bool is_apart = false;      // `x.data` or a view of it: writes are not seen by x's gradients

  // Counts the in-place writes that gradients have to know of.
  uint64_t version() const {
    const uint64_t apart = storage->writes_apart();
    return is_apart ? apart : storage->version() - apart;
  }
  // Filled by eager/ (the tape); opaque here. grad_fn: the node that made the tensor, as its result
  // `output_nr`. autograd: what only some tensors have (the gradient, hooks, the tensor that this
  // is a view of).
  uint32_t output_nr = 0;
  Ref<RefCounted> grad_fn;
  Ref<RefCounted> autograd;
  // The Python object that stands for this tensor, borrowed; read and written only with the GIL
  // held, by bindings/.
  void* py_object = nullptr;
};

// Row-major strides of `sizes` (a size-1 or empty dimension counts as PyTorch counts it).
Dims contiguous_strides(DimsView sizes);
int64_t product(DimsView sizes);

class Tensor {
 public:
  Tensor() = default;  // undefined
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}

  // Uninitialised, contiguous. Throws kRuntime on negative sizes or overflow, kOutOfMemory.
  static Tensor empty(DimsView sizes, DType dtype);
  // A view of `storage`; checks that it lies inside.
  static Tensor view_of(Ref<Storage> storage, int64_t offset, DimsView sizes, DimsView strides,
                        DType dtype);
  // A zero-dim tensor that counts as a Python number in type promotion.
  static Tensor wrapped(double value);
  static Tensor wrapped(int64_t value);
  static Tensor wrapped(bool value);
  static Tensor wrapped(Complex128 value);

  bool defined() const { return static_cast<bool>(impl_); }
  explicit operator bool() const { return defined(); }
  TensorImpl* impl() const { return impl_.get(); }
  const Ref<TensorImpl>& ref() const { return impl_; }
  TensorImpl* release() { return impl_.detach(); }  // hands the reference over (to an IValue)
  bool is_same(const Tensor& o) const { return impl_ == o.impl_; }

  DType dtype() const { return impl_->dtype; }
  const Dims& sizes() const { return impl_->sizes; }
  const Dims& strides() const { return impl_->strides; }
  int64_t rank() const { return static_cast<int64_t>(impl_->sizes.size()); }
  int64_t size(int64_t dim) const;  // negative dims count from the end; kIndex when out of range
  int64_t stride(int64_t dim) const;
  int64_t numel() const { return impl_->numel; }
  int64_t offset() const { return impl_->offset; }
  size_t item_bytes() const { return size_of(impl_->dtype); }
  bool is_contiguous() const { return impl_->is_contiguous; }
  bool is_wrapped_number() const { return impl_->is_wrapped_number; }
  bool requires_grad() const { return impl_->requires_grad; }
  const Ref<Storage>& storage() const { return impl_->storage; }
  uint64_t version() const { return impl_->version(); }
  void bump_version() const { impl_->storage->bump_version(impl_->is_apart); }
  TensorMeta meta() const { return {impl_->sizes, impl_->dtype, impl_->is_wrapped_number}; }

  void* raw() const {
    return static_cast<char*>(impl_->storage->data()) +
           impl_->offset * static_cast<int64_t>(item_bytes());
  }
  template <class T>
  T* data() const {
    PRONG_ASSERT(DTypeOf<T>::value == dtype(), "data<", DTypeOf<T>::value, "> of a ", dtype(),
                 " tensor");
    return static_cast<T*>(raw());
  }

  // New view of the same storage, same dtype; strides in elements.
  Tensor as_strided(DimsView sizes, DimsView strides, int64_t offset) const;
  Tensor as_strided(DimsView sizes, DimsView strides, int64_t offset, DType dtype) const;
  Tensor contiguous() const;     // itself when contiguous already
  Tensor to(DType dtype) const;  // itself when it has that dtype already
  Tensor clone() const;          // contiguous copy (keeps the dtype)
  // Element as a number; the tensor must have exactly one (kRuntime with PyTorch's text otherwise).
  double item_double() const;
  int64_t item_int() const;
  Complex128 item_complex() const;

 private:
  Ref<TensorImpl> impl_;
};

// Broadcasts and converts: dst[...] = src. Overlapping views are handled as if src had been copied
// first.
void copy_into(const Tensor& dst, const Tensor& src);
void fill(const Tensor& dst, double value);
void fill(const Tensor& dst, int64_t value);
void fill(const Tensor& dst, Complex128 value);  // the real part, where dst is real

// dim in [-rank, rank) made non-negative; kIndex: "Dimension out of range (expected to be in range
// of [-2, 1], but got 3)".
int64_t wrap_dim(int64_t dim, int64_t rank);
// The common shape; kRuntime "The size of tensor a (3) must match the size of tensor b (4) at
// non-singleton dimension 1".
Dims broadcast_shapes(DimsView a, DimsView b);
Tensor broadcast_to(const Tensor& t, DimsView sizes);  // a view with zero strides
void check_expands(DimsView own, DimsView sizes);      // for what broadcast_to() refuses

// PyTorch's result type of the operands: dimensioned tensors, then zero-dim ones, then Python
// numbers.
class ResultType {
 public:
  void add(DType dtype, int64_t rank, bool is_wrapped_number);
  void add(const Tensor& t) { add(t.dtype(), t.rank(), t.is_wrapped_number()); }
  void add(const TensorMeta& m) { add(m.dtype, m.rank(), m.is_wrapped_number); }
  DType get() const;

 private:
  std::optional<DType> dim_, zero_dim_, wrapped_;
};

// The real (0) or imaginary (1) parts of a complex tensor, as a view.
Tensor part_of(const Tensor& t, int64_t which);

// PyTorch's text: "tensor([1., 2.])", with print options in tensor/format.h.
std::string to_string(const Tensor& t);

}  // namespace prong
