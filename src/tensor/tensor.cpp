// Making tensors and views of them, shape arithmetic, PyTorch's result type. Called by every op.
#include "tensor/tensor.h"

#include "tensor/item_read.h"

#include <algorithm>

namespace prong {

namespace {

bool is_row_major(DimsView sizes, DimsView strides) {
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) continue;
    if (strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

// Bytes of a contiguous tensor; throws on negative sizes and on overflow.
size_t checked_bytes(DimsView sizes, size_t item_bytes) {
  bool overflow = false;
  int64_t total = static_cast<int64_t>(item_bytes);
  for (int64_t size : sizes) {
    PRONG_CHECK(size >= 0, kRuntime, "Trying to create tensor with negative dimension ", size, ": ",
                sizes);
    overflow |= __builtin_mul_overflow(total, size, &total);
  }
  if (overflow) {
    // A zero anywhere makes any other sizes harmless.
    if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
    throw_error(ErrorKind::kRuntime, cat("Storage size calculation overflowed with sizes=", sizes));
  }
  return static_cast<size_t>(total);
}

template <class T>
Tensor wrapped_number(T value) {
  Tensor t = Tensor::empty({}, DTypeOf<T>::value);
  *t.data<T>() = value;
  t.impl()->is_wrapped_number = true;
  return t;
}

}  // namespace

int64_t product(DimsView sizes) {
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  return n;
}

int64_t TensorMeta::numel() const { return product(sizes); }

Dims contiguous_strides(DimsView sizes) {
  Dims strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

Tensor Tensor::empty(DimsView sizes, DType dtype) {
  const size_t bytes = checked_bytes(sizes, size_of(dtype));
  Ref<TensorImpl> impl = make_ref<TensorImpl>();
  impl->storage = make_ref<Storage>(bytes);
  impl->sizes = Dims(sizes);
  impl->strides = contiguous_strides(sizes);
  impl->numel = static_cast<int64_t>(bytes / size_of(dtype));
  impl->dtype = dtype;
  return Tensor(std::move(impl));
}

Tensor Tensor::view_of(Ref<Storage> storage, int64_t offset, DimsView sizes, DimsView strides,
                       DType dtype) {
  PRONG_CHECK(sizes.size() == strides.size(), kRuntime, "mismatch in length of strides and shape");
  PRONG_CHECK(offset >= 0, kRuntime, "Tensor: invalid storage offset ", offset);
  const int64_t item_bytes = static_cast<int64_t>(size_of(dtype));
  int64_t numel = 1, last = offset;  // index of the last element
  bool overflow = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    PRONG_CHECK(
        strides[i] >= 0, kRuntime,
        "as_strided: Negative strides are not supported at the moment, got strides: ", strides);
    PRONG_CHECK(sizes[i] >= 0, kRuntime, "Trying to create tensor with negative dimension ",
                sizes[i], ": ", sizes);
    int64_t reach;
    numel *= sizes[i];
    overflow |= __builtin_mul_overflow(sizes[i] - 1, strides[i], &reach);
    overflow |= __builtin_add_overflow(last, reach, &last);
  }
  PRONG_CHECK(!overflow, kRuntime, "Storage size calculation overflowed with sizes=", sizes,
              " and strides=", strides);
  PRONG_CHECK(numel == 0 || last < static_cast<int64_t>(storage->bytes()) / item_bytes, kRuntime,
              "setStorage: sizes ", sizes, ", strides ", strides, ", storage offset ", offset,
              ", and itemsize ", item_bytes, " requiring a storage size of ",
              (last + 1) * item_bytes, " are out of bounds for storage of size ", storage->bytes());
  Ref<TensorImpl> impl = make_ref<TensorImpl>();
  impl->storage = std::move(storage);
  impl->offset = offset;
  impl->sizes = Dims(sizes);
  impl->strides = Dims(strides);
  impl->numel = numel;
  impl->dtype = dtype;
  impl->is_contiguous = numel == 0 || is_row_major(sizes, strides);
  return Tensor(std::move(impl));
}

Tensor Tensor::wrapped(double value) { return wrapped_number(value); }
Tensor Tensor::wrapped(int64_t value) { return wrapped_number(value); }
Tensor Tensor::wrapped(bool value) { return wrapped_number(value); }
Tensor Tensor::wrapped(Complex128 value) { return wrapped_number(value); }

int64_t Tensor::size(int64_t dim) const {
  PRONG_CHECK(rank() > 0, kIndex, "Dimension specified as ", dim, " but tensor has no dimensions");
  return impl_->sizes[static_cast<size_t>(wrap_dim(dim, rank()))];
}

int64_t Tensor::stride(int64_t dim) const {
  PRONG_CHECK(rank() > 0, kIndex, "Dimension specified as ", dim, " but tensor has no dimensions");
  return impl_->strides[static_cast<size_t>(wrap_dim(dim, rank()))];
}

Tensor Tensor::as_strided(DimsView sizes, DimsView strides, int64_t offset) const {
  return as_strided(sizes, strides, offset, dtype());
}

Tensor Tensor::as_strided(DimsView sizes, DimsView strides, int64_t offset, DType dtype) const {
  Tensor view = view_of(storage(), offset, sizes, strides, dtype);
  view.impl_->is_apart = impl_->is_apart;
  return view;
}

Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }

Tensor Tensor::to(DType dtype) const {
  if (dtype == this->dtype()) return *this;
  Tensor result = empty(sizes(), dtype);
  copy_into(result, *this);
  return result;
}

Tensor Tensor::clone() const {
  Tensor result = empty(sizes(), dtype());
  copy_into(result, *this);
  return result;
}

namespace {
std::atomic<void (*)()> item_read_hook{nullptr};
void note_item_read() {
  if (auto hook = item_read_hook.load(std::memory_order_relaxed)) hook();
}
}  // namespace

void set_item_read_hook(void (*hook)()) { item_read_hook.store(hook); }

double Tensor::item_double() const {
  note_item_read();
  PRONG_CHECK(numel() == 1, kRuntime, "a Tensor with ", numel(),
              " elements cannot be converted to Scalar");
  if (is_complex(dtype())) {
    const Complex128 z = item_complex();
    PRONG_CHECK(z.imag() == 0, kRuntime,
                "value cannot be converted to type double without overflow");
    return z.real();
  }
  return visit(dtype(), [&](auto tag) {
    return static_cast<double>(*static_cast<const typename decltype(tag)::type*>(raw()));
  });
}

int64_t Tensor::item_int() const {
  note_item_read();
  PRONG_CHECK(numel() == 1, kRuntime, "a Tensor with ", numel(),
              " elements cannot be converted to Scalar");
  if (is_complex(dtype())) return static_cast<int64_t>(item_double());
  return visit(dtype(), [&](auto tag) {
    return static_cast<int64_t>(*static_cast<const typename decltype(tag)::type*>(raw()));
  });
}

Complex128 Tensor::item_complex() const {
  note_item_read();
  PRONG_CHECK(numel() == 1, kRuntime, "a Tensor with ", numel(),
              " elements cannot be converted to Scalar");
  if (!is_complex(dtype())) return item_double();
  return visit_complex(dtype(), [&](auto tag) {
    return Complex128(*static_cast<const typename decltype(tag)::type*>(raw()));
  });
}

int64_t wrap_dim(int64_t dim, int64_t rank) {
  const int64_t range = std::max<int64_t>(rank, 1);  // a zero-dim tensor answers to 0 and -1
  PRONG_CHECK(dim >= -range && dim < range, kIndex,
              "Dimension out of range (expected to be in range of [", -range, ", ", range - 1,
              "], but got ", dim, ")");
  return dim < 0 ? dim + range : dim;
}

Dims broadcast_shapes(DimsView a, DimsView b) {
  const size_t rank = std::max(a.size(), b.size());
  Dims out(rank);
  for (size_t i = 0; i < rank; ++i) {  // from the last dimension
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    PRONG_CHECK(x == y || x == 1 || y == 1, kRuntime, "The size of tensor a (", x,
                ") must match the size of tensor b (", y, ") at non-singleton dimension ",
                rank - 1 - i);
    out[rank - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

void check_expands(DimsView own, DimsView sizes) {
  PRONG_CHECK(own.size() <= sizes.size(), kRuntime, "expand(): the number of sizes provided (",
              sizes.size(),
              ") must be greater or equal to the number of dimensions in the tensor (", own.size(),
              ")");
  for (size_t i = 0; i < own.size(); ++i) {
    const size_t at = sizes.size() - own.size() + i;
    PRONG_CHECK(own[i] == sizes[at] || own[i] == 1, kRuntime, "The expanded size of the tensor (",
                sizes[at], ") must match the existing size (", own[i],
                ") at non-singleton dimension ", at, ".  Target sizes: ", sizes,
                ".  Tensor sizes: ", own);
  }
}

Tensor broadcast_to(const Tensor& t, DimsView sizes) {
  if (t.sizes() == Dims(sizes)) return t;
  check_expands(t.sizes(), sizes);
  const size_t rank = sizes.size(), own = t.sizes().size();
  Dims strides(rank, 0);
  for (size_t i = 0; i < own; ++i) {
    const size_t at = rank - own + i;
    strides[at] = t.sizes()[i] == sizes[at] ? t.strides()[i] : 0;
  }
  return Tensor::view_of(t.storage(), t.offset(), sizes, strides, t.dtype());
}

Tensor part_of(const Tensor& t, int64_t which) {
  Dims strides = t.strides();
  for (int64_t& s : strides) s *= 2;
  return Tensor::view_of(t.storage(), 2 * t.offset() + which, t.sizes(), strides,
                         real_dtype(t.dtype()));
}

void ResultType::add(DType dtype, int64_t rank, bool is_wrapped_number) {
  std::optional<DType>& slot = rank > 0 ? dim_ : is_wrapped_number ? wrapped_ : zero_dim_;
  // A Python float says "some floating type": the default one, whatever its 64 bits.
  if (is_wrapped_number && rank == 0 && is_floating(dtype)) dtype = default_dtype();
  if (is_wrapped_number && rank == 0 && is_complex(dtype)) dtype = complex_dtype(default_dtype());

  slot = slot ? promote(*slot, dtype) : dtype;
}

DType ResultType::get() const {
  // The lower group decides only where it brings a higher category.
  const auto combine = [](std::optional<DType> high,
                          std::optional<DType> low) -> std::optional<DType> {
    if (!high || !low) return high ? high : low;
    if (is_complex(*high)) return high;
    if (is_floating(*high)) return is_complex(*low) ? complex_dtype(*high) : *high;
    if (*high == DType::kBool || is_inexact(*low)) return promote(*high, *low);
    return high;
  };
  const std::optional<DType> result = combine(dim_, combine(zero_dim_, wrapped_));
  PRONG_ASSERT(result.has_value(), "result type of no operands");
  return *result;
}

}  // namespace prong
