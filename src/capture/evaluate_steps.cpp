// Calls whose work others see, while a call is recorded: they are made once, and noted as steps of
// the plan. See evaluator.h and python_steps.h.
#include <cstring>

#include "capture/evaluator.h"
#include "capture/outside.h"
#include "capture/python_names.h"
#include "capture/python_steps.h"
#include "capture/session.h"

namespace prong::capture {

namespace {

thread_local Evaluator* innermost_frame = nullptr;

}  // namespace

Evaluator* Evaluator::innermost() { return innermost_frame; }

Outside::Outside()
    : tracker_(current_tracker()), frame_(innermost_frame),
      stand_in_(context()[ContextWord::kKernels]) {
  set_current_tracker(nullptr);
  innermost_frame = nullptr;
  context()[ContextWord::kKernels] = 0;
}

Outside::~Outside() {
  context()[ContextWord::kKernels] = stand_in_;
  innermost_frame = frame_;
  set_current_tracker(tracker_);
  if (thread_recorder().tracker() != tracker_) thread_recorder().set_tracker(tracker_);
}

namespace {

// A value that a step may be given: what code of the standard library does with it runs no code of
// the program's.
bool is_step_argument(Tracker& t, Term term, PyObject* value, int depth = 0) {
  if (!value || depth > 8) return false;
  if (term.is_number()) return true;
  if (term.is_tensor()) return door().is_exact_tensor(value);
  if (term.is_same()) return is_plain_value(value);
  if (!term.is_made()) return false;
  const Made& m = t.made(term);
  if ((m.kind != Made::Kind::kTuple && m.kind != Made::Kind::kList &&
       m.kind != Made::Kind::kDict) ||
      m.has_names || m.type.get())
    return false;
  for (const Kept& key : m.keys)
    if (!is_plain_value(key.get())) return false;
  for (size_t i = 0; i < m.items.size(); ++i)
    if (!is_step_argument(t, m.items[i], m.objects[i], depth + 1)) return false;
  return true;
}

bool is_exception_class(Tracker& t, Term term, PyObject* value) {
  if (!term.is_same() || !PyType_Check(value)) return false;
  auto* type = reinterpret_cast<PyTypeObject*>(value);
  return PyType_HasFeature(type, Py_TPFLAGS_BASE_EXC_SUBCLASS) && t.is_builtin_exception(type);
}

bool is_known_keyword(PythonStep::Kind kind, std::string_view word) {
  switch (kind) {
  case PythonStep::Kind::kPrint:
    return is_one_of(word, {"sep", "end", "flush", "file"});
  case PythonStep::Kind::kLog:
    return word == "stacklevel";
  case PythonStep::Kind::kWarn:
    return is_one_of(word, {"message", "category", "stacklevel"});
  default:
    return true;  // of a random.Random's methods
  }
}

}  // namespace

Evaluator::InChain::InChain(Evaluator* frame) : outer_(innermost_frame) {
  frame->outer_ = outer_;
  innermost_frame = frame;
}
Evaluator::InChain::~InChain() { innermost_frame = outer_; }

// Python functions that are called as a whole, not followed.
bool Evaluator::is_whole_step(PyObject* callable) const {
  PyObject* function = PyMethod_Check(callable) ? PyMethod_GET_FUNCTION(callable) : callable;
  if (!PyFunction_Check(function)) return false;
  PyObject* module = reinterpret_cast<PyFunctionObject*>(function)->func_module;
  if (!module || !PyUnicode_Check(module)) return false;
  const std::string_view name = text_of(module);
  return name == "logging" || name == "random";
}

// Functions that stand for the frames of the call, the innermost first. `handles`: one of them
// handles errors.
bool Evaluator::describe_frames(std::vector<Kept>* frames, bool* handles) {
  const Outside outside;
  for (const Evaluator* e = this; e; e = e->outer_) {
    const int unit = prong_position(e->frame_);
    *handles |= e->code_.handler_at(unit) != nullptr;
    PyObject* function = make_frame_function(
        e->co_, PyCode_Addr2Line(e->co_, unit * static_cast<int>(sizeof(_Py_CODEUNIT))),
        prong_frame_globals(e->frame_));
    if (!function) {
      PyErr_Clear();
      return false;
    }
    frames->push_back(Kept::steal(function));
  }
  return true;
}

// Notes the step before it is taken; null: it is not followed, and the tracker has given up.
std::unique_ptr<PythonStep> Evaluator::describe_step(PyObject* callable, Term term,
                                                     PyObject* const* args,
                                                     const std::vector<Term>& terms,
                                                     PyObject* kwnames) {
  Tracker& t = *tracker();
  const size_t by_name = kwnames ? static_cast<size_t>(PyTuple_GET_SIZE(kwnames)) : 0;
  const size_t count = terms.size() - by_name;
  const bool is_fixed =
      term.is_same() || (term.is_made() && t.peek(term).kind == Made::Kind::kMethod &&
                         t.peek(term).items[1].is_same());
  std::optional<PythonStep::Kind> kind;
  std::vector<PyTypeObject*> classes;
  if (is_fixed) {
    const Outside outside;
    kind = step_kind(callable, args, count, kwnames);
    if (kind) classes = classes_of_step(*kind, callable);
  }
  if (!kind) return nullptr;
  auto step = std::make_unique<PythonStep>();
  step->kind = *kind;
  step->callable = Kept(callable);
  step->kwnames = Kept(kwnames);
  if (*kind == PythonStep::Kind::kPrint) step->stream = Kept(stream_of_print(args, count, kwnames));
  for (size_t i = 0; i < terms.size(); ++i) {
    const std::string_view word =
        i < count ? "" : text_of(PyTuple_GET_ITEM(kwnames, static_cast<Py_ssize_t>(i - count)));
    const bool is_stream = word == "file" && terms[i].is_same();
    const bool is_category =
        *kind == PythonStep::Kind::kWarn && is_exception_class(t, terms[i], args[i]);
    if (!(i < count || is_known_keyword(*kind, word)) ||
        !(is_stream || is_category || is_step_argument(t, terms[i], args[i])))
      return nullptr;
  }
  if (step->can_fail() && !describe_frames(&step->frames, &step->is_handled)) return nullptr;
  for (PyTypeObject* type : classes) t.read_type(type);
  return t.is_on() ? std::move(step) : nullptr;
}

// Of a call that is not followed, but was made by a replay that did not go on.
bool Evaluator::take_logged(PyObject* callable, PyObject** value) {
  const StepLog::Entry* entry = logged_step(callable);
  if (!entry) return false;
  lose("a call that others see was made by a replay");
  *value = outcome_of(*entry, true);
  return true;
}

// False: it is not of this kind, and nothing was done.
bool Evaluator::call_as_step(PyObject* callable, Term term, PyObject* const* args,
                             const std::vector<Term>& terms, PyObject* kwnames, PyObject** value,
                             Term* result) {
  Tracker* t = tracker();
  if (!t || body_) return false;
  std::unique_ptr<PythonStep> step = describe_step(callable, term, args, terms, kwnames);
  if (!step) return false;
  *value = nullptr;
  try {
    thread_recorder().settle(("calls " + name_of_callable(callable)).c_str());
  } catch (...) {
    door().set_error();
    return true;
  }
  const int32_t part = current_tracker() ? t->add_step(std::move(step), args, terms) : -1;
  const size_t by_name = kwnames ? static_cast<size_t>(PyTuple_GET_SIZE(kwnames)) : 0;
  if (const StepLog::Entry* entry = logged_step(callable)) {
    *value = outcome_of(*entry, true);
  } else {
    if (!current_tracker()) forget_objects();
    const Outside outside;
    *value = PyObject_Vectorcall(callable, args, terms.size() - by_name, kwnames);
  }
  if (*value) *result = t->step_result(part, *value);
  return true;
}

// ── the tracker's side ──

// After what was put off before it has run. Which part of the plan it is; -1: the tracker gave up.
int32_t Tracker::add_step(std::unique_ptr<PythonStep> step, PyObject* const* args,
                          std::span<const Term> terms) {
  for (size_t i = 0; i < terms.size() && is_on(); ++i) {
    step->args.emplace_back();
    if (!describe(args[i], terms[i], &step->args.back()))
      give_up("a call is given something that cannot be built again");
    if (terms[i].is_tensor()) has_tensor_steps_ = true;
  }
  if (step->can_fail()) {
    step->order = num_steps_++;
    if (plan_->has_writes) first_final_step_ = std::min(first_final_step_, step->order);
    // If it fails after something was written, the call cannot be evaluated once more.
    if (plan_->has_writes && step->is_handled)
      give_up("a call that others see is made after a write, where errors are handled");
    for (const Store& e : effects_)
      if (plan_->has_writes && e.term.is_made())
        give_up("something that may change yet was given away before a call that others see");
  }
  if (!is_on()) return -1;
  const auto index = static_cast<int32_t>(parts_.size());
  Part part;
  part.trace = std::make_shared<Trace>();
  part.step = std::move(step);
  parts_.push_back(std::move(part));
  return index;
}

Term Tracker::step_result(int32_t part, PyObject* value) {
  if (part < 0) return {};
  if (value == Py_None) return Term::same();
  if (!PyFloat_CheckExact(value) && !PyLong_CheckExact(value)) {
    give_up("a call that others see gives something else than a number");
    return {};
  }
  NumberStep step{NumberStep::Kind::kStep};
  step.index = part;
  step.after = part + 1;
  return number(std::move(step), value, true);
}

// ── replay ──

// Builds what the step is given, and takes it, if that has not been done yet.
bool Plan::take(const PythonStep& step, size_t index, PyObject* const* args,
                const std::vector<std::vector<IValue>>& results, Found& found, StepLog& log) const {
  found.step_results.resize(programs.size());
  if (log.next < log.entries.size()) {
    const StepLog::Entry& e = log.entries[log.next];
    if (!e.result.get() || !is_same_callable(e.callable.get(), step.callable.get())) return false;
    ++log.next;
    found.step_results[index] = Kept(e.result.get());
    return true;
  }
  std::vector<Kept> given;
  std::vector<PyObject*> pointers_to;
  for (const Template& t : step.args) {
    PyObject* value = build(t, args, results, found);
    if (!value) throw std::bad_alloc();
    given.push_back(Kept::steal(value));
    pointers_to.push_back(value);
  }
  PyObject* result = take_step(step, pointers_to.data());
  log.entries.push_back({Kept(step.callable.get()), Kept(result), Kept(), step.frames.size()});
  if (!result) {
    PyObject *kind, *error, *trace;
    PyErr_Fetch(&kind, &error, &trace);
    PyErr_NormalizeException(&kind, &error, &trace);
    if (trace) PyException_SetTraceback(error, trace);
    log.entries.back().error = Kept::steal(error);
    Py_XDECREF(kind);
    Py_XDECREF(trace);
  }
  log.next = log.entries.size();
  found.step_results[index] = Kept::steal(result);
  return result != nullptr;
}

}  // namespace prong::capture
