// Going a plan's way again without data. See retrace.h.
#include "capture/retrace.h"

#include <algorithm>
#include <unordered_map>

#include "capture/stand_ins.h"
#include "capture/tracker.h"
#include "eager/autocast.h"
#include "eager/record.h"
#include "profile/profile.h"

namespace prong::capture {

namespace {

// Keeps what it has learned of ops that read data.
Recorder& dry_recorder() {
  thread_local Recorder* recorder = new Recorder(true);  // never freed, as the others
  return *recorder;
}

size_t slot_node(const Trace& trace, size_t slot) {
  const auto has = [&](const Operand& o, const auto& self) -> bool {
    if (o.kind == Operand::Kind::kNumber) return static_cast<size_t>(o.index) == slot;
    if (o.kind != Operand::Kind::kList) return false;
    for (const Operand& item : trace.lists[static_cast<size_t>(o.index)])
      if (self(item, self)) return true;
    return false;
  };
  for (size_t n = 0; n < trace.nodes.size(); ++n)
    for (const Operand& o : trace.nodes[n].args)
      if (has(o, has)) return n;
  return trace.nodes.size();
}

}  // namespace

class Retracing {
 public:
  Retracing(const Retrace& retrace, std::span<const Retrace::Outside> outside,
            std::vector<std::vector<IValue>> numbers)
      : r_(retrace), recorder_(dry_recorder()), numbers_(std::move(numbers)) {
    context()[ContextWord::kKernels] =
        reinterpret_cast<uint64_t>(static_cast<eager::KernelStandIn*>(&recorder_));
    context()[ContextWord::kInterceptor] = 0;
    context()[ContextWord::kAutocast] = 0;  // its casts are ops of the trace
    for (const Retrace::Outside& o : outside) outside_.push_back(stand_in(o));
    for (size_t i = 0; i < outside.size(); ++i)
      if (outside[i].gradient_of >= 0)
        eager::make_meta(outside_[static_cast<size_t>(outside[i].gradient_of)].impl()).grad =
            outside_[i];
  }
  ~Retracing() { leave_segment(); }

  bool run(Retrace::Result& result) {
    size_t step = 0;
    for (size_t p = 0; p < r_.parts.size(); ++p)
      if (!run_part(p, step, result)) return false;
    for (; step < r_.steps.size(); ++step)
      if (r_.steps[step].first != r_.steps[step].end) return false;
    for (const Rehearsal::Question& q : r_.asked) result.answers.push_back(answer(q));
    return true;
  }

 private:
  using Value = Rehearsal::Value;

  Tensor stand_in(const Retrace::Outside& o) {
    const TensorImpl& t = *o.geometry;
    Ref<Storage>& memory = memory_[t.storage.get()];
    if (!memory) memory = make_ref<Storage>(t.storage->bytes(), no_data());
    Tensor fake = Tensor::view_of(memory, t.offset, t.sizes, t.strides, t.dtype);
    fake.impl()->is_apart = t.is_apart;
    fake.impl()->requires_grad = o.requires_grad;
    return fake;
  }

  // Undefined where it is not there yet.
  Tensor at(Value v) const {
    while (v.part >= 0) {
      const auto p = static_cast<size_t>(v.part);
      const auto i = static_cast<size_t>(v.index);
      if (p < values_.size()) return values_[p][i];
      if (p == values_.size() && segment_ && i < segment_->live_.size())
        return Tensor(segment_->live_[i].impl);
      const Trace& trace = *r_.parts[p].trace;
      if (i >= trace.values.size() || trace.values[i].producer >= 0) return {};
      const auto in = std::find(trace.inputs.begin(), trace.inputs.end(), v.index);
      v = r_.parts[p].inputs[static_cast<size_t>(in - trace.inputs.begin())];
    }
    return outside_[static_cast<size_t>(v.index)];
  }

  int64_t answer(const Rehearsal::Question& q) const {
    const bool is_size = q.kind == Rehearsal::Question::Kind::kSize;
    if (!is_size && q.kind != Rehearsal::Question::Kind::kCount) return -1;
    const Tensor t = at(q.value);
    return is_size ? t.sizes()[static_cast<size_t>(q.number)] : t.numel();
  }

