// Batching rules: what an op becomes when some of its tensors are batches of samples. Asked by
// eager/batched.cpp; written in defs/batching.cpp, for whole families where possible.
#pragma once

#include <string_view>

#include "ops/gradient.h"

namespace prong {

// One call with batches among its tensors, seen by a rule. A physical tensor of a batch has the
// batch as its dimension 0; the sizes, ranks and dims that the op means are those of one sample.
class BatchedCall {
 public:
  virtual ~BatchedCall() = default;

  const OpDef& op() const { return *op_; }
  size_t num_arguments() const { return args_.size(); }
  int64_t batch_size() const { return batch_size_; }
  // The call as it was written: tensors that stand for a sample, numbers, lists, strings.
  const IValue& given(size_t i) const { return args_[i]; }
  Expr sample(size_t i) { return Expr(*builder_, args_[i]); }
  const IValue& given(std::string_view name) const { return args_[index(name)]; }
  Expr sample(std::string_view name) { return sample(index(name)); }
  size_t index(std::string_view name) const;
  bool is_tensor(size_t i) const { return args_[i].is_tensor(); }
  bool is_batched(size_t i) const { return is_batched(args_[i]); }
  int64_t rank(size_t i) const { return rank(args_[i]); }
  // How many tensors of the call are batches; those inside lists count.
  int num_batched() const;

  virtual bool is_batched(const IValue& v) const = 0;
  static int64_t rank(const IValue& v) { return meta_from(v).rank(); }
  // The tensor without the batch's mark; anything else as it is. With dimension 0 the batch's if
  // the tensor is a batch.
  virtual IValue physical(const IValue& v) const = 0;
  IValue physical(size_t i) const { return physical(args_[i]); }
  // A batch whatever it was: spread over the samples where they share it.
  IValue whole(const IValue& v);
  // A batch's sample raised to `rank` by dimensions of size 1 in front; what is shared stays.
  IValue aligned(const IValue& v, int64_t rank);

  // Applies an op to physical values; trailing arguments may be left out where they have defaults.
  IValue apply(std::string_view op, std::initializer_list<IValue> args);
  IValue apply(const OpDef& op, std::span<const IValue> args);
  // The op itself, with these physical arguments.
  IValue apply(std::span<const IValue> args) { return apply(*op_, args); }
  // Each sample by itself, then stacked: right for every op, and as slow as a loop.
  virtual IValue loop() = 0;
  // Marks a physical result of another rule's making, for rules that go on with samples.
  virtual IValue finished(const IValue& physical) = 0;

 protected:
  const OpDef* op_ = nullptr;
  std::span<const IValue> args_;
  int64_t batch_size_ = 0;
  Builder* builder_ = nullptr;           // of samples: ops applied through it are batched again
  Builder* physical_builder_ = nullptr;  // one level below
};

// Gives the physical results, each with the batch as its dimension 0.
using BatchFn = IValue (*)(BatchedCall& call);

struct BatchingRule {
  enum class Kind : uint8_t {
    kLoop,       // no rule: sample by sample
    kPointwise,  // ranks aligned, then one call
    kComposite,  // the ops that the kernel applies
    kSamples,    // a rule that says it in other ops, applied to samples; gives samples
    kPhysical,   // a rule over the physical tensors
    kHost,       // asks about shape or dtype: answered for a sample
    kData,       // asks for the numbers: refused
  };
  Kind kind = Kind::kLoop;
  BatchFn fn = nullptr;
};
const char* name_of(BatchingRule::Kind kind);

// The rule of an op; kLoop for those that have none, whose no_vmap() tells why.
BatchingRule batching_rule(const OpDef& op);

}  // namespace prong
