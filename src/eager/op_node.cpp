// See op_node.h.
#include "eager/op_node.h"

#include <cctype>

#include "eager/batched.h"
#include "eager/record.h"

namespace prong::eager {

namespace {

// A number or None where a tensor could stand has an edge to nowhere, as in PyTorch.
size_t edges_for(const IValue& v) { return v.is_list() || v.is_tuple() ? v.items().size() : 1; }

bool has_tensor(const IValue& v) {
  if (v.is_tensor()) return true;
  if (!v.is_list() && !v.is_tuple()) return false;
  for (const IValue& item : v.items())
    if (item.is_tensor()) return true;
  return false;
}

Tensor old_value(const IValue& written) {
  if (!may_be_batched()) return written.to_tensor().clone();
  ContextGuard restore;
  set_grad_enabled(false);
  return eager_builder()("clone", {written}).to_tensor();
}

int rule_of(const OpDef& op, size_t argument) {
  return op.gradient() ? op.gradient()->rule_of_argument[argument] : -1;
}

}  // namespace

OpNode::OpNode(const OpDef& op, size_t num_args, size_t num_edges)
    : op_(&op), num_args_(static_cast<uint32_t>(num_args)),
      num_edges_(static_cast<uint32_t>(num_edges)) {
  kept_ = reinterpret_cast<Kept*>(this + 1);
  for (size_t i = 0; i < num_args; ++i) new (kept_ + i) Kept();
  edges_ = reinterpret_cast<Edge*>(kept_ + num_args);
  for (size_t i = 0; i < num_edges; ++i) new (edges_ + i) Edge();
}

OpNode::~OpNode() {
  for (size_t i = 0; i < num_args_; ++i) kept_[i].~Kept();
  for (size_t i = 0; i < num_edges_; ++i) edges_[i].~Edge();
}

bool OpNode::is_needed(const GradientRule& rule, std::span<const IValue> args) {
  for (int a : rule.arguments)
    if (needs_grad(args[static_cast<size_t>(a)])) return true;
  return false;
}

Ref<OpNode> OpNode::make(const OpDef& op, std::span<const IValue> args) {
  size_t num_edges = 0;
  for (size_t i = 0; i < args.size(); ++i)
    if (rule_of(op, i) >= 0 || !op.gradient()) num_edges += edges_for(args[i]);
  uint64_t used = 0;
  if (op.gradient())
    for (const GradientRule& rule : op.gradient()->rules)
      if (is_needed(rule, args)) used |= rule.uses_arguments;

  const size_t extra = args.size() * sizeof(Kept) + num_edges * sizeof(Edge);
  Ref<OpNode> node(new (extra) OpNode(op, args.size(), num_edges));
  uint32_t edge = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    Kept& kept = node->kept_[i];
    kept.first_edge = edge;
    if (rule_of(op, i) >= 0 || !op.gradient()) {
      kept.num_edges = static_cast<uint32_t>(edges_for(args[i]));
      if (args[i].is_tensor()) {
        node->edges_[edge] = gradient_edge(args[i].to_tensor());
      } else if (args[i].is_list() || args[i].is_tuple()) {
        for (uint32_t k = 0; k < kept.num_edges; ++k)
          if (const IValue& item = args[i].items()[k]; item.is_tensor())
            node->edges_[edge + k] = gradient_edge(item.to_tensor());
      }
      edge += kept.num_edges;
    }
    node->keep(kept, args[i], used >> i & 1, op.mutated_argument() == static_cast<int>(i));
    // Where a view's source lay, whatever is written to it later.
    if (kept.kind == Kept::Kind::kTensor && op.viewed_argument() == static_cast<int>(i)) {
      const Tensor source = args[i].to_tensor();
      kept.plain = IValue::tuple({IValue(DimsView(source.strides())), IValue(source.offset())});
    }
  }
  node->set_sequence(node->next());
  if (is_anomaly_enabled()) node->set_where(anomaly_where.load()());
  return node;
}

void OpNode::keep(Kept& kept, const IValue& arg, bool is_used, bool is_written) {
  if (!has_tensor(arg)) {
    kept.plain = arg;
    return;
  }
  if (arg.is_tensor()) {
    kept.kind = is_used ? Kept::Kind::kTensor : Kept::Kind::kDropped;
    if (!is_used) return;
    // The value from before the write is what a rule means by the argument's name.
    kept.tensor = SavedTensor(is_written ? old_value(arg) : arg.to_tensor(), nullptr);
    return;
  }
  kept.kind = Kept::Kind::kList;
  for (const IValue& item : arg.items()) {
    if (!item.is_tensor())
      kept.list.emplace_back(SavedTensor(), item);
    else if (is_used)
      kept.list.emplace_back(SavedTensor(item.to_tensor(), nullptr), IValue());
    else if (requires_grad(item.tensor_impl()))
      kept.list.emplace_back();
    else
      kept.list.emplace_back(SavedTensor(), IValue(meta_from(item)));  // no edge knows its shape
  }
}

