// DLPack: tensors of other libraries and ours over the same memory. The structs are the public ABI
// of DLPack 1.0.
#include <cstring>

#include "bindings/tensor_data.h"

namespace prong::python {

namespace {

constexpr int32_t kCpu = 1;
enum TypeCode : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kComplex = 5, kBool = 6 };

struct DlTensor {
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct Managed {  // "dltensor"
  DlTensor tensor;
  void* manager;
  void (*deleter)(Managed*);
};
struct ManagedVersioned {  // "dltensor_versioned"
  uint32_t major, minor;
  void* manager;
  void (*deleter)(ManagedVersioned*);
  uint64_t flags;  // bit 0: read-only
  DlTensor tensor;
};

// What an exported tensor holds on to.
struct Exported {
  Tensor tensor;
  Dims shape, strides;
};

void fill_in(DlTensor* out, Exported* held) {
  const Tensor& t = held->tensor;
  const DType d = t.dtype();
  out->data = t.raw();
  out->device_type = kCpu;
  out->device_id = 0;
  out->ndim = static_cast<int32_t>(t.rank());
  out->code = d == DType::kBool       ? kBool
              : d == DType::kUInt8    ? kUInt
              : d == DType::kBFloat16 ? kBfloat
              : is_complex(d)         ? kComplex
              : is_floating(d)        ? kFloat
                                      : kInt;
  out->bits = static_cast<uint8_t>(8 * t.item_bytes());
  out->lanes = 1;
  out->shape = held->shape.data();
  out->strides = held->strides.data();
  out->byte_offset = 0;
}

template <class M>
PyObject* export_as(const Tensor& t, const char* name) {
  auto* managed = new M{};
  auto* held = new Exported{t, t.sizes(), t.strides()};
  fill_in(&managed->tensor, held);
  managed->manager = held;
  managed->deleter = [](M* self) {
    delete static_cast<Exported*>(self->manager);
    delete self;
  };
  if constexpr (std::is_same_v<M, ManagedVersioned>) managed->major = 1;
  return checked(PyCapsule_New(managed, name, [](PyObject* capsule) {
    const char* kept = PyCapsule_GetName(capsule);  // a consumer renames it to "used_..."
    if (!kept || std::strncmp(kept, "dltensor", 8) != 0) return;
    auto* self = static_cast<M*>(PyCapsule_GetPointer(capsule, kept));
    if (self) self->deleter(self);
  }));
}

DType dtype_from(const DlTensor& t) {
  const int bits = t.bits;
  if (t.lanes == 1) {
    if (t.code == kBool && bits == 8) return DType::kBool;
    if (t.code == kUInt && bits == 8) return DType::kUInt8;
    if (t.code == kInt && bits == 8) return DType::kInt8;
    if (t.code == kInt && bits == 16) return DType::kInt16;
    if (t.code == kInt && bits == 32) return DType::kInt32;
    if (t.code == kInt && bits == 64) return DType::kInt64;
    if (t.code == kBfloat && bits == 16) return DType::kBFloat16;
    if (t.code == kFloat && bits == 16) return DType::kFloat16;
    if (t.code == kFloat && bits == 32) return DType::kFloat32;
    if (t.code == kFloat && bits == 64) return DType::kFloat64;
    if (t.code == kComplex && bits == 64) return DType::kComplex64;
    if (t.code == kComplex && bits == 128) return DType::kComplex128;
  }
  throw_error(ErrorKind::kType,
              cat("from_dlpack: prong has no dtype for code ", t.code, " with ", bits, " bits"));
}

template <class M>
Tensor import_from(PyObject* capsule, const char* name, const char* used_name) {
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, name));
  if (!managed) throw PythonError();
  const DlTensor& t = managed->tensor;
  PRONG_CHECK(t.device_type == kCpu, kBuffer, "from_dlpack: the tensor is not in the CPU's memory");
  const DType dtype = dtype_from(t);
  Dims sizes, strides;
  int64_t last = 0, numel = 1;
  for (int d = 0; d < t.ndim; ++d) {
    sizes.push_back(t.shape[d]);
    numel *= t.shape[d];
  }
  strides = contiguous_strides(sizes);
  for (int d = 0; t.strides && d < t.ndim; ++d) {
    PRONG_CHECK(t.strides[d] >= 0, kBuffer, "from_dlpack: negative strides are not supported");
    strides[static_cast<size_t>(d)] = t.strides[d];
  }
  for (size_t d = 0; d < sizes.size(); ++d) last += (sizes[d] - 1) * strides[d];
  checked(PyCapsule_SetName(capsule, used_name));
  const size_t bytes = numel == 0 ? 0 : static_cast<size_t>(last + 1) * size_of(dtype);
  auto storage = make_ref<Storage>(
      static_cast<char*>(t.data) + t.byte_offset, bytes,
      [](void* context) {
        auto* self = static_cast<M*>(context);
        WithGil gil;  // the owner may be Python's
        if (gil.is_held() && self->deleter) self->deleter(self);
      },
      managed);
  return Tensor::view_of(std::move(storage), 0, sizes, strides, dtype);
}

}  // namespace

PyObject* to_dlpack(const Tensor& t, bool versioned) {
  PRONG_CHECK(!t.requires_grad(), kBuffer,
              "Can't export tensors that require gradient, use tensor.detach()");
  t.storage()->mark_exposed();
  return versioned ? export_as<ManagedVersioned>(t, "dltensor_versioned")
                   : export_as<Managed>(t, "dltensor");
}

Tensor from_dlpack(PyObject* capsule) {
  PRONG_CHECK(PyCapsule_CheckExact(capsule), kType, "from_dlpack: expected a DLPack capsule");
  if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
    return import_from<ManagedVersioned>(capsule, "dltensor_versioned", "used_dltensor_versioned");
  if (PyCapsule_IsValid(capsule, "dltensor"))
    return import_from<Managed>(capsule, "dltensor", "used_dltensor");
  throw_error(ErrorKind::kRuntime,
              "from_dlpack received an invalid capsule. Note that DLTensor capsules can be "
              "consumed only once, "
              "so you might have already constructed a tensor from it once.");
}

}  // namespace prong::python
