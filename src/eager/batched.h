// vmap: tensors that stand for one sample of a batch, and how ops run on them. Dispatch comes here
// for each op with such a tensor; bindings/vmap.cpp makes and takes apart batches.
//
// Each vmap is a level, and has a tape of its own above what lies below: a tensor of level 2 whose
// sample requires grad is recorded there, and the ops on its physical tensor, of level 1 or none,
// are recorded by what requires grad below. So gradients inside vmap are each sample's own, and
// gradients of vmap flow through the physical tensors.
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <vector>

#include "eager/dispatch.h"

namespace prong::eager {

// Batched tensors that exist; while there are none, dispatch need not look.
extern std::atomic<int64_t> num_batched_alive;
inline bool may_be_batched() { return num_batched_alive.load(std::memory_order_relaxed) != 0; }

inline Batched* batched_of(const TensorImpl* t) {
  return t->autograd ? meta_of(t)->batched.get() : nullptr;
}
inline int level_of(const TensorImpl* t) {
  const Batched* b = batched_of(t);
  return b ? b->level : 0;
}
// The highest level among the tensors of a call; 0: none is batched.
int level_of(const IValue& v);
int level_of(std::span<const IValue> args);

// A sample of `physical`, whose dimension 0 is the batch if has_batch.
Tensor make_batched(const Tensor& physical, int level, bool has_batch);

// The op on arguments of which one is batched, with the tape of that level.
IValue run_batched(const OpDef& op, std::span<const IValue> args);
// The same without the tape of that level: what the kernel is to other calls.
IValue run_batched_kernel(const OpDef& op, std::span<const IValue> args);

enum class Randomness : uint8_t { kError, kSame, kDifferent };

// A vmap that runs: sees the ops of its function.
class VmapLevel : public Interceptor {
 public:
  VmapLevel(Interceptor* below, int level, int64_t batch_size, Randomness randomness)
      : below(below), level(level), batch_size(batch_size), randomness(randomness) {}
  IValue run(const OpDef& op, std::span<const IValue> args) override;

  Interceptor* const below;
  const int level;
  const int64_t batch_size;
  const Randomness randomness;
};
// The innermost vmap that runs here; null: none.
VmapLevel* current_level();

// The levels that tensors are batched at, the lowest first, with their sizes.
using Levels = std::vector<std::pair<int, int64_t>>;
struct BatchOf {
  Levels levels;
  void add(const Tensor& t);
};

// While a node of the tape runs whose gradients are batched: what its rule makes anew is a batch
// too, at each of these levels, since it may be written in place.
class BatchedFactories final : public VmapLevel {
 public:
  BatchedFactories(Interceptor* below, Levels levels)
      : VmapLevel(below, levels.back().first, levels.back().second, Randomness::kDifferent),
        levels(std::move(levels)) {}
  IValue run(const OpDef& op, std::span<const IValue> args) override;

  const Levels levels;
};
class BatchScope {
 public:
  explicit BatchScope(const BatchOf& batch);

 private:
  ContextGuard saved_;
  std::optional<BatchedFactories> factories_;
};

[[noreturn]] void throw_item();
[[noreturn]] void throw_control_flow();
// Raises where the numbers of a batched tensor are asked for; op: "tolist".
void check_not_batched(const TensorImpl* t, std::string_view op);

}  // namespace prong::eager
