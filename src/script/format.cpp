// f-strings, and what print, str and exceptions make of values.
#include "script/emitter.h"

namespace prong::script {

Value* Emitter::to_text(const Term& t, const Range& where) {
  Value* v = value(t, where);
  if (type(v)->is(TypeKind::kStr)) return v;
  if (type(v)->is(TypeKind::kClass) && has_attribute(Term(v), "__str__", where))
    return value(apply(attribute(Term(v), "__str__", where), {}, where), where);
  return host("str", {v}, where);
}

Value* Emitter::f_string(const Expr& e) {
  Value* out = nullptr;
  for (const ExprPtr& part : e.items) {
    Value* piece = nullptr;
    if (part->kind == ExprKind::kString) {
      piece = text(part->text);
    } else {
      const Term t = expr(*part->items[0]);
      std::string spec = part->text;
      bool repr = false;
      if (spec.starts_with("!")) {
        repr = spec.starts_with("!r") || spec.starts_with("!a");
        spec.erase(0, 2);
      }
      if (spec.starts_with(":")) spec.erase(0, 1);
      Value* v = repr ? host("repr", {value(t, part->range)}, part->range) : nullptr;
      if (spec.empty())
        piece = v ? v : to_text(t, part->range);
      else
        piece = host("format", {v ? v : value(t, part->range), text(spec)}, part->range);
    }
    out = out ? host("add", {out, piece}, e.range) : piece;
  }
  return out ? out : text("");
}

}  // namespace prong::script
