// Runners of segments and the cache of programs. See runner.h.
#include "capture/runner.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "capture/recorder.h"
#include "capture/trace_graph.h"
#include "eager/dispatch.h"
#include "exec/run.h"
#include "graph/function.h"

namespace prong::capture {

thread_local uint64_t effects_done = 0;

namespace {

// May the value lie in memory that the trace was given? What a reshape gives is a copy for some
// sizes and a view for others.
bool may_be_outside(const Trace& trace, const Operand& o) {
  if (o.kind == Operand::Kind::kList) {
    const std::vector<Operand>& items = trace.lists[static_cast<size_t>(o.index)];
    return std::any_of(items.begin(), items.end(),
                       [&](const Operand& item) { return may_be_outside(trace, item); });
  }
  if (o.kind != Operand::Kind::kValue) return false;
  const ValueId first = trace.values[static_cast<size_t>(o.index)].storage;
  if (first < 0) return true;
  const int32_t producer = trace.values[static_cast<size_t>(first)].producer;
  if (producer < 0) return true;
  const TraceNode& maker = trace.nodes[static_cast<size_t>(producer)];
  const int viewed = maker.op->viewed_argument();
  return viewed >= 0 && may_be_outside(trace, maker.args[static_cast<size_t>(viewed)]);
}

}  // namespace

bool writes_outside(const Trace& trace, const TraceNode& node) {
  const uint64_t written = node.op->written_arguments();
  for (size_t i = 0; written >> i && i < node.args.size(); ++i)
    if (written >> i & 1 && may_be_outside(trace, node.args[i])) return true;
  return false;
}

namespace {

// Forked bodies that run where they stand count the tape's nodes as tasks do: each for itself, from
// where it was forked. Sums of gradients go by these counts.
class BodyCounts {
 public:
  explicit BodyCounts(const Trace& trace) : regions_(trace.regions) {}
  void enter(int32_t node) {  // node after node
    for (; !open_.empty() && node >= open_.back().end; open_.pop_back())
      context()[ContextWord::kSequence] = open_.back().count;
    for (; next_ < regions_.size() && regions_[next_].first <= node; ++next_)
      if (node < regions_[next_].end)
        open_.push_back({regions_[next_].end, context()[ContextWord::kSequence]});
  }

 private:
  struct Open {
    int32_t end;
    uint64_t count;
  };
  const std::vector<TraceRegion>& regions_;
  std::vector<Open> open_;
  size_t next_ = 0;
};

// Runs the nodes one by one; a value goes as soon as its last reader has run.
class NodeLoop final : public Runner {
 public:
  NodeLoop(std::shared_ptr<const Trace> trace, const NumberInputs& number_inputs,
           bool taped = false)
      : trace_(std::move(trace)), taped_(taped) {
    size_t next = trace_->inputs.size();
    number_at_.assign(trace_->numbers.size(), -1);
    for (size_t i = 0; i < number_inputs.size(); ++i)
      if (number_inputs[i]) number_at_[i] = static_cast<int32_t>(next++);
    for (const TraceNode& n : trace_->nodes)
      has_effect_.push_back(writes_outside(*trace_, n) || n.op->is_random());
    find_last_uses();
  }

  std::vector<IValue> run(std::span<const IValue> inputs) override {
    std::vector<IValue> values(trace_->values.size());
    for (size_t i = 0; i < trace_->inputs.size(); ++i)
      values[static_cast<size_t>(trace_->inputs[i])] = inputs[i];
    std::vector<IValue> args;
    std::optional<ContextGuard> restore;
    restore.emplace();
    BodyCounts counts(*trace_);
    for (size_t i = 0; i < trace_->nodes.size(); ++i) {
      const TraceNode& n = trace_->nodes[i];
      if (taped_) context()[ContextWord::kModes] = n.modes;
      if (taped_) counts.enter(static_cast<int32_t>(i));
      args.clear();
      for (const Operand& o : n.args) args.push_back(get(o, values, inputs));
      IValue result = taped_ ? eager::run(*n.op, args) : n.op->kernel()(*n.op, args);
      if (has_effect_[i]) ++effects_done;
      args.clear();
      store(n, std::move(result), values);
      for (const ValueId v : dies_after_[i]) values[static_cast<size_t>(v)] = {};
    }
    counts.enter(static_cast<int32_t>(trace_->nodes.size()));
    const uint64_t count = context()[ContextWord::kSequence];
    restore.reset();
    context()[ContextWord::kSequence] = count;  // the next program goes on from here
    std::vector<IValue> results;
    for (const ValueId v : trace_->outputs) results.push_back(values[static_cast<size_t>(v)]);
    return results;
  }

