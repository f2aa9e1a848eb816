// Trace to Graph; see trace_graph.h.
#include "capture/trace_graph.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "capture/trace_regions.h"
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

// The block that is being written: the top one, or the body of a fork.
struct Writing {
  int32_t task = -1;  // the region that it is the body of
  Writing* outer = nullptr;
  Node* fork = nullptr;
  GraphBuilder builder;
  std::unordered_map<ValueId, Value*> values{};
  std::unordered_map<size_t, Value*> numbers{};
  std::unordered_map<int32_t, Value*> futures{};
  std::vector<int32_t> running{};  // tasks that were forked before and not waited for here
};

class Conversion {
 public:
  Conversion(const Trace& trace, const NumberInputs& number_inputs, const std::vector<bool>& tasks,
             Graph& graph)
      : trace_(trace), regions_(trace), tasks_(tasks), names_(value_names(trace)),
        bodies_(trace.regions.size() + 1) {
    for (size_t r = 0; r < trace.regions.size(); ++r)
      bodies_[static_cast<size_t>(trace.regions[r].parent + 1)].push_back(static_cast<int32_t>(r));
    Writing top{.builder = GraphBuilder(graph)};
    for (const ValueId v : trace.inputs)
      top.values[v] = graph.add_input(Type::tensor(), names_[static_cast<size_t>(v)]);
    for (size_t i = 0; i < number_inputs.size(); ++i)
      if (number_inputs[i])
        top.numbers[i] = graph.add_input(type_of_number(trace.numbers[i]), cat("n_", i));
    is_number_input_ = number_inputs;
    convert_items(top, -1, 0, static_cast<int32_t>(trace.nodes.size()));
    std::vector<Value*> outputs;
    for (const ValueId v : trace.outputs) outputs.push_back(get(top, v));
    wait_for_own(top);
    Value* all = top.builder.tuple(outputs);
    top.builder.yield({all});
  }

 private:
  static TypePtr type_of_number(const IValue& v) {
    return v.is_int() ? Type::int_() : v.is_float() ? Type::float_() : Type::tensor();
  }

  // ── regions ──

  bool is_task(int32_t region) const { return tasks_[static_cast<size_t>(region)]; }
  // The innermost task that a region is in.
  int32_t task_of(int32_t region) const {
    while (region >= 0 && !is_task(region)) region = parent(region);
    return region;
  }
  int32_t parent(int32_t region) const {
    return trace_.regions[static_cast<size_t>(region)].parent;
  }
  int32_t outer_task(int32_t task) const { return task_of(parent(task)); }

  // Nodes and bodies of `region` from `first` up to `end`.
  void convert_items(Writing& w, int32_t region, int32_t first, int32_t end) {
    const std::vector<int32_t>& bodies = bodies_[static_cast<size_t>(region + 1)];
    auto next = std::lower_bound(bodies.begin(), bodies.end(), first, [&](int32_t r, int32_t at) {
      return trace_.regions[static_cast<size_t>(r)].first < at;
    });
    for (int32_t i = first; i < end;) {
      if (next == bodies.end() || trace_.regions[static_cast<size_t>(*next)].first != i) {
        wait_for_conflicts(w, static_cast<size_t>(i));
        convert(w, trace_.nodes[static_cast<size_t>(i++)]);
        continue;
      }
      const int32_t body = *next++;
      const auto& r = trace_.regions[static_cast<size_t>(body)];
      if (is_task(body) && regions_.is_dead(body)) {
      } else if (is_task(body) && has_company(region, body)) {
        fork(w, body);
      } else {
        tasks_[static_cast<size_t>(body)] = false;
        convert_items(w, body, r.first, r.end);
      }
      i = r.end;
    }
  }

  // Is there something to do between the fork and the first wait? If not, the body may as well run
  // here.
  bool has_company(int32_t region, int32_t body) const {
    const int32_t after = trace_.regions[static_cast<size_t>(body)].end;
    const int32_t end = region < 0 ? static_cast<int32_t>(trace_.nodes.size())
                                   : trace_.regions[static_cast<size_t>(region)].end;
    if (after == end) return false;
    const int32_t by = regions_.region_of(static_cast<size_t>(after));
    if (by != region) return true;  // another body
    bool waits = false;
    for (const Operand& o : trace_.nodes[static_cast<size_t>(after)].args)
      for_each_value(trace_, o, [&](ValueId v) {
        const int32_t task = task_of(regions_.region_of_value(v));
        waits |= !regions_.contains(task, region);
      });
    return !waits && !regions_.conflicts(body, static_cast<size_t>(after));
  }

  void fork(Writing& w, int32_t body) {
    const auto& r = trace_.regions[static_cast<size_t>(body)];
    const std::vector<ValueId>& given = regions_.outputs(body);
    Node* node =
        w.builder.fork_block({}, Type::tuple(std::vector<TypePtr>(given.size(), Type::tensor())));
    node->output()->set_name(cat(r.name.substr(r.name.rfind('.') + 1), "_task"));
    Writing inner{.task = body, .outer = &w, .fork = node, .builder = GraphBuilder(node->body())};
    inner.running = w.running;
    w.builder.move_before(node);  // what the body takes along
    convert_items(inner, body, r.first, r.end);
    std::vector<Value*> results;
    for (const ValueId v : given) results.push_back(get(inner, v));
    wait_for_own(inner);
    Value* all = inner.builder.tuple(results);
    inner.builder.yield({all});
    w.builder.move_to_end(node->block());
    w.futures[body] = node->output();
    w.running.push_back(body);
  }

