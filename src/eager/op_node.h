// The node of an op of the registry: what was kept of the call, and the op's gradient rules run on
// it. Made by record.cpp.
#pragma once

#include "eager/node.h"
#include "ops/gradient.h"

namespace prong::eager {

class OpNode final : public Node {
 public:
  // Collects the edges and keeps what the rules use of the arguments. Before the kernel runs.
  static Ref<OpNode> make(const OpDef& op, std::span<const IValue> args);
  ~OpNode() override;

  // Keeps what the rules use of the results; they know this node already.
  void keep_results(const IValue& result);

  std::string name() const override;
  std::vector<Tensor> apply(std::vector<Tensor>& gradients) override;
  bool is_heavy() const override;
  void release_saved() override;
  bool is_spent() const override;
  std::span<const Edge> next() const override { return {edges_, num_edges_}; }
  const OpDef& op() const { return *op_; }
  size_t first_edge(size_t argument) const { return kept_[argument].first_edge; }

 private:
  friend class OpGradient;
  // One argument. Tensors that no rule uses are dropped; a list is kept as its length and its used
  // tensors.
  struct Kept {
    enum class Kind : uint8_t { kPlain, kTensor, kList, kDropped };
    IValue plain;
    SavedTensor tensor;
    std::vector<std::pair<SavedTensor, IValue>> list;
    uint32_t first_edge = 0, num_edges = 0;
    Kind kind = Kind::kPlain;
  };

  OpNode(const OpDef& op, size_t num_args, size_t num_edges);
  static bool is_needed(const GradientRule& rule, std::span<const IValue> args);
  void keep(Kept& kept, const IValue& arg, bool is_used, bool is_written);
  IValue kept_value(const Kept& kept) const;

  const OpDef* op_;
  uint32_t num_args_, num_edges_;
  Kept* kept_;  // behind the object, in the same memory
  Edge* edges_;
  std::vector<SavedTensor> results_;
  bool is_freed_ = false;
};

}  // namespace prong::eager
