// Ops on all elements of a tensor that look at none: clone, copy_, fill_, conversions of the
// element type.
#include "ops/data_check.h"
#include "ops/gradient.h"
#include "ops/kernels/fill.h"
#include "ops/kernels/pointwise.h"

namespace prong {

namespace {

constexpr const char* kVmapLater = "vmap is not built yet";
constexpr Spelling kMethodOnly{.function = false};

OpDef& copy_op(Registry& r, std::string_view schema, std::string doc) {
  return r.add(schema).doc(std::move(doc)).family(Family::kCopy).no_vmap(kVmapLater);
}
// The tape converts a gradient back to the dtype of its tensor.
constexpr auto pass_through = [](Gradient& g) { return g.out(); };
constexpr auto nothing = [](Gradient& g) { return g.none(); };

TensorMeta like(const TensorMeta& x) { return {x.sizes, x.dtype}; }
TensorMeta like(const TensorMeta& x, DType dtype) { return {x.sizes, dtype}; }

// An in-place op: what it does to the tensor, which is then returned.
template <class F>
Tensor in_place(const Tensor& x, F&& f) {
  f();
  x.bump_version();
  return x;
}

template <DType kDType>
void register_conversion(Registry& r, const char* name) {
  copy_op(r, cat(name, "(input: Tensor) -> Tensor"),
          cat("The tensor as ", name_of(kDType), "; itself when it is that already."))
      .bounds(&bounds_of_input)
      .where(kMethodOnly)
      .kernel([](const Tensor& x) { return x.to(kDType); })
      .shape([](const TensorMeta& x) { return like(x, kDType); })
      .grad("input", "", pass_through)
      .samples({{"t(2, 3)"}, {"t(3, dtype=int64)"}, {"strided(4, 6)"}})
      .reference(
          kDType == DType::kBFloat16
              ? "input"
              : cat("input.astype(np.", kDType == DType::kBool ? "bool_" : name_of(kDType), ")"));
}

Tensor converted(const Tensor& x, DType dtype, bool copy) {
  return copy && dtype == x.dtype() ? x.clone() : x.to(dtype);
}

void check_fill(int64_t rank) {
  PRONG_CHECK(rank == 0, kRuntime,
              "fill_ only supports 0-dimension value tensor but got tensor with ", rank,
              " dimensions.");
}

void register_whole(Registry& r) {
  copy_op(r, "clone(input: Tensor) -> Tensor", "A copy with memory of its own.")
      .bounds(&bounds_of_input)
      .kernel([](const Tensor& x) { return x.clone(); })
      .shape([](const TensorMeta& x) { return like(x); })
      .grad("input", "", pass_through)
      .samples({{"t(2, 3)"}, {"strided(4, 6)"}, {"t()"}, {"t(0, 3)"}})
      .reference("input.copy()");
  copy_op(r, "copy_(input: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor",
          "Writes the elements of src, broadcast and converted, into input.")
      .where(kMethodOnly)
      .mutates(0)
      .kernel([](const Tensor& x, const Tensor& src, bool) {
        check_inplace_overlap(x, src);
        return in_place(x, [&] { copy_into(x, src); });
      })
      .shape([](const TensorMeta& x, const TensorMeta&, bool) { return like(x); })
      .grad("input", "", nothing)
      .grad("src", "", pass_through)
      .samples({{"t(2, 3), t(3)"}, {"t(2, 3), t(2, 3, dtype=int64)"}})
      .reference("np.broadcast_to(src, input.shape)");
  copy_op(r, "fill_(input: Tensor, value: Scalar) -> Tensor", "Sets every element to value.")
      .where(kMethodOnly)
      .mutates(0)
      .kernel([](const Tensor& x, const Number& value) {
        return in_place(x, [&] { fill_number(x, value); });
      })
      .shape([](const TensorMeta& x, const Number&) { return like(x); })
      .grad("input", "", nothing)
      .samples({{"t(2, 3), 1.5"}, {"t(2, dtype=int64), 2"}})
      .reference("np.full(input.shape, value)");
  copy_op(r, "fill_.Tensor(input: Tensor, value: Tensor) -> Tensor",
          "Sets every element to a zero-dim tensor's.")
      .where(kMethodOnly)
      .mutates(0)
      .kernel([](const Tensor& x, const Tensor& value) {
        check_fill(value.rank());
        return in_place(x, [&] { copy_into(x, value); });
      })
      .shape([](const TensorMeta& x, const TensorMeta& value) {
        check_fill(value.rank());
        return like(x);
      })
      .grad("input", "", nothing)
      .grad("value", "", pass_through)
      .samples({{"t(2, 3), t()"}})
      .reference("np.full(input.shape, value)");
  copy_op(r, "zero_(input: Tensor) -> Tensor", "Sets every element to zero.")
      .where(kMethodOnly)
      .mutates(0)
      .kernel([](const Tensor& x) { return in_place(x, [&] { fill(x, int64_t{0}); }); })
      .shape([](const TensorMeta& x) { return like(x); })
      .grad("input", "", nothing)
      .samples({{"t(2, 3)"}})
      .reference("np.zeros_like(input)");
  copy_op(
      r,
      "to(input: Tensor, dtype: dtype, non_blocking: bool = False, copy: bool = False) -> Tensor",
      "The tensor in another element type; itself when nothing changes and copy is not asked for.")
      .where(kMethodOnly)
      .kernel(
          [](const Tensor& x, DType dtype, bool, bool copy) { return converted(x, dtype, copy); })
      .shape([](const TensorMeta& x, DType dtype, bool, bool) { return like(x, dtype); })
      .grad("input", "", pass_through)
      .samples({{"t(2, 3), torch.int64"}, {"t(2, 3, dtype=int64), torch.float64"}})
      .reference("input.astype(dtype)");
  copy_op(r,
          "to.device(input: Tensor, device: device, dtype: dtype? = None, non_blocking: bool = "
          "False, copy: bool = False) -> Tensor",
          "The tensor on a device, which can only be the CPU, in another element type.")
      .bounds(&bounds_of_input)
      .where(kMethodOnly)
      .kernel([](const Tensor& x, const IValue& device, const std::optional<DType>& dtype, bool,
                 bool copy) {
        PRONG_CHECK(!device.is_string() || device.to_string().starts_with("cpu"), kRuntime,
                    "to(): prong runs on the CPU only, got device '",
                    device.is_string() ? device.to_string() : "", "'");
        return converted(x, dtype.value_or(x.dtype()), copy);
      })
      .shape([](const TensorMeta& x, const IValue&, const std::optional<DType>& dtype, bool, bool) {
        return like(x, dtype.value_or(x.dtype));
      })
      .grad("input", "", pass_through)
      .samples({{"t(2, 3), torch.device('cpu')"}, {"t(2), 'cpu', torch.float64"}});
  copy_op(r,
          "to.other(input: Tensor, other: Tensor, non_blocking: bool = False, copy: bool = False) "
          "-> Tensor",
          "The tensor in the element type of another.")
      .bounds(&bounds_of_input)
      .where(kMethodOnly)
      .kernel([](const Tensor& x, const Tensor& other, bool, bool copy) {
        return converted(x, other.dtype(), copy);
      })
      .shape([](const TensorMeta& x, const TensorMeta& other, bool, bool) {
        return like(x, other.dtype);
      })
      .grad("input", "", pass_through)
      .samples({{"t(2, 3), t(1, dtype=int64)"}})
      .reference("input.astype(other.dtype)");
  copy_op(r, "type_as(input: Tensor, other: Tensor) -> Tensor",
          "The tensor in the element type of another.")
      .bounds(&bounds_of_input)
      .where(kMethodOnly)
      .kernel([](const Tensor& x, const Tensor& other) { return x.to(other.dtype()); })
      .shape([](const TensorMeta& x, const TensorMeta& other) { return like(x, other.dtype); })
      .grad("input", "", pass_through)
      .samples({{"t(2, 3), t(1, dtype=int64)"}})
      .reference("input.astype(other.dtype)");
  copy_op(r, "detach_(input: Tensor) -> Tensor",
          "Cuts the tensor off from the history of gradients.")
      .where(kMethodOnly)
      .mutates(0)
      .not_differentiable("it is what cuts the history")
      .kernel([](const Tensor& x) {
        x.impl()->grad_fn = {};
        x.impl()->output_nr = 0;
        x.impl()->autograd = {};
        x.impl()->requires_grad = false;
        return x;
      })
      .shape([](const TensorMeta& x) { return like(x); })
      .samples({{"t(2, 3)"}})
      .reference("input");
  register_conversion<DType::kFloat32>(r, "float");
  register_conversion<DType::kFloat64>(r, "double");
  register_conversion<DType::kFloat16>(r, "half");
  register_conversion<DType::kBFloat16>(r, "bfloat16");
  register_conversion<DType::kInt64>(r, "long");
  register_conversion<DType::kInt32>(r, "int");
  register_conversion<DType::kInt16>(r, "short");
  register_conversion<DType::kInt8>(r, "char");
  register_conversion<DType::kUInt8>(r, "byte");
  register_conversion<DType::kBool>(r, "bool");
}

}  // namespace

void register_copy(Registry& r) { register_whole(r); }

}  // namespace prong
