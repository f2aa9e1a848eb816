// Graph to bytecode: gives values registers, ends their lives at their last use, lays out blocks.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "exec/program.h"
#include "graph/printer.h"
#include "profile/profile.h"

namespace prong::exec {
namespace {

using Values = std::vector<Value*>;
using ValueSet = std::unordered_set<const Value*>;

// All values that a node reads, itself or in its blocks. What a forked block reads of its own is no
// concern of the frame.
void collect_reads(const Node& n, ValueSet& out) {
  out.insert(n.inputs().begin(), n.inputs().end());
  if (n.is(NodeKind::kFork)) return;
  for (const Block* b : n.blocks())
    for (const Node* m = b->front(); m; m = m->next()) collect_reads(*m, out);
}

class Assembler {
 public:
  Assembler(const Graph& graph, std::string name, Definitions* home) : graph_(graph) {
    p_ = make_ref<Program>();
    p_->home = home;
    p_->profile_name = profile::intern(name);
    p_->name = std::move(name);
  }

  Ref<Program> run() { return run_block(*graph_.top()); }

  Ref<Program> run_block(const Block& top) {
    for (Value* v : top.parameters()) define(v);
    p_->num_parameters = static_cast<uint32_t>(top.parameters().size());
    block(top, {top.parameters().begin(), top.parameters().end()});
    begin(Opcode::kReturn, 0, top.results().size());
    operands(top.results());
    p_->num_registers = next_register_;
    return std::move(p_);
  }

 private:
  // ── words ──
  uint32_t here() const { return static_cast<uint32_t>(p_->code.size()); }
  void emit(uint32_t word) { p_->code.push_back(word); }
  uint32_t begin(Opcode opcode, size_t destinations, size_t operands) {
    const uint32_t start = here();
    emit(static_cast<uint32_t>(opcode) | static_cast<uint32_t>(destinations) << 8);
    emit(static_cast<uint32_t>(operands));
    return start;
  }
  // Called before a node's first instruction.
  void place(const Node& n) {
    if (!p_->marks.empty() && p_->marks.back().position == here()) p_->marks.pop_back();
    p_->marks.push_back({here(), n.range()});
  }

  // ── registers ──
  uint32_t new_register() {
    if (free_.empty()) return next_register_++;
    const uint32_t r = free_.back();
    free_.pop_back();
    return r;
  }
  uint32_t define(const Value* v) { return registers_[v] = new_register(); }
  uint32_t register_of(const Value* v) const {
    const auto it = registers_.find(v);
    PRONG_ASSERT(it != registers_.end(), "a value without a register: ", v->name(), "\n",
                 graph_.str());
    return it->second;
  }
  void release(const Value* v) {
    const auto it = registers_.find(v);
    if (it == registers_.end()) return;
    free_.push_back(it->second);
    registers_.erase(it);
  }
  uint32_t constant(IValue v) {
    if (!v.identity())
      for (size_t i = 0; i < p_->constants.size(); ++i)
        if (p_->constants[i].tag() == v.tag() && !v.is_float() && equal(p_->constants[i], v))
          return static_cast<uint32_t>(i);
    p_->constants.push_back(std::move(v));
    return static_cast<uint32_t>(p_->constants.size()) - 1;
  }
  uint32_t constant_of(const Value* v) {
    const auto [it, is_new] = constants_.try_emplace(v, 0);
    if (is_new)
      it->second = constant(v->producer()->is(NodeKind::kConstant) ? *v->constant() : IValue());
    return it->second;
  }
  static bool is_constant(const Value* v) {
    return v->producer() &&
           (v->producer()->is(NodeKind::kConstant) || v->producer()->is(NodeKind::kUninitialized));
  }

  // Operands in order; one that ends its life here is taken at its last mention.
  void operands(std::span<Value* const> values) {
    for (size_t i = 0; i < values.size(); ++i) {
      const Value* v = values[i];
      if (is_constant(v)) {
        emit(encode(Access::kConstant, constant_of(v)));
        continue;
      }
      const bool is_last = std::find(values.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                     values.end(), v) == values.end();
      emit(encode(is_last && ending_.contains(v) ? Access::kTake : Access::kCopy, register_of(v)));
    }
  }
  void drop(const Values& values) {
    Values present;
    for (Value* v : values)
      if (registers_.contains(v)) present.push_back(v);
    if (present.empty()) return;
    begin(Opcode::kDrop, 0, present.size());
    for (const Value* v : present) emit(encode(Access::kTake, register_of(v)));
  }
  void destinations(std::span<Value* const> values) {
    for (const Value* v : values) emit(v->has_uses() ? define(v) : kDiscard);
  }

