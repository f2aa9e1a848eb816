// Emitter: checks one function and writes its graph, in one walk over the syntax tree. Its members
// are defined by construct: function.cpp, statement.cpp, branch.cpp, loop.cpp, ... Used by
// compiler.cpp only.
#pragma once

#include <set>

#include "script/compiler.h"
#include "script/term.h"

namespace prong::script {

// Thrown where a loop over range(n) turns out to need its counter while compiling (self.layers[i]).
struct NeedsUnrolling {
  Range range;
};

class Emitter {
 public:
  explicit Emitter(FunctionEntry& entry);

  // ── function.cpp ──
  void run();  // defines entry.function
  static Schema signature_of(FunctionEntry& entry);

  // ── values, types: value.cpp ──
  GraphBuilder& build() { return b_; }
  TypePtr type(const Value* v) const { return unknowns_.resolve(v->type()); }
  Unknowns& unknowns() { return unknowns_; }
  Value* constant(IValue v);
  Value* constant_of(const IValue& v, const TypePtr& type,
                     const Range& at);  // lists and dicts are made anew
  Value* integer(int64_t i) { return constant(IValue(i)); }
  Value* boolean(bool b) { return constant(IValue(b)); }
  Value* text(std::string s) { return constant(IValue(std::move(s))); }
  Value* uninitialized(const TypePtr& type) { return b_.uninitialized(type); }
  // Makes a value of a term; fails where it has none (a function, a Python module).
  Value* value(const Term& t, const Range& at, const TypePtr& hint = {});
  // Null where it does not fit. Converts int to float, a tuple to a list, and so on; `loose` also
  // numbers to tensors and zero-dim tensors to numbers, as op arguments allow.
  Value* convert(Value* v, const TypePtr& to, bool loose = false);
  Value* expect(Value* v, const TypePtr& to, const Range& at, std::string_view what);
  Value* cast(Value* v, const TypePtr& to);  // unchecked_cast, unless it has that type already
  std::string name_of(const TypePtr& t) const { return unknowns_.resolve(t)->str_(); }
  std::string describe(const Term& t) const;
  TypePtr type_expr(const Expr& e);
  Value* host(std::string_view name, std::vector<Value*> args, const Range& at);
  Value* op(std::string_view name, std::vector<Value*> args, const Range& at);
  std::optional<int64_t> known_int(const Term& t) const;
  std::optional<std::string> known_text(const Term& t) const;

  // ── expression.cpp ──
  Term expr(const Expr& e, const TypePtr& hint = {});
  Value* expr_value(const Expr& e, const TypePtr& hint = {});
  Term list_display(const Expr& e, const TypePtr& hint);
  Term dict_display(const Expr& e, const TypePtr& hint);
  Term ternary(const Expr& e, const TypePtr& hint);
  Term name(const Expr& e);

  // ── operator.cpp ──
  Value* binary(const std::string& op, const Term& left, const Term& right, const Range& at);
  Value* unary(const std::string& op, Value* v, const Range& at);
  Value* compare(const std::string& op, const Term& left, const Term& right, const Range& at);
  bool augment_in_place(const std::string& op, Value* left, Value* right, const Range& at,
                        Value** result);

  // ── condition.cpp ──
  Condition condition(const Expr& e);
  Condition truth(const Term& t, const Range& at);
  void learn(const Facts& facts);
  Condition is_none(const Expr& subject, const Term& t, bool negate, const Range& at);
  TypePtr wanted_type(const Expr& wanted, const TypePtr& subject);
  Condition isinstance(const Term& subject, const std::string& key,
                       const std::vector<TypePtr>& types, const Range& at);
  static std::string fact_key(const Expr& e);

  // ── call.cpp ──
  Term call(const Expr& e, const TypePtr& hint);
  GivenList evaluate_arguments(const Expr& e, size_t skip = 0);
  Term apply(const Term& callee, const GivenList& args, const Range& at, const TypePtr& hint = {});
  static const char* called_method(const ClassType& cls);
  Term apply_named(const Named& n, const GivenList& args, const Range& at, const TypePtr& hint);
  Value* call_function(Function& f, Value* self, const GivenList& args, const Range& at);
  std::vector<Value*> bind(const std::string& callee, const Schema& s, Value* self,
                           const GivenList& args, const Range& at, bool loose);
  Term instantiate(const Named& cls, const GivenList& args, const Range& at);
  Term make_named_tuple(const Named& n, const GivenList& args, const Range& at);
  Ref<Function> function_of(const Named& n, const Range& at);

  // ── op_call.cpp ──
  Value* call_op(const std::string& base, Value* self, const GivenList& args, const Range& at);
  Value* call_host(const std::string& base, Value* self, const GivenList& args, const Range& at);
  bool try_host(const std::string& base, const std::vector<Value*>& args, const Range& at,
                Value** result);
  Value* emit_host(const HostOp& op, std::vector<Value*> args, const Range& at,
                   SchemaBindings bindings);

