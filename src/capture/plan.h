// Plan: what a call of a compiled function comes to while its guards hold: tensors to fetch,
// programs to run, a result to build. Made by tracker.cpp, run by bindings/capture.cpp without
// touching bytecode.
#pragma once

#include <cstring>
#include <optional>
#include <span>
#include <unordered_set>

#include "capture/number_steps.h"
#include "capture/python_door.h"
#include "capture/retrace.h"
#include "capture/runner.h"
#include "eager/node.h"
#include "runtime/context.h"

namespace prong::capture {

// One fact that the recording relied on.
struct Guard {
  enum class Kind : uint8_t {
    kArgumentIs,     // argument `index` is `object`
    kArgumentEqual,  // argument `index` has the type and the value of `object`
    kTypeOf,         // `object` is still of type `other`
    kTypeVersion,    // `object`, a type, has version `number`
    kDict,    // `reads` of `object`, a dict, are what they were; at once if its version is `number`
    kOrder,   // `object`, an OrderedDict, has the keys `other` (a tuple) in this order
    kList,    // `object` has the items `other` (a tuple)
    kSet,     // the same of a set, in the order in which it gives them
    kCell,    // `object` holds `other`
    kMember,  // attribute `owner` of `object`, which builtin code reads, is `other`
    kContextVariable,  // `object` has the value `other` in the thread's context; null: none
    kSameTensor,       // arguments `index` and `number` are one tensor
    kFunction,         // `object` has the code, defaults and keyword defaults of `other` (a tuple)
  };
  struct Read {
    Kept key, value;  // null value: absent. Null key: `value` is the length, or a tuple of all keys
                      // in their order
    int32_t place = -1;
  };
  Kind kind;
  int32_t index = 0;
  uint64_t number = 0;
  Kept object, other;
  std::vector<Read> reads;
  bool is_written = false;  // a dict that the plan itself writes: its version says nothing
  Kept owner{nullptr};  // for reports: of a dict, the type whose instance has it; of a cell, the
                        // variable's name
  int32_t place = -1;   // in Plan::places
};

// It requires no gradient, or is a leaf.
bool is_plain_leaf(const TensorImpl* t);
// A view of one that requires a gradient, even since then only: writes to it may be refused.
bool is_view_of_leaf(const TensorImpl* t);
bool read_holds(PyObject* dict, const Guard::Read& read);
unsigned version_of_tensor_type();

// What is asked of a tensor from outside.
struct TensorGuard {
  TensorSource source;
  DType dtype;
  bool requires_grad, is_exact_type;
  int64_t rank;
  std::optional<Dims> sizes, strides;  // where the recording looked at them
  int32_t place = -1;                  // in Plan::places
  bool is_leaf = false;                // it must have no history
  bool is_inference = false;           // made in inference mode
  bool is_view_of_leaf = false;        // asked where the plan writes
};

// A tensor whose .grad the call read, wrote or added to.
struct Leaf {
  enum class Before : uint8_t { kUnread, kNone, kTensor };
  TensorSource tensor;
  Before before = Before::kUnread;  // kTensor: TensorGuards say what is asked of it
  std::vector<int64_t> hooks{};     // that saw its gradient; every one has a number of its own
};

// A result that had a history when the call was recorded, which its backward pass has used up.
struct Spent {
  TensorSource tensor;
  Ref<eager::Node> like;
  uint32_t output_nr;
};

// Before a plan that writes runs, since it may not fail then.
struct PlanCheck {
  TensorSource tensor;
  int64_t low, high;
  std::optional<int64_t> ignored;
  int32_t before = -1;  // which program; of what a program before it gives
};

// A number of a program's that is one of the plan's.
struct VaryingNumber {
  size_t at;  // in PlanProgram::numbers
  int32_t number;
  bool may_be_refused;  // an index, a length and the like; not a factor
  Kept last;            // what `value` was made of
  IValue value;
};

class PlanList;  // plan_list.h
struct PlanLink;
struct PythonStep;  // python_steps.h
struct StepLog;

struct PlanProgram {
  Ref<Runner> runner;  // null: the step
  std::shared_ptr<const PythonStep> step;
  std::vector<TensorSource> inputs;
  std::vector<ValueId> outputs;  // what it gives, of the trace's values
  std::vector<size_t> picked;    // of the runner's results, if is_picked
  bool is_picked = false;
  std::vector<IValue> numbers;  // after the tensors, as they were recorded
  std::vector<size_t> slots;    // where they stand in the trace
  std::vector<VaryingNumber> varying;
  std::shared_ptr<const Trace> trace;
  bool waits = false;                      // for numbers that earlier programs give
  bool is_loop = false, is_taped = false;  // what the runner is