  bool run_part(size_t p, size_t& step, Retrace::Result& result) {
    const Trace& old = *r_.parts[p].trace;
    segment_ = Ref<Segment>(&recorder_.open());
    recorder_.again_ = &old;
    const Trace& now = segment_->trace();
    size_t node = 0;
    while (true) {
      while (step < r_.steps.size() && r_.steps[step].part == p && r_.steps[step].first == node) {
        const TapeStep& s = r_.steps[step++];
        if (!run_step(s)) return false;
        node = s.end;
        if (now.nodes.size() != node) return false;
      }
      if (node == old.nodes.size()) break;
      if (!run_node(p, old.nodes[node])) return false;
      if (now.nodes.size() != ++node) return false;
    }
    if (!is_same_program(old, now)) return false;
    if (!has_same_inputs(p, now) || !note_checks(result)) return false;
    result.numbers.push_back(now.numbers);
    has_written_ |= now.has_writes;
    std::vector<Tensor> values;
    for (const Segment::Live& l : segment_->live_) values.emplace_back(l.impl);
    leave_segment();
    values_.push_back(std::move(values));
    return true;
  }

  // Two values that are the same view of the same memory are as good as each other.
  bool is_same_operand(uint64_t a, uint64_t b) const {
    if (a == b) return true;
    const size_t count = segment_->live_.size();
    if (!is_value_code(a) || !is_value_code(b) || value_of_code(a) >= count ||
        value_of_code(b) >= count)
      return false;
    return is_same_view(*segment_->live_[value_of_code(a)].impl,
                        *segment_->live_[value_of_code(b)].impl);
  }

  bool is_same_program(const Trace& old, const Trace& now) const {
    if (now.key.size() >= old.key.size() || old.key[now.key.size()] != ~uint64_t{0}) return false;
    return now.values.size() == old.values.size() &&
           std::equal(now.key.begin(), now.key.end(), old.key.begin(),
                      [this](uint64_t a, uint64_t b) { return is_same_operand(a, b); }) &&
           now.checks_data <= old.checks_data && now.inputs_overlap == old.inputs_overlap &&
           now.numbers.size() == old.numbers.size();
  }

  // The tape hands saved tensors out under new names, which say nothing of where they come from.
  bool has_same_inputs(size_t p, const Trace& now) const {
    for (size_t i = 0; i < now.inputs.size(); ++i) {
      const Tensor expected = at(r_.parts[p].inputs[i]);
      const auto given = static_cast<size_t>(now.inputs[i]);
      if (!expected.defined() || !is_same_view(*expected.impl(), *segment_->live_[given].impl))
        return false;
    }
    return true;
  }

  // Of memory that the parts so far know by one name.
  std::optional<Value> source_of(const TensorImpl& t) const {
    const auto holds = [&](const Tensor& o) { return o.storage() == t.storage; };
    const auto count = std::count_if(outside_.begin(), outside_.end(), holds);
    if (count > 1) return std::nullopt;
    if (count == 1) {
      const auto from = std::find_if(outside_.begin(), outside_.end(), holds);
      return Value{-1, static_cast<int32_t>(from - outside_.begin())};
    }
    for (size_t p = 0; p < values_.size(); ++p)
      for (size_t v = 0; v < values_[p].size(); ++v)
        if (is_same_view(*values_[p][v].impl(), t))
          return Value{static_cast<int32_t>(p), static_cast<int32_t>(v)};
    return std::nullopt;
  }

  bool note_checks(Retrace::Result& result) const {
    for (const IndexCheck& c : segment_->index_checks_) {
      const auto from = source_of(*c.tensor);
      if (has_written_ || !from) return false;
      result.checks.push_back({*from, c.low, c.high, c.ignored, values_.size()});
    }
    return true;
  }

  // Nothing refers to what was put off any more, and nobody runs it.
  void leave_segment() {
    if (!segment_) return;
    for (const Segment::Live& l : segment_->live_)
      if (l.is_deferred) l.storage->set_deferred(no_data());
    segment_->let_go();
    segment_->is_closed_ = true;
    segment_ = {};
    recorder_.segment_ = {};
    recorder_.again_ = nullptr;
  }

  std::optional<IValue> operand(size_t p, const Operand& o) const {
    const Trace& trace = *r_.parts[p].trace;
    const auto i = static_cast<size_t>(o.index);
    switch (o.kind) {
    case Operand::Kind::kValue: {
      Tensor t = at({static_cast<int32_t>(p), o.index});
      if (!t.defined()) return std::nullopt;
      return IValue(std::move(t));
    }
    case Operand::Kind::kNumber:
      return numbers_[p][i];
    case Operand::Kind::kConstant:
      return trace.constants[i];
    default: {
      std::vector<IValue> items;
      for (const Operand& item : trace.lists[i]) {
        auto v = operand(p, item);
        if (!v) return v;
        items.push_back(std::move(*v));
      }
      return IValue::list(std::move(items));
    }
    }
  }

