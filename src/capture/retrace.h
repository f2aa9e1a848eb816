// Retrace: a plan's traces once more, for a call with other sizes, on tensors without memory. What
// ops compute from sizes on their way to kernels (gradient rules, composite ops) stands in a trace
// as numbers; going the same way again tells these numbers, and whether every op takes the sizes.
// Filled by tape_steps.cpp while a call is recorded, asked by plan.cpp for sizes that are new.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "capture/recorder.h"
#include "capture/rehearsal.h"
#include "eager/engine.h"

namespace prong::capture {

// An argument of a composite op.
struct RetracedArgument {
  IValue plain;  // none where a tensor stands
  std::optional<Rehearsal::Value> tensor;
  Ref<TensorImpl> from_outside{};  // a tensor that the call has not come to know yet
  std::vector<RetracedArgument> items;
  bool is_list = false, is_tuple = false;
};

// What happened to the tape beside single ops.
struct TapeStep {
  enum class Kind : uint8_t { kBackward, kComposite, kGradient, kLeaf };
  Kind kind;
  size_t part;
  size_t first, end;  // its nodes in the part's trace
  uint64_t modes = 0;
  // Of a backward pass.
  std::vector<Rehearsal::Value> roots{}, inputs{};
  std::vector<std::optional<Rehearsal::Value>> gradients{};
  eager::BackwardOptions options{};
  std::vector<bool> spread_sums{};  // of each gradient that it passed on, see Recorder
  // Of a composite op.
  const OpDef* op = nullptr;
  std::vector<RetracedArgument> args{};
  // A tensor's .grad is set, or it becomes a leaf.
  Rehearsal::Value leaf{};
  std::optional<Rehearsal::Value> gradient{};
};

class Retrace {
 public:
  struct Outside {
    TensorImpl* geometry;
    bool requires_grad;
    int32_t gradient_of = -1;  // another one of them, whose .grad this is when the call begins
  };
  // What it comes to.
  struct Result {
    std::vector<std::vector<IValue>> numbers;  // of each part's trace
    struct Check {
      Rehearsal::Value tensor;
      int64_t low, high;
      std::optional<int64_t> ignored;
      size_t before;  // which part
    };
    std::vector<Check> checks;     // that indices have to pass
    std::vector<int64_t> answers;  // to what was asked for sizes; -1: for something else
  };
  // `numbers`: those that the call gives, the recorded ones elsewhere. Nothing: these sizes take
  // another program, or cannot be told from here.
  std::optional<Result> run(std::span<const Outside> outside,
                            std::vector<std::vector<IValue>> numbers) const;
  // Is the number of that slot worked out in the run, or given?
  bool is_derived(size_t part, size_t slot) const;
  bool is_node_derived(size_t part, size_t node) const;

  std::vector<Rehearsal::Part> parts;
  std::vector<TapeStep> steps;
  std::vector<Rehearsal::Question> asked;
};

}  // namespace prong::capture