  // ── blocks ──

  // Assembles the nodes of a block, without its yield. `tracked`: values of outside that may end in
  // it, and its parameters. On return, ending_ holds those that the yield ends.
  void block(const Block& b, Values tracked) {
    std::unordered_map<const Value*, const Node*> last;
    for (const Value* v : tracked) last[v] = nullptr;
    for (const Node* n = b.front(); n; n = n->next()) {
      ValueSet reads;
      collect_reads(*n, reads);
      for (const Value* v : reads)
        if (const auto it = last.find(v); it != last.end()) it->second = n;
      for (const Value* v : n->outputs()) last[v] = n;
    }
    std::unordered_map<const Node*, Values> ends;
    Values unused;
    for (const auto& [v, n] : last) {
      if (n)
        ends[n].push_back(const_cast<Value*>(v));
      else
        unused.push_back(const_cast<Value*>(v));
    }
    sort(unused);
    drop(unused);
    for (Value* v : unused) release(v);
    for (const Node* n = b.front(); n; n = n->next()) {
      Values ending = ends[n];
      sort(ending);
      ending_ = {ending.begin(), ending.end()};
      if (n == b.yield()) return;  // the owner reads the results
      node(*n, ending);
      for (Value* v : ending) release(v);
    }
  }
  // An order that does not depend on addresses.
  void sort(Values& values) const {
    std::sort(values.begin(), values.end(),
              [&](const Value* a, const Value* b) { return order(a) < order(b); });
  }
  uint32_t order(const Value* v) const {
    const auto it = registers_.find(v);
    return it == registers_.end() ? kDiscard : it->second;
  }

  // The registers free for reuse at the start of one branch are those of the other too; what a
  // branch frees itself, the other may still hold. So both start from, and end with, the same set.
  struct Branching {
    std::vector<uint32_t> free;
    std::unordered_map<const Value*, uint32_t> registers;
  };
  Branching save() const { return {free_, registers_}; }
  // After a branch: registers that it newly took are free again, unless taken before.
  void restore(const Branching& before, uint32_t first_new) {
    free_ = before.free;
    registers_ = before.registers;
    for (uint32_t r = first_new; r < next_register_; ++r) free_.push_back(r);
  }

  void moves(std::span<Value* const> from, const std::vector<uint32_t>& to) {
    std::vector<Value*> sources;
    std::vector<uint32_t> targets;
    for (size_t i = 0; i < from.size(); ++i) {
      if (to[i] == kDiscard) continue;
      if (!is_constant(from[i]) && register_of(from[i]) == to[i]) continue;
      sources.push_back(from[i]);
      targets.push_back(to[i]);
    }
    Values discarded;  // results that end here and go nowhere
    for (size_t i = 0; i < from.size(); ++i)
      if (to[i] == kDiscard && ending_.contains(from[i]) &&
          std::find(sources.begin(), sources.end(), from[i]) == sources.end() &&
          std::find(discarded.begin(), discarded.end(), from[i]) == discarded.end())
        discarded.push_back(from[i]);
    if (!sources.empty()) {
      begin(Opcode::kMove, targets.size(), sources.size());
      for (const uint32_t r : targets) emit(r);
      operands(sources);
    }
    drop(discarded);
  }

