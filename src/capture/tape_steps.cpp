// What a recorded call did to the tape, and which numbers of its traces follow from that: see
// retrace.h and tracker.h.
#include <algorithm>
#include <set>

#include "capture/session.h"
#include "capture/stand_ins.h"
#include "capture/tracker.h"
#include "eager/modes.h"

namespace prong::capture {

namespace {

bool takes_numbers(const Trace& trace, const Operand& o) {
  if (o.kind == Operand::Kind::kNumber) return true;
  if (o.kind != Operand::Kind::kList) return false;
  const auto& items = trace.lists[static_cast<size_t>(o.index)];
  return std::any_of(items.begin(), items.end(),
                     [&](const Operand& item) { return takes_numbers(trace, item); });
}
bool takes_numbers(const Trace& trace, const TraceNode& node) {
  return std::any_of(node.args.begin(), node.args.end(),
                     [&](const Operand& o) { return takes_numbers(trace, o); });
}

bool is_same_source(const TensorSource& a, const TensorSource& b) {
  return a.kind == b.kind && a.index == b.index && a.object == b.object;
}

IValue like(const IValue& number, double value) {
  if (number.is_int()) return IValue(static_cast<int64_t>(value));
  return number.is_tensor() ? IValue(Tensor::wrapped(value)) : IValue(value);
}

}  // namespace

// ── recording ──

// Where the nodes stand that were recorded since then.
bool Tracker::begin_step(TapeStep& step, uint64_t nodes_before) {
  Recorder& r = thread_recorder();
  const Trace* trace = r.open_trace();
  const size_t count = trace ? trace->nodes.size() : 0;
  const uint64_t since = r.num_recorded() - nodes_before;
  step.part = parts_.size();
  step.end = count;
  step.first = count - std::min<size_t>(since, count);
  if (since > count) cannot_retrace_ = true;  // a graph ended meanwhile
  return !cannot_retrace_;
}

void Tracker::note_backward(PyObject* const* args, uint64_t nodes_before) {
  TapeStep step{TapeStep::Kind::kBackward, 0, 0, 0};
  step.spread_sums = thread_recorder().take_spread_sums();
  for (const Part& p : parts_)
    for (const auto& [slot, n] : p.trace->varying) numbers_on_tape_.push_back(n);
  if (const Trace* open = thread_recorder().open_trace())
    for (const auto& [slot, n] : open->varying) numbers_on_tape_.push_back(n);
  if (!begin_step(step, nodes_before)) return;
  step.modes = context()[ContextWord::kModes];
  step.options.keep_graph = PyObject_IsTrue(args[2]) == 1;
  step.options.create_graph = PyObject_IsTrue(args[3]) == 1;
  step.options.returns = PyObject_IsTrue(args[5]) == 1;
  step.options.allow_unused = PyObject_IsTrue(args[6]) == 1;
  const auto each = [&](PyObject* sequence, auto use) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence); ++i) {
      PyObject* o = PySequence_Fast_GET_ITEM(sequence, i);
      std::optional<Rehearsal::Value> v;
      if (door().is_tensor(o)) v = rehearsed_value(door().impl_of(o));
      if (!v && o != Py_None) cannot_retrace_ = true;
      use(v);
    }
  };
  const auto into = [&](std::vector<Rehearsal::Value>& to) {
    return [&](std::optional<Rehearsal::Value> v) {
      if (v)
        to.push_back(*v);
      else
        cannot_retrace_ = true;
    };
  };
  each(args[0], into(step.roots));
  each(args[1], [&](std::optional<Rehearsal::Value> v) { step.gradients.push_back(v); });
  each(args[4], into(step.inputs));
  plan_->retrace.steps.push_back(std::move(step));
}

bool Tracker::note_argument(RetracedArgument& to, const IValue& v) {
  if (v.is_tensor() && !v.tensor_impl()->is_wrapped_number) {
    to.tensor = rehearsed_value(v.tensor_impl());
    // Weights in a list are known once the op has been called with it.
    if (!to.tensor) to.from_outside = Ref<TensorImpl>(v.tensor_impl());
    return true;
  }
  to.is_list = v.is_list();
  to.is_tuple = v.is_tuple();
  if (!to.is_list && !to.is_tuple) {
    to.plain = v;
    return true;
  }
  for (const IValue& item : v.items())
    if (!note_argument(to.items.emplace_back(), item)) return false;
  return true;
}

bool Tracker::settle_argument(RetracedArgument& a) {
  if (a.from_outside) {
    if (!roots_.count(a.from_outside.get())) return false;
    a.tensor = rehearsed_value(a.from_outside.get());
    a.from_outside = {};
  }
  return std::all_of(a.items.begin(), a.items.end(),
                     [this](RetracedArgument& item) { return settle_argument(item); });
}

