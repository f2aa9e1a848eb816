// Python steps: calls of functions whose work others see (print, logging, files, clocks), which a
// plan makes again at their place between its programs. Noted by evaluate_steps.cpp, run by
// plan.cpp.
#pragma once

#include <optional>

#include "capture/plan.h"

namespace prong::capture {

// What the steps of a replay that was given up half way gave: other plans, and at last the
// evaluator, go on with that in place of taking them again.
struct StepLog {
  struct Entry {
    Kept callable, result;  // no result: it failed
    Kept error;
    size_t frames;  // of its traceback, that stand for the program's
  };
  std::vector<Entry> entries;
  size_t next = 0;
};
// While a call is evaluated after such a replay.
class StepLogScope {
 public:
  explicit StepLogScope(StepLog* log);
  ~StepLogScope();

 private:
  StepLog* saved_;
};

struct PythonStep {
  enum class Kind : uint8_t {
    kClock,   // cannot fail
    kDraw,    // of a random.Random, cannot fail either
    kNumber,  // of a random.Random
    kStream,  // write and flush of a file or a buffer
    kPrint,
    kLog,
    kWarn,
    kSleep,
  };
  Kind kind;
  Kept callable, kwnames;
  Kept stream;                 // of print(file=...)
  std::vector<Template> args;  // those by name last
  std::vector<Kept> frames;    // functions that stand for the program's frames, innermost first
  bool is_handled = false;     // errors are, somewhere in the frames
  int32_t order = 0;           // so many steps that can fail come before it

  bool can_fail() const { return kind != Kind::kClock && kind != Kind::kDraw; }
};

// The next of the entries, if the call is that of `callable`; null: the call is to be made.
const StepLog::Entry* logged_step(PyObject* callable);
bool has_logged_steps();
bool is_same_callable(PyObject* a, PyObject* b);
// A new reference, or null with the error set, without the frames that stand for the program's if
// those themselves are there.
PyObject* outcome_of(const StepLog::Entry& entry, bool has_frames);
// What print() was given as its file; null: sys.stdout is asked for. Borrowed.
PyObject* stream_of_print(PyObject* const* args, size_t count, PyObject* kwnames);
// None: it may run code of the program's, which could change what a plan goes by.
std::optional<PythonStep::Kind> step_kind(PyObject* callable, PyObject* const* args, size_t count,
                                          PyObject* kwnames);
// Does the call run no code of the program's now, either?
bool is_step_plain(const PythonStep& step);
// Classes whose code runs in such a call; guards ask that they stay as they are.
std::vector<PyTypeObject*> classes_of_step(PythonStep::Kind kind, PyObject* callable);
// A function that is called with a function, a tuple and a dict, and calls the first with what the
// others hold: in a frame that looks as if `code` were at `line`. Null with an error set.
PyObject* make_frame_function(PyCodeObject* code, int line, PyObject* globals);
// Calls what the step names, with the frames around it. A new reference, or null with an error set.
PyObject* take_step(const PythonStep& step, PyObject* const* args);

}  // namespace prong::capture