 private:
  IValue get(const Operand& o, const std::vector<IValue>& values,
             std::span<const IValue> inputs) const {
    const auto i = static_cast<size_t>(o.index);
    switch (o.kind) {
    case Operand::Kind::kValue:
      return values[i];
    case Operand::Kind::kNumber:
      return number_at_[i] < 0 ? trace_->numbers[i] : inputs[static_cast<size_t>(number_at_[i])];
    case Operand::Kind::kConstant:
      return trace_->constants[i];
    default: {
      std::vector<IValue> items;
      for (const Operand& item : trace_->lists[i]) items.push_back(get(item, values, inputs));
      return IValue::list(std::move(items));
    }
    }
  }

  static void store(const TraceNode& n, IValue result, std::vector<IValue>& values) {
    if (n.num_outputs == 0) return;
    const auto first = static_cast<size_t>(n.first_output);
    if (n.result == ResultKind::kTensor) {
      values[first] = std::move(result);
      return;
    }
    for (size_t i = 0; i < static_cast<size_t>(n.num_outputs); ++i)
      values[first + i] = result.items()[i];
  }

  void find_last_uses() {
    std::vector<int32_t> last(trace_->values.size(), -1);
    const auto use = [&](const Operand& o, int32_t node, const auto& self) -> void {
      if (o.kind == Operand::Kind::kValue) last[static_cast<size_t>(o.index)] = node;
      if (o.kind == Operand::Kind::kList)
        for (const Operand& item : trace_->lists[static_cast<size_t>(o.index)])
          self(item, node, self);
    };
    for (size_t i = 0; i < trace_->nodes.size(); ++i) {
      const TraceNode& n = trace_->nodes[i];
      for (int32_t k = 0; k < n.num_outputs; ++k)
        last[static_cast<size_t>(n.first_output + k)] = static_cast<int32_t>(i);
      for (const Operand& o : n.args) use(o, static_cast<int32_t>(i), use);
    }
    dies_after_.resize(trace_->nodes.size());
    for (const ValueId v : trace_->outputs) last[static_cast<size_t>(v)] = -1;
    for (size_t v = 0; v < last.size(); ++v)
      if (last[v] >= 0)
        dies_after_[static_cast<size_t>(last[v])].push_back(static_cast<ValueId>(v));
  }

  std::shared_ptr<const Trace> trace_;
  bool taped_;
  std::vector<int32_t> number_at_;
  std::vector<bool> has_effect_;
  std::vector<std::vector<ValueId>> dies_after_;
};

class Interpreter final : public Backend {
 public:
  Ref<Runner> compile(std::shared_ptr<const Trace> trace, const NumberInputs& number_inputs,
                      std::span<const IValue>) override {
    Ref<Runner> loop = make_ref<NodeLoop>(trace, number_inputs);
    return with_tasks(std::move(trace), number_inputs, std::move(loop), false);
  }
};

// A Function through the pass pipeline.
class Program final : public Runner {
 public:
  Program(const Trace& trace, const NumberInputs& number_inputs) {
    const std::vector<bool> none(trace.regions.size(), false);
    function_ = captured_function(to_graph(trace, number_inputs, none));
    for (const TraceNode& n : trace.nodes)
      has_effect_ |= writes_outside(trace, n) || n.op->is_random();
  }

  std::vector<IValue> run(std::span<const IValue> inputs) override {
    if (has_effect_) ++effects_done;  // if it fails, how far it came is not known
    const IValue result = exec::run(*function_, std::vector<IValue>(inputs.begin(), inputs.end()));
    return result.items();
  }

 private:
  Ref<Function> function_;
  bool has_effect_ = false;
};

class Native final : public Backend {
 public:
  Ref<Runner> compile(std::shared_ptr<const Trace> trace, const NumberInputs& number_inputs,
                      std::span<const IValue>) override {
    // The passes take tensors with different names for different memory where something is written;
    // an error of the last op must be the kernel's own; and one op alone has nothing to gain.
    Ref<Runner> in_order;
    if ((trace->has_writes && trace->inputs_overlap) || trace->may_raise ||
        count_pointwise(*trace) < 2)
      in_order = make_ref<NodeLoop>(trace, number_inputs);
    else
      in_order = make_ref<Program>(*trace, number_inputs);
    return with_tasks(std::move(trace), number_inputs, std::move(in_order), true);
  }

