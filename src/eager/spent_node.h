// SpentNode: what stands on the tape for work that a replayed plan did together with its backward
// pass: the step back has been taken already. Used by capture/.
#pragma once

#include "eager/node.h"

namespace prong::eager {

class SpentNode final : public Node {
 public:
  // Stands for `like`, a node of an earlier run of the same work.
  SpentNode(Ref<Node> like, const Tensor& result) : like_(std::move(like)) {
    add_result(result);
    set_sequence(next());
  }
  std::string name() const override { return like_->name(); }
  std::span<const Edge> next() const override { return like_->next(); }
  std::vector<Tensor> apply(std::vector<Tensor>&) override { throw_freed(); }
  bool is_spent() const override { return true; }

 private:
  Ref<Node> like_;
};

// Would another pass from this node raise, for what was freed, before it gives anything to a leaf
// or a hook?
bool raises_before_leaves(Node& root);

}  // namespace prong::eager