// A composite op put its parts on the tape: some of their numbers it may have worked out itself.
void Tracker::on_composite(const OpDef& op, std::span<const IValue> args, uint64_t modes,
                           uint64_t nodes_before, bool has_shortcut) {
  TapeStep step{TapeStep::Kind::kComposite, 0, 0, 0};
  if (begin_step(step, nodes_before)) {
    const Trace* trace = thread_recorder().open_trace();
    bool matters = has_shortcut;
    for (size_t n = step.first; n < step.end; ++n)
      matters |= takes_numbers(*trace, trace->nodes[n]);
    if (!matters) return;
  }
  has_composites_ = true;
  step.modes = modes;
  step.op = &op;
  for (const IValue& a : args)
    if (!note_argument(step.args.emplace_back(), a)) cannot_retrace_ = true;
  plan_->retrace.steps.push_back(std::move(step));
}

void Tracker::note_gradient_set(TensorImpl* leaf, TensorImpl* gradient) {
  TapeStep step{TapeStep::Kind::kGradient, 0, 0, 0};
  if (!begin_step(step, thread_recorder().num_recorded())) return;
  const auto at = rehearsed_value(leaf);
  if (gradient) step.gradient = rehearsed_value(gradient);
  if (!at || (gradient && !step.gradient)) {
    cannot_retrace_ = true;
    return;
  }
  step.leaf = *at;
  plan_->retrace.steps.push_back(std::move(step));
}

void Tracker::note_leaf(TensorImpl* leaf) {
  TapeStep step{TapeStep::Kind::kLeaf, 0, 0, 0};
  if (!begin_step(step, thread_recorder().num_recorded())) return;
  const auto at = rehearsed_value(leaf);
  if (!at) {
    cannot_retrace_ = true;
    return;
  }
  step.leaf = *at;
  plan_->retrace.steps.push_back(std::move(step));
}

// ── going the same way again, as a trial ──

std::vector<Retrace::Outside> Tracker::retraced_outside() {
  std::vector<Retrace::Outside> outside(plan_->rehearsal_roots.size());
  plan_->retraced_gradients.assign(outside.size(), -1);
  for (const auto& [impl, root] : roots_) {
    if (root.rehearsed < 0) continue;
    Retrace::Outside& o = outside[static_cast<size_t>(root.rehearsed)];
    o.geometry = root.impl.get();
    o.requires_grad = root.requires_grad;
    if (root.source.kind != TensorSource::Kind::kGradient) continue;
    const TensorSource& leaf = plan_->leaves[static_cast<size_t>(root.source.index)].tensor;
    for (const auto& [other, at] : roots_)
      if (is_same_source(at.source, leaf)) o.gradient_of = at.rehearsed;
    plan_->retraced_gradients[static_cast<size_t>(root.rehearsed)] = o.gradient_of;
  }
  return outside;
}

// Does the number follow from sizes alone?
bool Tracker::is_of_sizes(int32_t number) const {
  const NumberStep& s = plan_->numbers[static_cast<size_t>(number)];
  switch (s.kind) {
  case NumberStep::Kind::kSize:
  case NumberStep::Kind::kRehearsed:
  case NumberStep::Kind::kConstant:
    return s.after == 0;
  case NumberStep::Kind::kOperator:
  case NumberStep::Kind::kCall:
    return std::all_of(s.of.begin(), s.of.end(), [this](int32_t k) { return is_of_sizes(k); });
  default:
    return false;
  }
}

// A segment is about to run: finds out which of its numbers follow from sizes.
void Tracker::foresee(Trace& trace, std::span<TensorImpl* const> impls) {
  if (!is_on() || cannot_retrace_) return;
  Retrace& retrace = plan_->retrace;
  for (TapeStep& s : retrace.steps)
    for (RetracedArgument& a : s.args)
      if (!settle_argument(a)) {
        cannot_retrace_ = true;
        return;
      }
  Rehearsal::Part part{std::make_shared<Trace>(trace), {}};
  for (const ValueId v : trace.inputs) {
    const auto at = rehearsed_value(known_as(impls[static_cast<size_t>(v)]));
    if (!at) {
      cannot_retrace_ = true;
      return;
    }
    part.inputs.push_back(*at);
  }
  retrace.parts.push_back(std::move(part));
  plan_->cache = Ref<ProgramCache>(thread_recorder().cache());
  if (pins_sizes_ || !trace.regions.empty()) cannot_retrace_ = true;
  if (retrace.steps.empty() || cannot_retrace_) return;
  if (!try_retrace(trace)) cannot_retrace_ = true;
}

