// Sizes that a plan has not been run with: whether its ops take them, and the numbers that its
// programs take for them. See plan.h and retrace.h.
#include <algorithm>

#include "capture/plan.h"

namespace prong::capture {

namespace {
constexpr size_t kMaxSizes = 128;
}

void PlanProgram::take_numbers(const NumberInputs& inputs) {
  slots.clear();
  numbers.clear();
  varying.clear();
  const std::vector<bool> refusable = refusable_numbers(*trace);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    if (const auto v = trace->varying.find(i); v != trace->varying.end())
      varying.push_back({slots.size(), v->second, refusable[i], {}, {}});
    slots.push_back(i);
    numbers.push_back(trace->numbers[i]);
  }
}

void Plan::Accepted::choose_inputs(const std::vector<PlanProgram>& programs) {
  inputs.clear();
  for (size_t i = 0; i < numbers.size(); ++i) {
    inputs.emplace_back();
    for (const size_t slot : programs[i].slots) inputs.back().push_back(numbers[i][slot]);
  }
}

// Programs that take what differs from the recorded numbers.
bool Plan::take_inputs(const std::vector<std::vector<IValue>>& wanted) {
  bool has_changed = false;
  for (size_t i = 0; i < programs.size(); ++i) {
    PlanProgram& p = programs[i];
    NumberInputs inputs(p.trace->numbers.size(), false);
    for (const size_t slot : p.slots) inputs[slot] = true;
    bool is_complete = true;
    for (size_t slot = 0; slot < inputs.size(); ++slot) {
      if (inputs[slot] || same_number(wanted[i][slot], p.trace->numbers[slot])) continue;
      inputs[slot] = true;
      is_complete = false;
    }
    if (is_complete) continue;
    if (p.is_loop) {
      p.runner = with_tasks(p.trace, inputs, node_loop(p.trace, inputs, p.is_taped), false);
    } else {
      auto trace = std::make_shared<Trace>(*p.trace);
      for (size_t slot = 0; slot < inputs.size(); ++slot)
        if (inputs[slot] && !trace->varying.count(slot)) trace->sized.push_back(slot);
      ProgramCache::Found found = cache->find(trace, {});
      p.runner = std::move(found.runner);
      inputs = std::move(found.number_inputs);
    }
    p.take_numbers(inputs);
    has_changed = true;
  }
  if (has_changed)
    for (Accepted& a : accepted_) a.choose_inputs(programs);
  return true;
}

// Are the sizes that Python was told those that there will be? The rehearsal took numbers that
// follow from sizes as they were recorded.
bool Plan::has_rehearsed(const Retrace::Result& result, const Found& found) const {
  for (size_t n = 0; n < numbers.size(); ++n) {
    if (numbers[n].kind != NumberStep::Kind::kRehearsed || !found.values[n].get()) continue;
    const int64_t answer = result.answers[static_cast<size_t>(numbers[n].index)];
    if (answer >= 0 && PyLong_AsLongLong(found.values[n].get()) != answer) return false;
  }
  return true;
}

// A tensor of the retrace, as the programs have it; nothing: it is none of their outputs.
std::optional<TensorSource> Plan::source_of(const Rehearsal::Value& v) const {
  if (v.part < 0) return rehearsal_roots[static_cast<size_t>(v.index)];
  const std::vector<ValueId>& outputs = programs[static_cast<size_t>(v.part)].outputs;
  const auto at = std::find(outputs.begin(), outputs.end(), v.index);
  if (at == outputs.end()) return std::nullopt;
  return TensorSource{TensorSource::Kind::kProgram, v.part,
                      static_cast<int32_t>(at - outputs.begin())};
}

// Null: another program is for these sizes, or they are not to be told from here.
const Plan::Accepted* Plan::go_again(std::vector<int64_t> sizes, PyObject* const* args,
                                     const Found& found) {
  if (std::find(refused_.begin(), refused_.end(), sizes) != refused_.end()) return nullptr;
  std::vector<Retrace::Outside> outside;
  for (size_t i = 0; i < rehearsal_roots.size(); ++i) {
    TensorImpl* t = fetch(rehearsal_roots[i], args);
    if (!t) return nullptr;
    outside.push_back({t, t->requires_grad, retraced_gradients[i]});
  }
  std::vector<std::vector<IValue>> numbers;
  for (const PlanProgram& p : programs) {
    numbers.push_back(p.trace->numbers);
    for (const auto& [slot, n] : p.trace->varying) {
      if (this->numbers[static_cast<size_t>(n)].after > 0) continue;
      IValue& number = numbers.back()[slot];
      number = like_recorded(found.values[static_cast<size_t>(n)].get(), number);
      if (number.is_none()) return nullptr;
    }
  }
  std::optional<Retrace::Result> result = retrace.run(outside, std::move(numbers));
  const auto refuse = [&]() -> const Accepted* {
    if (refused_.size() == kMaxSizes) refused_.erase(refused_.begin());
    refused_.push_back(std::move(sizes));
    return nullptr;
  };
  if (!result || !has_rehearsed(*result, found)) return refuse();
  std::vector<PlanCheck> checks;
  for (const Retrace::Result::Check& c : result->checks) {
    const auto source = source_of(c.tensor);
    if (!source) return refuse();
    const bool is_given = c.tensor.part < 0;
    checks.push_back(
        {*source, c.low, c.high, c.ignored, is_given ? -1 : static_cast<int32_t>(c.before)});
  }
  take_inputs(result->numbers);
  accept(std::move(sizes), std::move(checks));
  accepted_.back().numbers = std::move(result->numbers);
  accepted_.back().choose_inputs(programs);
  return &accepted_.back();
}

}  // namespace prong::capture
