// Writing the tape; see record.h.
#include "eager/record.h"

#include <mutex>

#include "eager/dispatch.h"
#include "eager/op_node.h"
#include "ops/kernels/pointwise.h"
#include "ops/self_overlap.h"

namespace prong::eager {

std::atomic<std::string (*)()> anomaly_where{nullptr};

IValue EagerBuilder::apply(const OpDef& op, std::span<const IValue> args) {
  if (args.size() == op.schema().arguments.size()) return run(op, args);
  return run(op, op.schema().with_defaults(args));
}

EagerBuilder& eager_builder() {
  static EagerBuilder builder;
  return builder;
}

bool needs_grad(const IValue& v) {
  if (v.is_tensor()) return requires_grad(v.tensor_impl());
  if (v.is_list() || v.is_tuple()) {
    for (const IValue& item : v.items())
      if (item.is_tensor() && requires_grad(item.tensor_impl())) return true;
  }
  return false;
}

// ── results ──

namespace {

// An op that had nothing to do (contiguous, to) gives its argument back, which keeps its own
// history.
bool is_argument(const IValue& result, std::span<const IValue> args) {
  if (!result.is_tensor()) return false;
  for (const IValue& arg : args)
    if (arg.is_tensor() && arg.tensor_impl() == result.tensor_impl()) return true;
  return false;
}

void give_history(const IValue& result, OpNode& node) {
  if (result.is_tensor()) {
    const Tensor t = result.to_tensor();
    node.add_result(t);
    if (can_require_grad(t.dtype())) set_history(t.impl(), &node, 0);
    return;
  }
  if (!result.is_tuple() && !result.is_list()) return;
  uint32_t i = 0;
  for (const IValue& item : result.items()) {
    if (item.is_tensor()) {
      const Tensor t = item.to_tensor();
      node.add_result(t);
      if (can_require_grad(t.dtype())) set_history(t.impl(), &node, i);
    }
    ++i;
  }
}

}  // namespace

namespace {
IValue run_parts(const OpDef& op, std::span<const IValue> args) {
  struct Scope {
    Scope() { composing = &run; }
    ~Scope() { composing = saved; }
    KernelFn saved = composing;
  } scope;
  const OpDef* base = op.inplace_of();
  if (!base) return op.kernel()(op, args);
  static const OpDef& copy = registry().get("copy_");
  const IValue result = base->kernel()(*base, args);
  PRONG_CHECK(result.tensor_impl()->sizes == args[0].tensor_impl()->sizes, kRuntime,
              "output with shape ", args[0].tensor_impl()->sizes,
              " doesn't match the broadcast shape ", result.tensor_impl()->sizes);
  const IValue both[] = {args[0], result};
  eager_builder().apply(copy, both);
  return args[0];
}
}  // namespace

// A composite op applies others; what stands under it is recorded in its place.
IValue run_composite(const OpDef& op, std::span<const IValue> args) {
  if (const uint64_t word = context()[ContextWord::kKernels]) [[unlikely]]
    return reinterpret_cast<KernelStandIn*>(word)->run_composite(op, args, &run_parts);
  return run_parts(op, args);
}

IValue run_recorded(const OpDef& op, std::span<const IValue> args) {
  if (op.is_composite()) return run_composite(op, args);
  const int written = op.mutated_argument();
  if (written >= 0 && args[static_cast<size_t>(written)].is_tensor())
    check_inplace(args[static_cast<size_t>(written)].to_tensor());
  Ref<OpNode> node = OpNode::make(op, args);
  IValue result = run_kernel_or_batch(op, args);
  if (written >= 0) {
    const Tensor target = args[static_cast<size_t>(written)].to_tensor();
    node->add_result(target);
    if (!can_require_grad(target.dtype())) return result;
    const size_t edge = node->first_edge(static_cast<size_t>(written));
    if (is_view(target.impl())) {
      // The rules' results are those of the view, which the node does not own.
      if (op.gradient()) node->keep_results(IValue(shallow_copy(target)));
      rebase_history(target, std::move(node), edge);
    } else {
      set_history(target.impl(), node.get(), 0);
      if (op.gradient()) node->keep_results(result);
    }
    return result;
  }
  if (is_argument(result, args)) return result;
  give_history(result, *node);
  if (op.gradient()) node->keep_results(result);
  if (op.viewed_argument() >= 0) note_views(op, args, result);
  return result;
}

// ── views ──

namespace {

void note_view(const OpDef& op, const Tensor& from, const Tensor& view, bool is_one_of_several) {
  if (!can_require_grad(view.dtype()) || view.is_same(from) || view.dtype() != from.dtype() ||
      view.storage().get() != from.storage().get())
    return;
  AutogradMeta& meta = make_meta(view.impl());
  meta.base = is_view(from.impl()) ? meta_of(from.impl())->base : from;
  if (is_inference_mode()) {
    meta.origin = AutogradMeta::Origin::kInference;
  } else if (!is_grad_enabled()) {
    meta.origin = AutogradMeta::Origin::kNoGrad;
  } else if (is_one_of_several) {
    meta.origin = AutogradMeta::Origin::kSeveral;
    meta.made_by = op.base_name();
  } else if (is_view(from.impl())) {
    meta.origin = meta_of(from.impl())->origin;
    meta.made_by = meta_of(from.impl())->made_by;
  }
  meta.view_version = view.version();
}

}  // namespace

void note_views(const OpDef& op, std::span<const IValue> args, const IValue& result) {
  const IValue& source = args[static_cast<size_t>(op.viewed_argument())];
  if (source.is_list() && result.is_list()) {  // a view of each
    for (size_t i = 0; i < result.items().size(); ++i) {
      const Tensor from = source.items()[i].to_tensor();
      if (!from.impl()->is_inference) note_view(op, from, result.items()[i].to_tensor(), false);
    }
    return;
  }
  if (!source.is_tensor() || !can_require_grad(source.tensor_impl()->dtype)) return;
  if (source.tensor_impl()->is_inference) return;
  const Tensor from = source.to_tensor();
  if (result.is_tensor()) {
    note_view(op, from, result.to_tensor(), false);
  } else if (result.is_list() || result.is_tuple()) {
    for (const IValue& item : result.items())
      if (item.is_tensor()) note_view(op, from, item.to_tensor(), true);
  }
}

// The view has no history, though its base may have one: what it stands for is not clear.
[[noreturn]] void throw_made_without_gradients(std::string_view what) {
  throw_error(
      ErrorKind::kRuntime,
      cat("A view was created in no_grad mode and ", what,
          " with grad mode "
          "enabled. Given that this use case is ambiguous and error-prone, it is forbidden. "
          "You can clarify your code by moving both the view and the inplace either both "
          "inside the no_grad block (if you don't want the inplace to be tracked) or both "
          "outside (if you want the inplace to be tracked)."));
}

void check_inplace_view(const Tensor& target) {
  const AutogradMeta& meta = *meta_of(target.impl());
  if (meta.origin == AutogradMeta::Origin::kNoGrad && requires_grad(meta.base.impl()))
    throw_made_without_gradients("is being modified inplace");
  // The base came to require it after the view was made.
  PRONG_CHECK(!(can_require_grad(target.dtype()) && meta.base.requires_grad() &&
                meta.origin != AutogradMeta::Origin::kInference && is_leaf(meta.base)),
              kRuntime, kWritesViewOfLeaf);
}

void check_inplace(const Tensor& target) {
  TensorImpl* t = target.impl();
  PRONG_CHECK(!(t->requires_grad && is_leaf(target)), kRuntime,
              "a leaf Variable that requires grad is being used in an in-place operation.");
  if (!is_view(t)) return;
  const AutogradMeta& meta = *meta_of(t);
  PRONG_CHECK(!(meta.base.requires_grad() && is_leaf(meta.base)), kRuntime, kWritesViewOfLeaf);
  if (meta.origin == AutogradMeta::Origin::kSeveral)
    throw_error(ErrorKind::kRuntime,
                cat("Output ", t->output_nr, " of ",
                    t->grad_fn ? short_name(*static_cast<Node*>(t->grad_fn.get())) : meta.made_by,
                    " is a view and is being modified inplace. This view is the output of a "
                    "function that returns multiple views. Such "
                    "functions do not allow the output views to be modified inplace. You should "
                    "replace the inplace operation by an out-of-place one."));
  check_inplace_view(target);
}

namespace {

// Where a view lies in the tensor that it is a view of.
struct Place {
  TensorMeta base;
  Dims base_strides, sizes, strides;
  int64_t offset = 0;

