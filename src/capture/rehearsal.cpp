// Sizes found out ahead of the programs. See rehearsal.h.
#include "capture/rehearsal.h"

#include <algorithm>

#include "capture/recorder.h"
#include "capture/stand_ins.h"

namespace prong::capture {

namespace {

template <class F>
void for_each_operand(const Trace& trace, const Operand& o, F f) {
  if (o.kind != Operand::Kind::kList) return f(o);
  for (const Operand& item : trace.lists[static_cast<size_t>(o.index)])
    for_each_operand(trace, item, f);
}

// A tensor without memory, as the op would lay it out.
IValue fresh(const TensorMeta& m) {
  auto impl = make_ref<TensorImpl>();
  impl->numel = product(m.sizes);
  impl->storage = make_ref<Storage>(static_cast<size_t>(impl->numel) * size_of(m.dtype), no_data());
  impl->sizes = m.sizes;
  impl->strides = contiguous_strides(m.sizes);
  impl->dtype = m.dtype;
  return IValue(Tensor(std::move(impl)));
}

// The kernel's views; none where it would make new tensors.
IValue views(const OpDef& op, std::span<const IValue> args) {
  IValue raw;
  try {
    RecordingOff off;
    raw = op.kernel()(op, args);
  } catch (const DataNeeded&) {
    return {};
  }
  const auto is_view = [&](const IValue& r) {
    return r.is_tensor() && std::any_of(args.begin(), args.end(),
                                        [&](const IValue& a) { return shares_memory(r, a); });
  };
  if (raw.is_tensor()) return is_view(raw) ? raw : IValue();
  if (!raw.is_list() && !raw.is_tuple()) return {};
  return std::all_of(raw.items().begin(), raw.items().end(), is_view) ? raw : IValue();
}

}  // namespace

int32_t Rehearsal::ask(Question q) {
  const auto at = std::find(questions.begin(), questions.end(), q);
  const auto index = static_cast<int32_t>(at - questions.begin());
  if (at == questions.end()) questions.push_back(q);
  return index;
}

void Rehearsal::need(Value v) {
  std::vector<Value> left{v};
  while (!left.empty()) {
    const Value next = left.back();
    left.pop_back();
    if (next.part < 0) continue;
    const auto p = static_cast<size_t>(next.part);
    const Trace& trace = *parts[p].trace;
    const int32_t producer = trace.values[static_cast<size_t>(next.index)].producer;
    if (producer < 0) {
      const auto at = std::find(trace.inputs.begin(), trace.inputs.end(), next.index);
      left.push_back(parts[p].inputs[static_cast<size_t>(at - trace.inputs.begin())]);
      continue;
    }
    if (needed_[p][static_cast<size_t>(producer)]) continue;
    needed_[p][static_cast<size_t>(producer)] = true;
    for (const Operand& o : trace.nodes[static_cast<size_t>(producer)].args)
      for_each_operand(trace, o, [&](const Operand& each) {
        if (each.kind == Operand::Kind::kValue) left.push_back({next.part, each.index});
      });
  }
}

void Rehearsal::prepare() {
  needed_.clear();
  for (const Part& p : parts) needed_.emplace_back(p.trace->nodes.size(), false);
  for (const Question& q : questions) {
    if (q.kind != Question::Kind::kShortcut) {
      need(q.value);
      continue;
    }
    needs_layout_ = true;
    for (const auto& [at, value] : shortcuts[static_cast<size_t>(q.number)].tensors) need(value);
  }
}

std::vector<int32_t> Rehearsal::numbers_used() const {
  std::vector<int32_t> all;
  for (size_t p = 0; p < parts.size(); ++p)
    for (size_t n = 0; n < needed_[p].size(); ++n) {
      if (!needed_[p][n]) continue;
      const Trace& trace = *parts[p].trace;
      for (const Operand& o : trace.nodes[n].args)
        for_each_operand(trace, o, [&](const Operand& each) {
          if (each.kind != Operand::Kind::kNumber) return;
          const auto v = trace.varying.find(static_cast<size_t>(each.index));
          if (v != trace.varying.end()) all.push_back(v->second);
        });
    }
  return all;
}

RehearsalRun::RehearsalRun(const Rehearsal& rehearsal, std::span<const TensorImpl* const> outside)
    : r_(&rehearsal) {
  for (const TensorImpl* t : outside) outside_.push_back(t ? IValue(stand_in_for(*t)) : IValue());
  for (const Rehearsal::Part& p : r_->parts) values_.emplace_back(p.trace->values.size());
}

const IValue& RehearsalRun::at(Rehearsal::Value v) const {
  while (v.part >= 0) {
    const Rehearsal::Part& p = r_->parts[static_cast<size_t>(v.part)];
    if (p.trace->values[static_cast<size_t>(v.index)].producer >= 0)
      return values_[static_cast<size_t>(v.part)][static_cast<size_t>(v.index)];
    const auto in = std::find(p.trace->inputs.begin(), p.trace->inputs.end(), v.index);
    v = p.inputs[static_cast<size_t>(in - p.trace->inputs.begin())];
  }
  return outside_[static_cast<size_t>(v.index)];
}

std::optional<IValue> RehearsalRun::operand(size_t part, const Operand& o,
                                            std::span<const Kept> found) const {
  const Trace& trace = *r_->parts[part].trace;
  const auto i = static_cast<size_t>(o.index);
  switch (o.kind) {
  case Operand::Kind::kValue: {
    const IValue& v = at({static_cast<int32_t>(part), o.index});
    return v.is_none() ? std::nullopt : std::optional(v);
  }
  case Operand::Kind::kConstant:
    return trace.constants[i];
  case Operand::Kind::kNumber: {
    const auto v = trace.varying.find(i);
    if (v == trace.varying.end()) return trace.numbers[i];
    PyObject* now = found[static_cast<size_t>(v->second)].get();
    IValue n = now ? like_recorded(now, trace.numbers[i]) : IValue();
    return n.is_none() ? std::nullopt : std::optional(std::move(n));
  }
  default: {
    std::vector<IValue> items;
    for (const Operand& item : trace.lists[i]) {
      auto each = operand(part, item, found);
      if (!each) return std::nullopt;
      items.push_back(std::move(*each));
    }
    return IValue::list(std::move(items));
  }
  }
}

bool RehearsalRun::run_node(size_t part, const TraceNode& node, std::span<const Kept> found) {
  std::vector<IValue> args;
  for (const Operand& o : node.args) {
    auto arg = operand(part, o, found);
    if (!arg) return false;
    args.push_back(std::move(*arg));
  }
  if (node.num_outputs == 0) return true;  // in place
  IValue result;
  if (node.op->family() == Family::kView || (r_->needs_layout_ && may_alias(*node.op)))
    result = views(*node.op, args);
  if (result.is_none()) {
    result = result_metas(*node.op, args);
    if (result.is_none()) return false;
    if (result.is_meta()) {
      result = fresh(result.meta());
    } else {
      std::vector<IValue> items;
      for (const IValue& m : result.items()) items.push_back(fresh(m.meta()));
      result = IValue::list(std::move(items));
    }
  }
  auto* values = &values_[part][static_cast<size_t>(node.first_output)];
  if (node.result == ResultKind::kTensor) {
    values[0] = std::move(result);
    return values[0].is_tensor();
  }
  if (!(result.is_list() || result.is_tuple()) ||
      result.items().size() != static_cast<size_t>(node.num_outputs))
    return false;
  std::copy(result.items().begin(), result.items().end(), values);
  return true;
}

// Runs what is needed up to the node that makes `v`.
bool RehearsalRun::go_to(Rehearsal::Value v, std::span<const Kept> found) {
  if (v.part < 0) return true;
  const auto part = static_cast<size_t>(v.part);
  const int32_t producer = r_->parts[part].trace->values[static_cast<size_t>(v.index)].producer;
  const auto last = static_cast<size_t>(producer + 1);  // one past it; 0: all parts before this one
  while (part_ < part || (part_ == part && node_ < last)) {
    const Trace& trace = *r_->parts[part_].trace;
    if (node_ == trace.nodes.size()) {
      ++part_;
      node_ = 0;
      continue;
    }
    if (r_->needed_[part_][node_] && !run_node(part_, trace.nodes[node_], found)) return false;
    ++node_;
  }
  return true;
}

std::optional<int64_t> RehearsalRun::answer(const Rehearsal::Question& q,
                                            std::span<const Kept> found) {
  using Kind = Rehearsal::Question::Kind;
  if (q.kind == Kind::kShortcut) {
    const Rehearsal::Shortcut& s = r_->shortcuts[static_cast<size_t>(q.number)];
    std::vector<IValue> args = s.args;
    for (const auto& [at_argument, value] : s.tensors) {
      if (!go_to(value, found)) return std::nullopt;
      args[at_argument] = at(value);
    }
    const IValue result = views(*s.op, args);
    return result.is_tensor() && result.tensor_impl() == args[s.given_back].tensor_impl() ? 1 : 0;
  }
  if (!go_to(q.value, found)) return std::nullopt;
  if (q.kind == Kind::kOutputs) return 1;  // as many as recorded: run_node has compared
  const IValue& v = at(q.value);
  if (!v.is_tensor()) return std::nullopt;
  if (q.kind == Kind::kCount) return v.tensor_impl()->numel;
  const auto rank = static_cast<int64_t>(v.tensor_impl()->sizes.size());
  if (q.kind == Kind::kRank) return rank;
  if (q.number >= rank) return std::nullopt;
  return v.tensor_impl()->sizes[static_cast<size_t>(q.number)];
}

}  // namespace prong::capture