 private:
  static size_t count_pointwise(const Trace& trace) {
    return static_cast<size_t>(
        std::count_if(trace.nodes.begin(), trace.nodes.end(),
                      [](const TraceNode& n) { return n.op->family() == Family::kPointwise; }));
  }
};

uint64_t hash_of_key(const std::vector<uint64_t>& key) {
  uint64_t h = 0x9e3779b97f4a7c15ull;
  for (const uint64_t w : key) {
    h ^= w + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
    h *= 0xff51afd7ed558ccdull;
    h ^= h >> 33;
  }
  return h;
}

}  // namespace

bool same_number(const IValue& a, const IValue& b) {
  if (a.tag() != b.tag()) return false;
  if (a.is_int()) return a.to_int() == b.to_int();
  const auto bits = [](const IValue& v) {
    if (v.is_float()) {
      const double d = v.to_double();
      int64_t word;
      static_assert(sizeof word == sizeof d);
      __builtin_memcpy(&word, &d, sizeof d);
      return word;
    }
    const Tensor t = v.to_tensor();  // a wrapped number
    if (!is_floating(t.dtype())) return t.item_int();
    const double d = t.item_double();
    int64_t word;
    __builtin_memcpy(&word, &d, sizeof d);
    return word;
  };
  return bits(a) == bits(b);
}

Ref<Runner> node_loop(std::shared_ptr<const Trace> trace, const NumberInputs& number_inputs,
                      bool taped) {
  return make_ref<NodeLoop>(std::move(trace), number_inputs, taped);
}
Ref<Backend> interpreter_backend() { return make_ref<Interpreter>(); }
Ref<Backend> native_backend() { return make_ref<Native>(); }

ProgramCache::Found ProgramCache::find(const std::shared_ptr<const Trace>& trace,
                                       std::span<const IValue> inputs, SegmentObserver* observer) {
  const uint64_t hash = hash_of_key(trace->key);
  NumberInputs number_inputs(trace->numbers.size(), false);
  for (const auto& [slot, number] : trace->varying) number_inputs[slot] = true;
  for (const size_t slot : trace->sized) number_inputs[slot] = true;
  const NumberInputs asked = number_inputs;
  const char* why_new = "the ops are others than before";
  {
    std::lock_guard lock(mutex_);
    if (entries_.empty()) why_new = "it is the first";
    for (Entry& e : entries_[hash]) {
      if (e.key != trace->key) continue;
      why_new = "a number has changed; from now on it is an input";
      for (Variant& v : e.variants) {
        bool fits = true;
        for (size_t i = 0; i < v.numbers.size(); ++i) {
          if (v.number_inputs[i] || (!asked[i] && same_number(v.numbers[i], trace->numbers[i])))
            continue;
          fits = false;
          number_inputs[i] = true;  // it has had two values: from now on it may have any
        }
        if (fits) return {v.runner, v.number_inputs, false};
        for (size_t i = 0; i < v.numbers.size(); ++i)
          if (v.number_inputs[i]) number_inputs[i] = true;
      }
    }
  }
  if (observer) observer->before_compile(why_new);
  const auto start = std::chrono::steady_clock::now();
  Ref<Runner> runner =
      backend_->compile(trace, number_inputs, program_inputs(*trace, number_inputs, inputs));
  const std::chrono::nanoseconds compile_time = std::chrono::steady_clock::now() - start;
  std::lock_guard lock(mutex_);
  std::vector<Entry>& same_hash = entries_[hash];
  auto e = std::find_if(same_hash.begin(), same_hash.end(),
                        [&](const Entry& x) { return x.key == trace->key; });
  if (e == same_hash.end()) e = same_hash.insert(same_hash.end(), Entry{trace->key, {}});
  e->variants.insert(e->variants.begin(),
                     Variant{number_inputs, trace->numbers, trace->outputs, runner});
  return {std::move(runner), std::move(number_inputs), true, compile_time.count(), why_new};
}

void ProgramCache::clear() {
  std::lock_guard lock(mutex_);
  entries_.clear();
}

size_t ProgramCache::size() const {
  std::lock_guard lock(mutex_);
  size_t n = 0;
  for (const auto& [hash, entries] : entries_)
    for (const Entry& e : entries) n += e.variants.size();
  return n;
}

std::vector<IValue> program_inputs(const Trace& trace, const NumberInputs& number_inputs,
                                   std::span<const IValue> tensors) {
  std::vector<IValue> all(tensors.begin(), tensors.end());
  for (size_t i = 0; i < number_inputs.size(); ++i)
    if (number_inputs[i]) all.push_back(trace.numbers[i]);
  return all;
}

}  // namespace prong::capture