  void take_numbers(const NumberInputs& inputs);  // these of the trace's
};

// How the result is built.
struct Template {
  enum class Kind : uint8_t {
    kObject,
    kArgument,
    kTensor,
    kNumber,
    kTuple,
    kSize,
    kList,
    kDict,
    kFuture,
    kTupleOf,
    kSet,
    kInstance,
    kNode
  };
  Kind kind;
  TensorSource tensor{};
  int32_t object = 0;           // in Plan::objects; of kArgument, kNumber: which
  std::vector<Template> items;  // of a dict: values; its keys are the tuple `object`. Of a future:
                                // its value
  bool is_described = false, is_complete = false;  // of a node, while the plan is made
  bool is_inference = false;                       // of a tensor: made in inference mode
};

// Builds a part of what is built.
struct BuildPart {
  PyObject* (*function)(const void* with, const Template& t);
  const void* with;
  PyObject* operator()(const Template& t) const { return function(with, t); }
};
class Plan;
// Of the kinds from kTupleOf on. A new reference; null with an error set.
PyObject* build_object(const Template& t, const Plan& plan, const BuildPart& build);
// Where things that several places hold are built once.
class BuildScope {
 public:
  explicit BuildScope(size_t num_nodes);
  ~BuildScope();

 private:
  std::vector<Kept> nodes_;
  std::vector<Kept>* saved_;
};

// A branch that Python took on the value of a tensor.
struct Branch {
  size_t after;  // so many programs
  TensorSource tensor;
  bool outcome;
};

// After the programs have run: owner.name = value, owner[name] = value, owner.append(value), the
// .grad of a leaf, the variable that the cell `owner` holds, argument.name = value, or what an
// argument, a list or dict, holds from then on.
struct Effect {
  enum class Kind : uint8_t { kAttribute, kItem, kAppend, kGradient, kCell, kArgument, kContents };
  Kept owner, name;
  Template value;
  Kind kind = Kind::kAttribute;
  int32_t leaf = 0;   // in Plan::leaves; of kArgument and kContents: which argument
  int32_t order = 0;  // so many steps that can fail come before it
};

// A list, tuple, dict or record among the arguments. Its items count as arguments too, after those
// before.
struct ArgumentContainer {
  int32_t index;  // which argument
  PyTypeObject* type;
  Py_ssize_t size;
  Kept keys{};   // of a dict and of a record's dict: a tuple, in its order
  Kept slots{};  // of a record: the descriptors of those that are set
  bool is_record = false;
  bool holds(PyObject* o) const;
};
// Where the call finds a tensor, list, tuple or dict that may be another one each time: it counts
// as an argument too.
struct HeldTensor {
  Kept holder, key;  // a dict and its key, or a cell; or the list itself
  Kept owner;        // for reports: the type whose instance has the dict, the variable's name
  size_t after = 0;  // its number comes after the items of so many containers
  bool is_container = false;
  PyObject* get() const;  // borrowed; null: there is none
};
// Is the argument one that a plan looks into?
bool is_opened(PyObject* argument);
bool set_contents(PyObject* container, PyObject* to);  // of a list or dict; false: an error is set

class Plan {
 public:
  bool fits(PyObject* const* args, size_t count, PyObject* kwnames);
  // After fits(): a new reference, or null with a Python error set; nullopt: not this time (a
  // branch goes another way, or an op failed before anything was written): another plan, or
  // evaluate. `new_sizes`: not empty after nullopt: the plan writes, and has not been run with
  // these sizes; evaluate, and if that goes well, accept() them. Between two writes an op must not
  // fail. `log`: the steps that were taken already, by plans that did not go on; takes note of
  // more.
  std::optional<PyObject*> run(PyObject* const* args, std::vector<int64_t>* new_sizes,
                               StepLog& log);
  // `checks`: what the call asked of its indices; bounds may follow from sizes.
  void accept(std::vector<int64_t> sizes, std::vector<PlanCheck> checks);
  // `twin`: a plan that was recorded for a call that this one fits, save for its sizes.
  void accept_as(const Plan& twin, std::vector<int64_t> sizes);
  // ── plan_list.cpp ──
  ~Plan();
  int traverse(visitproc visit, void* arg) const;
  // From now on those with a life of their own are not kept: `list` is told when one dies.
  void borrow_objects(PlanList& list);
  std::vector<Kept> hold_objects() const;  // the borrowed ones
  bool is_dead = false;                    // one of them died
  int64_t replays_before = 0;              // of its function, before it was there