  void if_node(const Node& n, const Values& ending) {
    std::vector<uint32_t> results;
    for (const Value* v : n.outputs()) results.push_back(v->has_uses() ? new_register() : kDiscard);
    const ValueSet outer_ending = ending_;
    Values inner;  // end inside: their last use is in a branch, or the branch that does not use
                   // them drops them
    for (Value* v : ending)
      if (v != n.input(0) || is_read_inside(n, v)) inner.push_back(v);
    ending_.clear();
    if (std::find(inner.begin(), inner.end(), n.input(0)) == inner.end() &&
        outer_ending.contains(n.input(0)))
      ending_.insert(n.input(0));
    place(n);
    const uint32_t to_else = jump(Opcode::kJumpUnless, n.inputs());
    const Branching before = save();
    const uint32_t first_new = next_register_;
    block(*n.body(0), inner);
    moves(n.body(0)->results(), results);
    const uint32_t to_end = n.body(1)->is_empty() && inner.empty() && !any(results)
                                ? kDiscard
                                : jump(Opcode::kJump, {});
    restore(before, first_new);
    land(to_else);
    block(*n.body(1), inner);
    moves(n.body(1)->results(), results);
    restore(before, first_new);
    if (to_end != kDiscard) land(to_end);
    for (size_t i = 0; i < results.size(); ++i)
      if (results[i] != kDiscard) registers_[n.output(i)] = results[i];
  }
  static bool any(const std::vector<uint32_t>& results) {
    return std::any_of(results.begin(), results.end(), [](uint32_t r) { return r != kDiscard; });
  }
  static bool is_read_inside(const Node& n, const Value* v) {
    for (const Block* b : n.blocks())
      for (const Node* m = b->front(); m; m = m->next()) {
        ValueSet reads;
        collect_reads(*m, reads);
        if (reads.contains(v)) return true;
      }
    return false;
  }

  uint32_t jump(Opcode opcode, std::span<Value* const> condition) {
    const uint32_t start = begin(opcode, 0, condition.size());
    emit(0);
    operands(condition);
    return start;
  }
  void land(uint32_t jump_position) { p_->code[jump_position + 2] = here(); }

  void loop_node(const Node& n, const Values& ending) {
    const Block& body = *n.body();
    const size_t carried = n.inputs().size() - 2;
    // Registers of the parameters are those of the outputs: at the exit they hold the results.
    std::vector<uint32_t> parameters;
    for (size_t i = 0; i < carried; ++i) parameters.push_back(new_register());
    const uint32_t counter = new_register();
    const bool tests = !is_true(n.input(1)) || !is_true(body.results()[0]);
    const uint32_t go_on = tests ? new_register() : kDiscard;
    // What is read inside lives until the loop is over.
    Values after;
    for (Value* v : ending)
      if (is_read_inside(n, v) || v == n.input(0)) after.push_back(v);
    for (const Value* v : after) ending_.erase(v);
    place(n);
    std::vector<Value*> initial(n.inputs().begin() + 2, n.inputs().end());
    std::vector<uint32_t> targets = parameters;
    if (tests) {
      initial.push_back(n.input(1));
      targets.push_back(go_on);
    }
    if (!initial.empty()) moves(initial, targets);
    for (Value* v : ending)
      if (!std::count(after.begin(), after.end(), v)) release(v);
    begin(Opcode::kMove, 1, 1);
    emit(counter);
    emit(encode(Access::kConstant, constant(IValue(-1))));
    const uint32_t head = begin(Opcode::kLoopNext, 1, 2);
    emit(0);
    emit(counter);
    emit(is_constant(n.input(0)) ? encode(Access::kConstant, constant_of(n.input(0)))
                                 : encode(Access::kCopy, register_of(n.input(0))));
    emit(tests ? encode(Access::kCopy, go_on) : encode(Access::kConstant, constant(IValue(true))));

    const Branching before = save();
    const uint32_t first_new = next_register_;
    registers_[body.parameter(0)] = counter;
    Values tracked;
    for (size_t i = 0; i < carried; ++i) {
      registers_[body.parameter(i + 1)] = parameters[i];
      tracked.push_back(body.parameter(i + 1));
    }
    // Where a parameter's value is used up, its register serves others; all are read before the
    // next values come in.
    block(body, tracked);
    std::vector<Value*> results(body.results().begin() + 1, body.results().end());
    targets = parameters;
    if (tests) {
      results.push_back(body.results()[0]);
      targets.push_back(go_on);
    }
    if (!results.empty()) moves(results, targets);
    restore(before, first_new);
    place(n);
    begin(Opcode::kJump, 0, 0);
    emit(head);
    land(head);
    free_.push_back(counter);
    if (tests) free_.push_back(go_on);
    drop(after);
    for (size_t i = 0; i < carried; ++i) {
      Value* out = n.output(i);
      registers_[out] = parameters[i];
      if (!out->has_uses()) drop({out});
    }
  }
  static bool is_true(const Value* v) {
    const IValue* c = v->constant();
    return c && c->is_bool() && c->to_bool();
  }

