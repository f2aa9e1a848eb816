// Tracker: follows where the values of an evaluated call come from, and notes as guards what was
// read on the way. In the end it gives a Plan, or the reason why there is none: it gives up at the
// first thing that it does not understand.
#pragma once

#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/number_memory.h"
#include "capture/plan.h"
#include "capture/recorder.h"

namespace prong::capture {

// What is known of a value on the stack or in a local.
struct Term {
  enum class Kind : uint8_t {
    kNothing,
    kSame,    // this very object (or, of a plain value, an equal one) at each call that the guards
              // let through
    kTensor,  // a tensor that the plan can fetch or compute
    kNumber,  // a Python number that may be another at each call
    kMade,    // made in the call: Tracker::made(index) says of what
  };
  Kind kind = Kind::kNothing;
  int32_t index = 0;
  bool is_same() const { return kind == Kind::kSame; }
  bool is_tensor() const { return kind == Kind::kTensor; }
  bool is_number() const { return kind == Kind::kNumber; }
  bool is_made() const { return kind == Kind::kMade; }
  bool is_known() const { return kind != Kind::kNothing; }
  static Term same() { return {Kind::kSame, 0}; }
  static Term tensor() { return {Kind::kTensor, 0}; }
  static Term number(int32_t index) { return {Kind::kNumber, index}; }
};

// A container, cell, function or iterator that the call made.
struct Made {
  enum class Kind : uint8_t {
    kTuple,
    kList,
    kDict,
    kCell,
    kFunction,
    kMethod,
    kIterator,
    kException,
    kSet,
    kInstance,
    kGenerator,
    kFuture,
    kSlice,
    kOpaque,  // followed, but never built again
  };
  Kind kind;
  std::vector<Term> items;  // of a function: its closure's cells; of a method: function and self;
                            // of a future: its value
  std::vector<PyObject*> objects;  // the values of the items (owned by the real container)
  std::vector<Kept> keys;          // of a dict
  size_t position = 0;             // of an iterator
  Term source;                     // of an iterator: what it walks
  bool is_zip = false, is_enumerate = false;  // an iterator that walks all of `items`
  bool has_names = false;                     // a tuple of a type of its own, as max() gives
  bool is_size = false;                       // a tuple of type Size
  Kept type{nullptr};                         // of a tuple, where it is a class of the program's
  PyObject* object = nullptr;                 // the real one, if the tracker keeps it alive
  std::vector<Kept> held;                     // the objects that the items belong to
  int32_t given = -1;                         // of the containers that the call is given, which
  bool is_fragile = false;                    // a generator that does something when it is dropped
  bool may_be_fragile = false;                // holds such a one, and ends it itself
};

// What is known of the values of a generator's frame while it waits.
struct GeneratorState {
  std::vector<Term> terms;
  Term closure;
  Term made;
};

class Tracker {
 public:
  // `keeps_places`: guards remember the line that read what they guard, for reports.
  // `is_static`: sizes and numbers are facts, not inputs.
  Tracker(size_t count, PyObject* kwnames, bool keeps_places, bool is_static, NumberMemory* memory);

  bool is_on() const { return reason_.empty(); }
  uint64_t number() const { return number_; }  // no other has it
  const std::string& reason() const { return reason_; }
  const std::string& reason_place() const { return reason_place_; }  // where logs tell of it
  void give_up(std::string reason);

