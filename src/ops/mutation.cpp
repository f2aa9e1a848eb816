// See mutation.h.
#include "ops/mutation.h"

#include <unordered_map>

namespace prong {

namespace {

std::unordered_map<const OpDef*, uint64_t>& table() {
  static std::unordered_map<const OpDef*, uint64_t> lists;
  return lists;
}

}  // namespace

uint64_t mutated_lists(const OpDef& op) {
  const auto it = table().find(&op);
  return it == table().end() ? 0 : it->second;
}

OpDef& set_mutated_lists(OpDef& op, std::initializer_list<int> arguments) {
  uint64_t bits = 0;
  for (int i : arguments) bits |= uint64_t{1} << i;
  table()[&op] = bits;
  return op.mutates(*arguments.begin());
}

}  // namespace prong