  bool run_node(size_t p, const TraceNode& n) {
    std::vector<IValue> args;
    for (const Operand& o : n.args) {
      auto v = operand(p, o);
      if (!v) return false;
      args.push_back(std::move(*v));
    }
    context()[ContextWord::kModes] = n.modes;
    eager::run(*n.op, args);
    return true;
  }

  std::optional<IValue> argument(const RetracedArgument& a) const {
    if (a.tensor) {
      Tensor t = at(*a.tensor);
      if (!t.defined()) return std::nullopt;
      return IValue(std::move(t));
    }
    if (!a.is_list && !a.is_tuple) return a.plain;
    std::vector<IValue> items;
    for (const RetracedArgument& item : a.items) {
      auto v = argument(item);
      if (!v) return v;
      items.push_back(std::move(*v));
    }
    return a.is_list ? IValue::list(std::move(items)) : IValue::tuple(std::move(items));
  }

  bool run_step(const TapeStep& s) {
    context()[ContextWord::kModes] = s.modes;
    switch (s.kind) {
    case TapeStep::Kind::kBackward:
      return run_backward(s);
    case TapeStep::Kind::kComposite: {
      std::vector<IValue> args;
      for (const RetracedArgument& a : s.args) {
        auto v = argument(a);
        if (!v) return false;
        args.push_back(std::move(*v));
      }
      eager::run(*s.op, args);
      return true;
    }
    case TapeStep::Kind::kLeaf: {
      const Tensor t = at(s.leaf);
      if (!t.defined() || t.impl()->grad_fn) return false;
      t.impl()->requires_grad = true;
      return true;
    }
    case TapeStep::Kind::kGradient: {
      const Tensor leaf = at(s.leaf);
      const Tensor gradient = s.gradient ? at(*s.gradient) : Tensor();
      if (!leaf.defined() || (s.gradient && !gradient.defined())) return false;
      eager::make_meta(leaf.impl()).grad = gradient;
      return true;
    }
    }
    return false;
  }

  bool run_backward(const TapeStep& s) {
    std::vector<Tensor> roots, gradients, inputs;
    for (const Value& v : s.roots) roots.push_back(at(v));
    for (const auto& v : s.gradients) gradients.push_back(v ? at(*v) : Tensor());
    for (const Value& v : s.inputs) inputs.push_back(at(v));
    for (const auto* all : {&roots, &inputs})
      for (const Tensor& t : *all)
        if (!t.defined()) return false;
    for (size_t i = 0; i < gradients.size(); ++i)
      if (s.gradients[i] && !gradients[i].defined()) return false;
    recorder_.spread_sums_ = s.spread_sums;
    recorder_.next_spread_ = 0;
    eager::run_backward(roots, gradients, inputs, s.options);
    return true;
  }

  const Retrace& r_;
  Recorder& recorder_;
  const ContextGuard restore_;
  const std::vector<std::vector<IValue>> numbers_;
  std::unordered_map<const Storage*, Ref<Storage>> memory_;
  std::vector<Tensor> outside_;
  std::vector<std::vector<Tensor>> values_;  // of the parts that are done
  Ref<Segment> segment_;
  bool has_written_ = false;
};

std::optional<Retrace::Result> Retrace::run(std::span<const Outside> outside,
                                            std::vector<std::vector<IValue>> numbers) const {
  if (profile::is_on()) return std::nullopt;  // this is no work of the program's
  Result result;
  try {
    Retracing run(*this, outside, std::move(numbers));
    if (!run.run(result)) return std::nullopt;
  } catch (const DataNeeded&) {
    return std::nullopt;
  } catch (const std::exception&) {
    return std::nullopt;  // an op refuses the sizes: evaluating raises where it should
  }
  return result;
}

bool Retrace::is_node_derived(size_t part, size_t node) const {
  return std::any_of(steps.begin(), steps.end(), [&](const TapeStep& s) {
    return s.part == part && node >= s.first && node < s.end;
  });
}

bool Retrace::is_derived(size_t part, size_t slot) const {
  return is_node_derived(part, slot_node(*parts[part].trace, slot));
}

}  // namespace prong::capture