  Place(const Tensor& base_tensor, const Tensor& view)
      : base(base_tensor.meta()), base_strides(base_tensor.strides()), sizes(view.sizes()),
        strides(view.strides()), offset(view.offset() - base_tensor.offset()) {}

  // Memory laid out as the base's.
  Expr blank() const {
    return Expr(eager_builder(), eager_builder()("empty_strided", {IValue(DimsView(base.sizes)),
                                                                   IValue(DimsView(base_strides)),
                                                                   IValue(base.dtype)}));
  }
  Expr in(const Expr& base_like) const {
    return op<"as_strided">(base_like, sizes, strides, offset);
  }
};

Expr wrap(const Tensor& t) { return Expr(eager_builder(), IValue(t)); }

// The base after an op wrote a part of it: the part's gradient goes back through the op, the rest
// passes by.
class CopySlices final : public Node {
 public:
  CopySlices(const Tensor& base, const Tensor& view, Ref<Node> node, size_t edge)
      : place_(base, view), node_(std::move(node)), edge_(edge) {
    edges_.push_back(gradient_edge(base));
    for (size_t i = 0; i < node_->next().size(); ++i)
      if (i != edge) edges_.push_back(node_->next()[i]);
    add_result(base);
    set_sequence(edges_);
    sequence_ = std::max(sequence_, node_->sequence());
  }
  std::string name() const override { return "torch::autograd::CopySlices"; }
  std::span<const Edge> next() const override { return edges_; }
  void release_saved() override { node_->release_saved(); }