  // ── builtin.cpp ──
  Term builtin(const std::string& name, const GivenList& args, const Range& at,
               const TypePtr& hint);
  // Builtins that read their arguments as written (isinstance, annotate, fork, getattr).
  bool special_call(const Named& n, const Expr& e, const TypePtr& hint, Term* result);
  Value* length_of(const Term& t, const Range& at);
  Value* to_list(const Term& t, const Range& at, const TypePtr& hint = {});

  // ── fork.cpp ──
  Term fork(const Term& callee, const GivenList& args, const Range& at);
  Value* wait(const Term& t, const Range& at);
  bool future_method(Value* self, const std::string& name, const GivenList& args, const Range& at,
                     Term* result);

  // ── attribute.cpp ──
  Term attribute(const Term& t, const std::string& name, const Range& at);
  Term object_attribute(Value* self, const std::string& name, const Range& at);
  void set_attribute(const Term& object, const std::string& name, Value* v, const Range& at);
  bool has_attribute(const Term& t, const std::string& name, const Range& at);

  // ── subscript.cpp ──
  Term subscript(const Expr& e);
  Term index(const Term& base, const Term& item, const Range& at);
  void set_item(const Term& base, const Term& item, Value* v, const Range& at);
  void delete_item(const Term& base, const Term& item, const Range& at);
  Term index_expression(const Expr& e);  // slices become kTuple terms named "slice"
  Value* tensor_index(Value* t, const Term& item, const Range& at);
  void tensor_set_item(Value* t, const Term& item, Value* v, const Range& at);
  Term module_index(Value* container, const ClassEntry& entry, const Term& item, const Range& at);

  // ── iterable.cpp ──
  IterablePtr iterable(const Term& t, const Range& at);

  // ── comprehension.cpp ──
  Term comprehension(const Expr& e, const TypePtr& hint);
  void run_clauses(const Expr& e, size_t i, const std::function<void()>& innermost);
  // Runs `body` for each item; no break or return in it. Variables that `assigned` names are
  // carried.
  void for_each(const IterablePtr& over, const std::set<std::string>& assigned, const Range& at,
                const std::function<void(const Term& item)>& body);

  // ── format.cpp ──
  Value* to_text(const Term& t, const Range& at);
  Value* f_string(const Expr& e);

  // ── assign.cpp ──
  void assign_statement(const Stmt& s);
  void annotated(const Stmt& s);
  void augmented(const Stmt& s);
  void assign(const Expr& target, const Term& t, const Range& at);
  void assign_name(const std::string& name, Term t, const Range& at);
  void unpack(const std::vector<ExprPtr>& targets, const Term& t, const Range& at);
  void delete_targets(const Stmt& s);

  // ── statement.cpp ──
  Flow statements(const Suite& block, size_t from = 0);
  Flow statement(const Stmt& s);
  Flow rest_unless_skipped(const Suite& block, size_t from);
  Flow return_(const Stmt& s);
  Flow raise(const Stmt& s);
  void assert_(const Stmt& s);
  void set_exit(bool skip, bool stop, bool returned);

  // ── branch.cpp ──
  struct Branch {
    Block* block;
    Environment env;
    Flow flow = Flow::kFalls;
  };
  // An if node whose two blocks are filled by the callables; joins the environments.
  Flow if_statement(const Stmt& s, const Suite& rest, size_t from, bool* took_rest);
  Value* if_value(Value* condition, const std::function<Value*()>& then,
                  const std::function<Value*()>& otherwise, const Range& at, std::string_view what);
  void enter(Branch& b);
  void leave(Branch& b);
  void merge(Node* node, Branch& a, Branch& b, const Range& at);
  Value* unify_at_end(Block* block, Value* v, const TypePtr& to);

  // ── loop.cpp ──
  Flow for_statement(const Stmt& s);
  Flow while_statement(const Stmt& s);
  struct LoopPlan;
  Flow loop(const LoopPlan& plan);
  Flow unrolled(const Stmt& s, const Iterable& over, int64_t n);

  // ── with.cpp ──
  Flow with_statement(const Stmt& s, size_t item);

  Environment& env() { return env_; }
  FunctionEntry& entry() { return entry_; }
  Resolver& resolver() { return *entry_.resolver; }
  const TypePtr& result_type() const { return result_; }
  void at(const Range& r) { b_.set_range(r.for_graph()); }

 private:
  void note_result(const TypePtr& t, const Range& at);
  void settle_types();

  FunctionEntry& entry_;
  std::unique_ptr<Graph> graph_;
  GraphBuilder b_;
  Unknowns unknowns_;
  Environment env_;
  TypePtr result_;  // declared, or of the returns so far
  int comprehension_depth_ = 0;
};

// Names that the statements may assign (not inside nested functions), and which exits they hold.
struct Assigned {
  std::set<std::string> names;
  bool has_break = false, has_continue = false, has_return = false;
};
Assigned assigned_in(const Suite& block);
void names_of_target(const Expr& target, std::set<std::string>& names);

}  // namespace prong::script
