// What every op gets without writing it: the in-place forms. Called once, after all families are
// registered.
#include "ops/data_check.h"
#include "ops/gradient.h"
#include "ops/kernels/pointwise.h"
#include "ops/op_def.h"

namespace prong {

namespace {

// The in-place form of an op that has no loops of its own for it: computed beside, checked, then
// copied.
IValue run_beside(const OpDef& base, std::span<const IValue> args) {
  const Tensor target = args[0].to_tensor();
  const Tensor result = base.kernel()(base, args).to_tensor();
  PRONG_CHECK(result.sizes() == target.sizes(), kRuntime, "output with shape ", target.sizes(),
              " doesn't match the broadcast shape ", result.sizes());
  PRONG_CHECK(can_cast(result.dtype(), target.dtype()), kRuntime, "result type ", result.dtype(),
              " can't be cast to the desired output type ", target.dtype());
  copy_into(target, result);
  target.bump_version();
  return args[0];
}

IValue run_derived(const OpDef& op, std::span<const IValue> args) {
  const OpDef& base = *op.inplace_of();
  return base.pointwise() ? run_inplace(base, args) : run_beside(base, args);
}

IValue first_meta(const OpDef&, std::span<const IValue> args) { return IValue(meta_from(args[0])); }

// Floating-point numbers give what division by zero gives.
void check_divisor(DataCheck& c) {
  const OpDef& op = c.op().inplace_of() ? *c.op().inplace_of() : c.op();
  const PointwiseDef& def = *op.pointwise();
  try {
    if (!def.checks_data(def.plan(op, c.args()))) return;
  } catch (const Error&) {
    return;  // the call is refused before any data is read
  }
  c.not_zero(c[static_cast<size_t>(def.options.divisor)]);
}

std::string inplace_schema(const OpDef& base) {
  const std::string text = base.schema().str();
  std::string name = base.name();
  name.insert(base.base_name().size(), "_");
  return name + text.substr(base.name().size());
}

}  // namespace

void Registry::derive() {
  for (const auto& op : ops_) {
    const bool is_one_view = op->family() == Family::kView && op->viewed_argument() == 0 &&
                             op->schema().results.size() == 1 &&
                             op->schema().results[0]->is(TypeKind::kTensor);
    if (is_one_view && !op->gradient() && op->is_differentiable() && !op->is_composite())
      op->grad(op->schema().arguments[0].name, "", [](Gradient& g) { return view_gradient(g); });
    if (op->family() == Family::kView && op->viewed_argument() == 0 && !op->bounds())
      op->bounds(&bounds_of_input);
    if (op->pointwise() && op->pointwise()->options.divisor >= 0) op->checks(&check_divisor);
  }
  const size_t written = ops_.size();  // derived ones have no in-place forms themselves
  for (size_t i = 0; i < written; ++i) {
    const OpDef& base = *ops_[i];
    if (!base.spelling().inplace) continue;
    const auto& arguments = base.schema().arguments;
    PRONG_ASSERT(!arguments.empty() && arguments[0].type->is(TypeKind::kTensor) &&
                     base.schema().results.size() == 1 &&
                     base.schema().results[0]->is(TypeKind::kTensor),
                 base.name(),
                 " cannot have an in-place form: its first argument and its result are no tensors");
    OpDef& op = add(inplace_schema(base));
    Spelling where = base.spelling();
    where.inplace = false;
    for (std::string& alias : where.aliases) alias += "_";
    op.doc(cat("In place: ", base.doc()))
        .family(base.family())
        .where(std::move(where))
        .boxed_kernel(&run_derived)
        .boxed_shape(&first_meta)
        .cost(base.cost())
        .mutates(0)
        .no_grad(base.no_grad_reason())
        .no_vmap(base.no_vmap_reason());
    if (base.is_random()) op.random();
    op.gradient_ = base.gradient_;
    op.composite_ = base.composite_;
    op.takes_complex_ |= base.takes_complex_;
    op.inplace_of_ = &base;
    op.checks_ = base.checks_;
    if (!base.is_differentiable())  // still nothing of the old value is left: it gets zeros
      op.grad(arguments[0].name, "",
              [](Gradient& g) { return g.zeros(g.meta(g.op().schema().arguments[0].name)); });
  }
}

}  // namespace prong
