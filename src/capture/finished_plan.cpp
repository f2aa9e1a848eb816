// What was tracked becomes a plan when the call has ended. Called by bindings/capture.cpp.
#include <algorithm>

#include "capture/python_steps.h"
#include "capture/session.h"
#include "capture/tracker.h"
#include "eager/modes.h"

namespace prong::capture {

namespace {

void mark_read(const Trace& trace, const Operand& o, std::vector<bool>& is_read) {
  if (o.kind == Operand::Kind::kValue) is_read[static_cast<size_t>(o.index)] = true;
  if (o.kind == Operand::Kind::kList)
    for (const Operand& item : trace.lists[static_cast<size_t>(o.index)])
      mark_read(trace, item, is_read);
}

bool has_unread_node(const Trace& trace, const std::vector<ValueId>& outputs) {
  std::vector<bool> is_read(trace.values.size(), false);
  for (const ValueId v : outputs) is_read[static_cast<size_t>(v)] = true;
  for (const TraceNode& n : trace.nodes)
    for (const Operand& o : n.args) mark_read(trace, o, is_read);
  for (const TraceNode& n : trace.nodes) {
    bool is_used = n.num_outputs == 0;
    for (int32_t k = 0; k < n.num_outputs; ++k)
      is_used |= is_read[static_cast<size_t>(n.first_output + k)];
    if (!is_used) return true;
  }
  return false;
}

}  // namespace

void Tracker::finish(PyObject* result, Term term, const Context& before) {
  for (const ContextWord w :
       {ContextWord::kModes, ContextWord::kAutocast, ContextWord::kSavingHooks})
    if (before[w] != context()[w]) give_up("a mode is another after the call");
  if (plan_->default_dtype != default_dtype()) give_up("a mode is another after the call");
  is_finished_ = true;
  result_kept_ = Kept(result);
  result_term_ = term;
}

// The program's output that the source names, asked for from now on.
TensorSource Tracker::output_of(TensorSource source) {
  if (source.kind != TensorSource::Kind::kProgram) return source;
  auto& wanted = parts_[static_cast<size_t>(source.index)].wanted;
  const auto at = std::find(wanted.begin(), wanted.end(), source.output);
  const auto index = static_cast<int32_t>(at - wanted.begin());
  if (at == wanted.end()) wanted.push_back(source.output);
  source.output = index;
  return source;
}

void Tracker::branched(PyObject* tensor, bool outcome) {
  const auto source = source_of(door().impl_of(tensor));
  if (!source) return give_up("a branch on a tensor of unknown origin");
  if (plan_->has_writes) return give_up("a branch on a tensor after something was written");
  plan_->branches.push_back({parts_.size(), output_of(*source), outcome});
}

bool Tracker::describe(PyObject* value, Term term, Template* out) {
  for (size_t i = 0; i < arguments_.size() && !door().is_tensor(value); ++i) {
    if (arguments_[i] != value || !(term.is_same() || is_container_argument(value))) continue;
    out->kind =
        Template::Kind::kArgument;  // an equal one next time, and that very one is given back
    out->object = static_cast<int32_t>(i);
    return true;
  }
  if (term.is_number()) {
    out->kind = Template::Kind::kNumber;
    out->object = term.index;
    return true;
  }
  if (term.is_same() && !door().is_tensor(value)) {
    out->kind = Template::Kind::kObject;
    out->object = keep(value);
    return true;
  }
  if (term.is_tensor() || (term.is_same() && door().is_tensor(value))) {
    const auto source = source_of(door().impl_of(value));
    if (!source) return false;
    leaving_.emplace_back(Ref<TensorImpl>(door().impl_of(value)), *source);
    out->kind = Template::Kind::kTensor;
    out->tensor = output_of(*source);
    out->is_inference = door().impl_of(value)->is_inference;
    return true;
  }
  if (!term.is_made()) return false;
  if (const auto node = nodes_.find(term.index); node != nodes_.end())
    return describe_node(value, term, node->second, out);
  return describe_made(term, out);
}

bool Tracker::describe_made(Term term, Template* out) {
  const Made& m = made(term);
  if (m.kind == Made::Kind::kInstance) return describe_instance(m, out);
  if (m.has_names ||
      (m.kind != Made::Kind::kTuple && m.kind != Made::Kind::kList && m.kind != Made::Kind::kDict &&
       m.kind != Made::Kind::kSet && m.kind != Made::Kind::kFuture))
    return false;
  if (m.kind == Made::Kind::kSet && (!m.object || !PySet_CheckExact(m.object))) return false;
  out->kind = m.is_size                       ? Template::Kind::kSize
              : m.kind == Made::Kind::kTuple  ? Template::Kind::kTuple
              : m.kind == Made::Kind::kList   ? Template::Kind::kList
              : m.kind == Made::Kind::kSet    ? Template::Kind::kSet
              : m.kind == Made::Kind::kFuture ? Template::Kind::kFuture
                                              : Template::Kind::kDict;
  if (m.type.get()) {
    out->kind = Template::Kind::kTupleOf;
    out->object = keep(m.type.get());
  }
  for (size_t i = 0; i < m.items.size(); ++i) {
    out->items.emplace_back();
    if (!describe(m.objects[i], m.items[i], &out->items.back())) return false;
  }
  if (m.kind != Made::Kind::kDict) return true;
  for (const Kept& key : m.keys)
    if (!is_plain_value(key.get()) && !find(key.get()).is_same()) return false;
  PyObject* keys = PyTuple_New(static_cast<Py_ssize_t>(m.keys.size()));
  for (size_t i = 0; i < m.keys.size(); ++i)
    PyTuple_SET_ITEM(keys, static_cast<Py_ssize_t>(i), Py_NewRef(m.keys[i].get()));
  out->object = keep(keys);
  Py_DECREF(keys);
  return true;
}

bool Tracker::has_taped_nodes() const {
  for (const Part& p : parts_)
    for (const TraceNode& n : p.trace->nodes)
      if (!(n.modes & eager::kNoGrad)) return true;
  return false;
}

std::unique_ptr<Plan> Tracker::take_plan(const Context& context) {
  if (!is_on()) return nullptr;
  if (!is_finished_) {
    give_up("the call ended by another way than its outermost return");
    return nullptr;
  }
  if (!containers_are_unchanged()) {
    give_up("a list or dict that is passed is changed, or may be one that the call changes");
    return nullptr;
  }
  count_uses();
  if (!describe(result_kept_.get(), result_term_, &plan_->result)) {
    give_up("the result holds something that cannot be built again");
    return nullptr;
  }
  for (Store& e : effects_) {
    const bool is_given = e.kind == Effect::Kind::kArgument || e.kind == Effect::Kind::kContents;
    Effect effect{Kept(is_given ? nullptr : e.owner.get()),
                  Kept(e.name.get()),
                  {},
                  e.kind,
                  e.argument,
                  e.order};
    if (!(e.kind == Effect::Kind::kContents ? describe_made(e.term, &effect.value)
                                            : describe(e.value.get(), e.term, &effect.value))) {
      give_up("an attribute is assigned something that cannot be built again");
      return nullptr;
    }
    plan_->effects.push_back(std::move(effect));
  }
  if (plan_->has_writes && sizes_wait_) {
    give_up("sizes that are read from tensors stand beside what writes");
    return nullptr;
  }
  if (!describe_gradients()) {
    give_up("a gradient is left that cannot be computed again");
    return nullptr;
  }
  if (const char* why = thread_recorder().why_spoiled()) {
    give_up(why);
    return nullptr;
  }
  if (plan_->has_backward ? !settle_tape() : !accumulated_.empty()) {
    give_up("a backward pass that is not followed");
    return nullptr;
  }
  const bool taped = needs_tape_ && !plan_->has_backward && (is_grad_on_ || has_taped_nodes());
  if (makes_leaves_ && !plan_->has_backward)
    give_up("a new leaf in a call without a backward pass");
  if (makes_tape_steps_ && !plan_->has_backward)
    give_up("a step of the tape that only Python can go back through");
  if (puts_random_state_ && plan_->has_draws)
    give_up("random numbers are drawn beside a state of the generator that is put back");
  if (taped && has_python_backend_) give_up("a back end's callable has no gradients");
  if (taped && has_other_names_) give_up("a backward pass that is not followed");
  if (taped && has_inference_) give_up("inference mode inside a call that has gradients");
  if (!is_on()) return nullptr;
  settle_retrace();
  settle_numbers();
  if (plan_->has_backward && has_tensor_steps_)
    give_up("a call that others see is given a tensor beside a backward pass");
  if (!is_on()) return nullptr;
  for (Part& p : parts_) {
    PlanProgram program;
    if (p.step) {
      plan_->has_steps = true;
      program.step = p.step;
      plan_->programs.push_back(std::move(program));
      continue;
    }
    program.trace = p.trace;
    program.inputs = p.inputs;
    program.outputs = p.wanted;
    // A program takes different names for different memory where something is written.
    NumberInputs inputs = p.number_inputs;
    const bool gives_all = std::all_of(p.wanted.begin(), p.wanted.end(), [&](ValueId v) {
      return std::count(p.runner_outputs.begin(), p.runner_outputs.end(), v) != 0;
    });
    // Sizes that data decide are no part of what sizes a plan was run with.
    const bool may_leave_out = !has_steps_ || !has_unread_node(*p.trace, p.runner_outputs);
    if (!taped && p.runner && gives_all && may_leave_out &&
        (!p.trace->has_writes || !p.trace->inputs_overlap)) {
      program.runner = p.runner;
      if (p.wanted != p.runner_outputs)
        for (const ValueId v : p.wanted)
          program.picked.push_back(
              static_cast<size_t>(std::find(p.runner_outputs.begin(), p.runner_outputs.end(), v) -
                                  p.runner_outputs.begin()));
      program.is_picked = p.wanted != p.runner_outputs;
      plan_->drops_nodes |= has_unread_node(*p.trace, p.runner_outputs);
    } else {
      p.trace->outputs = p.wanted;
      inputs.assign(p.trace->numbers.size(), false);
      for (const auto& [slot, number] : p.trace->varying) inputs[slot] = true;
      for (const size_t slot : p.trace->sized) inputs[slot] = true;
      program.is_loop = true;
      program.is_taped = taped;
      program.runner = with_tasks(p.trace, inputs, node_loop(p.trace, inputs, taped), false);
      plan_->drops_nodes |= !p.trace->regions.empty() && has_unread_node(*p.trace, p.wanted);
    }
    program.take_numbers(inputs);
    for (const VaryingNumber& v : program.varying)
      program.waits |= plan_->numbers[static_cast<size_t>(v.number)].after > 0;
    plan_->programs.push_back(std::move(program));
  }
  if (pins_sizes_)
    for (TensorGuard& t : plan_->tensors)
      for (const auto& [impl, root] : roots_)
        if (root.source.kind == t.source.kind && root.source.index == t.source.index &&
            root.source.object == t.source.object) {
          t.sizes = impl->sizes;
          t.strides = impl->strides;
        }
  std::vector<int64_t> sizes;  // of this call, which went well
  std::vector<const TensorImpl*> given;
  for (const TensorGuard& t : plan_->tensors)
    for (const auto& [impl, root] : roots_)
      if (root.source.kind == t.source.kind && root.source.index == t.source.index &&
          root.source.object == t.source.object)
        given.push_back(impl);
  append_geometry(sizes, given);
  for (const PlanProgram& p : plan_->programs)
    for (const VaryingNumber& v : p.varying)
      if (v.may_be_refused && plan_->numbers[static_cast<size_t>(v.number)].after == 0)
        append_number(sizes, p.numbers[v.at]);
  plan_->accept(std::move(sizes), std::move(checks_));
  plan_->context = context;
  return std::move(plan_);
}

}  // namespace prong::capture