  // ── terms ──
  Term argument(PyObject* value, int32_t index);  // of the call itself
  // A list, tuple or dict that the call is given; its items are known after open_containers().
  Term container_argument(PyObject* value);
  void open_containers(size_t first = 0);
  bool is_container_argument(PyObject* o) const;
  Term held_tensor(PyObject* holder, PyObject* key, PyObject* value, PyObject* owner);
  // The same of a list, tuple or dict; it counts as one that the call is given
  // (held_containers.cpp).
  Term held_container(PyObject* holder, PyObject* key, PyObject* value, PyObject* owner);
  void note_changed(PyObject* container);  // from outside: where the next recording opens it
  bool has_learned() const { return has_learned_; }  // what a further recording goes by
  Term same(PyObject* value);  // an object that guards vouch for: tensor or not
  Term make(Made::Kind kind, std::vector<Term> items, std::vector<PyObject*> objects);
  Made& made(Term t) {
    Made& m = made_[static_cast<size_t>(t.index)];
    if (m.object) refresh(m);
    return m;
  }
  const Made& peek(Term t) const { return made_[static_cast<size_t>(t.index)]; }  // as last seen
  // ── objects by their address: objects.cpp ──
  Term find(PyObject* o);   // nothing: not known
  Term adopt(PyObject* o);  // or it was made just now
  Term make_instance(PyObject* object);
  // What stands under a name of an instance, or a key of a dict, that the call made.
  void set_named(Term owner, PyObject* name, PyObject* value, Term term);
  Term read_slot(Term owner, PyObject* descriptor, PyObject* value);
  void write_slot(Term owner, PyObject* descriptor, PyObject* value, Term term);
  void set_item(Term list_or_dict, PyObject* key, PyObject* value, Term term);
  void append(Term list, PyObject* value, Term term);
  void extend(Term list, const std::vector<PyObject*>& values, const std::vector<Term>& terms);
  void own(Term made, PyObject* object);  // the real object of what was made
  void know(PyObject* object);            // the same at each call
  void know_stored(PyObject* method);     // a bound one that is, since guards found it somewhere
  // Something that has a last word when it is dropped: nothing may hold it for longer.
  bool is_fragile(Term t) const { return t.is_made() && peek(t).is_fragile; }
  bool is_builtin_exception(PyTypeObject* type);  // nothing of the program's runs when it is made
  bool is_method_of(PyObject* function, PyObject* object);  // of its class, or a property's getter
  // May C code look at it, and do the same at each call? `is_deep`: at what it holds, too.
  bool vouch(Term t, PyObject* o, bool is_deep, int depth = 0);
  bool holds_tensor(Term t, PyObject* o, int depth = 0);  // or may
  Term make_generator(PyObject* generator, GeneratorState state, bool is_fragile);
  const GeneratorState* generator(PyObject* generator) const;  // null: not of this call
  void keep_generator(PyObject* generator, std::vector<Term> terms);
  void forget();                      // after giving up; the GIL is held
  std::vector<PyTypeObject*> making;  // classes whose instances are being made
  size_t num_made() const { return made_.size(); }
  // A plain value that is the same at each call; numbers are from now on.
  bool is_plain(Term t, PyObject* value);
  Term tensor_result(PyObject* value);  // what an op gave
  // ── steps (evaluate_steps.cpp) ──
  int32_t add_step(std::unique_ptr<PythonStep> step, PyObject* const* args,
                   std::span<const Term> terms);
  Term step_result(int32_t part, PyObject* value);
  // Python takes a branch on the value of a tensor, which it is about to read.
  bool is_reading() const { return is_reading_; }
  void set_reading(bool is_reading) { is_reading_ = is_reading; }
  void branched(PyObject* tensor, bool outcome);
  void looked_at_sizes() { pins_sizes_ = true; }
  void looked_for_profile(bool is_on) {
    plan_->is_unprofiled = true;
    if (is_on) give_up("a profile is taken");
  }
  // ── sizes and values of tensors ──
  Term size_of(PyObject* tensor, int32_t dim, PyObject* value);  // dim -1: how many elements
  void pin_size(PyObject* tensor, int32_t dim);
  void pin_rank(const TensorImpl* impl);  // which follows from sizes, not from ranks
  Term shape_of(PyObject* tensor, PyObject* size);
  Term item_of(PyObject* tensor, PyObject* value);
  Term list_of_items(PyObject* tensor, PyObject* list);

