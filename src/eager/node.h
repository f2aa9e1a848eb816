// The tape: nodes that remember how tensors were made, and what the tape keeps with a tensor.
// Written by record.cpp, walked by engine.cpp, shown to Python by bindings/autograd.cpp.
#pragma once

#include <atomic>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "eager/modes.h"
#include "runtime/spin_lock.h"
#include "tensor/ivalue.h"

namespace prong::eager {

class Node;

// Where a gradient goes: input `index` of a node, that is the gradient of that node's result.
struct Edge {
  Ref<Node> node;
  uint32_t index = 0;
};

// Sees gradients on their way. A node's pre-hooks get the gradients of its results, post-hooks the
// gradients that it gave.
struct GradientHook : RefCounted {
  // May replace items of `gradients`.
  virtual void call(std::vector<Tensor>& gradients) = 0;
};
struct PostHook : RefCounted {
  virtual void call(std::vector<Tensor>& given, const std::vector<Tensor>& received) = 0;
};

// A step back. Immutable once it is made, save for hooks and for what it saved, which a pass may
// free.
class Node : public RefCounted {
 public:
  Node() = default;
  ~Node() override;

  // Memory with its size in front; freed without recursion, however long the chain of nodes is.
  static void* operator new(size_t bytes) { return allocate_node(bytes); }
  static void* operator new(size_t bytes, size_t extra) { return allocate_node(bytes + extra); }
  static void operator delete(void* p) noexcept { free_node(p); }
  static void operator delete(void* p, size_t) noexcept { free_node(p); }
  static void operator delete(Node* node, std::destroying_delete_t) noexcept;

  // "MulBackward0".
  virtual std::string name() const = 0;
  // From the gradients of the results (undefined where nothing came) to one for each edge of
  // next(); undefined where nobody asked or nothing flows. Called without locks held; with grad
  // mode on only if gradients of gradients are wanted.
  virtual std::vector<Tensor> apply(std::vector<Tensor>& gradients) = 0;
  // Whether apply() is enough work to share with other threads, and may run on any of them.
  virtual bool is_heavy() const { return false; }
  // Frees what was saved; a later apply raises.
  virtual void release_saved() {}
  // Would a later apply raise for that?
  virtual bool is_spent() const { return false; }

  virtual std::span<const Edge> next() const = 0;
  // Shape and dtype of each result.
  size_t num_results() const { return results_.size() + (has_first_ ? 1 : 0); }
  const TensorMeta& result(size_t i) const { return i == 0 ? first_ : results_[i - 1]; }
  void add_result(const Tensor& t);
  // Later than everything that it depends on; in the order of a sequential program otherwise.
  uint64_t sequence() const { return sequence_; }

  struct Hooks {
    std::vector<std::pair<int64_t, Ref<GradientHook>>> pre;  // of the node
    // Of tensors: which result, by registration; retain_grad hooks run after all others.
    struct OfTensor {
      uint32_t result;
      int64_t id;
      Ref<GradientHook> hook;
    };
    std::vector<OfTensor> tensor, retain;
    std::vector<std::pair<int64_t, Ref<PostHook>>> post;
  };
  Hooks* hooks() const { return hooks_.get(); }
  Hooks& make_hooks();

  // Anomaly mode: where the forward call stood.
  const std::string* where() const { return where_.get(); }
  void set_where(std::string text) { where_ = std::make_unique<std::string>(std::move(text)); }
  // Anything that bindings want to keep with the node (the Python object of a custom function,
  // `metadata`).
  Ref<RefCounted> extra;

 protected:
  void set_sequence(std::span<const Edge> next);
  uint64_t sequence_ = 0;

 private:
  friend class Backward;
  static void* allocate_node(size_t bytes);
  static void free_node(void* p) noexcept;

  TensorMeta first_;  // most nodes have one result
  bool has_first_ = false;
  std::vector<TensorMeta> results_;
  std::unique_ptr<Hooks> hooks_;
  std::unique_ptr<std::string> where_;
  // The pass that works on this node now, and its place there; see engine.cpp.
  std::atomic<uint64_t> pass_{0};
  uint32_t slot_ = 0;
};

std::string short_name(const Node& node);  // "Mul", in messages

// A tensor that may go while a node still points at it.
class WeakTensor final : public RefCounted {
 public:
  explicit WeakTensor(TensorImpl* t) : impl_(t) {}
  Tensor get() const;  // undefined when it is gone
  void forget();       // by the tensor, as it goes

 private:
  mutable SpinLock lock_;
  TensorImpl* impl_;
};

// The end of the tape at a leaf: adds to its .grad.
class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(const Tensor& leaf);
  std::string name() const override { return "AccumulateGrad"; }
  std::vector<Tensor> apply(std::vector<Tensor>& gradients) override;
  std::span<const Edge> next() const override { return {}; }
  Tensor leaf() const { return leaf_->get(); }