  // What the body takes from around it.
  static Value* take_along(Writing& w, Value* outside) {
    w.fork->add_input(outside);
    return w.fork->body()->add_parameter(outside->type(), outside->name());
  }

  Value* future(Writing& w, int32_t task) {
    Value*& f = w.futures[task];
    if (!f) f = take_along(w, future(*w.outer, task));
    return f;
  }

  void wait_for(Writing& w, int32_t task) {
    Value* result = w.builder.wait(future(w, task));
    std::erase(w.running, task);
    const std::vector<ValueId>& given = regions_.outputs(task);
    if (given.empty()) return;
    const std::vector<Value*> items = w.builder.tuple_unpack(result);
    for (size_t i = 0; i < given.size(); ++i)
      w.values[given[i]] = items[i]->set_name(names_[static_cast<size_t>(given[i])]);
  }

  // Tasks that this block started; who reads their results elsewhere waits for the block alone.
  void wait_for_own(Writing& w) {
    for (const int32_t task : std::vector<int32_t>(w.running))
      if (outer_task(task) == w.task) wait_for(w, task);
  }

  void wait_for_conflicts(Writing& w, size_t node) {
    if (!regions_.may_conflict()) return;
    for (const int32_t task : std::vector<int32_t>(w.running))
      if (regions_.conflicts(task, node)) wait_for(w, task);
  }

  // ── values ──

  Value* get(Writing& w, ValueId v) {
    if (const auto it = w.values.find(v); it != w.values.end()) return it->second;
    int32_t task = task_of(regions_.region_of_value(v));
    if (!regions_.contains(task, w.task)) {
      while (!regions_.contains(outer_task(task), w.task)) task = outer_task(task);
      if (std::find(w.running.begin(), w.running.end(), task) != w.running.end()) {
        wait_for(w, task);
        return w.values.at(v);
      }
    }
    PRONG_ASSERT(w.outer, "a recorded value is read before it is made");
    Value* outside = get(*w.outer, v);
    return w.values[v] = take_along(w, outside);
  }

  Value* number(Writing& w, size_t i) {
    if (const auto it = w.numbers.find(i); it != w.numbers.end()) return it->second;
    return w.numbers[i] = take_along(w, number(*w.outer, i));
  }

  Value* operand(Writing& w, const Operand& o, const TypePtr& type) {
    const auto i = static_cast<size_t>(o.index);
    switch (o.kind) {
    case Operand::Kind::kValue:
      return get(w, static_cast<ValueId>(i));
    case Operand::Kind::kNumber:
      return i < is_number_input_.size() && is_number_input_[i]
                 ? number(w, i)
                 : w.builder.constant(trace_.numbers[i]);
    case Operand::Kind::kConstant:
      return trace_.constants[i].is_none() ? w.builder.constant(IValue(), type)
                                           : w.builder.constant(trace_.constants[i]);
    default:
      return list(w, trace_.lists[i], type);
    }
  }

  Value* list(Writing& w, const std::vector<Operand>& items, const TypePtr& type) {
    const TypePtr& own = type->is(TypeKind::kOptional) ? type->element() : type;
    const TypePtr element = own->is(TypeKind::kList) ? own->element() : Type::any();
    std::vector<Value*> values;
    for (const Operand& item : items) values.push_back(operand(w, item, element));
    return w.builder.list(element, values);
  }

  void convert(Writing& w, const TraceNode& n) {
    std::vector<Value*> args;
    for (size_t i = 0; i < n.args.size(); ++i)
      args.push_back(operand(w, n.args[i], n.op->schema().arguments[i].type));
    Value* result = w.builder.op(*n.op, args);
    if (n.num_outputs == 0) return;  // in place: the value written stands for the result
    const auto first = static_cast<size_t>(n.first_output);
    if (n.result == ResultKind::kTensor) {
      w.values[n.first_output] = result->set_name(names_[first]);
      return;
    }
    const auto count = static_cast<size_t>(n.num_outputs);
    const std::vector<Value*> items = n.result == ResultKind::kTuple
                                          ? w.builder.tuple_unpack(result)
                                          : w.builder.list_unpack(result, count);
    for (size_t i = 0; i < count; ++i)
      w.values[n.first_output + static_cast<ValueId>(i)] = items[i]->set_name(names_[first + i]);
  }

  const Trace& trace_;
  const TraceRegions regions_;
  std::vector<bool> tasks_;
  const std::vector<std::string> names_;
  std::vector<std::vector<int32_t>> bodies_;  // by the region around them, and 1
  NumberInputs is_number_input_;
};

}  // namespace

std::unique_ptr<Graph> to_graph(const Trace& trace, const NumberInputs& number_inputs,
                                const std::vector<bool>& tasks) {
  auto graph = std::make_unique<Graph>();
  Conversion(trace, number_inputs, tasks, *graph);
  return graph;
}

std::unique_ptr<Graph> to_graph(const Trace& trace, const NumberInputs& number_inputs) {
  return to_graph(trace, number_inputs, std::vector<bool>(trace.regions.size(), true));
}

}  // namespace prong::capture