  void with_node(const Node& n, const Values& ending) {
    std::vector<uint32_t> results;
    for (const Value* v : n.outputs()) results.push_back(v->has_uses() ? new_register() : kDiscard);
    const uint32_t manager = new_register(), error = new_register();
    Values inner;
    for (Value* v : ending)
      if (v != n.input(0) || is_read_inside(n, v)) inner.push_back(v);
    for (const Value* v : inner) ending_.erase(v);
    place(n);
    begin(Opcode::kMove, 1, 1);
    emit(manager);
    operands(n.inputs());
    const Branching before = save();
    const uint32_t first_new = next_register_;
    begin(Opcode::kEnter, 1, 1);
    const Value* entered = n.body()->parameter(0);
    emit(entered->has_uses() ? define(entered) : kDiscard);
    emit(encode(Access::kCopy, manager));
    const uint32_t from = here();
    Values tracked = inner;
    if (entered->has_uses()) tracked.push_back(n.body()->parameter(0));
    block(*n.body(), tracked);
    moves(n.body()->results(), results);
    const uint32_t to = here();
    place(n);
    exit(manager);
    const uint32_t to_end = jump(Opcode::kJump, {});
    p_->regions.push_back({from, to, here(), error});
    exit(manager);
    begin(Opcode::kReraise, 0, 1);
    emit(encode(Access::kTake, error));
    land(to_end);
    restore(before, first_new);
    free_.push_back(manager);
    free_.push_back(error);
    for (size_t i = 0; i < results.size(); ++i)
      if (results[i] != kDiscard) registers_[n.output(i)] = results[i];
  }
  void exit(uint32_t manager) {
    begin(Opcode::kExit, 0, 1);
    emit(encode(Access::kTake, manager));
  }

  // ── nodes ──

  void node(const Node& n, const Values& ending) {
    switch (n.kind()) {
    case NodeKind::kConstant:
    case NodeKind::kUninitialized:
    case NodeKind::kYield:
      return;
    case NodeKind::kIf:
      return if_node(n, ending);
    case NodeKind::kLoop:
      return loop_node(n, ending);
    case NodeKind::kWith:
      return with_node(n, ending);
    default:
      break;
    }
    place(n);
    begin(opcode_of(n), n.outputs().size(), n.inputs().size());
    immediates(n);
    // Destinations stand before operands, but are written after: one may take over the register of
    // an operand that ends.
    const size_t at = p_->code.size();
    p_->code.resize(at + n.outputs().size(), kDiscard);
    operands(n.inputs());
    for (const Value* v : n.inputs())
      if (ending_.contains(v)) release(v);
    for (size_t i = 0; i < n.outputs().size(); ++i)
      if (n.output(i)->has_uses()) p_->code[at + i] = define(n.output(i));
  }

  static Opcode opcode_of(const Node& n) {
    switch (n.kind()) {
    case NodeKind::kOp:
      return Opcode::kOp;
    case NodeKind::kHost:
      return Opcode::kHost;
    case NodeKind::kCall:
      return Opcode::kCall;
    case NodeKind::kCallMethod:
      return Opcode::kCallMethod;
    case NodeKind::kCallPython:
      return Opcode::kCallPython;
    case NodeKind::kFork:
      return Opcode::kFork;
    case NodeKind::kWait:
      return Opcode::kWait;
    case NodeKind::kGetAttr:
      return Opcode::kGetAttr;
    case NodeKind::kSetAttr:
      return Opcode::kSetAttr;
    case NodeKind::kNewObject:
      return Opcode::kNewObject;
    case NodeKind::kTupleConstruct:
      return n.output()->type()->name().empty() ? Opcode::kTuple : Opcode::kNamedTuple;
    case NodeKind::kListConstruct:
      return Opcode::kList;
    case NodeKind::kDictConstruct:
      return Opcode::kDict;
    case NodeKind::kTupleGet:
      return Opcode::kTupleGet;
    case NodeKind::kTupleUnpack:
    case NodeKind::kListUnpack:
      return Opcode::kUnpack;
    case NodeKind::kIsInstance:
      return Opcode::kIsInstance;
    case NodeKind::kUncheckedCast:
      return Opcode::kMove;
    case NodeKind::kRaise:
      return Opcode::kRaise;
    case NodeKind::kAssert:
      return Opcode::kAssert;
    case NodeKind::kFused:
      return Opcode::kFused;
    default:
      PRONG_ASSERT(false, "no instruction for a ", spelling(n.kind()));
    }
  }

