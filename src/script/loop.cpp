// for and while: carried variables, their types, break and return out of the loop, loops written
// out.
#include "script/emitter.h"

namespace prong::script {

// One loop, for or while, before it is written.
struct Emitter::LoopPlan {
  const Stmt* statement;
  Value* trips = nullptr;               // null: while
  std::function<void(Value* i)> start;  // assigns the target; for only
  std::set<std::string> extra;          // names that `start` assigns
};

namespace {
constexpr int kMaxRounds = 6;  // of widening the types of carried variables
}

Flow Emitter::while_statement(const Stmt& s) {
  LoopPlan plan;
  plan.statement = &s;
  return loop(plan);
}

Flow Emitter::for_statement(const Stmt& s) {
  const Term over = expr(*s.value);
  const IterablePtr items = iterable(over, s.value->range);
  const std::optional<int64_t> n = items->known_length();
  if (items->must_unroll()) {
    if (!n)
      unsupported(s.value->range,
                  "this loop goes over things of different types, whose number is not known",
                  "go over one list at a time");
    return unrolled(s, *items, *n);
  }
  LoopPlan plan;
  plan.statement = &s;
  plan.start = [&](Value* i) { assign(*s.targets[0], items->item(*this, i), s.targets[0]->range); };
  names_of_target(*s.targets[0], plan.extra);
  const Environment before = env_;
  Block* block = b_.block();
  const Node* last = block->yield()->prev();
  try {
    at(s.range);
    plan.trips = items->length(*this);
    return loop(plan);
  } catch (const NeedsUnrolling& need) {
    if (!n)
      unsupported(need.range,
                  "a module list whose items are of different classes needs an index that is known "
                  "when the function is compiled",
                  "loop over range(len(self.layers)) or over the list itself");
    // Takes back what the attempt has written.
    b_.move_to_end(block);
    while (block->yield()->prev() != last) block->yield()->prev()->erase();
    env_ = before;
    return unrolled(s, *items, *n);
  }
}

// Writes the body n times; each time is a list of statements of its own.
Flow Emitter::unrolled(const Stmt& s, const Iterable& over, int64_t n) {
  const Assigned inside = assigned_in(s.body);
  const auto saved_flags = [&] {
    Environment flags;
    for (const char* f : {"$skip", "$stop", "$returned"})
      if (env_.count(f)) flags[f] = env_[f];
    return flags;
  }();
  set_exit(false, false, false);
  // Runs item i and those after it; they are left out where "$stop" is set.
  std::function<Flow(int64_t)> from = [&](int64_t i) -> Flow {
    if (i == n) return Flow::kFalls;
    assign(*s.targets[0], over.item(*this, integer(i)), s.targets[0]->range);
    Flow flow = statements(s.body);
    if (flow == Flow::kRaises) return flow;
    if (flow == Flow::kFalls || !(inside.has_break || inside.has_return)) {
      set_exit(false, false, false);
      return from(i + 1);
    }
    Value* stop = value(env_.at("$stop").term, s.range);
    if (const IValue* k = stop->constant()) {
      if (k->to_bool()) return Flow::kExits;
      set_exit(false, false, false);
      return from(i + 1);
    }
    at(s.range);
    Node* node = b_.if_(stop);
    Branch left{node->body(0), env_, Flow::kExits}, goes_on{node->body(1), env_};
    enter(goes_on);
    set_exit(false, false, false);
    goes_on.flow = from(i + 1);
    leave(goes_on);
    merge(node, left, goes_on, s.range);
    return goes_on.flow == Flow::kFalls    ? Flow::kMaybe
           : goes_on.flow == Flow::kRaises ? Flow::kExits
                                           : goes_on.flow;
  };
  Flow flow = from(0);
  if (flow == Flow::kRaises) return flow;
  Value* returned = inside.has_return ? value(env_.at("$returned").term, s.range) : nullptr;
  if (!s.orelse.empty()) {
    Value* stop = value(env_.at("$stop").term, s.range);
    at(s.range);
    Node* node = b_.if_(stop);
    Branch left{node->body(0), env_, Flow::kFalls}, ended{node->body(1), env_};
    enter(ended);
    ended.flow = statements(s.orelse);
    if (ended.flow == Flow::kFalls) set_exit(false, false, false);
    leave(ended);
    merge(node, left, ended, s.range);
    returned = value(env_.at("$returned").term, s.range);
    if (ended.flow != Flow::kFalls) flow = Flow::kMaybe;
  }
  for (const char* f : {"$skip", "$stop", "$returned"}) env_.erase(f);
  for (const auto& [name, v] : saved_flags) env_[name] = v;
  if (!returned) return Flow::kFalls;
  if (const IValue* k = returned->constant(); k && !k->to_bool()) return Flow::kFalls;
  for (const char* f : {"$skip", "$stop", "$returned"}) env_[f].term = Term(returned);
  if (const IValue* k = returned->constant(); k && k->to_bool()) return Flow::kExits;
  return Flow::kMaybe;
}

Flow Emitter::loop(const LoopPlan& plan) {
  const Stmt& s = *plan.statement;
  const bool is_while = plan.trips == nullptr;
  Assigned inside = assigned_in(s.body);
  if (is_while) {
    // Names that the condition assigns (:=) are carried too.
    auto condition_only = std::make_shared<Stmt>();
    condition_only->kind = StmtKind::kExpr;
    condition_only->value = s.value;
    const Assigned more = assigned_in({condition_only});
    inside.names.insert(more.names.begin(), more.names.end());
  }
  inside.names.insert(plan.extra.begin(), plan.extra.end());
  const bool may_stop = inside.has_break || inside.has_return;

  // Facts about attributes that the body assigns end here.
  for (auto it = env_.begin(); it != env_.end();)
    it = it->first.find('.') != std::string::npos && inside.names.count(it->first) ? env_.erase(it)
                                                                                   : std::next(it);

  const Environment before = env_;
  std::map<std::string, TypePtr> widened_types;  // found by earlier rounds
  Block* block = b_.block();
  for (int round = 0;; ++round) {
    PRONG_CHECK(round < kMaxRounds, kRuntime, "the types of a loop's variables do not settle");
    const Node* last = block->yield()->prev();
    Value* go_on = boolean(true);
    bool endless = false;
    if (is_while) {
      const Condition first = condition(*s.value);
      go_on = first.value;
      endless = first.known == true && s.value->kind != ExprKind::kName;
      if (first.known == false) {
        learn(first.if_false);
        return statements(s.orelse);
      }
    }
    std::vector<std::string> carried;
    std::vector<TypePtr> types;
    std::vector<Value*> initial;
    for (auto& [name, var] : env_) {
      if (name[0] == '$' || !inside.names.count(name)) continue;
      if (var.term.kind == Term::Kind::kTuple ||
          (var.term.kind == Term::Kind::kNamed && var.term.named.kind == Named::Kind::kConstant))
        var.term = Term(value(var.term, s.range));
      if (!var.term.is_value()) continue;
      const TypePtr now = type(var.term.value);
      const auto wider = widened_types.find(name);
      carried.push_back(name);
      types.push_back(wider != widened_types.end()                        ? wider->second
                      : var.declared && unknowns_.fits(now, var.declared) ? var.declared
                                                                          : now);
      Value* as = convert(var.term.value, types.back());
      initial.push_back(as ? as : cast(var.term.value, types.back()));
      var.term = Term(initial.back());
    }
    const Environment at_start = env_;
    at(s.range);
    Node* node = b_.loop(plan.trips ? plan.trips : b_.none(), go_on, initial);
    Block* body = node->body();
    b_.move_to_end(body);
    for (size_t i = 0; i < carried.size(); ++i) {
      body->parameter(i + 1)->set_name(carried[i]);
      env_.at(carried[i]).term = Term(body->parameter(i + 1));
    }
    set_exit(false, false, false);
    env_.erase("$result");
    if (is_while) {
      // Facts of the condition hold at the start of each turn: it was tested with these values. Its
      // code runs at the end of the turn before, so the facts are found by compiling it once more
      // and dropping what that wrote.
      const Environment turn = env_;
      const Condition again = condition(*s.value);
      env_ = turn;
      while (body->yield()->prev()) body->yield()->prev()->erase();
      b_.move_to_end(body);
      set_exit(false, false, false);
      learn(again.if_true);
    }
    if (plan.start) plan.start(body->parameter(0));
    const Flow flow = statements(s.body);

    // The types that the body leaves; wider ones mean another round.
    bool widened = false;
    for (size_t i = 0; i < carried.size() && flow != Flow::kRaises; ++i) {
      const Variable& v = env_.at(carried[i]);
      if (!v.term.is_value()) {
        if (v.term.kind == Term::Kind::kTuple) continue;
        fail(s.range, v.problem.empty()
                          ? cat("'", carried[i], "' is no longer a value at the end of the loop")
                          : v.problem);
      }
      const TypePtr end = type(v.term.value), start = unknowns_.resolve(types[i]);
      if (unknowns_.fits(end, start)) continue;
      TypePtr both = join(unknowns_, start, end);
      if (!both && ((start->is(TypeKind::kTensor) && is_number(end)) ||
                    (end->is(TypeKind::kTensor) && is_number(start))))
        both = Type::tensor();
      if (!both || (at_start.at(carried[i]).declared &&
                    !unknowns_.fits(both, at_start.at(carried[i]).declared)))
        fail(s.range,
             cat("'", carried[i], "' has type '", name_of(start), "' before the loop and '",
                 name_of(end), "' after a turn of it"),
             cat("give '", carried[i], "' a value of type '", name_of(end), "' before the loop"));
      widened_types[carried[i]] = both;
      widened = widened || !same(both, start);
    }
    if (widened) {
      b_.move_to_end(block);
      while (block->yield()->prev() != last) block->yield()->prev()->erase();
      env_ = before;
      continue;
    }

    // The end of a turn: go on?, the carried values, and where return is inside, its flag and
    // result.
    Value* stop = may_stop && flow != Flow::kFalls && flow != Flow::kRaises
                      ? value(env_.at("$stop").term, s.range)
                      : nullptr;
    const IValue* stop_known = stop ? stop->constant() : nullptr;
    std::vector<Value*> ends;
    Value* again = boolean(true);
    // The condition of while runs with the values of this turn, unless the loop was left.
    Environment end_env = env_;
    at(s.range);
    if (flow == Flow::kRaises || (stop_known && stop_known->to_bool())) {
      again = boolean(false);
    } else if (is_while && !endless) {
      if (stop && !stop_known) {
        // Walrus names of the condition would be lost in the branch; they are not carried then.
        again = if_value(
            stop, [&] { return boolean(false); }, [&] { return condition(*s.value).value; },
            s.range, "while");
      } else {
        const Environment kept = env_;
        again = condition(*s.value).value;
        end_env = env_;
      }
    } else if (stop && !stop_known) {
      again = host("not", {stop}, s.range);
    }
    ends.push_back(again);
    for (size_t i = 0; i < carried.size(); ++i) {
      if (flow == Flow::kRaises) {
        ends.push_back(uninitialized(types[i]));
        continue;
      }
      Value* v = value(end_env.at(carried[i]).term, s.range);
      Value* as = convert(v, types[i]);
      ends.push_back(as ? as : cast(v, types[i]));
    }
    const bool returns = inside.has_return && (flow == Flow::kMaybe || flow == Flow::kExits);
    const bool counts_stop = !s.orelse.empty() && may_stop;
    Value *returned = nullptr, *result = nullptr, *stopped = nullptr;
    const auto carry_out = [&](Value* end, Value* start) {
      // The start must stand before the loop; a parameter is there because each carried value has
      // one.
      b_.move_before(node);
      Value* initial_value = start ? boolean(false) : uninitialized(end->type());
      node->add_input(initial_value);
      body->add_parameter(end->type());
      b_.move_to_end(body);
      ends.push_back(end);
      return node->add_output(end->type());
    };
    if (returns && env_.count("$result")) {
      returned = carry_out(value(env_.at("$returned").term, s.range), go_on);
      result = carry_out(value(env_.at("$result").term, s.range), nullptr);
    }
    if (counts_stop) stopped = carry_out(stop ? stop : boolean(false), go_on);
    b_.move_to_end(body);
    b_.yield(ends);
    b_.move_to_end(block);

    env_ = at_start;
    for (size_t i = 0; i < carried.size(); ++i) {
      Variable& v = env_.at(carried[i]);
      v.term = Term(node->output(i)->set_name(carried[i]));
    }
    for (const std::string& name : inside.names)
      if (!at_start.count(name) && name.find('.') == std::string::npos) {
        env_[name] = Variable();
        env_[name].problem =
            cat("'", name, "' is only defined inside the loop in line ", s.range.line());
      }
    if (result) env_["$result"].term = Term(result);
    if (returned)
      for (const char* f : {"$skip", "$stop", "$returned"}) env_[f].term = Term(returned);
    if (endless && !inside.has_break) return returned ? Flow::kExits : Flow::kRaises;
    if (s.orelse.empty()) return returned ? Flow::kMaybe : Flow::kFalls;
    if (!stopped) return statements(s.orelse);
    at(s.range);
    Node* ended = b_.if_(stopped);
    Branch left{ended->body(0), env_, returned ? Flow::kMaybe : Flow::kFalls},
        rest{ended->body(1), env_};
    enter(rest);
    rest.flow = statements(s.orelse);
    if (rest.flow == Flow::kFalls && returned) set_exit(false, false, false);
    leave(rest);
    if (!returned && rest.flow != Flow::kFalls && rest.flow != Flow::kRaises) {
      enter(left);
      set_exit(false, false, false);
      leave(left);
    }
    merge(ended, left, rest, s.range);
    return left.flow == Flow::kFalls && (rest.flow == Flow::kFalls || rest.flow == Flow::kRaises)
               ? Flow::kFalls
               : Flow::kMaybe;
  }
}

}  // namespace prong::script
