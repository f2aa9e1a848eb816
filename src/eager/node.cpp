// What nodes and tensors of the tape know of each other; see node.h.
#include "eager/node.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "eager/record.h"
#include "ops/kernels/pointwise.h"

namespace prong::eager {

// ── memory ──

namespace {

constexpr size_t kHeader = 16;  // keeps the alignment

// Nodes own nodes: those that die while another one dies wait here for their turn.
struct Graveyard {
  std::vector<Node*> waiting;
  bool is_burying = false;
};
thread_local Graveyard graveyard;

}  // namespace

void* Node::allocate_node(size_t bytes) {
  char* p = static_cast<char*>(cached_new(bytes + kHeader));
  *reinterpret_cast<size_t*>(p) = bytes + kHeader;
  return p + kHeader;
}

void Node::free_node(void* p) noexcept {
  char* start = static_cast<char*>(p) - kHeader;
  cached_delete(start, *reinterpret_cast<size_t*>(start));
}

void Node::operator delete(Node* node, std::destroying_delete_t) noexcept {
  const auto bury = [](Node* dead) {
    dead->~Node();
    free_node(dead);
  };
  if (graveyard.is_burying) {
    graveyard.waiting.push_back(node);
    return;
  }
  graveyard.is_burying = true;
  bury(node);
  while (!graveyard.waiting.empty()) {
    Node* next = graveyard.waiting.back();
    graveyard.waiting.pop_back();
    bury(next);
  }
  graveyard.is_burying = false;
}

Node::~Node() = default;

// ── nodes ──

void Node::add_result(const Tensor& t) {
  TensorMeta m{t.sizes(), t.dtype()};
  if (has_first_) {
    results_.push_back(std::move(m));
  } else {
    first_ = std::move(m);
    has_first_ = true;
  }
}

std::string short_name(const Node& node) {
  const std::string name = node.name();
  return name.substr(0, name.rfind("Backward"));
}

Node::Hooks& Node::make_hooks() {
  if (!hooks_) hooks_ = std::make_unique<Hooks>();
  return *hooks_;
}

void Node::set_sequence(std::span<const Edge> next) {
  uint64_t floor = 0;
  for (const Edge& e : next)
    if (e.node && !dynamic_cast<const AccumulateGrad*>(e.node.get()))
      floor = std::max(floor, e.node->sequence());
  sequence_ = next_sequence(floor);
}

uint64_t next_sequence(uint64_t floor) {
  uint64_t& count = context()[ContextWord::kSequence];
  return count = std::max(count, floor) + 1;
}

void throw_freed() {
  throw_error(ErrorKind::kRuntime,
              "Trying to backward through the graph a second time (or directly access saved "
              "tensors after they have already been freed). Saved intermediate values of the graph "
              "are freed when you call .backward() or autograd.grad(). Specify retain_graph=True "
              "if you need to backward through the graph a second time or if you need to access "
              "saved tensors after calling backward.");
}

Tensor WeakTensor::get() const {
  lock_.lock();
  TensorImpl* impl = impl_ && impl_->try_retain() ? impl_ : nullptr;
  lock_.unlock();
  return Tensor(Ref<TensorImpl>::adopt(impl));
}

void WeakTensor::forget() {
  lock_.lock();
  impl_ = nullptr;
  lock_.unlock();
}

WeakTensor& weak_ref(const Tensor& t) {
  AutogradMeta& meta = make_meta(t.impl());
  if (!meta.weak) meta.weak = make_ref<WeakTensor>(t.impl());
  return *meta.weak;
}

// ── leaves ──

AccumulateGrad::AccumulateGrad(const Tensor& leaf) : leaf_(&weak_ref(leaf)) {
  add_result(leaf);
  sequence_ = UINT64_MAX;  // as soon as it can
}

std::vector<Tensor> AccumulateGrad::apply(std::vector<Tensor>& gradients) {
  const Tensor leaf = leaf_->get();
  if (!leaf.defined() || !gradients[0].defined()) return {};
  if (context()[ContextWord::kKernels]) [[unlikely]]
    if (const auto notice = before_accumulate.load()) notice(leaf);
  accumulate_grad(leaf, std::move(gradients[0]));
  // The list may change under the hooks.
  const auto hooks = meta_of(leaf.impl())->post_accumulate;
  for (const auto& [id, hook] : hooks) {
    std::vector<Tensor> itself{leaf};
    hook->call(itself);
  }
  return {};
}

// ── tensors ──

AutogradMeta& make_meta(TensorImpl* t) {
  if (!t->autograd) t->autograd = make_ref<AutogradMeta>();
  return *meta_of(t);
}

bool view_requires_grad(const TensorImpl* t) {
  const AutogradMeta* meta = meta_of(t);
  return meta->base.defined() && can_require_grad(t->dtype) &&
         meta->origin != AutogradMeta::Origin::kInference && meta->base.requires_grad() &&
         meta->view_version.load(std::memory_order_acquire) != t->version();
}

Node* grad_fn(const Tensor& t) {
  TensorImpl* impl = t.impl();
  if (impl->autograd && is_view(impl)) refresh_view(t);
  return static_cast<Node*>(impl->grad_fn.get());
}

Edge gradient_edge(const Tensor& t) {
  if (!requires_grad(t.impl())) return {};
  if (Node* node = grad_fn(t)) return {Ref<Node>(node), t.impl()->output_nr};
  if (!t.impl()->requires_grad) return {};
  static SpinLock lock;  // two threads may meet at a parameter
  lock.lock();
  AutogradMeta& meta = make_meta(t.impl());
  Ref<AccumulateGrad> accumulator = meta.accumulator;
  lock.unlock();
  if (!accumulator) {
    Ref<AccumulateGrad> fresh = make_ref<AccumulateGrad>(t);
    lock.lock();
    if (!meta.accumulator) meta.accumulator = fresh;
    accumulator = meta.accumulator;
    lock.unlock();
  }
  return {accumulator, 0};
}

namespace {

struct RetainGrad final : GradientHook {
  explicit RetainGrad(WeakTensor& t) : tensor(&t) {}
  void call(std::vector<Tensor>& gradients) override {
    const Tensor t = tensor->get();
    if (!t.defined() || !gradients[0].defined()) return;
    accumulate_retained(t, gradients[0]);
  }
  Ref<WeakTensor> tensor;
};

void hang_retain_hook(const Tensor& t, Node& node) {
  node.make_hooks().retain.push_back({t.impl()->output_nr, 0, make_ref<RetainGrad>(weak_ref(t))});
}

}  // namespace

void retain_grad(const Tensor& t) {
  PRONG_CHECK(requires_grad(t.impl()), kRuntime,
              "can't retain_grad on Tensor that has requires_grad=False");
  Node* node = grad_fn(t);
  if (!node) return;
  AutogradMeta& meta = make_meta(t.impl());
  if (meta.retains_grad) return;
  meta.retains_grad = true;
  hang_retain_hook(t, *node);
}

void set_history(TensorImpl* t, Node* node, uint32_t output_nr) {
  Node* before = static_cast<Node*>(t->grad_fn.get());
  const bool moves_retain = before && t->autograd && meta_of(t)->retains_grad;
  if (moves_retain && before->hooks()) {
    const WeakTensor* self = meta_of(t)->weak.get();
    std::erase_if(before->hooks()->retain, [&](const Node::Hooks::OfTensor& h) {
      return static_cast<const RetainGrad*>(h.hook.get())->tensor.get() == self;
    });
  }
  t->requires_grad = true;
  t->output_nr = output_nr;
  t->grad_fn = Ref<RefCounted>(node);
  if (moves_retain) hang_retain_hook(Tensor(Ref<TensorImpl>(t)), *node);
}

void clear_history(TensorImpl* t) {
  t->requires_grad = false;
  t->output_nr = 0;
  t->grad_fn = {};
  if (AutogradMeta* meta = meta_of(t)) {
    meta->base = {};
    meta->retains_grad = false;
    meta->accumulator = {};
  }
}

// ── saved tensors ──

Tensor shallow_copy(const Tensor& t) {
  auto copy = make_ref<TensorImpl>();
  const TensorImpl& from = *t.impl();
  copy->storage = from.storage;
  copy->offset = from.offset;
  copy->sizes = from.sizes;
  copy->strides = from.strides;
  copy->numel = from.numel;
  copy->dtype = from.dtype;
  copy->is_contiguous = from.is_contiguous;
  copy->is_wrapped_number = from.is_wrapped_number;
  copy->is_apart = from.is_apart;
  if (from.autograd && meta_of(&from)->batched)
    make_meta(copy.get()).batched = meta_of(&from)->batched;
  return Tensor(std::move(copy));
}

namespace {

// Hooks on saving by number. A task may outlive the block that pushed them: it then finds none.
struct HooksTable {
  struct Entry {
    Ref<SavingHooks> hooks;
    uint64_t below;
  };
  std::mutex lock;
  std::unordered_map<uint64_t, Entry> entries;
  uint64_t count = 0;

