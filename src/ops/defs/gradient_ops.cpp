// Ops that gradient rules are made of, and the rule that every view op has unless it writes its
// own.
#include "ops/gradient.h"
#include "ops/shape_of.h"

namespace prong {

namespace {

// The dims that broadcasting to `sizes` has repeated.
Dims repeated_dims(const Dims& sizes, const Dims& size) {
  const auto rank = static_cast<int64_t>(sizes.size());
  const int64_t lead = rank - static_cast<int64_t>(size.size());
  bool fits = lead >= 0;
  Dims dims;
  for (int64_t i = 0; i < rank && fits; ++i) {
    const int64_t have = sizes[static_cast<size_t>(i)];
    const int64_t want = i < lead ? -1 : size[static_cast<size_t>(i - lead)];
    fits = want == -1 || want == have || want == 1;
    if (i < lead || want != have) dims.push_back(i);
  }
  PRONG_CHECK(fits, kRuntime, "size {", size, "} is not expandable to size {", sizes, "}.");
  return dims;
}

Tensor sum_to_size(const Tensor& x, const Dims& size) {
  const Dims dims = repeated_dims(x.sizes(), size);
  // As PyTorch: what is summed to a number is summed, be it one already.
  if (dims.empty()) return size.empty() && !is_inexact(x.dtype()) ? call_tensor("sum", x) : x;
  const Tensor sum = call_tensor("sum", x, dims, true);
  return x.sizes().size() == size.size() ? sum : call_tensor("view", sum, size);
}

}  // namespace

// A view is the same elements elsewhere: the gradient is written through the same view of zeros.
Expr view_gradient(Gradient& g) {
  const OpDef& op = g.op();
  const auto& arguments = op.schema().arguments;
  const Expr whole = g.zeros(g.meta(arguments[0].name));
  std::vector<IValue> args{whole.value()};
  for (size_t i = 1; i < arguments.size(); ++i) args.push_back(g.value(arguments[i].name));
  prong::op<"copy_">(g.expr(g.builder().apply(op, args)), g.out());
  return whole;
}

void register_gradient_ops(Registry& r) {
  r.add("sum_to_size(input: Tensor, size: int[]) -> Tensor")
      .doc("The sum over what broadcasting to size has repeated: the inverse of expand.")
      .family(Family::kReduce)
      .composite()
      .where({.function = false})
      .kernel([](const Tensor& x, const Dims& size) { return sum_to_size(x, size); })
      .shape([](const TensorMeta& x, const Dims& size) {
        repeated_dims(x.sizes, size);
        const bool is_widened = !is_inexact(x.dtype) && (size.empty() || !(size == x.sizes));
        return TensorMeta{size, is_widened ? DType::kInt64 : x.dtype};
      })
      .no_vmap("it is made of sum and view")
      .samples({{"t(3, 4), [4]"}, {"t(3, 4), [3, 1]"}, {"t(2, 3), [2, 3]"}})
      .reference(
          "input if tuple(size) == input.shape else np.sum(input, "
          "axis=0 if len(size) < input.ndim else 1, keepdims=len(size) == input.ndim)");
}

}  // namespace prong
