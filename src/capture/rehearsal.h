// Rehearsal: the sizes of what a plan's programs will compute, from the sizes of what a call
// brings, by the ops' shape rules and on tensors without memory. Filled by sizes.cpp while a call
// is recorded, asked by number_steps.cpp before the programs run.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "capture/kept.h"
#include "capture/trace.h"

namespace prong::capture {

class Rehearsal {
 public:
  // A tensor of the plan: one from outside, or a value of a part's trace.
  struct Value {
    int32_t part = -1;  // -1: from outside
    int32_t index = 0;
    friend bool operator==(const Value&, const Value&) = default;
  };
  struct Question {
    enum class Kind : uint8_t {
      kSize,      // of dimension `number` of `value`
      kCount,     // how many elements `value` has
      kOutputs,   // does the op that made `value` give as many results as it did?
      kRank,      // of `value`
      kShortcut,  // gives shortcut `number` its argument back?
    };
    Kind kind;
    Value value;
    int32_t number = 0;
    friend bool operator==(const Question&, const Question&) = default;
  };
  // A call that had nothing to do, so that the program has no node for it.
  struct Shortcut {
    const OpDef* op;
    std::vector<IValue> args;  // none where a tensor stands
    std::vector<std::pair<size_t, Value>> tensors;
    size_t given_back;  // which argument
  };
  struct Part {
    std::shared_ptr<const Trace> trace;
    std::vector<Value> inputs;  // of trace->inputs
  };

  bool is_empty() const { return questions.empty(); }
  bool is_needed(size_t part, size_t node) const { return needed_[part][node]; }
  int32_t ask(Question q);
  // After the recording: which nodes have to be gone through.
  void prepare();
  // The plan's number behind each varying one of those nodes.
  std::vector<int32_t> numbers_used() const;

  std::vector<Question> questions;
  std::vector<Shortcut> shortcuts;
  std::vector<Part> parts;
  size_t num_outside = 0;

 private:
  friend class RehearsalRun;
  void need(Value v);
  std::vector<std::vector<bool>> needed_;  // by part and node
  bool needs_layout_ = false;              // a shortcut asks for strides
};

// One go through it. Throws where an op refuses its arguments.
class RehearsalRun {
 public:
  // Outside: geometry of the tensors from outside; null: of one that is not there yet.
  RehearsalRun(const Rehearsal& rehearsal, std::span<const TensorImpl* const> outside);
  // `found`: the plan's numbers, as far as they are known. Nothing: the call goes another way than
  // the recording.
  std::optional<int64_t> answer(const Rehearsal::Question& q, std::span<const Kept> found);

 private:
  bool go_to(Rehearsal::Value v, std::span<const Kept> found);
  bool run_node(size_t part, const TraceNode& node, std::span<const Kept> found);
  const IValue& at(Rehearsal::Value v) const;
  std::optional<IValue> operand(size_t part, const Operand& o, std::span<const Kept> found) const;

  const Rehearsal* r_;
  std::vector<IValue> outside_;
  std::vector<std::vector<IValue>> values_;  // by part
  size_t part_ = 0, node_ = 0;               // where it stands
};

// A Python number in place of one that was recorded; none where it does not fit.
IValue like_recorded(PyObject* value, const IValue& recorded);

}  // namespace prong::capture
