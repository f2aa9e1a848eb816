// A function as a whole: its signature, its body, its result's type, and the end of inference.
#include "script/emitter.h"
#include "script/parser.h"

namespace prong::script {

namespace {

TypePtr annotation_type(FunctionEntry& entry, const Expr& e) {
  try {
    return entry.resolver->type(e.kind == ExprKind::kString ? e.text : std::string(e.range.text()));
  } catch (const Error& error) {
    fail(e.range, error.message());
  }
}

TypePtr type_of_default(const IValue& v) {
  if (v.is_none()) return Type::optional(Type::tensor());
  try {
    return type_of_constant(v);
  } catch (const Error&) {
    return Type::tensor();
  }
}

}  // namespace

Emitter::Emitter(FunctionEntry& entry)
    : entry_(entry), graph_(std::make_unique<Graph>()), b_(*graph_) {}

Schema Emitter::signature_of(FunctionEntry& entry) {
  const FunctionDef& f = *entry.ast;
  Schema schema;
  schema.name = entry.name;
  for (size_t i = 0; i < f.parameters.size(); ++i) {
    const Parameter& p = f.parameters[i];
    if (p.is_star || p.is_double_star)
      unsupported(
          p.range,
          cat("'", p.is_star ? "*" : "**", p.name,
              "': functions with a variable number of arguments are not available in scripts"),
          "name each parameter, or take a List");
    Argument a;
    a.name = p.name;
    a.is_keyword_only = p.is_keyword_only;
    const bool is_self = i == 0 && entry.self;
    if (is_self)
      a.type = entry.self;
    else if (p.annotation)
      a.type = annotation_type(entry, *p.annotation);
    if (p.default_value) {
      a.has_default = true;
      try {
        a.default_value = entry.resolver->default_value(
            p.name, std::string(p.default_value->range.text()), a.type);
      } catch (const Error& error) {
        fail(p.default_value->range, error.message());
      }
      if (!a.type) a.type = type_of_default(a.default_value);
    }
    if (!a.type) a.type = Type::tensor();
    schema.arguments.push_back(std::move(a));
  }
  entry.has_declared_result = f.returns != nullptr;
  if (f.returns) schema.results = {annotation_type(entry, *f.returns)};
  schema.result_names = {""};
  return schema;
}

void Emitter::run() {
  const FunctionDef& f = *entry_.ast;
  const Schema& schema = entry_.function->schema();
  if (entry_.has_declared_result) result_ = schema.results[0];
  for (const Argument& a : schema.arguments)
    env_[a.name].term = Term(graph_->add_input(a.type, a.name));
  for (size_t i = 0; i < f.parameters.size(); ++i)
    if (f.parameters[i].annotation) env_[f.parameters[i].name].declared = schema.arguments[i].type;

  // Falling off the end returns None.
  Suite body = f.body;
  auto last = std::make_shared<Stmt>();
  last->kind = StmtKind::kReturn;
  last->range = f.range;
  last->text = "implicit";
  body.push_back(last);

  const Flow flow = statements(body);
  Value* result = nullptr;
  if (flow == Flow::kRaises) {
    if (!result_) result_ = Type::none();
    result = uninitialized(result_);
  } else {
    const auto found = env_.find("$result");
    PRONG_ASSERT(found != env_.end(), "no result of ", entry_.name);
    result = value(found->second.term, f.range);
    if (entry_.has_declared_result)
      result = expect(result, result_, f.range, "the result");
    else
      result_ = type(result);
  }
  b_.yield({result});
  settle_types();
  Schema done = schema;
  done.results = {unknowns_.settle(result_)};
  entry_.function->set_schema(std::move(done));
  entry_.function->define(std::move(graph_));
}

void Emitter::note_result(const TypePtr& t, const Range& where) {
  if (entry_.has_declared_result) return;
  if (!result_) {
    result_ = t;
  } else {
    const TypePtr both = join(unknowns_, result_, t);
    if (!both)
      fail(where,
           cat("the function returned '", name_of(result_), "' before and '", name_of(t), "' here"),
           "return one type, or annotate the result");
    result_ = both;
  }
  // Recursive calls further down see what is known now.
  Schema now = entry_.function->schema();
  now.results = {unknowns_.resolve(result_)};
  entry_.function->set_schema(std::move(now));
}

namespace {
void settle_block(Unknowns& unknowns, const Block& block) {
  for (Value* p : block.parameters()) p->set_type(unknowns.settle(p->type()));
  for (Node* n : block) {
    for (Value* o : n->outputs()) o->set_type(unknowns.settle(o->type()));
    std::vector<TypePtr> types;
    for (const TypePtr& t : n->types()) types.push_back(unknowns.settle(t));
    if (!types.empty()) n->set_types(std::move(types));
    for (const Block* inner : n->blocks()) settle_block(unknowns, *inner);
  }
}
}  // namespace

void Emitter::settle_types() { settle_block(unknowns_, *graph_->top()); }

}  // namespace prong::script