  size_t num_arguments = 0;  // positional and by name
  std::vector<ArgumentContainer> containers;
  std::vector<HeldTensor> held;
  std::vector<PyObject*> strangers;  // none of the containers; kept by `objects`
  Kept kwnames{nullptr};
  Context context;               // grad mode and the like
  DType default_dtype;           // of the process, when the recording began
  unsigned tensor_type_version;  // changes where the program sets a method of tensors
  std::vector<Guard> guards;
  std::vector<TensorGuard> tensors;
  std::vector<Kept> objects;
  std::vector<PlanProgram> programs;
  std::vector<NumberStep> numbers;
  std::vector<NumberCheck> number_checks;
  Rehearsal rehearsal;
  std::vector<TensorSource> rehearsal_roots;  // its tensors from outside
  std::vector<int32_t> rehearsal_numbers;     // from outside, that its answers depend on
  bool has_late_numbers = false;              // that programs give
  bool rehearsal_numbers_vary_late = false;   // its answers depend on such, too
  std::vector<Branch> branches;  // by `after`; nothing is written before the last of them
  std::vector<Effect> effects;
  std::vector<Leaf> leaves;
  std::vector<Spent> spent;
  bool has_backward = false;  // a pass over the tape that the call itself made, which is not made
  Retrace retrace;            // roots as those of the rehearsal
  std::vector<int32_t> retraced_gradients;  // of which root each root is the .grad
  bool is_retraced = false;                 // it tells for new sizes whether all ops take them
  bool is_derived = false;                  // and numbers of the programs, which follow from them
  Ref<ProgramCache> cache;      // where programs come from that take more numbers as inputs
  bool is_unprofiled = false;   // something else is done while a profile is taken
  std::vector<Template> nodes;  // what several places hold
  Template result{};
  std::vector<Place> places;  // where things were read, if somebody asked for it
  bool has_writes = false;    // to memory from outside
  bool has_draws = false;     // of the default generator
  bool has_steps = false;     // of Python's
  bool drops_nodes = false;   // a program may leave out ops that nobody reads, and their errors
  int64_t number = 0;         // of the plans of its function, from 1, for reports

