// with: the library's own context managers and classes with __enter__ and __exit__. Exits out of
// the block (return, break, continue) become flags first, so that __exit__ always runs.
#include "script/emitter.h"

namespace prong::script {

Flow Emitter::with_statement(const Stmt& s, size_t number) {
  if (number == s.items.size()) return statements(s.body);
  const WithItem& item = s.items[number];
  Value* manager = expr_value(*item.context);
  const TypePtr t = type(manager);
  const bool is_class = t->is(TypeKind::kClass);
  TypePtr entered = Type::none();
  if (is_class) {
    auto& cls = static_cast<ClassType&>(*t->class_info());
    const Ref<Function> enter_method = method_of(cls, "__enter__");
    if (!enter_method || !method_of(cls, "__exit__"))
      fail(item.context->range, cat("'", name_of(t), "' has no __enter__ and __exit__"),
           "give the class both methods");
    entered = enter_method->schema().results[0];
  } else if (!t->is(TypeKind::kAny)) {
    fail(item.context->range,
         cat("a value of type '", name_of(t), "' cannot stand in a with statement"));
  }
  at(s.range);
  Node* node = b_.with(manager, entered);
  Block* outer = node->block();
  const Environment before = env_;
  b_.move_to_end(node->body());
  if (item.target) assign(*item.target, Term(node->body()->parameter(0)), item.target->range);
  const Flow flow = with_statement(s, number + 1);
  // What the block assigned comes out as results of the node.
  std::vector<Value*> ends;
  Environment after = env_;
  for (auto& [name, v] : after) {
    const auto old = before.find(name);
    if (v.term.kind == Term::Kind::kTuple ||
        (v.term.kind == Term::Kind::kNamed && v.term.named.kind == Named::Kind::kConstant)) {
      if (old != before.end() && old->second.term.kind == v.term.kind) continue;
      try {
        v.term = Term(value(v.term, s.range));
      } catch (const Error&) {
        continue;
      }
    }
    if (!v.term.is_value()) continue;
    if (old != before.end() && old->second.term.is_value() &&
        old->second.term.value == v.term.value)
      continue;
    if (flow == Flow::kRaises) {
      v.term = Term();
      v.problem = cat("'", name, "' is not defined: the with block in line ", s.range.line(),
                      " always raises");
      continue;
    }
    const IValue* known = v.term.value->constant();
    if (known && !known->is_object() && !known->is_tensor()) {
      // A constant may be made again outside, where flags stay known.
      b_.move_to_end(outer);
      v.term = Term(b_.constant(*known, v.term.value->type()));
      b_.move_to_end(node->body());
      continue;
    }
    ends.push_back(v.term.value);
    v.term = Term(node->add_output(type(v.term.value), name[0] == '$' ? name.substr(1) : name));
  }
  b_.move_to_end(node->body());
  b_.yield(ends);
  b_.move_to_end(outer);
  env_ = std::move(after);
  return flow;
}

}  // namespace prong::script
