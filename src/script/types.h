// Types while a function is compiled: variables that stand for what is not known yet ("[]"), joins,
// conversions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ops/type.h"

namespace prong::script {

// Unknown types of one function. An unknown is Type::var("?3"); it gets its meaning from its first
// use.
class Unknowns {
 public:
  TypePtr fresh();
  // The type with everything known put in.
  TypePtr resolve(const TypePtr& type) const;
  // Makes two types equal by giving unknowns a meaning; false (and nothing done) where that cannot
  // be.
  bool equate(const TypePtr& a, const TypePtr& b);
  // May `from` stand where `to` is asked, perhaps after giving unknowns a meaning?
  bool fits(const TypePtr& from, const TypePtr& to);
  // Everything still unknown becomes the default: Tensor, and str for keys of dicts.
  TypePtr settle(const TypePtr& type);
  static bool is_unknown(const TypePtr& type);
  bool has_unknown(const TypePtr& type) const;

 private:
  std::vector<TypePtr> known_;  // by number; null: not known
  TypePtr& slot(const TypePtr& variable);
  const TypePtr& slot(const TypePtr& variable) const;
};

// The type of a variable that has type a on one path and b on another; null where there is none.
TypePtr join(Unknowns& unknowns, const TypePtr& a, const TypePtr& b);
// Optional[T] → T; the type itself when it is not optional.
TypePtr without_none(const TypePtr& type);
inline bool is_number(const TypePtr& t) {
  return t->is(TypeKind::kInt) || t->is(TypeKind::kFloat) || t->is(TypeKind::kBool) ||
         t->is(TypeKind::kNumber);
}
// The same type around other elements.
TypePtr rebuild(const TypePtr& type, std::vector<TypePtr> elements);

// Matching of a formal type of a host op, with schema variables ("t"), against an actual one.
using SchemaBindings = std::vector<std::pair<std::string, TypePtr>>;
bool match(Unknowns& unknowns, const TypePtr& formal, const TypePtr& actual,
           SchemaBindings& bindings);
TypePtr substitute_all(Unknowns& unknowns, const TypePtr& type, SchemaBindings& bindings);

}  // namespace prong::script
