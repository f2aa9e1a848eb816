// The .grad of leaves, and the tape of calls that run backward passes themselves: what a plan reads
// and writes there. See tracker.h and plan.h.
#include <algorithm>

#include "capture/session.h"
#include "capture/tape_calls.h"
#include "capture/tracker.h"
#include "eager/record.h"
#include "eager/spent_node.h"

namespace prong::capture {

namespace {

Tensor gradient_now(const TensorImpl* t) {
  return t->autograd ? eager::meta_of(t)->grad : Tensor();
}

bool has_hooks(const TensorImpl* leaf) {
  const eager::AutogradMeta* meta = eager::meta_of(leaf);
  return meta &&
         (!meta->post_accumulate.empty() || (meta->accumulator && meta->accumulator->hooks()));
}

// The numbers of a leaf's hooks, in the order in which they are called.
std::vector<int64_t> hooks_of(const TensorImpl* leaf) {
  std::vector<int64_t> all;
  const eager::AutogradMeta* meta = eager::meta_of(leaf);
  if (!meta) return all;
  if (const auto* hooks = meta->accumulator ? meta->accumulator->hooks() : nullptr) {
    for (const auto& h : hooks->tensor) all.push_back(h.id);
    for (const auto& h : hooks->retain) all.push_back(h.id);
    for (const auto& [id, hook] : hooks->pre) all.push_back(id);
    for (const auto& [id, hook] : hooks->post) all.push_back(id);
  }
  for (const auto& [id, hook] : meta->post_accumulate) all.push_back(id);
  return all;
}

// Would another pass from this node run Python code before it raises, for what was freed?
bool runs_python(eager::Node& root) {
  std::set<const eager::Node*> seen{&root};
  std::vector<eager::Node*> stack{&root};
  while (!stack.empty()) {
    eager::Node* node = stack.back();
    stack.pop_back();
    if (is_python_node(*node)) return true;
    if (node->is_spent()) continue;
    for (const eager::Edge& e : node->next())
      if (e.node && seen.insert(e.node.get()).second) stack.push_back(e.node.get());
  }
  return false;
}

}  // namespace

bool is_plain_leaf(const TensorImpl* t) {
  return !t->grad_fn && !(t->autograd && eager::view_requires_grad(t));
}

bool is_view_of_leaf(const TensorImpl* t) {
  return t->autograd && eager::is_view(t) && eager::meta_of(t)->base.requires_grad();
}

// ── recording ──

bool Tracker::is_object(PyObject* tensor) const {
  const auto root = roots_.find(door().impl_of(tensor));
  return root != roots_.end() && root->second.source.kind == TensorSource::Kind::kObject;
}

int32_t Tracker::gradient_of(TensorImpl* leaf) {
  if (const auto it = gradient_at_.find(leaf); it != gradient_at_.end()) return it->second;
  const auto root = roots_.find(leaf);
  if (root == roots_.end()) return -1;
  if (!root->second.is_leaf) give_up("the gradient of a tensor with a history");
  const auto index = static_cast<int32_t>(gradients_.size());
  gradient_at_.emplace(leaf, index);
  gradients_.push_back({Ref<TensorImpl>(leaf), {}});
  plan_->leaves.push_back({root->second.source});
  return index;
}

// What was there when the call began, unless the call has written there.
void Tracker::note_before(int32_t index, const Tensor& gradient) {
  const auto i = static_cast<size_t>(index);
  Leaf& leaf = plan_->leaves[i];
  if (gradients_[i].is_written || leaf.before != Leaf::Before::kUnread) return;
  leaf.before = gradient.defined() ? Leaf::Before::kTensor : Leaf::Before::kNone;
  gradients_[i].before = gradient.ref();
  if (!gradient.defined()) return;
  TensorImpl* impl = gradient.impl();
  if (roots_.count(impl)) return give_up("a gradient is also reached by another way");
  if (impl->requires_grad) return give_up("a gradient that has gradients itself");
  const TensorSource source{TensorSource::Kind::kGradient, index, 0, 0};
  roots_.emplace(impl, Root{source, Ref<TensorImpl>(impl)});
  TensorGuard guard{source, impl->dtype, false, false, static_cast<int64_t>(impl->sizes.size()),
                    {},     {},          -1};
  guard.is_leaf = true;
  plan_->tensors.push_back(std::move(guard));
}

Term Tracker::read_gradient(PyObject* tensor, PyObject* value) {
  TensorImpl* impl = door().impl_of(tensor);
  const int32_t index = gradient_of(impl);
  if (index >= 0) {
    note_before(index, gradient_now(impl));
  } else if (value == Py_None && impl->grad_fn) {
    give_up("the gradient of a tensor that keeps none is read");
  }
  return value == Py_None ? Term::same() : Term::tensor();
}

bool Tracker::is_identity_fixed(PyObject* a, PyObject* b) const {
  if (a == b) return true;
  const auto one = roots_.find(door().impl_of(a)), other = roots_.find(door().impl_of(b));
  if (one == roots_.end() && other == roots_.end()) return true;
  const auto is_other = [](const auto& root) {  // than what a call may be given
    return root->second.source.kind == TensorSource::Kind::kObject;
  };
  return one != roots_.end() && other != roots_.end() && is_other(one) && is_other(other);
}

Term Tracker::read_history(PyObject* tensor, PyObject* value) {
  TensorImpl* impl = door().impl_of(tensor);
  if (value != Py_None) {
    give_up("the history of a tensor is read");
    return {};
  }
  if (const auto root = roots_.find(impl); root != roots_.end() && root->second.is_leaf) {
    const TensorSource& s = root->second.source;
    for (TensorGuard& g : plan_->tensors)
      if (g.source.kind == s.kind && g.source.index == s.index && g.source.object == s.object)
        g.is_leaf = true;
  }
  return Term::same();
}

void Tracker::note_written(Gradient& g) {
  g.is_written = true;
  if (g.first_order < 0) g.first_order = num_steps_;
  g.last_order = num_steps_;
}

void Tracker::write_gradient(PyObject* tensor, PyObject* value) {
  TensorImpl* impl = door().impl_of(tensor);
  const int32_t index = gradient_of(impl);
  if (index >= 0)
    note_written(gradients_[static_cast<size_t>(index)]);
  else if (gradient_now(impl).defined())
    own_leaves_.push_back(Tensor(Ref<TensorImpl>(impl)));
  note_gradient_set(impl, value == Py_None ? nullptr : door().impl_of(value));
}

void Tracker::accumulating(const Tensor& leaf) {
  accumulated_.push_back({leaf, gradient_now(leaf.impl()), has_hooks(leaf.impl())});
}

void Tracker::note_accumulated() {
  for (const Accumulated& a : accumulated_) {
    const int32_t index = gradient_of(a.leaf.impl());
    if (index >= 0) {
      if (a.has_hooks) note_hooks(index);
      note_before(index, a.before);
      note_written(gradients_[static_cast<size_t>(index)]);
    } else {
      own_leaves_.push_back(a.leaf);
    }
  }
  accumulated_.clear();
}

// Of a leaf from outside: a plan asks that it has just these.
void Tracker::note_hooks(int32_t leaf) {
  Leaf& known = plan_->leaves[static_cast<size_t>(leaf)];
  std::vector<int64_t> now = hooks_of(gradients_[static_cast<size_t>(leaf)].leaf.get());
  if (!known.hooks.empty() && known.hooks != now) give_up("the hooks of a tensor changed");
  known.hooks = std::move(now);
  expected_outside_hooks_ += static_cast<int64_t>(known.hooks.size());
}

void Tracker::ran_backward() {
  if (context()[ContextWord::kSavingHooks]) give_up("hooks see what a backward pass saved");
  if (eager::is_anomaly_enabled()) give_up("anomaly mode");
  plan_->has_backward = true;
  note_accumulated();
  if (outside_hooks_ != expected_outside_hooks_)
    give_up("a hook from outside sees a gradient that goes no further");
}

// ── the plan ──

// What is left in .grad when the call ends.
bool Tracker::describe_gradients() {
  for (size_t i = 0; i < gradients_.size(); ++i) {
    const Gradient& g = gradients_[i];
    const Tensor now = gradient_now(g.leaf.get());
    const bool is_known = plan_->leaves[i].before != Leaf::Before::kUnread;
    if (is_known ? now.impl() == g.before.get() : !g.is_written) continue;
    Effect effect{Kept(nullptr),           Kept(nullptr),           {},
                  Effect::Kind::kGradient, static_cast<int32_t>(i), std::max(g.last_order, 0)};
    if (g.last_order > std::max(first_final_step_, g.first_order)) {
      give_up("a gradient is written before and after a call that others see");
      return true;
    }
    if (now.defined()) {
      const auto source = source_of(now.impl());
      if (!source || now.impl()->requires_grad) return false;
      leaving_.emplace_back(now.ref(), *source);
      effect.value.kind = Template::Kind::kTensor;
      effect.value.tensor = output_of(*source);
      effect.value.is_inference = now.impl()->is_inference;
    } else {
      effect.value.kind = Template::Kind::kObject;
      effect.value.object = keep(Py_None);
    }
    plan_->effects.push_back(std::move(effect));
  }
  std::stable_sort(plan_->effects.begin(), plan_->effects.end(),
                   [](const Effect& a, const Effect& b) { return a.order < b.order; });
  return true;
}

// The call ran a backward pass: may a plan do all of its work without the tape? What leaves the
// call then has no history, or one that is used up.
bool Tracker::settle_tape() {
  const auto refuse = [this](const char* why) {
    give_up(why);
    return false;
  };
  if (!accumulated_.empty()) return refuse("a backward pass that is not followed");
  for (const auto& [impl, root] : roots_) {
    if (!root.is_leaf) return refuse("a backward pass beside tensors that have a history already");
    if (!is_plain_leaf(impl) || impl->requires_grad != root.requires_grad)
      return refuse("a tensor from outside is given a history");
  }
  for (const Tensor& leaf : own_leaves_) {
    const auto source = source_of(leaf.impl());
    if (!source) return refuse("a gradient is added to a tensor of unknown origin");
    for (const auto& [impl, leaving] : leaving_)
      if (impl.get() == leaf.impl()) return refuse("a leaf that the call made leaves it");
  }
  for (TensorGuard& t : plan_->tensors) t.is_leaf = true;
  for (size_t i = 0; i < leaving_.size(); ++i) {
    const auto& [impl, source] = leaving_[i];
    bool is_known = false;
    for (size_t k = 0; k < i; ++k) {
      const auto& [other, at] = leaving_[k];
      if (at.kind != source.kind || at.index != source.index || at.output != source.output ||
          at.object != source.object)
        continue;
      if (other.get() != impl.get()) return refuse("one value leaves the call as two tensors");
      is_known = true;
    }
    if (is_known || source.kind != TensorSource::Kind::kProgram) continue;
    if (!eager::requires_grad(impl.get())) continue;
    if (!impl->grad_fn) return refuse("a leaf that the call made leaves it");
    if (eager::is_view(impl.get())) return refuse("a view with a history leaves the call");
    auto* node = static_cast<eager::Node*>(impl->grad_fn.get());
    if (makes_tape_steps_ && runs_python(*node))
      return refuse("a history with steps in Python leaves the call");
    if (!eager::raises_before_leaves(*node))
      return refuse("a history that is not used up leaves a call that ran a backward pass");
    plan_->spent.push_back({output_of(source), Ref<eager::Node>(node), impl->output_nr});
  }
  return true;
}

// ── replay ──

bool Plan::leaf_fits(const Leaf& leaf, PyObject* const* args) const {
  const TensorImpl* t = fetch(leaf.tensor, args);
  if (!t || !is_plain_leaf(t)) return false;
  if (!leaf.hooks.empty() ? hooks_of(t) != leaf.hooks : has_hooks(t)) return false;
  return leaf.before != Leaf::Before::kNone || !gradient_now(t).defined();
}

void Plan::give_histories(std::vector<std::vector<IValue>>& results) const {
  for (const Spent& s : spent) {
    const Tensor t =
        results[static_cast<size_t>(s.tensor.index)][static_cast<size_t>(s.tensor.output)]
            .to_tensor();
    const Ref<eager::Node> node(new eager::SpentNode(s.like, t));
    eager::set_history(t.impl(), node.get(), s.output_nr);
  }
}

}  // namespace prong::capture