  template <class T, class U>
  static uint32_t add(std::vector<T>& table, U item) {
    table.push_back(std::move(item));
    return static_cast<uint32_t>(table.size()) - 1;
  }

  void immediates(const Node& n) {
    switch (n.kind()) {
    case NodeKind::kOp:
      return emit(add(p_->ops, &n.op()));
    case NodeKind::kHost:
      return emit(add(p_->host_ops, &n.host()));
    case NodeKind::kCall:
      return emit(add(p_->functions, called(n)));
    case NodeKind::kCallMethod:
      return emit(constant(IValue(n.name())));
    case NodeKind::kCallPython:
      return emit(constant(n.constant()));
    case NodeKind::kFork:
      return emit(add(p_->fork_sites, fork_site(n)));
    case NodeKind::kGetAttr:
    case NodeKind::kSetAttr:
      emit(constant(IValue(n.name())));
      return emit(slot_of(n));
    case NodeKind::kNewObject:
      return emit(types({n.output()->type()}));
    case NodeKind::kTupleConstruct:
      if (!n.output()->type()->name().empty()) emit(types({n.output()->type()}));
      return;
    case NodeKind::kTupleGet:
      return emit(static_cast<uint32_t>(n.index()));
    case NodeKind::kIsInstance:
      return emit(types(n.types()));
    case NodeKind::kRaise:
      emit(constant(IValue(n.name())));
      return emit(constant(n.constant()));
    case NodeKind::kFused:
      return emit(fused_site(n));
    default:
      return;
    }
  }

  uint32_t types(const std::vector<TypePtr>& types) {
    Ref<TupleNames> names;
    if (types.size() == 1 && types[0]->is(TypeKind::kTuple) && !types[0]->name().empty()) {
      names = make_ref<TupleNames>();
      names->type_name = types[0]->name();
      names->fields = types[0]->fields();
    }
    p_->tuple_names.push_back(std::move(names));
    return add(p_->types, types);
  }
  // Where the attribute lies in objects of the static class; checked when run, since an interface
  // stands for many classes.
  static uint32_t slot_of(const Node& n) {
    const auto* c = dynamic_cast<const ClassType*>(n.input(0)->type()->class_info());
    const int slot = c ? c->find_attribute(n.name()) : -1;
    return static_cast<uint32_t>(std::max(slot, 0));
  }
  Ref<Function> called(const Node& n) {
    Function* f = n.function();
    if (f && f->home() && f->home() != p_->home) p_->called_homes.emplace_back(f->home());
    return Ref<Function>(f);
  }
  Ref<ForkSite> fork_site(const Node& n) {
    auto site = make_ref<ForkSite>();
    site->function = called(n);
    site->method = n.name();
    site->in_function = p_->name;
    site->range = n.range();
    if (!n.blocks().empty())
      site->program = Assembler(graph_, "<forked function>", p_->home).run_block(*n.body());
    return site;
  }
  uint32_t fused_site(const Node& n) {
    Ref<Program> ops = assemble(n.subgraph(), p_->name, p_->home);
    ops->is_fused = true;
    return add(p_->fused_sites,
               FusedSite{std::move(ops), static_ref_cast<FusedKernel>(n.attachment())});
  }

  const Graph& graph_;
  Ref<Program> p_;
  uint32_t next_register_ = 0;
  std::vector<uint32_t> free_;
  std::unordered_map<const Value*, uint32_t> registers_;
  std::unordered_map<const Value*, uint32_t> constants_;
  ValueSet ending_;  // values whose last use is the node being assembled
};

}  // namespace

Ref<Program> assemble(const Graph& graph, std::string name, Definitions* home) {
  return Assembler(graph, std::move(name), home).run();
}

}  // namespace prong::exec
