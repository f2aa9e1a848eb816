// The backward pass: a node runs when the gradients of all its results are there, the latest first.
// See engine.h.
#include "eager/engine.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "eager/batched.h"
#include "eager/dispatch.h"
#include "eager/record.h"
#include "ops/gradient.h"
#include "profile/profile.h"
#include "runtime/parallel.h"

namespace prong::eager {

namespace {

std::atomic<uint64_t> pass_count{0};

thread_local uint64_t running_pass = 0;
struct RunningPass {
  explicit RunningPass(uint64_t id) : outer(std::exchange(running_pass, id)) {}
  ~RunningPass() { running_pass = outer; }
  uint64_t outer;
};

Expr wrap(const Tensor& t) { return Expr(eager_builder(), IValue(t)); }

// Broadcasting and promotion undone: the gradient in the shape and dtype of what it is the gradient
// of.
Tensor fit(Tensor g, const TensorMeta& to, const Node& from, size_t index) {
  bool sums = !(g.sizes() == to.sizes);
  if (const uint64_t word = context()[ContextWord::kKernels]) [[unlikely]]
    sums = reinterpret_cast<KernelStandIn*>(word)->sums_spread(sums);
  if (sums) {
    bool fits = g.rank() >= to.rank();
    const size_t lead = fits ? g.sizes().size() - to.sizes.size() : 0;
    for (size_t i = 0; fits && i < to.sizes.size(); ++i)
      fits = to.sizes[i] == g.sizes()[lead + i] || to.sizes[i] == 1;
    PRONG_CHECK(fits, kRuntime, "Function ", from.name(), " returned an invalid gradient at index ",
                index, " - got ", g.sizes(), " but expected shape compatible with ", to.sizes);
    g = op<"sum_to_size">(wrap(g), to.sizes).value().to_tensor();
  }
  if (g.dtype() != to.dtype) {
    PRONG_CHECK(can_require_grad(g.dtype()), kRuntime, "Function ", from.name(),
                " returned an invalid gradient at index ", index, " - expected dtype ", to.dtype,
                " but got ", g.dtype());
    g = op<"to">(wrap(g), to.dtype).value().to_tensor();
  }
  return g;
}

// May a sum be written into it?
bool is_mine_alone(const Tensor& t) {
  return is_unshared(t) && t.is_contiguous() && !t.requires_grad();
}

void add_into(Tensor& sum, Tensor more) {
  const bool is_batched =
      may_be_batched() && sum.defined() && (batched_of(sum.impl()) || batched_of(more.impl()));
  if (!sum.defined()) {
    sum = std::move(more);
  } else if (is_batched) {
    sum = (wrap(sum) + wrap(more)).value().to_tensor();
  } else if (!is_grad_enabled() && is_mine_alone(sum)) {
    op<"add_">(wrap(sum), wrap(more));
  } else if (!is_grad_enabled() && is_mine_alone(more)) {
    sum = op<"add_">(wrap(more), wrap(sum)).value().to_tensor();
  } else {
    sum = (wrap(sum) + wrap(more)).value().to_tensor();
  }
}

void check_finite(const std::vector<Tensor>& gradients, const Node& node) {
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    const Expr nan = op<"any">(op<"isnan">(wrap(gradients[i])));
    PRONG_CHECK(!nan.value().to_tensor().item_int(), kRuntime, "Function '", node.name(),
                "' returned nan values in its ", i, "th output.",
                node.where() ? cat("\nThe forward call that made it:\n", *node.where()) : "");
  }
}

}  // namespace

// One pass.
class Backward {
 public:
  explicit Backward(const BackwardOptions& options)
      : options_(options), id_(pass_count.fetch_add(1, std::memory_order_relaxed) + 1) {}
  ~Backward() {
    for (Visit& v : visits_)
      if (v.is_claimed) v.node->pass_.store(0, std::memory_order_release);
  }

  uint64_t id() const { return id_; }