  Ref<SavingHooks> find(uint64_t number) {
    std::lock_guard guard(lock);
    const auto it = entries.find(number);
    return it == entries.end() ? Ref<SavingHooks>() : it->second.hooks;
  }
};
HooksTable& hooks_table() {
  static HooksTable table;
  return table;
}

}  // namespace

uint64_t push_saving_hooks(Ref<SavingHooks> hooks) {
  HooksTable& table = hooks_table();
  uint64_t& top = context()[ContextWord::kSavingHooks];
  std::lock_guard guard(table.lock);
  table.entries[++table.count] = {std::move(hooks), top};
  return top = table.count;
}

void pop_saving_hooks(uint64_t number) {
  HooksTable& table = hooks_table();
  Ref<SavingHooks> gone;  // freed without the lock
  std::lock_guard guard(table.lock);
  const auto it = table.entries.find(number);
  if (it == table.entries.end()) return;
  context()[ContextWord::kSavingHooks] = it->second.below;
  gone = std::move(it->second.hooks);
  table.entries.erase(it);
}

struct SavedTensor::Packed final : RefCounted {
  Ref<SavingHooks> hooks;
  Ref<RefCounted> value;
};

void SavedTensor::pack(Ref<SavingHooks> hooks, const Tensor& t) {
  auto packed = make_ref<Packed>();
  ContextGuard restore;
  set_grad_enabled(false);
  packed->value = hooks->pack(shallow_copy(t));
  packed->hooks = std::move(hooks);
  packed_ = std::move(packed);
}

SavedTensor::SavedTensor(const Tensor& t, const Node* of_node) : version_(t.version()) {
  PRONG_CHECK(!t.impl()->is_inference, kRuntime,
              "Inference tensors cannot be saved for backward. Please do not use Tensors created "
              "in inference mode in computation tracked by autograd. To work around this, you can "
              "make a clone to get a normal tensor and use it in autograd, or use "
              "`torch.no_grad()` instead of `torch.inference_mode()`.");
  Ref<SavingHooks> hooks;
  if (const uint64_t number = context()[ContextWord::kSavingHooks]) [[unlikely]]
    hooks = hooks_table().find(number);
  if (t.impl()->requires_grad && !t.impl()->grad_fn) {
    if (hooks) {
      pack(std::move(hooks), t);
      grad_fn_ = gradient_edge(t).node;
      requires_grad_ = true;
    } else {
      impl_ = t.ref();
    }
    return;
  }
  // A copy: the tensor itself may get another history, of which this node is a part.
  if (hooks)
    pack(std::move(hooks), t);
  else
    impl_ = shallow_copy(t).ref();
  if (!requires_grad(t.impl())) return;
  Node* made_by = grad_fn(t);
  is_own_result_ = of_node && made_by == of_node;
  if (!is_own_result_) grad_fn_ = Ref<RefCounted>(made_by);
  requires_grad_ = true;
  output_nr_ = t.impl()->output_nr;
}

Tensor SavedTensor::get_for(const Node* owner) const {
  if (packed_) [[unlikely]] {
    Packed& packed = static_cast<Packed&>(*packed_);
    const Tensor unpacked = packed.hooks->unpack(*packed.value);
    PRONG_CHECK(unpacked.defined(), kType, "the unpack hook of a saved tensor gave no tensor");
    return with_history(unpacked, owner);
  }
  if (!impl_) throw_freed();
  const uint64_t now = impl_->version();
  if (now != version_) {
    const Node* made_by = is_own_result_ ? owner : static_cast<const Node*>(grad_fn_.get());
    throw_error(
        ErrorKind::kRuntime,
        cat("one of the variables needed for gradient computation has been modified by an inplace "
            "operation: [torch.",
            scalar_type_name(impl_->dtype), "Tensor ", impl_->sizes, "]",
            made_by ? cat(", which is output ", output_nr_, " of ", short_name(*made_by), ",") : "",
            " is at version ", now, "; expected version ", version_,
            " instead. Hint: enable anomaly detection to find the operation that failed to compute "
            "its gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False)."));
  }
  return with_history(Tensor(impl_), owner);
}

Tensor SavedTensor::with_history(const Tensor& plain, const Node* owner) const {
  if (!requires_grad_ || !is_grad_enabled()) return plain;
  Tensor copy = shallow_copy(plain);
  TensorImpl* t = copy.impl();
  t->requires_grad = true;
  t->output_nr = output_nr_;
  t->grad_fn = is_own_result_ ? Ref<RefCounted>(const_cast<Node*>(owner)) : grad_fn_;
  return copy;
}

}  // namespace prong::eager
