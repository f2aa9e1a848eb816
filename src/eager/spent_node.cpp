// Is a part of the tape used up? See spent_node.h.
#include "eager/spent_node.h"

#include <unordered_set>

namespace prong::eager {

bool raises_before_leaves(Node& root) {
  std::unordered_set<const Node*> seen{&root};
  std::vector<Node*> stack{&root};
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    if (node->hooks() || dynamic_cast<AccumulateGrad*>(node)) return false;
    if (node->is_spent()) continue;
    for (const Edge& e : node->next())
      if (e.node && seen.insert(e.node.get()).second) stack.push_back(e.node.get());
  }
  return true;
}

}  // namespace prong::eager