  std::vector<Tensor> run(std::vector<Edge> roots, std::vector<Tensor> gradients,
                          const std::vector<Edge>& inputs) {
    captured_.resize(inputs.size());
    for (const Edge& root : roots) discover(root.node.get());
    if (!inputs.empty()) restrict_to(inputs);
    for (size_t i = 0; i < roots.size(); ++i) {
      Visit& v = visit(roots[i].node.get());
      add_into(slot(v, roots[i].index),
               fit(std::move(gradients[i]), v.node->result(roots[i].index), *v.node, i));
    }
    for (const Edge& root : roots) {
      const uint32_t place = place_of(root.node.get());
      if (visits_[place].dependencies == 0 && !visits_[place].is_queued) make_ready(place);
    }
    while (!ready_.empty()) {
      if (ready_.size() > 1 && worth_sharing(ready_.top().second)) compute_together();
      step(take_ready());
    }
    return std::move(captured_);
  }

 private:
  struct Visit {
    Node* node;
    uint32_t dependencies = 0;
    bool is_claimed = false, is_queued = false, is_needed = true, is_computed = false;
    std::vector<Tensor> out{};                              // if it is computed
    std::vector<Tensor> gradients{};                        // of the node's results
    std::vector<std::pair<uint32_t, uint32_t>> captures{};  // result, place in captured_
  };

  // ── the part of the tape that is walked ──

  // The number of a node in visits_; a node that another pass works on now is looked up in a table
  // instead.
  uint32_t place_of(Node* node) {
    if (node->pass_.load(std::memory_order_acquire) == id_) return node->slot_;
    const auto it = others_.find(node);
    return it == others_.end() ? kNone : it->second;
  }
  Visit& visit(Node* node) { return visits_[place_of(node)]; }

  uint32_t add(Node* node) {
    const auto place = static_cast<uint32_t>(visits_.size());
    visits_.push_back({node});
    uint64_t nobody = 0;
    if (node->pass_.compare_exchange_strong(nobody, id_, std::memory_order_acq_rel)) {
      node->slot_ = place;
      visits_.back().is_claimed = true;
    } else {
      others_.emplace(node, place);
    }
    return place;
  }

  void discover(Node* root) {
    if (place_of(root) != kNone) return;
    std::vector<Node*> stack{root};
    add(root);
    while (!stack.empty()) {
      Node* node = stack.back();
      stack.pop_back();
      for (const Edge& e : node->next()) {
        if (!e.node) continue;
        uint32_t place = place_of(e.node.get());
        if (place == kNone) {
          place = add(e.node.get());
          stack.push_back(e.node.get());
        }
        ++visits_[place].dependencies;
      }
    }
  }