  // ── numbers that may change between calls ──
  bool has_numbers() const { return !numbers_.empty(); }
  bool has_fixed_type(Term number);         // it is found anew, and is or has to be of its type
  bool is_read_from_tensor(Term t) const;   // a number: an item, or computed of one
  void pin(Term t);                         // this one may not, after all
  void pin_truth(Term t, PyObject* value);  // or may, as long as it is as true as it was
  void pin_all(std::span<const Term> terms);
  // Numbers in containers that are about to be changed: such as are one object only this time.
  void pin_twins(std::span<const Term> containers);
  Term number_result(int code, PyObject* a, Term ta, PyObject* b, Term tb, PyObject* result);
  Term number_unary(int code, PyObject* a, Term ta, PyObject* result);
  // function(*args), a builtin that computes a number of numbers; a tuple among them is given as it
  // is.
  Term number_call(PyObject* function, std::span<const Term> terms, PyObject* const* args,
                   PyObject* result);
  // Strings made of numbers (evaluate_text.cpp).
  Term text_call(PyObject* function, std::span<const Term> terms, PyObject* const* values,
                 PyObject* result, bool is_packed, bool is_safe);
  Term text_operator(int code, PyObject* a, Term ta, PyObject* b, Term tb, PyObject* result);
  // `number in container`; nothing: what it holds may change in ways that guards do not see.
  std::optional<Term> number_in(Term number, PyObject* value, Term container_term,
                                PyObject* container, bool is_in);
  // ==, != and + of tuples that the call made.
  std::optional<Term> tuple_operator(int code, PyObject* a, Term ta, PyObject* b, Term tb,
                                     PyObject* result);
  std::optional<Term> item_of_tuple(Term tuple, PyObject* key, PyObject* value);  // a slice of it
  // After a call of an op: the numbers among its arguments are found in the node that was recorded
  // for it, which is the first after `nodes_before`, or pinned.
  struct OpCall {
    const char* name = nullptr;  // null: an operator
    std::span<const Term> terms;
    PyObject* const* values;
    PyObject* kwnames = nullptr;
    bool is_method = false;  // `terms` are without self
  };
  void bind_numbers(uint64_t nodes_before, const OpCall& call);
  // The same of tensor[key], and of tensor[key] = value (null: it is read).
  void bind_index(uint64_t nodes_before, Term key_term, PyObject* key, Term value_term = {},
                  PyObject* value = nullptr);
  // ── gradients (gradients.cpp) ──
  // A tensor that the call made of constant data, which nobody but the plan has.
  void keep_constant(PyObject* tensor);
  void keep_alive(PyObject* object) { plan_->objects.emplace_back(object); }
  // A tensor that is the very same at each call.
  bool is_object(PyObject* tensor) const;
  bool began_without_gradients(PyObject* tensor) const {
    const auto root = roots_.find(door().impl_of(tensor));
    return root != roots_.end() && !root->second.requires_grad;
  }
  // What the call made becomes a leaf; a plan without the tape need not do that.
  bool make_leaf(PyObject* tensor) {
    if (roots_.count(door().impl_of(tensor)) || door().impl_of(tensor)->grad_fn) return false;
    makes_leaves_ = true;
    note_leaf(door().impl_of(tensor));
    return true;
  }
  // `a is b`, of tensors, is the same at each call.
  bool is_identity_fixed(PyObject* a, PyObject* b) const;
  Term read_history(PyObject* tensor, PyObject* value);    // tensor.grad_fn
  Term read_gradient(PyObject* tensor, PyObject* value);   // tensor.grad
  void write_gradient(PyObject* tensor, PyObject* value);  // is about to be set
  void accumulating(const Tensor& leaf);                   // in a backward pass, without the GIL
  void ran_backward();                                     // after it
  // ── Python that the tape calls, and steps of the tape that Python makes (tape_calls.cpp) ──
  void called_by_tape();
  Term called_term(PyObject* callable, bool is_from_outside);
  Term handed_on(PyObject* value);
  Term tape_step_term(CoreFunction function, PyObject* const* args, const std::vector<Term>& terms,
                      PyObject* result);
  // A step that only Python can go back through: a plan without a backward pass does not make it.
  void made_tape_step() { makes_tape_steps_ = cannot_retrace_ = true; }
  // ── steps beside ops (tape_steps.cpp) ──
  void note_backward(PyObject* const* args, uint64_t nodes_before);  // of _run_backward, after it
  void note_gradient_set(TensorImpl* leaf, TensorImpl* gradient);    // null: none from now on
  void note_leaf(TensorImpl* leaf);
  void on_composite(const OpDef& op, std::span<const IValue> args, uint64_t modes,
                    uint64_t nodes_before, bool has_shortcut);
  void foresee(Trace& trace, std::span<TensorImpl* const> impls);