// Numbers from outside whose gradient rules may compute with them stay what they are. The others,
// which rules hand on as they are: `handed_on`, by part and slot.
void Tracker::pin_what_the_tape_reads(NumbersAt& handed_on) {
  const Retrace& retrace = plan_->retrace;
  std::pair<size_t, size_t> last{0, 0};  // where the last backward pass began
  for (const TapeStep& s : retrace.steps)
    if (s.kind == TapeStep::Kind::kBackward) last = {s.part, s.first};
  for (size_t p = 0; p < retrace.parts.size(); ++p) {
    const Trace& trace = *retrace.parts[p].trace;
    const std::vector<bool> refusable = refusable_numbers(trace);  // part of what a plan accepts
    for (size_t n = 0; n < trace.nodes.size(); ++n) {
      const TraceNode& node = trace.nodes[n];
      const bool is_derived = retrace.is_node_derived(p, n);
      const bool is_taped = !(node.modes & eager::kNoGrad) && std::pair(p, n) < last;
      if (!is_derived && !is_taped) continue;
      const auto look = [&](const Operand& o, const auto& self) -> void {
        if (o.kind == Operand::Kind::kList)
          for (const Operand& item : trace.lists[static_cast<size_t>(o.index)]) self(item, self);
        if (o.kind != Operand::Kind::kNumber) return;
        const auto varying = trace.varying.find(static_cast<size_t>(o.index));
        if (varying == trace.varying.end()) return;
        const auto& [slot, number] = *varying;
        const bool is_late = plan_->numbers[static_cast<size_t>(number)].after > 0;
        if (!is_derived && !is_late && (refusable[slot] || is_of_sizes(number))) return;
        const bool is_pointwise =
            node.op->pointwise() || (node.op->inplace_of() && node.op->inplace_of()->pointwise());
        if (!is_derived && !is_late && is_pointwise)
          handed_on.emplace(std::pair(p, slot), number);
        else
          pin(Term::number(number));
      };
      for (const Operand& o : node.args) look(o, look);
    }
  }
}

// Which numbers of the traces are those that gradient rules hand on? Shown by other ones in their
// place; and by some for which a rule might do something else.
bool Tracker::find_handed_on(const NumbersAt& handed_on,
                             const std::vector<Retrace::Outside>& outside,
                             const std::vector<std::vector<IValue>>& recorded) {
  std::map<int32_t, double> shown;
  const auto run = [&] {
    std::vector<std::vector<IValue>> given = recorded;
    for (const auto& [at, number] : handed_on)
      given[at.first][at.second] = like(given[at.first][at.second], shown.at(number));
    return plan_->retrace.run(outside, std::move(given));
  };
  for (const auto& [at, number] : handed_on) {
    const IValue& n = recorded[at.first][at.second];
    const auto k = static_cast<double>(shown.size());
    shown.try_emplace(number, n.is_int() ? 1009 + k : value_of(n).value_or(0) * 1.25 + 3.5 + k);
  }
  NumbersAt found;
  const auto then = run();
  if (!then) return false;
  for (size_t p = 0; p < recorded.size(); ++p)
    for (size_t slot = 0; slot < recorded[p].size(); ++slot) {
      if (handed_on.count({p, slot}) || same_number(then->numbers[p][slot], recorded[p][slot]))
        continue;
      const auto now = value_of(then->numbers[p][slot]);
      const auto number = std::find_if(shown.begin(), shown.end(),
                                       [&](const auto& s) { return now && s.second == *now; });
      if (number == shown.end() || p + 1 != recorded.size()) return false;
      found.emplace(std::pair(p, slot), number->first);
    }
  for (const double special : {0.0, 1.0, -1.0, 2.0}) {
    for (auto& [number, value] : shown) value = special;
    const auto same = run();
    if (!same) return false;
    for (size_t p = 0; p < recorded.size(); ++p)
      for (size_t slot = 0; slot < recorded[p].size(); ++slot) {
        if (handed_on.count({p, slot})) continue;
        const IValue& n = recorded[p][slot];
        const IValue& now = same->numbers[p][slot];
        if (!same_number(now, found.count({p, slot}) ? like(n, special) : n)) return false;
      }
  }
  for (const auto& [at, number] : found)
    const_cast<Trace*>(plan_->retrace.parts.back().trace.get())->varying.emplace(at.second, number);
  return true;
}