  std::vector<Tensor> apply(std::vector<Tensor>& gradients) override {
    if (!gradients[0].defined()) return {};
    Expr whole = op<"copy_">(place_.blank(), wrap(gradients[0]));
    const Expr part = place_.in(whole);
    std::vector<Tensor> of_part{op<"clone">(part).value().to_tensor()};
    std::vector<Tensor> through = node_->apply(of_part);
    std::vector<Tensor> out;
    const Tensor old_part = edge_ < through.size() ? through[edge_] : Tensor();
    if (old_part.defined())
      op<"copy_">(part, wrap(old_part));
    else
      op<"zero_">(part);
    out.push_back(whole.value().to_tensor());
    for (size_t i = 0; i < through.size(); ++i)
      if (i != edge_) out.push_back(through[i]);
    out.resize(edges_.size());
    return out;
  }

 private:
  Place place_;
  Ref<Node> node_;
  size_t edge_;
  std::vector<Edge> edges_;
};

// A view whose base was written through another view.
class ViewOfBase final : public Node {
 public:
  ViewOfBase(const Tensor& base, const Tensor& view) : place_(base, view) {
    edge_ = gradient_edge(base);
    add_result(view);
    set_sequence(next());
  }
  std::string name() const override { return "AsStridedBackward0"; }
  std::span<const Edge> next() const override { return {&edge_, 1}; }
  std::vector<Tensor> apply(std::vector<Tensor>& gradients) override {
    if (!gradients[0].defined()) return {};
    if (may_overlap_itself(place_.sizes, place_.strides))
      return {op<"as_strided_backward">(wrap(gradients[0]), place_.sizes, place_.strides,
                                        place_.offset, place_.base.sizes, place_.base_strides)
                  .value()
                  .to_tensor()};
    const Expr whole = op<"zero_">(place_.blank());
    op<"copy_">(place_.in(whole), wrap(gradients[0]));
    return {whole.value().to_tensor()};
  }

 private:
  Place place_;
  Edge edge_;
};

std::mutex view_lock;  // two threads may ask for the history of one view

}  // namespace

void refresh_view(const Tensor& view) {
  AutogradMeta& meta = *meta_of(view.impl());
  if (!meta.base.requires_grad() || !can_require_grad(view.dtype()) ||
      meta.view_version.load(std::memory_order_acquire) == view.version() ||
      meta.origin == AutogradMeta::Origin::kInference)
    return;
  if (meta.origin == AutogradMeta::Origin::kNoGrad)
    throw_made_without_gradients("its base or another view of its base has been modified inplace");
  std::lock_guard guard(view_lock);
  if (meta.view_version.load(std::memory_order_relaxed) == view.version()) return;
  Ref<Node> node(new ViewOfBase(meta.base, view));
  set_history(view.impl(), node.get(), 0);
  meta.view_version.store(view.version(), std::memory_order_release);
}

void rebase_history(const Tensor& target, Ref<Node> node, size_t edge) {
  AutogradMeta& meta = *meta_of(target.impl());
  const Tensor base = meta.base;
  Ref<Node> whole(new CopySlices(base, target, std::move(node), edge));
  set_history(base.impl(), whole.get(), 0);
  meta.view_version = target.version() - 1;  // so that the view takes its history from its base
  refresh_view(target);
}

// ── leaves ──

bool is_unshared(const Tensor& t) {
  return t.impl()->use_count() == 1 && t.storage()->use_count() == 1 && !t.storage()->is_exposed();
}

namespace {

std::mutex& accumulate_lock(const Tensor& leaf) {
  static std::mutex locks[16];
  return locks[reinterpret_cast<uintptr_t>(leaf.impl()) / 64 % 16];
}

}  // namespace

std::atomic<void (*)(const Tensor& leaf)> before_accumulate{nullptr};

void accumulate_grad(const Tensor& leaf, Tensor gradient) {
  static const OpDef &add = registry().get("add_"), &clone = registry().get("clone");
  std::lock_guard guard(accumulate_lock(leaf));
  AutogradMeta& meta = make_meta(leaf.impl());
  if (!meta.grad.defined()) {
    if (!is_grad_enabled() && gradient.is_contiguous() && is_unshared(gradient) &&
        gradient.sizes() == leaf.sizes()) {
      meta.grad = std::move(gradient);
    } else {
      const IValue arg(gradient);
      meta.grad = eager_builder().apply(clone, std::span(&arg, 1)).to_tensor();
    }
  } else if (!is_grad_enabled()) {
    const IValue both[] = {IValue(meta.grad), IValue(gradient)};
    eager_builder().apply(add, both);
  } else {
    meta.grad = (wrap(meta.grad) + wrap(gradient)).value().to_tensor();
  }
}

void accumulate_retained(const Tensor& t, const Tensor& gradient) {
  AutogradMeta& meta = make_meta(t.impl());
  if (meta.grad.defined())
    meta.grad = (wrap(meta.grad) + wrap(gradient)).value().to_tensor();
  else
    meta.grad = is_grad_enabled() ? gradient : op<"clone">(wrap(gradient)).value().to_tensor();
}

}  // namespace prong::eager