  // owner.name = value, and `dict` is where it stands then; dict[key] = value. False: not followed.
  // list.append(value); the call may not read the list, neither before nor after.
  bool append_outside(PyObject* list, PyObject* value, Term term);
  bool write_item(PyObject* dict, PyObject* key, PyObject* value, Term term);
  bool write_cell(PyObject* cell, PyObject* value, Term term);
  bool write_attribute(PyObject* dict, PyObject* owner, PyObject* name, PyObject* value, Term term);

  // ── reads of what the program may change between calls ──
  // value null: it was absent. `owner`: the type of the object whose attributes the dict holds.
  Term read_dict(PyObject* dict, PyObject* key, PyObject* value, PyTypeObject* owner = nullptr);
  void read_length(PyObject* dict);
  // All of it, in order: a made tuple of its keys (0), values (1) or pairs (2).
  Term read_all(PyObject* dict, int what);
  void read_type(PyTypeObject* type);
  void read_type_of(PyObject* object);
  Term read_floats(PyObject* dict, PyObject* key, PyObject* tuple);  // of dict[key]
  Term read_list_item(PyObject* list, PyObject* value);
  void read_list(PyObject* list);
  void read_set(PyObject* set);
  Term read_cell(PyObject* cell, PyObject* name = nullptr);
  void read_function(PyObject* function);
  // A context variable; null: it has no value.
  void read_context_variable(PyObject* variable, PyObject* value);
  // A slot, or another attribute that builtin code reads.
  Term read_member(PyObject* object, PyObject* name, PyObject* value);

  // ── the recorder's side ──
  struct SegmentEnd {
    const Trace& trace;
    std::span<TensorImpl* const> impls;  // of its values
    std::span<const std::pair<TensorImpl*, ValueId>> aliases;
    std::span<const IndexCheck> checks;
    const Ref<Runner>& runner;
    const NumberInputs& number_inputs;
    bool has_python_backend;
    bool is_step = false;  // one op, the shapes of whose results depend on data
  };
  void on_segment(const SegmentEnd& end);
  bool knows(const TensorImpl* t) const { return roots_.count(t) || computed_.count(t); }
  const TensorImpl* known_as(const TensorImpl* impl) const;  // other_names.cpp
  void on_shortcut(const OpDef& op, std::span<const IValue> args, size_t given_back);

  // Of the outermost frame; `before`: the state when the call began.
  void finish(PyObject* result, Term term, const Context& before);
  std::unique_ptr<Plan> take_plan(const Context& context);  // after the last segment has run

