// Registration of gradient rules; see gradient.h.
#include "ops/gradient.h"

namespace prong {

namespace {

std::vector<std::string_view> split_names(std::string_view text) {
  std::vector<std::string_view> names;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    std::string_view name = text.substr(0, comma);
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (!name.empty()) names.push_back(name);
    if (comma == text.npos) break;
    text.remove_prefix(comma + 1);
  }
  return names;
}

// "result", "result.1".
int result_index(std::string_view name) {
  if (!name.starts_with("result")) return -1;
  name.remove_prefix(6);
  if (name.empty()) return 0;
  return name.size() == 2 && name[0] == '.' ? name[1] - '0' : -1;
}

}  // namespace

OpDef& OpDef::add_grad(std::string_view arguments, std::string_view uses, GradFn fn) {
  if (!gradient_) {
    gradient_ = std::make_shared<GradientDef>();
    gradient_->rule_of_argument.assign(schema_.arguments.size(), -1);
    no_grad_.clear();
  }
  GradientRule rule;
  rule.fn = fn;
  for (std::string_view name : split_names(arguments)) {
    const int i = schema_.find(name);
    PRONG_ASSERT(i >= 0, "op ", this->name(), " has no argument ", name, " to differentiate to");
    rule.arguments.push_back(i);
    gradient_->rule_of_argument[static_cast<size_t>(i)] = static_cast<int>(gradient_->rules.size());
  }
  for (std::string_view name : split_names(uses)) {
    const int argument = schema_.find(name), result = argument < 0 ? result_index(name) : -1;
    PRONG_ASSERT(argument >= 0 || result >= 0, "op ", this->name(), " has no ", name,
                 " for its gradient to use");
    (argument >= 0 ? rule.uses_arguments : rule.uses_results) |=
        uint64_t{1} << (argument >= 0 ? argument : result);
  }
  gradient_->rules.push_back(std::move(rule));
  return *this;
}

Expr Gradient::full(const TensorMeta& like, double value) {
  static const OpDef& def = registry().get("full");
  const IValue args[] = {IValue(DimsView(like.sizes)), IValue(value), IValue(like.dtype)};
  return Expr(*builder_, builder_->apply(def, args));
}

Expr unreduced(const Expr& x, const IValue& dim, bool keepdim, const Dims& sizes) {
  const auto rank = static_cast<int64_t>(sizes.size());
  if (keepdim || rank == 0) return op<"expand">(x, sizes);
  const bool is_all = dim.is_none() || (dim.is_list() && dim.items().empty());
  if (is_all) return op<"expand">(x, sizes);
  Dims kept = sizes;
  const Dims dims = dim.is_int() ? Dims{dim.to_int()} : dim.to_dims();
  for (int64_t d : dims) kept[static_cast<size_t>(wrap_dim(d, rank))] = 1;
  return op<"expand">(op<"view">(op<"contiguous">(x), kept), sizes);
}

Expr picked_gradient(Gradient& g, int64_t dim, bool keepdim) {
  const TensorMeta x = g.meta("input");
  if (x.rank() == 0) return g.out();
  Expr dy = g.out(), places = g["result.1"];
  if (!keepdim) {
    dy = op<"unsqueeze">(dy, dim);
    places = op<"unsqueeze">(places, dim);
  }
  return op<"scatter">(g.zeros({x.sizes, dy.dtype()}), dim, places, dy);
}

}  // namespace prong