// Gives what was recorded for the sizes that were recorded? If so, marks numbers that are others
// for other sizes, and those that are numbers of the call.
bool Tracker::try_retrace(Trace& trace) {
  struct NoTracker {  // what a trial does is none of the call's doing
    NoTracker() { set_current_tracker(nullptr); }
    ~NoTracker() { set_current_tracker(saved); }
    Tracker* saved = current_tracker();
  } no_tracker;
  const Retrace& retrace = plan_->retrace;
  NumbersAt handed_on;
  pin_what_the_tape_reads(handed_on);
  std::vector<std::vector<IValue>> given;
  for (const Rehearsal::Part& p : retrace.parts) given.push_back(p.trace->numbers);
  const std::vector<Retrace::Outside> outside = retraced_outside();
  const auto same = retrace.run(outside, given);
  if (!same) return false;
  for (size_t p = 0; p < retrace.parts.size(); ++p)
    for (size_t slot = 0; slot < given[p].size(); ++slot)
      if (!same_number(same->numbers[p][slot], given[p][slot])) return false;
  if (!handed_on.empty()) {
    if (find_handed_on(handed_on, outside, given))
      trace.varying = retrace.parts.back().trace->varying;
    else
      for (const auto& [at, number] : handed_on) pin(Term::number(number));
  }
  mark_sized_numbers(trace, outside, given);
  return true;
}

// Sizes of arguments are tried one larger, all that are alike together.
void Tracker::mark_sized_numbers(Trace& trace, std::vector<Retrace::Outside> outside,
                                 const std::vector<std::vector<IValue>>& given) {
  const std::vector<IValue>& recorded = plan_->retrace.parts.back().trace->numbers;
  std::vector<size_t> arguments;
  std::set<int64_t> sizes;
  for (size_t i = 0; i < outside.size(); ++i) {
    if (plan_->rehearsal_roots[i].kind != TensorSource::Kind::kArgument) continue;
    if (!outside[i].geometry->is_contiguous) return;
    arguments.push_back(i);
    for (const int64_t n : outside[i].geometry->sizes) sizes.insert(n);
  }
  constexpr size_t kMostTried = 4;
  std::set<size_t> sized;
  const auto try_larger = [&](int64_t size, bool is_first_only) {
    std::vector<Ref<TensorImpl>> larger;
    std::vector<Retrace::Outside> changed = outside;
    for (const size_t i : arguments) {
      const TensorImpl& t = *outside[i].geometry;
      Dims wanted = t.sizes;
      for (size_t d = 0; d < (is_first_only ? std::min<size_t>(1, wanted.size()) : wanted.size());
           ++d)
        if (wanted[d] == size) wanted[d] = size + 1;
      if (wanted == t.sizes) continue;
      larger.push_back(blank_like(t, wanted));
      changed[i].geometry = larger.back().get();
    }
    const auto now = plan_->retrace.run(changed, given);
    if (!now) return false;
    for (size_t slot = 0; slot < recorded.size(); ++slot)
      if (!same_number(now->numbers.back()[slot], recorded[slot])) sized.insert(slot);
    return true;
  };
  if (sizes.size() > kMostTried) return;
  for (const int64_t size : sizes)
    if (!try_larger(size, false)) try_larger(size, true);
  trace.sized.assign(sized.begin(), sized.end());
}

// ── the plan ──

// Can the plan be right for sizes other than the recorded ones? What was worked out from sizes then
// has to be worked out for each.
void Tracker::settle_retrace() {
  const bool is_needed = plan_->has_backward || has_composites_;
  if (cannot_retrace_ || plan_->retrace.parts.size() != parts_.size() || has_python_backend_ ||
      pins_sizes_ || !no_shortcut_is_derived()) {
    plan_->retrace = {};
    if (!is_needed) return;
    if (has_steps_) give_up("numbers on the tape follow from sizes that data decide");
    looked_at_sizes();
    for (const int32_t n : numbers_on_tape_) pin(Term::number(n));
    return;
  }
  for (size_t p = 0; p < parts_.size(); ++p) plan_->retrace.parts[p].trace = parts_[p].trace;
  retraced_outside();
  plan_->retrace.asked = plan_->rehearsal.questions;
  plan_->is_retraced = true;
  plan_->is_derived = is_needed;
}

// Whether an op gives its argument back is asked of no tensor whose size goes through numbers that
// follow from sizes: the rehearsal takes these as they were. (Sizes themselves are compared later.)
bool Tracker::no_shortcut_is_derived() const {
  Rehearsal r = plan_->rehearsal;
  std::erase_if(r.questions, [](const Rehearsal::Question& q) {
    return q.kind != Rehearsal::Question::Kind::kShortcut;
  });
  for (const Part& p : parts_) r.parts.push_back({p.trace, p.rehearsed_inputs});
  r.prepare();
  for (size_t p = 0; p < parts_.size(); ++p)
    for (size_t n = 0; n < parts_[p].trace->nodes.size(); ++n)
      if (r.is_needed(p, n) && plan_->retrace.is_node_derived(p, n) &&
          takes_numbers(*parts_[p].trace, parts_[p].trace->nodes[n]))
        return false;
  return true;
}

}  // namespace prong::capture