 private:
  struct Part {
    std::shared_ptr<Trace> trace;  // of a step: empty
    std::shared_ptr<PythonStep> step;
    std::vector<TensorSource> inputs;
    std::vector<Rehearsal::Value> rehearsed_inputs;
    std::vector<ValueId> wanted;
    NumberInputs number_inputs;
    Ref<Runner> runner;
    std::vector<ValueId> runner_outputs;
    bool is_step = false;
  };
  struct Root {
    TensorSource source;
    Ref<TensorImpl> impl;
    bool is_leaf = true;  // when the call began
    bool requires_grad = false;
    int32_t rehearsed = -1;  // in Plan::rehearsal_roots
  };
  struct Gradient {  // beside Plan::leaves
    Ref<TensorImpl> leaf, before;
    bool is_written = false;
    int32_t first_order = -1, last_order = -1;  // of what wrote it, among the steps
  };
  struct Accumulated {
    Tensor leaf, before;
    bool has_hooks;
  };
  struct Number {
    Kept value;
    bool is_pinned = false;
    bool is_seen_changing = false;  // by earlier calls, too
    bool is_type_read = false;
    bool is_fixed = false;  // pinned, or computed of such
  };
  struct Written {
    Term term;
    Kept value;
  };
  struct GivenSlot {  // of a record; classes keep the descriptors
    PyObject* descriptor;
    Term term;
    Kept value;  // what stands there
    bool is_stored;
  };
  GivenSlot* slot_of(size_t container, PyObject* descriptor);
  struct Given {  // beside Plan::containers
    Term term;
    Kept object;
    std::vector<Kept> items;
    std::vector<Term> terms;  // of those that have names, of a record
    std::vector<GivenSlot> slots;
    PyObject *holder = nullptr, *key = nullptr;  // where it was found; of one in another: none
  };
  bool containers_are_unchanged();
  Term open_held(PyObject* holder, PyObject* key, PyObject* value, PyObject* owner);
  Term opened(PyObject* value, PyObject* holder, PyObject* key) const;
  bool note_contents(size_t container);
  void note_other_containers(bool has_lists, bool has_dicts);
  bool note_record_stores(size_t container);
  void note_strangers();
  std::vector<Given> given_;
  struct Store {
    Kept owner, name, value;
    Term term;
    Effect::Kind kind = Effect::Kind::kAttribute;
    int32_t order = 0, argument = 0;
  };
  bool begin_step(TapeStep& step, uint64_t nodes_before);
  bool note_argument(RetracedArgument& to, const IValue& v);
  bool settle_argument(RetracedArgument& a);
  std::vector<Retrace::Outside> retraced_outside();
  bool is_of_sizes(int32_t number) const;
  using NumbersAt = std::map<std::pair<size_t, size_t>, int32_t>;  // by part and slot
  void pin_what_the_tape_reads(NumbersAt& handed_on);
  bool find_handed_on(const NumbersAt& handed_on, const std::vector<Retrace::Outside>& outside,
                      const std::vector<std::vector<IValue>>& recorded);
  bool try_retrace(Trace& trace);
  void mark_sized_numbers(Trace& trace, std::vector<Retrace::Outside> outside,
                          const std::vector<std::vector<IValue>>& given);
  void settle_retrace();
  bool no_shortcut_is_derived() const;
  int32_t gradient_of(TensorImpl* leaf);  // -1: not from outside
  void note_written(Gradient& g);
  void note_before(int32_t index, const Tensor& gradient);
  void note_accumulated();
  void note_hooks(int32_t leaf);
  bool describe_gradients();
  bool settle_tape();
  static bool may_be_stored(Term term, PyObject* value);
  bool note_write(PyObject* dict, PyObject* key, PyObject* value, Term term);
  bool has_taped_nodes() const;
  void note_checks(const SegmentEnd& end);
  Term number(NumberStep step, PyObject* value, bool is_seen_changing = false);
  bool is_input(PyObject* value) const;
  Term outside_number(NumberStep step, const void* owner, uint64_t key, PyObject* value);
  Term element_of(PyObject* tensor, int32_t index, PyObject* value);
  bool have_sizes_changed() const;
  void pin_number_of_results(const TensorImpl* first);
  bool guards_number(const NumberStep& s, PyObject* value, int32_t place);
  void settle_rehearsal(std::vector<bool>& needed);
  int32_t step_of(Term t, PyObject* value);
  void bind(Trace& trace, const TraceNode& node, size_t argument, const Operand& slot, Term t);
  bool bind_arguments(Trace& trace, const TraceNode& node, const OpCall& call);
  bool bind_operands(Trace& trace, const TraceNode& node, const OpCall& call);
  Term rehearsed(Rehearsal::Question q, PyObject* value);
  Rehearsal::Value step_root(TensorSource source);
  std::optional<Rehearsal::Value> rehearsed_value(const TensorImpl* impl);
  void settle_numbers();
  void collect_numbers(Term t, std::vector<Term>* out);
  Guard& guard(Guard::Kind kind, PyObject* object);
  void refresh(Made& m);
  void hold(Made& m);
  void settle_items(Made& m, std::vector<Term> items, std::vector<PyObject*> objects);
  bool vouch_partial(PyObject* partial);
  bool vouch_items(PyObject* o, bool is_deep, int depth);
  bool knows_tensor(PyObject* tensor) const;
  void pin_equal(PyObject* value);
  Term guard_identity(PyObject* value, int32_t index);
  Term argument_again(TensorSource known, int32_t index);
  void watch_tensor(PyObject* tensor, TensorSource source);
  bool describe(PyObject* value, Term term, Template* out);
  bool describe_made(Term term, Template* out);
  bool describe_instance(const Made& m, Template* out);
  bool describe_node(PyObject* value, Term term, int32_t node, Template* out);
  void count_uses();
  void count_uses(Term t, std::map<int32_t, int>& uses);
  TensorSource output_of(TensorSource source);
  std::optional<TensorSource> source_of(const TensorImpl* impl);
  int32_t keep(PyObject* object);
  int32_t place();

