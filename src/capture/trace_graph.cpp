// Trace to Graph; see trace_graph.h.
#include "capture/trace_graph.h"

#include <map>

#include "graph/builder.h"

namespace prong::capture {

std::vector<std::string> value_names(const Trace& trace) {
  std::map<std::string, int> counts;
  std::vector<std::string> names(trace.values.size());
  for (size_t i = 0; i < trace.inputs.size(); ++i) {
    const auto v = static_cast<size_t>(trace.inputs[i]);
    names[v] = trace.values[v].name.empty() ? cat("arg_", i + 1) : trace.values[v].name;
  }
  for (const TraceNode& n : trace.nodes) {
    const std::string node_name = cat(n.op->base_name(), "_", ++counts[n.op->base_name()]);
    for (int32_t i = 0; i < n.num_outputs; ++i)
      names[static_cast<size_t>(n.first_output + i)] =
          n.num_outputs == 1 ? node_name : cat(node_name, "_", i);
  }
  return names;
}

namespace {

class Conversion {
 public:
  Conversion(const Trace& trace, const NumberInputs& number_inputs, Graph& graph)
      : trace_(trace), graph_(graph), builder_(graph), values_(trace.values.size()),
        numbers_(trace.numbers.size()) {
    const std::vector<std::string> names = value_names(trace);
    for (const ValueId v : trace.inputs)
      values_[static_cast<size_t>(v)] =
          graph.add_input(Type::tensor(), names[static_cast<size_t>(v)]);
    for (size_t i = 0; i < number_inputs.size(); ++i)
      if (number_inputs[i])
        numbers_[i] = graph.add_input(type_of_number(trace.numbers[i]), cat("n_", i));
    for (const TraceNode& n : trace.nodes) convert(n, names);
    std::vector<Value*> outputs;
    for (const ValueId v : trace.outputs) outputs.push_back(values_[static_cast<size_t>(v)]);
    Value* all = builder_.tuple(outputs);
    builder_.yield({all});
  }

 private:
  static TypePtr type_of_number(const IValue& v) {
    return v.is_int() ? Type::int_() : v.is_float() ? Type::float_() : Type::tensor();
  }

  Value* operand(const Operand& o, const TypePtr& type) {
    const auto i = static_cast<size_t>(o.index);
    switch (o.kind) {
    case Operand::Kind::kValue:
      return values_[i];
    case Operand::Kind::kNumber:
      return numbers_[i] ? numbers_[i] : builder_.constant(trace_.numbers[i]);
    case Operand::Kind::kConstant:
      return trace_.constants[i].is_none() ? builder_.constant(IValue(), type)
                                           : builder_.constant(trace_.constants[i]);
    default:
      return list(trace_.lists[i], type);
    }
  }

  Value* list(const std::vector<Operand>& items, const TypePtr& type) {
    const TypePtr& own = type->is(TypeKind::kOptional) ? type->element() : type;
    const TypePtr element = own->is(TypeKind::kList) ? own->element() : Type::any();
    std::vector<Value*> values;
    for (const Operand& item : items) values.push_back(operand(item, element));
    return builder_.list(element, values);
  }

  void convert(const TraceNode& n, const std::vector<std::string>& names) {
    std::vector<Value*> args;
    for (size_t i = 0; i < n.args.size(); ++i)
      args.push_back(operand(n.args[i], n.op->schema().arguments[i].type));
    Value* result = builder_.op(*n.op, args);
    if (n.num_outputs == 0) return;  // in place: the value written stands for the result
    const auto first = static_cast<size_t>(n.first_output);
    if (n.result == ResultKind::kTensor) {
      values_[first] = result->set_name(names[first]);
      return;
    }
    const auto count = static_cast<size_t>(n.num_outputs);
    const std::vector<Value*> items = n.result == ResultKind::kTuple
                                          ? builder_.tuple_unpack(result)
                                          : builder_.list_unpack(result, count);
    for (size_t i = 0; i < count; ++i) values_[first + i] = items[i]->set_name(names[first + i]);
  }

  const Trace& trace_;
  Graph& graph_;
  GraphBuilder builder_;
  std::vector<Value*> values_, numbers_;
};

}  // namespace

std::unique_ptr<Graph> to_graph(const Trace& trace, const NumberInputs& number_inputs) {
  auto graph = std::make_unique<Graph>();
  Conversion(trace, number_inputs, *graph);
  return graph;
}

}  // namespace prong::capture
