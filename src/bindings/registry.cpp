// The op registry as Python data: for the tests over all ops, the stubs and the tables of docs/.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "bindings/convert.h"
#include "bindings/module.h"
#include "bindings/op_match.h"
#include "bindings/op_result.h"
#include "bindings/tensor_type.h"
#include "ops/batching.h"
#include "ops/data_check.h"
#include "ops/gradient.h"

namespace nb = nanobind;

namespace prong::python {

namespace {

const char* family_name(Family f) {
  switch (f) {
  case Family::kPointwise:
    return "pointwise";
  case Family::kReduce:
    return "reduce";
  case Family::kView:
    return "view";
  case Family::kMatmul:
    return "matmul";
  case Family::kFactory:
    return "factory";
  case Family::kCopy:
    return "copy";
  case Family::kOpaque:
    return "opaque";
  case Family::kHost:
    return "host";
  }
  return "";
}

nb::object value_of(const IValue& v) { return nb::steal(to_python(v)); }

nb::list arguments_of(const Schema& schema) {
  nb::list all;
  for (const Argument& a : schema.arguments) {
    nb::dict d;
    d["name"] = a.name;
    d["type"] = a.type->str_();
    d["fixed_list_size"] = a.fixed_list_size;
    d["keyword_only"] = a.is_keyword_only;
    d["has_default"] = a.has_default;
    d["default"] = a.has_default ? value_of(a.default_value) : nb::none();
    all.append(d);
  }
  return all;
}

nb::dict spelling_of(const Spelling& s) {
  nb::dict d;
  d["function"] = s.function;
  d["method"] = s.method;
  d["nn_functional"] = s.nn_functional;
  d["inplace"] = s.inplace;
  d["property"] = s.property;
  nb::list aliases;
  for (const std::string& a : s.aliases) aliases.append(a);
  d["aliases"] = aliases;
  return d;
}

nb::dict describe(const OpDef& op) {
  nb::dict d;
  d["name"] = op.name();
  d["base_name"] = op.base_name();
  d["schema"] = op.schema().str();
  d["doc"] = op.doc();
  d["family"] = family_name(op.family());
  d["arguments"] = arguments_of(op.schema());
  nb::list results, result_names, samples;
  for (const TypePtr& t : op.schema().results) results.append(t->str_());
  for (const std::string& n : op.schema().result_names) result_names.append(n);
  for (const Sample& s : op.samples()) samples.append(s.arguments);
  d["results"] = results;
  d["result_names"] = result_names;
  d["samples"] = samples;
  d["reference"] = op.reference();
  d["spelling"] = spelling_of(op.spelling());
  d["has_kernel"] = op.kernel() != nullptr;
  d["has_shape"] = op.shape() != nullptr;
  d["has_cost"] = op.cost() != nullptr;
  d["is_fusible"] = op.pointwise() != nullptr;
  d["mutates"] = op.mutated_argument();
  nb::list lists;
  for (size_t i = 0; i < op.schema().arguments.size(); ++i)
    if ((op.written_arguments() >> i & 1) && op.schema().arguments[i].type->is(TypeKind::kList))
      lists.append(i);
  d["mutates_lists"] = lists;
  d["view_of"] = op.viewed_argument();
  d["random"] = op.is_random();
  d["checks_data"] = op.checks() != nullptr;
  d["dynamic_shape"] = op.dynamic_shape_reason();
  d["has_grad"] = op.gradient() != nullptr;
  nb::list differentiated;  // the arguments that gradients flow to
  for (size_t i = 0; op.gradient() && i < op.schema().arguments.size(); ++i)
    if (op.gradient()->rule_of_argument[i] >= 0)
      differentiated.append(op.schema().arguments[i].name);
  d["grad_arguments"] = differentiated;
  d["composite"] = op.is_composite();
  d["no_grad"] = op.no_grad_reason();
  d["no_vmap"] = op.no_vmap_reason();
  d["batching"] = name_of(batching_rule(op).kind);
  d["not_differentiable"] = op.not_differentiable_reason();
  d["inplace_of"] = op.inplace_of() ? nb::cast(op.inplace_of()->name()) : nb::none();
  return d;
}

nb::list all_ops() {
  nb::list all;
  for (const auto& op : registry().all()) all.append(describe(*op));
  return all;
}

// args and kwargs of one exact overload, converted.
void convert_call(const OpDef& op, nb::args args, nb::kwargs kwargs, ArgumentBuffer* out) {
  const Signature signature = prepare(op);
  std::vector<PyObject*> values;
  for (nb::handle a : args) values.push_back(a.ptr());
  nb::list names;
  for (auto [key, value] : kwargs) {
    names.append(key);
    values.push_back(value.ptr());
  }
  nb::tuple kwnames = nb::tuple(names);
  const PythonCall call{nullptr, values.data(), args.size(), kwnames.ptr()};
  Extras extras;
  std::string why;
  if (!match(signature, call, true, out, &extras, &why))
    throw_error(ErrorKind::kType, cat(op.name(), "(): ", why));
}

IValue to_meta(const IValue& v) {
  if (v.is_tensor()) return IValue(v.to_tensor().meta());
  if (!v.is_list()) return v;
  std::vector<IValue> items;
  for (const IValue& item : v.items()) items.push_back(to_meta(item));
  return IValue::list(std::move(items));
}

// (sizes, dtype) for an abstract tensor; lists and tuples of them; other values as they are.
nb::object from_meta(const IValue& v) {
  if (v.is_meta()) {
    nb::list sizes;
    for (const int64_t s : v.meta().sizes) sizes.append(s);
    return nb::make_tuple(nb::tuple(sizes), value_of(IValue(v.meta().dtype)));
  }
  if (!v.is_list() && !v.is_tuple()) return value_of(v);
  nb::list items;
  for (const IValue& item : v.items()) items.append(from_meta(item));
  return v.is_list() ? nb::object(items) : nb::object(nb::tuple(items));
}

nb::object call_exactly(const std::string& name, nb::args args, nb::kwargs kwargs) {
  const OpDef& op = registry().get(name);
  ArgumentBuffer arguments;
  convert_call(op, args, kwargs, &arguments);
  return nb::steal(to_python(run_op(op, arguments.values())));
}

nb::object shape_of(const std::string& name, nb::args args, nb::kwargs kwargs) {
  const OpDef& op = registry().get(name);
  PRONG_CHECK(op.shape(), kNotImplemented, "op ", name, " has no shape rule");
  ArgumentBuffer arguments;
  convert_call(op, args, kwargs, &arguments);
  std::vector<IValue> metas;
  for (const IValue& v : arguments.values()) metas.push_back(to_meta(v));
  return from_meta(op.shape()(op, metas));
}

nb::object cost_of(const std::string& name, nb::args args, nb::kwargs kwargs) {
  const OpDef& op = registry().get(name);
  PRONG_CHECK(op.cost(), kNotImplemented, "op ", name, " has no cost");
  ArgumentBuffer arguments;
  convert_call(op, args, kwargs, &arguments);
  std::vector<IValue> metas;
  for (const IValue& v : arguments.values()) metas.push_back(to_meta(v));
  const Cost cost = op.cost()(op, metas);
  return nb::make_tuple(cost.flops, cost.bytes);
}

bool may_fail(const std::string& name, nb::args args, nb::kwargs kwargs) {
  ArgumentBuffer arguments;
  convert_call(registry().get(name), args, kwargs, &arguments);
  return data_may_fail(registry().get(name), arguments.values());
}

}  // namespace

void bind_registry(nb::module_& m) {
  m.def(
      "nn_functional_ops", [m] { return nb::borrow(m.attr("nn_functional").ptr()); },
      "{name: function} of the ops that belong to torch.nn.functional.");
  m.def("_result_type_of", [](const std::string& op) -> nb::object {
    OpGroup* group = find_group(op);
    if (group)
      for (Signature& s : group->signatures)
        if (!s.op->schema().result_names.empty() && !s.op->schema().result_names[0].empty())
          return nb::borrow(reinterpret_cast<PyObject*>(result_type_of(s)));
    return nb::none();
  });
  m.def(
      "store_out",
      [](const char* name, nb::handle result, nb::handle out) {
        return nb::steal(checked(store_out(name, result.ptr(), out.ptr())));
      },
      "Writes the result of the function of that name into what was given as out=.");
  m.def("ops", &all_ops, "Every op of the registry with its facets, as dicts.");
  m.def("call_op", &call_exactly, "call_op(name, *args, **kwargs): one exact overload.");
  m.def("op_shape", &shape_of, "op_shape(name, *args, **kwargs): what the shape rule says.");
  m.def("op_may_fail", &may_fail,
        "op_may_fail(name, *args, **kwargs): what the op says of the numbers in this call.");
  m.def("op_cost", &cost_of, "op_cost(name, *args, **kwargs): (flops, bytes).");
}

}  // namespace prong::python