  std::string reason_, reason_place_;
  std::unique_ptr<Plan> plan_ = std::make_unique<Plan>();
  std::deque<Made> made_;  // references stay good
  struct Known {
    Term term;
    Kept object;
  };
  std::unordered_map<PyObject*, Known> known_;
  std::unordered_map<PyObject*, GeneratorState> generators_;  // not kept alive
  std::unordered_map<const TensorImpl*, Root> roots_;
  std::unordered_map<const TensorImpl*, TensorSource> computed_;
  std::unordered_map<const TensorImpl*, int32_t> gradient_at_;  // by leaf
  std::vector<Gradient> gradients_;
  std::vector<Accumulated> accumulated_;
  std::vector<Tensor> own_leaves_;  // made in the call; gradients were added to them
  std::vector<std::pair<Ref<TensorImpl>, TensorSource>> leaving_;
  std::vector<PlanCheck> checks_;
  std::vector<Ref<TensorImpl>> alive_;  // so that the addresses above stay theirs
  std::unordered_map<uint64_t, size_t> guard_at_;
  std::vector<Part> parts_;
  NumberMemory* memory_;
  std::vector<Number> numbers_;                                       // beside Plan::numbers
  std::map<std::pair<const void*, const void*>, Term> read_numbers_;  // by dict and key
  std::map<std::pair<const void*, const void*>, Term> read_tuples_;   // of floats, the same
  std::map<std::pair<const void*, const void*>, Written> overlay_;    // what the call itself wrote
  std::map<std::pair<const void*, const void*>, const TensorImpl*> held_;  // beside Plan::held
  std::map<std::pair<const void*, int32_t>, Term> read_sizes_;  // by tensor and dimension
  bool has_steps_ = false, has_learned_ = false;
  std::set<const Storage*> constants_;  // memory of constant data
  std::vector<Store> effects_;
  std::vector<PyObject*> appended_;   // lists from outside
  std::map<int32_t, int32_t> nodes_;  // made things that several places hold: in Plan::nodes
  std::vector<PyObject*> arguments_;  // the caller holds them
  Kept result_kept_{nullptr};
  Term result_term_;
  bool is_reading_ = false;
  bool is_finished_ = false, pins_sizes_ = false, needs_tape_ = false;
  bool makes_leaves_ = false, has_composites_ = false, cannot_retrace_ = false;
  int64_t outside_hooks_ = 0, expected_outside_hooks_ = 0;  // calls
  bool makes_tape_steps_ = false, puts_random_state_ = false;
  std::vector<int32_t> numbers_on_tape_;  // bound before a backward pass
  bool has_python_backend_ = false, has_other_names_ = false, has_inference_ = false;
  int32_t first_write_ = std::numeric_limits<int32_t>::max();                   // the part
  int32_t first_draw_ = std::numeric_limits<int32_t>::max(), last_check_ = -1;  // of data
  bool has_items_ = false, sizes_wait_ = false;
  int32_t num_steps_ = 0;  // that can fail
  // The first of them that comes after a write: if it fails, a replay cannot be evaluated again.
  int32_t first_final_step_ = std::numeric_limits<int32_t>::max();
  bool has_tensor_steps_ = false;
  const bool is_grad_on_, keeps_places_, is_static_;
  const uint64_t number_;
};

PyObject* builtin_join();

// The tracker of the compiled call that runs on this thread, while it is on; else null.
Tracker* current_tracker();
void forget_objects();                       // of a tracker of this thread that gave up
bool is_instance_class(PyTypeObject* type);  // by a class statement; not derived from a builtin
// Why it is not on any more; empty: it is, or there is none.
std::string why_not_tracked();
void set_current_tracker(Tracker* tracker);

}  // namespace prong::capture