  // Only nodes on the way to an input run.
  void restrict_to(const std::vector<Edge>& inputs) {
    for (Visit& v : visits_) v.is_needed = false;
    std::vector<Node*> captured;
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].node) continue;
      const uint32_t place = place_of(inputs[i].node.get());
      if (place == kNone) continue;
      if (options_.returns)
        visits_[place].captures.push_back({inputs[i].index, i});
      else if (dynamic_cast<AccumulateGrad*>(inputs[i].node.get()))
        visits_[place].is_needed = true;
      captured.push_back(inputs[i].node.get());
    }
    std::vector<uint32_t> order(visits_.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      const auto depth = [&](uint32_t i) {  // leaves first
        return visits_[i].node->next().empty() ? 0 : visits_[i].node->sequence();
      };
      return depth(a) < depth(b);
    });
    for (uint32_t i : order) {
      Visit& v = visits_[i];
      for (const Edge& e : v.node->next()) {
        if (!e.node) continue;
        const Visit& to = visit(e.node.get());
        v.is_needed |= to.is_needed || !to.captures.empty() ||
                       std::find(captured.begin(), captured.end(), e.node.get()) != captured.end();
      }
    }
  }

  // ── running ──

  Tensor& slot(Visit& v, uint32_t index) {
    if (v.gradients.empty()) v.gradients.resize(std::max<size_t>(1, v.node->num_results()));
    return v.gradients[index];
  }

  void make_ready(uint32_t place) {
    visits_[place].is_queued = true;
    ready_.emplace(visits_[place].node->sequence(), place);
  }

  uint32_t take_ready() {
    const uint32_t place = ready_.top().second;
    ready_.pop();
    return place;
  }

  void step(uint32_t place) {
    Visit& v = visits_[place];
    std::vector<Tensor> out = v.is_computed ? std::move(v.out) : compute(place);
    pass_on(*visits_[place].node, out);
  }

  // Branches side by side: of the nodes that are ready, those worth a thread are computed at once.
  // What they give is passed on when it is their turn, so that the order in which gradients are
  // added up depends on neither sizes nor the number of threads.
  bool worth_sharing(uint32_t place) const {
    const Visit& v = visits_[place];
    return v.is_needed && !v.is_computed && !v.node->hooks() && v.node->is_heavy() &&
           !context()[ContextWord::kKernels];  // else ops are put off: there is no work to share
  }
  void compute_together() {
    std::vector<uint32_t> together;
    while (!ready_.empty() && worth_sharing(ready_.top().second)) together.push_back(take_ready());
    if (together.size() > 1) {
      const uint64_t pass = id_;
      parallel_for(0, static_cast<int64_t>(together.size()), 1, [&](int64_t begin, int64_t end) {
        const RunningPass running(pass);
        for (int64_t i = begin; i < end; ++i) {
          const uint32_t place = together[static_cast<size_t>(i)];
          visits_[place].out = compute(place);
          visits_[place].is_computed = true;
        }
      });
    }
    for (const uint32_t place : together) make_ready(place);
  }
  // What the node gives back. Touches nothing of the pass but this visit and what is captured
  // there.
  std::vector<Tensor> compute(uint32_t place) {
    Node& node = *visits_[place].node;
    std::vector<Tensor> gradients = std::move(visits_[place].gradients);
    if (gradients.empty()) gradients.resize(std::max<size_t>(1, node.num_results()));
    if (node.hooks()) call_pre_hooks(node, gradients);
    for (const auto& [result, index] : visits_[place].captures)
      captured_[index] = gradients[result];
    std::vector<Tensor> out;
    if (!visits_[place].is_needed) return out;
    std::vector<Tensor> received;
    if (node.hooks() && !node.hooks()->post.empty()) received = gradients;
    out = apply(node, gradients);
    if (is_anomaly_enabled()) check_finite(out, node);
    PRONG_CHECK(out.empty() || out.size() == node.next().size(), kRuntime, "Function ", node.name(),
                " returned an incorrect number of gradients (expected ", node.next().size(),
                ", got ", out.size(), ")");
    if (!received.empty()) call_post_hooks(node, out, received);
    if (!options_.keep_graph) node.release_saved();
    return out;
  }

  std::vector<Tensor> apply(Node& node, std::vector<Tensor>& gradients) {
    try {
      profile::Scope scope("autograd::backward", profile::Category::kOp);
      BatchOf batch;
      if (may_be_batched())
        for (const Tensor& g : gradients) batch.add(g);
      const BatchScope made(batch);
      return node.apply(gradients);
    } catch (const Error& e) {
      if (!node.where()) throw;
      throw Error(e.kind(), cat(e.message(), "\nThe forward call that made ", node.name(), ":\n",
                                *node.where()));
    }
  }

  void pass_on(Node& node, std::vector<Tensor>& out) {
    const auto next = node.next();
    for (size_t i = 0; i < next.size(); ++i) {
      if (!next[i].node) continue;
      const uint32_t place = place_of(next[i].node.get());
      Visit& to = visits_[place];
      if (i < out.size() && out[i].defined() &&
          (to.is_needed || !to.captures.empty() || to.node->hooks()))
        add_into(slot(to, next[i].index),
                 fit(std::move(out[i]), to.node->result(next[i].index), node, i));
      if (--to.dependencies == 0 && !to.is_queued) make_ready(place);
    }
  }

  static void call_pre_hooks(Node& node, std::vector<Tensor>& gradients) {
    const Node::Hooks hooks = *node.hooks();  // a copy: they may be taken away meanwhile
    for (const auto* list : {&hooks.tensor, &hooks.retain})
      for (const auto& [result, id, hook] : *list) {
        if (!gradients[result].defined()) continue;
        std::vector<Tensor> one{gradients[result]};
        hook->call(one);
        gradients[result] = one[0];
      }
    for (const auto& [id, hook] : hooks.pre) hook->call(gradients);
  }
  static void call_post_hooks(Node& node, std::vector<Tensor>& out,
                              const std::vector<Tensor>& received) {
    const auto hooks = node.hooks()->post;
    for (const auto& [id, hook] : hooks) hook->call(out, received);
  }

  static constexpr uint32_t kNone = UINT32_MAX;
  const BackwardOptions options_;
  const uint64_t id_;
  std::vector<Visit> visits_;
  std::unordered_map<Node*, uint32_t> others_;
  std::priority_queue<std::pair<uint64_t, uint32_t>> ready_;
  std::vector<Tensor> captured_;
};