 private:
  Ref<WeakTensor> leaf_;  // the leaf owns the node
};

// A tensor inside vmap stands for one sample of this: a tensor of a batch, or one that all samples
// share. Its own sizes are a sample's, its memory is that of the first one.
struct Batched final : RefCounted {
  Batched(Tensor physical, int level, bool has_batch);
  ~Batched() override;
  Tensor physical;  // dimension 0 is the batch's if has_batch
  int level;        // of the vmap it belongs to, from 1; `physical` may be batched at lower ones
  bool has_batch;
};

// What some tensors have beside their data. Owned by the TensorImpl alone.
struct AutogradMeta final : RefCounted {
  ~AutogradMeta() override {
    if (weak) weak->forget();
  }
  Tensor grad;
  Ref<WeakTensor> weak;             // made when a node wants to point at the tensor
  Ref<AccumulateGrad> accumulator;  // of leaves
  bool retains_grad = false;
  std::vector<std::pair<int64_t, Ref<GradientHook>>> post_accumulate;  // given the leaf itself

  // Of views, as far as gradients are concerned.
  enum class Origin : uint8_t { kPlain, kNoGrad, kSeveral, kInference };
  Tensor base;  // never a view itself
  Origin origin = Origin::kPlain;
  std::atomic<uint64_t> view_version{0};  // when grad_fn was last known to be right
  std::string made_by;                    // node that gave several views

  Ref<Batched> batched;  // of tensors inside vmap; see batched.h
};

inline AutogradMeta* meta_of(const TensorImpl* t) {
  return static_cast<AutogradMeta*>(t->autograd.get());
}
AutogradMeta& make_meta(TensorImpl* t);
inline bool is_view(const TensorImpl* t) { return t->autograd && meta_of(t)->base.defined(); }

// True also for a view whose base was given a history by an in-place op since.
bool view_requires_grad(const TensorImpl* t);
inline bool requires_grad(const TensorImpl* t) {
  return t->requires_grad || (t->autograd && view_requires_grad(t));
}
// The node that made it, brought up to date; null for leaves and tensors without gradients.
Node* grad_fn(const Tensor& t);
inline bool is_leaf(const Tensor& t) { return !requires_grad(t.impl()) || !grad_fn(t); }
// Where its gradient goes: its node, or its accumulator. No node if it needs none.
Edge gradient_edge(const Tensor& t);
void set_history(TensorImpl* t, Node* node, uint32_t output_nr);
void clear_history(TensorImpl* t);
inline bool can_require_grad(DType d) { return is_inexact(d); }

// Keeps what the tape saves in the tensors' place: somewhere else, in another form, not at all.
struct SavingHooks : RefCounted {
  virtual Ref<RefCounted> pack(const Tensor& t) = 0;  // t has no history
  virtual Tensor unpack(RefCounted& packed) = 0;
};
// From now on for all that this line of execution, and tasks that it forks, save; until the number
// is popped, which whoever pushed does in reverse order.
uint64_t push_saving_hooks(Ref<SavingHooks> hooks);
void pop_saving_hooks(uint64_t number);

// A tensor kept for the backward pass, with the version of its memory at that time.
class SavedTensor {
 public:
  SavedTensor() = default;
  // of_node: the tensor is a result of that node, which must not own itself.
  SavedTensor(const Tensor& t, const Node* of_node);
  // The tensor with its history; checks that it was not written since. `owner` is the node that
  // saved it.
  Tensor get(const Node& owner) const { return get_for(&owner); }
  Tensor get() const { return get_for(nullptr); }  // of what no node saved
  bool defined() const { return impl_ || packed_; }
  const Ref<TensorImpl>& unchecked() const { return impl_; }  // null if it is packed
  void reset() { impl_ = {}, packed_ = {}, grad_fn_ = {}; }

 private:
  struct Packed;
  void pack(Ref<SavingHooks> hooks, const Tensor& t);
  Tensor get_for(const Node* owner) const;
  Tensor with_history(const Tensor& plain, const Node* owner) const;

  Ref<TensorImpl> impl_;     // without a history, unless it is a leaf
  Ref<RefCounted> packed_;   // a Packed, in its place
  Ref<RefCounted> grad_fn_;  // the tensor's, unless it is a result of the node that saves it
  uint64_t version_ = 0;
  uint32_t output_nr_ = 0;
  bool requires_grad_ = false, is_own_result_ = false;
};

// Keeps the gradient of a tensor that is no leaf in its .grad; to be asked for once.
void retain_grad(const Tensor& t);
WeakTensor& weak_ref(const Tensor& t);

// The number of the next node of this task, at least after `floor`.
uint64_t next_sequence(uint64_t floor);
[[noreturn]] void throw_freed();

}  // namespace prong::eager
