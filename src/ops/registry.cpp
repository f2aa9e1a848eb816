// The registry: registration, lookup, and the facets that are derived for every op.
#include <unordered_map>

#include "ops/op_def.h"

namespace prong {

OpDef::OpDef(std::string_view schema_text) : schema_(Schema::parse(schema_text)) {
  base_name_ = schema_.name.substr(0, schema_.name.find('.'));
  trace_name_ = "aten::" + base_name_;
}

OpDef& OpDef::doc(std::string text) {
  doc_ = std::move(text);
  return *this;
}
OpDef& OpDef::family(Family f) {
  takes_complex_ |= f == Family::kPointwise || f == Family::kView || f == Family::kFactory ||
                    f == Family::kCopy || f == Family::kHost;
  family_ = f;
  return *this;
}
OpDef& OpDef::where(Spelling s) {
  spelling_ = std::move(s);
  return *this;
}
OpDef& OpDef::dynamic_shape(std::string why) {
  dynamic_shape_ = std::move(why);
  return *this;
}
OpDef& OpDef::boxed_kernel(KernelFn f) {
  kernel_ = f;
  return *this;
}
OpDef& OpDef::boxed_shape(ShapeFn f) {
  shape_ = f;
  return *this;
}
OpDef& OpDef::cost(CostFn f) {
  cost_ = f;
  return *this;
}
OpDef& OpDef::no_grad(std::string why) {
  no_grad_ = std::move(why);
  return *this;
}
OpDef& OpDef::composite() {
  takes_complex_ = true;  // the ops that it is made of say what they take
  composite_ = true;
  return *this;
}
OpDef& OpDef::no_vmap(std::string why) {
  no_vmap_ = std::move(why);
  return *this;
}
OpDef& OpDef::not_differentiable(std::string why) {
  not_differentiable_ = std::move(why);
  return *this;
}
OpDef& OpDef::writes(std::initializer_list<int> arguments, int only_if) {
  for (int i : arguments) writes_ |= uint64_t{1} << i;
  writes_only_if_ = only_if;
  return *this;
}
uint64_t OpDef::written_arguments(std::span<const IValue> args) const {
  const bool is_kept =
      writes_only_if_ >= 0 && !args[static_cast<size_t>(writes_only_if_)].to_bool();
  uint64_t bits = is_kept ? written_arguments() & ~writes_ : written_arguments();
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i].is_none()) bits &= ~(uint64_t{1} << i);
  return bits;
}
OpDef& OpDef::mutates(int argument) {
  mutates_ = argument;
  return *this;
}
OpDef& OpDef::view_of(int argument) {
  view_of_ = argument;
  return *this;
}
OpDef& OpDef::random() {
  random_ = true;
  return *this;
}
OpDef& OpDef::checks(DataCheckFn f) {
  checks_ = f;
  return *this;
}
OpDef& OpDef::bounds(BoundsFn f) {
  bounds_ = f;
  return *this;
}
OpDef& OpDef::takes_complex() {
  takes_complex_ = true;
  return *this;
}
OpDef& OpDef::samples(std::vector<Sample> s) {
  samples_ = std::move(s);
  return *this;
}
OpDef& OpDef::reference(std::string numpy_expression) {
  reference_ = std::move(numpy_expression);
  return *this;
}

void throw_arity(const OpDef& op, const char* facet, int got) {
  throw_error(ErrorKind::kInternal,
              cat("op ", op.name(), ": its ", facet, " takes ", got, " arguments, its schema has ",
                  op.schema().arguments.size()));
}

struct Registry::Index {
  std::unordered_map<std::string_view, const OpDef*> by_name;
  std::unordered_map<std::string_view, std::vector<const OpDef*>> by_base_name;
};

OpDef& Registry::add(std::string_view schema_text) {
  if (!index_) index_ = std::make_shared<Index>();
  ops_.push_back(std::make_unique<OpDef>(schema_text));
  OpDef& op = *ops_.back();
  PRONG_ASSERT(index_->by_name.emplace(op.name(), &op).second, "op ", op.name(),
               " is registered twice");
  index_->by_base_name[op.base_name()].push_back(&op);
  return op;
}

const OpDef* Registry::find(std::string_view name) const {
  const auto it = index_->by_name.find(name);
  return it == index_->by_name.end() ? nullptr : it->second;
}

const OpDef& Registry::get(std::string_view name) const {
  const OpDef* op = find(name);
  PRONG_CHECK(op, kAttribute, "prong has no op '", name, "' yet");
  return *op;
}

std::span<const OpDef* const> Registry::overloads(std::string_view base_name) const {
  const auto it = index_->by_base_name.find(base_name);
  if (it == index_->by_base_name.end()) return {};
  return it->second;
}

const Registry& registry() {
  // Never destroyed: worker threads may still look ops up while the process ends.
  static const Registry* const instance = [] {
    auto* r = new Registry;
    register_all_ops(*r);
    r->derive();
    return r;
  }();
  return *instance;
}

// ── boxing ──

void throw_complex(const OpDef& op, DType dtype) {
  throw_error(ErrorKind::kNotImplemented,
              cat('"', op.base_name(), "\" not implemented for '", scalar_type_name(dtype), "'"));
}
thread_local constinit KernelFn composing = nullptr;

TensorMeta meta_from(const IValue& v) {
  if (v.is_meta()) return v.meta();
  if (v.is_tensor()) return v.to_tensor().meta();
  TensorMeta m;
  m.is_wrapped_number = true;
  m.dtype = v.is_complex() ? complex_dtype(default_dtype())
            : v.is_bool()  ? DType::kBool
            : v.is_int()   ? DType::kInt64
                           : default_dtype();
  return m;
}

Tensor tensor_from(const IValue& v) {
  if (v.is_tensor()) return v.to_tensor();
  if (v.is_bool()) return Tensor::wrapped(v.to_bool());
  if (v.is_int()) return Tensor::wrapped(v.to_int());
  if (v.is_complex()) return Tensor::wrapped(v.to_complex());
  return Tensor::wrapped(v.to_double());
}

std::vector<TensorMeta> metas_from(const IValue& list) {
  std::vector<TensorMeta> metas;
  for (const IValue& item : list.items()) metas.push_back(meta_from(item));
  return metas;
}

std::vector<std::optional<Tensor>> optional_tensors_from(const IValue& list) {
  std::vector<std::optional<Tensor>> tensors;
  for (const IValue& item : list.items())
    tensors.push_back(item.is_none() ? std::nullopt : std::optional<Tensor>(tensor_from(item)));
  return tensors;
}

IValue call_op(const OpDef& op, std::span<const IValue> given) {
  const KernelFn run = composing ? composing : op.kernel();
  check_complex(op, given);
  if (given.size() == op.schema().arguments.size()) return run(op, given);
  return run(op, op.schema().with_defaults(given));
}

}  // namespace prong
