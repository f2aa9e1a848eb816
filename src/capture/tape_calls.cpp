// See tape_calls.h; and what calls of the tape's own functions by Python mean to a plan.
#include "capture/tape_calls.h"

#include "capture/evaluator.h"
#include "capture/session.h"

namespace prong::capture {

bool (*is_python_node)(const eager::Node& node) = nullptr;

namespace {
thread_local PyObject* error_of_tape_call = nullptr;  // to compare with only
}  // namespace

bool is_error_of_tape_call() {
  PyObject* const error = std::exchange(error_of_tape_call, nullptr);
  return error && error == current_error();
}

uint64_t recording_number() {
  const Tracker* t = current_tracker();
  return t ? t->number() : 0;
}

PyObject* call_by_tape(PyObject* callable, PyObject* const* args, size_t count,
                       bool is_from_outside) {
  Evaluator* frame = is_recording() ? Evaluator::innermost() : nullptr;
  if (!frame) return PyObject_Vectorcall(callable, args, count, nullptr);
  return frame->call_for_tape(callable, args, count, is_from_outside);
}

// The frame is amid the call that has the tape do something.
PyObject* Evaluator::call_for_tape(PyObject* callable, PyObject* const* args, size_t count,
                                   bool is_from_outside) {
  Tracker* t = tracker();
  if (!t) return PyObject_Vectorcall(callable, args, count, nullptr);
  t->called_by_tape();
  const Term function = t->called_term(callable, is_from_outside);
  std::vector<Term> terms;
  for (size_t i = 0; i < count; ++i) terms.push_back(t->handed_on(args[i]));
  const uint64_t nodes_before = nodes_before_call_;
  PyObject* const kwnames = std::exchange(kwnames_, nullptr);
  const Term returned = returned_term;
  Term result;
  PyObject* value = invoke(callable, function, args, std::move(terms), nullptr, &result);
  nodes_before_call_ = nodes_before;
  kwnames_ = kwnames;
  returned_term = returned;
  error_of_tape_call = value ? nullptr : current_error();
  t = tracker();
  if (value && t && !result.is_known()) t->give_up("a hook gives something of unknown origin");
  return value;
}

// ── the tracker's side ──

void Tracker::called_by_tape() {
  made_tape_step();
  note_accumulated();
}

// A function, method or instance that the call knows. One from outside is the hook of a leaf, which
// guards know by its number (ran_backward() counts the calls).
Term Tracker::called_term(PyObject* callable, bool is_from_outside) {
  if (is_from_outside) {
    ++outside_hooks_;
    know_stored(callable);
    return Term::same();
  }
  if (const Term t = find(callable); t.is_known()) return t;
  if (PyMethod_Check(callable)) {
    PyObject* self = PyMethod_GET_SELF(callable);
    PyObject* function = PyMethod_GET_FUNCTION(callable);
    const Term owner = find(self);
    if (owner.is_known() && !door().is_tensor(self) && is_method_of(function, self))
      return make(Made::Kind::kMethod, {Term::same(), owner}, {function, self});
  }
  if (PyObject* self = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : nullptr)
    if (const Term owner = find(self); owner.is_made())  // a list's append(), say
      return make(Made::Kind::kMethod, {Term::same(), owner}, {callable, self});
  give_up("a hook that is not followed");
  return {};
}

// What the tape gives to Python: gradients, and tensors that it saved, under whatever names.
Term Tracker::handed_on(PyObject* o) {
  if (!is_on()) return {};
  if (door().is_tensor(o)) {
    TensorImpl* impl = door().impl_of(o);
    if (knows_tensor(o) || thread_recorder().adopt(Tensor(Ref<TensorImpl>(impl))) ||
        known_as(impl) != impl)
      return Term::tensor();
    give_up("a hook is given a tensor of unknown origin");
    return {};
  }
  if (PyTuple_CheckExact(o)) {
    std::vector<Term> items;
    std::vector<PyObject*> objects;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) {
      objects.push_back(PyTuple_GET_ITEM(o, i));
      items.push_back(handed_on(objects.back()));
    }
    if (!is_on()) return {};
    const Term t = make(Made::Kind::kTuple, std::move(items), std::move(objects));
    own(t, o);
    return t;
  }
  const Term t = find(o);
  if (!t.is_known()) give_up("a hook is given something of unknown origin");
  return t;
}

Term Tracker::tape_step_term(CoreFunction function, PyObject* const* args,
                             const std::vector<Term>& terms, PyObject* result) {
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!terms[i].is_known()) give_up("a step of the tape is made of a value of unknown origin");
    // What is written or hooked is seen by others, after the call too.
    const bool is_changed = function == CoreFunction::kTapeWrite && i == 0;
    if (is_changed && door().is_tensor(args[i]) && roots_.count(door().impl_of(args[i])))
      give_up("the tape of a tensor from outside is changed");
  }
  if (!is_on()) return {};
  if (function == CoreFunction::kRandomState)
    puts_random_state_ |= result == Py_None;  // it is put back
  else
    made_tape_step();
  if (door().is_tensor(result)) return handed_on(result);
  if (result == Py_None || PyBool_Check(result)) return Term::same();
  const Term made = make(Made::Kind::kOpaque, {}, {});
  own(made, result);
  return made;
}

}  // namespace prong::capture