void OpNode::keep_results(const IValue& result) {
  uint64_t used = 0;
  for (const GradientRule& rule : op_->gradient()->rules) {
    bool is_needed = false;
    for (int a : rule.arguments) {
      const Kept& kept = kept_[a];
      for (uint32_t k = 0; k < kept.num_edges; ++k)
        is_needed |= static_cast<bool>(edges_[kept.first_edge + k].node);
    }
    if (is_needed) used |= rule.uses_results;
  }
  const bool is_several = result.is_tuple() || result.is_list();
  const size_t n = is_several ? result.items().size() : 1;
  if (used) results_.resize(n);
  for (size_t i = 0; i < n && i < 64; ++i) {
    const IValue& one = is_several ? result.items()[i] : result;
    if ((used >> i & 1) && one.is_tensor()) results_[i] = SavedTensor(one.to_tensor(), this);
  }
}

std::string OpNode::name() const {
  const OpDef* named = op_->inplace_of() ? op_->inplace_of() : op_;
  std::string out;
  bool upper = true;
  for (const char c : named->base_name()) {
    if (c == '_') {
      upper = true;
      continue;
    }
    out += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  // PyTorch counts the overloads that have a gradient; the first is 0.
  int number = 0;
  for (const OpDef* other : registry().overloads(named->base_name())) {
    if (other == named) break;
    ++number;
  }
  return out + "Backward" + std::to_string(number);
}

bool OpNode::is_heavy() const {
  const int64_t n = num_results() ? result(0).numel() : 0;
  const bool is_product = op_->family() == Family::kMatmul || op_->family() == Family::kOpaque;
  return n >= (is_product ? 1024 : 16 * 1024);
}

void OpNode::release_saved() {
  is_freed_ = true;
  for (size_t i = 0; i < num_args_; ++i) {
    kept_[i].tensor.reset();
    for (auto& [tensor, plain] : kept_[i].list) tensor.reset();
  }
  for (SavedTensor& r : results_) r.reset();
}

bool OpNode::is_spent() const {
  if (!is_freed_) return false;
  bool saved = !results_.empty();
  for (size_t i = 0; i < num_args_; ++i) saved |= kept_[i].kind == Kept::Kind::kTensor;
  return saved;
}

IValue OpNode::kept_value(const Kept& kept) const {
  switch (kept.kind) {
  case Kept::Kind::kPlain:
    return kept.plain;
  case Kept::Kind::kTensor:
    return IValue(kept.tensor.get(*this));
  case Kept::Kind::kList: {
    std::vector<IValue> items;
    for (const auto& [tensor, plain] : kept.list)
      items.push_back(tensor.defined() ? IValue(tensor.get(*this)) : plain);
    return IValue::list(std::move(items));
  }
  case Kept::Kind::kDropped:
    break;
  }
  PRONG_ASSERT(false, "the gradient rule of ", op_->name(),
               " reads a tensor argument that it does not name among what it uses");
}

// What a rule sees of one node and one set of gradients.
class OpGradient final : public Gradient {
 public:
  OpGradient(const OpNode& node, std::vector<Tensor>& gradients)
      : node_(node), gradients_(gradients) {
    builder_ = &eager_builder();
  }
  const OpDef& op() const override { return *node_.op_; }
  bool has_out(size_t i) const override { return i < gradients_.size() && gradients_[i].defined(); }
  IValue value(std::string_view name) override {
    const int i = node_.op_->schema().find(name);
    if (i >= 0) return node_.kept_value(node_.kept_[i]);
    const size_t r = name.size() > 7 ? static_cast<size_t>(name[7] - '0') : 0;
    PRONG_ASSERT(name.starts_with("result") && (r < node_.results_.size()), "the gradient rule of ",
                 node_.op_->name(), " reads ", name,
                 ", which is no argument and no result it uses");
    return IValue(node_.results_[r].get(node_));
  }
  TensorMeta meta(std::string_view argument) override {
    const OpNode::Kept& kept = kept_of(argument);
    if (kept.num_edges == 1 && node_.edges_[kept.first_edge].node) return meta_at(kept.first_edge);
    return meta_from(node_.kept_value(kept));
  }
  Layout layout(std::string_view argument) override {
    const OpNode::Kept& kept = kept_of(argument);
    PRONG_ASSERT(kept.plain.is_tuple(), "the gradient rule of ", node_.op_->name(),
                 " asks for the layout of an argument that it does not use, or does not view");
    return {meta(argument).sizes, kept.plain.items()[0].to_dims(), kept.plain.items()[1].to_int()};
  }
  bool needs(std::string_view argument) override {
    const OpNode::Kept& kept = kept_of(argument);
    for (uint32_t k = 0; k < kept.num_edges; ++k)
      if (node_.edges_[kept.first_edge + k].node) return true;
    return false;
  }
  bool needs(std::string_view argument, size_t i) override {
    const OpNode::Kept& kept = kept_of(argument);
    return i < kept.num_edges && node_.edges_[kept.first_edge + i].node;
  }
  TensorMeta meta(std::string_view argument, size_t i) override {
    const OpNode::Kept& kept = kept_of(argument);
    const auto edge = kept.first_edge + static_cast<uint32_t>(i);
    if (node_.edges_[edge].node) return meta_at(edge);
    return kept.list[i].first.defined() ? kept.list[i].first.get(node_).meta()
                                        : kept.list[i].second.meta();
  }
  size_t length(std::string_view argument) override { return kept_of(argument).num_edges; }

 protected:
  IValue out_gradient(size_t i) override {
    if (has_out(i)) return IValue(gradients_[i]);
    return full(node_.result(i), 0.0).value();
  }

 private:
  const OpNode::Kept& kept_of(std::string_view argument) const {
    const int i = node_.op_->schema().find(argument);
    PRONG_ASSERT(i >= 0, "op ", node_.op_->name(), " has no argument ", argument);
    return node_.kept_[i];
  }
  TensorMeta meta_at(uint32_t edge) const {
    const Edge& e = node_.edges_[edge];
    PRONG_ASSERT(e.node, "the gradient rule of ", node_.op_->name(),
                 " asks for the shape of an argument that needs no gradient");
    return e.node->result(e.index);
  }

  const OpNode& node_;
  std::vector<Tensor>& gradients_;
};

std::vector<Tensor> OpNode::apply(std::vector<Tensor>& gradients) {
  bool any = false;
  for (const Tensor& g : gradients) any |= g.defined();
  if (!any) return {};
  const GradientDef* def = op_->gradient();
  PRONG_CHECK(def, kRuntime, "derivative for prong::", op_->name(), " is not implemented",
              op_->no_grad_reason().empty() ? "" : cat(": ", op_->no_grad_reason()));
  BatchOf batch;
  if (may_be_batched()) {
    for (const Tensor& g : gradients) batch.add(g);
    for (size_t i = 0; i < num_args_; ++i) {
      batch.add(Tensor(kept_[i].tensor.unchecked()));
      for (const auto& [tensor, plain] : kept_[i].list) batch.add(Tensor(tensor.unchecked()));
    }
    for (const SavedTensor& r : results_) batch.add(Tensor(r.unchecked()));
  }
  const BatchScope scope(batch);
  OpGradient seen(*this, gradients);
  std::vector<Tensor> out(num_edges_);
  const auto put = [&](const Kept& kept, const IValue& value) {
    if (value.is_tensor() && kept.num_edges == 1 && kept.kind != Kept::Kind::kList) {
      if (edges_[kept.first_edge].node) out[kept.first_edge] = value.to_tensor();
    } else if (value.is_list()) {
      for (size_t k = 0; k < value.items().size() && k < kept.num_edges; ++k)
        if (value.items()[k].is_tensor() && edges_[kept.first_edge + k].node)
          out[kept.first_edge + k] = value.items()[k].to_tensor();
    }
  };
  for (const GradientRule& rule : def->rules) {
    bool is_needed = false;
    for (int a : rule.arguments)
      for (uint32_t k = 0; k < kept_[a].num_edges; ++k)
        is_needed |= static_cast<bool>(edges_[kept_[a].first_edge + k].node);
    if (!is_needed) continue;
    const IValue given = rule.fn(seen);
    if (rule.arguments.size() == 1) {
      put(kept_[rule.arguments[0]], given);
    } else {
      for (size_t i = 0; i < rule.arguments.size(); ++i)
        put(kept_[rule.arguments[i]], given.items()[i]);
    }
  }
  return out;
}

}  // namespace prong::eager