uint64_t backward_pass() { return running_pass; }

std::vector<Tensor> run_backward_edges(std::vector<Edge> roots, std::vector<Tensor> gradients,
                                       const std::vector<Edge>& inputs,
                                       const BackwardOptions& options) {
  ContextGuard restore;
  set_grad_enabled(options.create_graph);
  context()[ContextWord::kAutocast] = 0;  // gradients have the dtypes that the forward pass chose
  Backward pass(options);
  const RunningPass running(pass.id());
  return pass.run(std::move(roots), std::move(gradients), inputs);
}

namespace {

Tensor first_gradient(const Tensor& root, const Tensor& given, size_t index) {
  if (!given.defined()) {
    PRONG_CHECK(root.numel() == 1, kRuntime,
                "grad can be implicitly created only for scalar outputs");
    PRONG_CHECK(can_require_grad(root.dtype()), kRuntime,
                "grad can be implicitly created only for real scalar outputs but got ",
                root.dtype());
    return op<"ones_like">(wrap(root)).value().to_tensor();
  }
  PRONG_CHECK(given.sizes() == root.sizes(), kRuntime, "Mismatch in shape: grad_output[", index,
              "] has a shape of torch.Size(", given.sizes(), ") and output[", index,
              "] has a shape of torch.Size(", root.sizes(), ").");
  return given;
}

}  // namespace

std::vector<Tensor> run_backward(std::span<const Tensor> roots, std::span<const Tensor> gradients,
                                 std::span<const Tensor> inputs, const BackwardOptions& options) {
  std::vector<Edge> edges, ends;
  std::vector<Tensor> first;
  for (size_t i = 0; i < roots.size(); ++i) {
    Edge edge = gradient_edge(roots[i]);
    PRONG_CHECK(edge.node, kRuntime, "element ", i,
                " of tensors does not require grad and does not have a grad_fn");
    edges.push_back(std::move(edge));
    ContextGuard restore;
    set_grad_enabled(false);
    first.push_back(first_gradient(roots[i], i < gradients.size() ? gradients[i] : Tensor(), i));
  }
  for (const Tensor& input : inputs) {
    PRONG_CHECK(requires_grad(input.impl()), kRuntime,
                "One of the differentiated Tensors does not require grad");
    if (!options.returns && !is_leaf(input)) retain_grad(input);
    ends.push_back(gradient_edge(input));
  }
  std::vector<Tensor> out = run_backward_edges(std::move(edges), std::move(first), ends, options);
  if (!options.returns) return {};
  for (size_t i = 0; i < out.size(); ++i)
    PRONG_CHECK(out[i].defined() || options.allow_unused, kRuntime,
                "The differentiated Tensor at index ", i,
                " appears to not have been used in the graph. Set allow_unused=True if this is the "
                "desired behavior.");
  return out;
}

}  // namespace prong::eager