 private:
  friend class PlanReader;
  bool fits_now(PyObject* const* args, size_t count, PyObject* kwnames);
  bool holds(Guard& guard, PyObject* const* args);
  bool is_opened() const { return !containers.empty() || !held.empty(); }
  bool open(PyObject* const* args);  // fills opened_; false: the containers are built otherwise
  static PyObject* const* pointers(const std::vector<Kept>& opened) {
    static_assert(sizeof(Kept) == sizeof(PyObject*));
    return reinterpret_cast<PyObject* const*>(opened.data());
  }
  TensorImpl* fetch(const TensorSource& s, PyObject* const* args) const;
  IValue value(const TensorSource& s, PyObject* const* args,
               const std::vector<std::vector<IValue>>& results) const;
  // The numbers of a call, as far as they are known.
  struct Found {
    std::vector<Kept> values;
    std::optional<RehearsalRun> run;
    int32_t run_stage = 0;
    std::optional<std::vector<int64_t>> remembered;
    std::vector<int64_t> key, answers;  // of a run whose sizes are new
    std::vector<Kept> step_results;     // by program
  };
  struct Remembered {
    std::vector<int64_t> key, answers;
  };
  PyObject* build(const Template& t, PyObject* const* args,
                  const std::vector<std::vector<IValue>>& results, const Found& found) const;
  bool takes(const Branch& b, PyObject* const* args,
             const std::vector<std::vector<IValue>>& results) const;
  // Those that are known once `stage` programs have run; false: the call does not fit.
  bool find_numbers(PyObject* const* args, const std::vector<std::vector<IValue>>& results,
                    int32_t stage, Found& found);
  bool find_number(NumberStep& s, size_t index, PyObject* const* args,
                   const std::vector<std::vector<IValue>>& results, Found& found);
  PyObject* find_outside(NumberStep& s, PyObject* const* args);
  PyObject* compute(const NumberStep& s, std::span<const Kept> values) const;
  std::optional<int64_t> rehearse(const NumberStep& s, PyObject* const* args,
                                  const std::vector<std::vector<IValue>>& results, Found& found);
  static bool fill_numbers(PlanProgram& p, const Found& found, std::vector<IValue>* numbers_now);
  struct Accepted {
    std::vector<int64_t> sizes;
    std::vector<PlanCheck> checks;
    std::vector<std::vector<IValue>> numbers{};  // of each trace; none: as they were recorded
    std::vector<std::vector<IValue>> inputs{};   // of each program, from these
    void choose_inputs(const std::vector<PlanProgram>& programs);
  };
  const Accepted* accepted(const std::vector<int64_t>& sizes) const;
  const Accepted* go_again(std::vector<int64_t> sizes, PyObject* const* args, const Found& found);
  std::optional<TensorSource> source_of(const Rehearsal::Value& v) const;
  bool has_rehearsed(const Retrace::Result& result, const Found& found) const;
  bool take_inputs(const std::vector<std::vector<IValue>>& numbers);
  std::vector<int64_t> sizes_of_call(PyObject* const* args, const Found& found) const;
  bool leaf_fits(const Leaf& leaf, PyObject* const* args) const;
  bool indices_fit(const std::vector<PlanCheck>& checks, int32_t before, PyObject* const* args,
                   const std::vector<std::vector<IValue>>& results) const;
  void give_histories(std::vector<std::vector<IValue>>& results) const;
  bool apply(const Effect& e, PyObject* value, PyObject* const* args) const;
  // The effects from `first` on that come before a step; false: an error is set.
  bool apply_up_to(int32_t order, size_t* first, PyObject* const* args,
                   const std::vector<std::vector<IValue>>& results, const Found& found) const;
  // False: it failed, or another one was taken in its place; the log tells.
  bool take(const PythonStep& step, size_t index, PyObject* const* args,
            const std::vector<std::vector<IValue>>& results, Found& found, StepLog& log) const;
  bool are_steps_plain() const;
  template <class F>
  void for_each_kept(F f);  // those that may be borrowed
  void borrow_dicts();
  std::vector<Kept> borrowed_;  // weak references
  std::unordered_set<const Kept*> lent_;
  std::vector<PyObject*> used_late_;  // of them: after the programs have run
  std::shared_ptr<PlanLink> link_;
  Found found_;               // by fits(), for the run() that follows
  std::vector<Kept> opened_;  // the same: arguments, and the items of their containers
  std::vector<Remembered> remembered_;
  std::vector<Accepted> accepted_;
  std::vector<std::vector<int64_t>> refused_;  // sizes that take another program
};

// What a plan that must not fail asks of a call's tensors: how they lie, and what they share.
void append_geometry(std::vector<int64_t>& to, std::span<const TensorImpl* const> tensors);
// And of a number that an op might refuse.
void append_number(std::vector<int64_t>& to, const IValue& n);

inline uint64_t version_of(PyObject* dict) {  // another one after each change
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
}
// A dict or an OrderedDict, not of a class that may do otherwise.
inline bool is_dict(PyObject* o) { return PyDict_CheckExact(o) || Py_IS_TYPE(o, &PyODict_Type); }
inline bool is_interned(PyObject* o) {
  return PyUnicode_CheckExact(o) && PyUnicode_CHECK_INTERNED(o);
}
// Or a defaultdict.
inline bool is_any_dict(PyObject* o) {
  return is_dict(o) ||
         (PyDict_Check(o) && std::strcmp(Py_TYPE(o)->tp_name, "collections.defaultdict") == 0);
}
bool same_value(PyObject* a, PyObject* b);  // exact type and value, of plain immutable objects
bool is_plain_value(
    PyObject* o);  // None, bool, int, float, str, bytes, complex, and tuples of such

}  // namespace prong::capture
