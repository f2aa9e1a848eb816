// Compiled functions: the Python type CompiledFunction, its reports, and pausing. See capture.h.
#include "bindings/capture.h"

#include <nanobind/stl/string.h>
#include <structmember.h>

#include <cstdarg>
#include <ctime>
#include <unordered_map>

#include "base/flags.h"
#include "base/log.h"
#include "bindings/capture_graph.h"
#include "bindings/constants.h"
#include "bindings/convert.h"
#include "bindings/errors.h"
#include "bindings/future.h"
#include "bindings/op_function.h"
#include "bindings/tensor_data.h"
#include "bindings/tensor_type.h"
#include "capture/breaks.h"
#include "capture/evaluator.h"
#include "capture/gil.h"
#include "capture/misfit.h"
#include "capture/plan_list.h"
#include "capture/python_steps.h"
#include "capture/session.h"
#include "capture/trace_graph.h"
#include "graph/graph.h"

namespace nb = nanobind;

namespace prong::python {

namespace {

using namespace capture;

PyTypeObject* compiled_type = nullptr;
PyObject* errors = nullptr;         // the module prong._compile_errors
std::string* own_folder = nullptr;  // frames of files in it are not the user's

struct Target final : CallTarget {
  std::string name, backend_name;
  // What explain() and the counters ask for; under the GIL.
  int64_t graphs = 0, breaks = 0, ops = 0, compiled = 0, replays = 0, plans = 0;
};

struct CompiledFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* dict;
  PyObject* weakrefs;
  PyObject* listener;  // called with ("break", reason, place, id, hint) and ("graph", description,
                       // is_new, compile_ns); or null
  PyObject* guard_listener;  // called with ("misfit", why no plan fits a call) and ("plan", ""); or
                             // null
  Target* target;            // owned
  PlanList* plans;           // owned
  int unplanned;
  bool has_told_limit;
  std::string why_evaluated;
};

CompiledFunction* as_compiled(PyObject* o) { return reinterpret_cast<CompiledFunction*>(o); }

CoreFunction core_function(PyObject* callable) {
  static const std::unordered_map<PyObject*, CoreFunction> functions = [] {
    std::unordered_map<PyObject*, CoreFunction> found;
    const nb::object core = nb::steal(checked(PyImport_ImportModule("prong._core")));
    for (const auto& [name, function] :
         {std::pair("_run_backward", CoreFunction::kRunBackward),
          std::pair("_clear_gradients", CoreFunction::kClearGradients),
          std::pair("_gradients_of", CoreFunction::kGradientsOf),
          std::pair("_gather_state", CoreFunction::kGatherState),
          std::pair("_set_grad_enabled", CoreFunction::kSetMode),
          std::pair("_set_modes", CoreFunction::kSetMode),
          std::pair("_get_modes", CoreFunction::kGetMode),
          std::pair("_enter_inference_mode", CoreFunction::kSetMode),
          std::pair("_get_autocast", CoreFunction::kGetAutocast),
          std::pair("_vmap_level", CoreFunction::kGetMode),
          std::pair("_make_function_node", CoreFunction::kTapeStep),
          std::pair("_add_result", CoreFunction::kTapeStep),
          std::pair("_check_inplace", CoreFunction::kTapeStep),
          std::pair("_is_freed", CoreFunction::kTapeStep),
          std::pair("_save_for_backward", CoreFunction::kTapeStep),
          std::pair("_saved_for_backward", CoreFunction::kTapeStep),
          std::pair("_push_saving_hooks", CoreFunction::kTapeStep),
          std::pair("_pop_saving_hooks", CoreFunction::kTapeStep),
          std::pair("_pass_now", CoreFunction::kTapeStep),
          std::pair("_is_pass_now", CoreFunction::kTapeStep),
          std::pair("_weakly", CoreFunction::kTapeStep),
          std::pair("_set_history", CoreFunction::kTapeWrite),
          std::pair("_rebase_history", CoreFunction::kTapeWrite),
          std::pair("_bump_version", CoreFunction::kTapeWrite),
          std::pair("_add_tensor_hook", CoreFunction::kTapeWrite),
          std::pair("_retain_grad", CoreFunction::kTapeWrite),
          std::pair("_keep_random_state", CoreFunction::kRandomState),
          std::pair("_put_random_state", CoreFunction::kRandomState),
          std::pair("_promote", CoreFunction::kRuleOfTypes),
          std::pair("_can_cast", CoreFunction::kRuleOfTypes),
          std::pair("_set_autocast", CoreFunction::kSetAutocast),
          std::pair("_profile_is_on", CoreFunction::kProfileIsOn),
          std::pair("tensor", CoreFunction::kMakeTensor),
          std::pair("as_tensor", CoreFunction::kMakeTensor),
          std::pair("is_grad_enabled", CoreFunction::kGetMode),
          std::pair("is_inference_mode_enabled", CoreFunction::kGetMode)})
      found.emplace(checked(PyObject_GetAttrString(core.ptr(), name)), function);
    return found;
  }();
  const auto it = functions.find(callable);
  return it == functions.end() ? CoreFunction::kOther : it->second;
}

thread_local const Place* place_of_call = nullptr;  // see PlaceScope

Place user_place() {
  Place p;
  int line = 0;
  if (!holds_gil()) return place_of_call ? *place_of_call : p;
  if (PyCodeObject* code = prong_user_frame(own_folder ? own_folder->c_str() : "", &line)) {
    p.file = PyUnicode_AsUTF8(code->co_filename);
    p.function = PyUnicode_AsUTF8(code->co_qualname);
    p.line = line;
  }
  return p;
}

// Sets an error of prong._dynamo.exc.
[[noreturn]] void throw_compile_error(const char* name, const std::string& text) {
  WithGil gil;
  const Owned type(checked(PyObject_GetAttrString(errors, name)));
  PyErr_SetString(type.get(), text.c_str());
  throw PythonError();
}

// Process-wide settings of compiled calls, under the GIL; see _dynamo/config.py, compiler/.
enum class Stance : int { kDefault, kForceEager, kEagerOnRecompile, kFailOnRecompile };
Stance stance = Stance::kDefault;
bool is_off = false, is_recompile_an_error = false, is_limit_an_error = false;
size_t max_plans = 8;  // more kinds of calls than this are evaluated each time

std::string plural(size_t n, const char* noun) { return cat(n, " ", noun, n == 1 ? "" : "s"); }

std::string milliseconds(int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g ms", static_cast<double>(ns) / 1e6);
  return text;
}

std::string time_of_day() {
  timespec now;
  std::timespec_get(&now, TIME_UTC);
  tm local;
  localtime_r(&now.tv_sec, &local);
  char text[40];
  std::snprintf(text, sizeof text, "%02d:%02d:%02d.%03d", local.tm_hour, local.tm_min, local.tm_sec,
                static_cast<int>(now.tv_nsec / 1'000'000));
  return text;
}

std::string break_text(const std::string& reason, const Place& place) {
  const BreakKind* kind = break_kind(reason);
  std::string text = cat(place.file, ":", place.line, ": ", reason);
  if (!place.function.empty()) text = cat(text, ", in ", place.function);
  return kind ? cat(text, " [", kind->id, "]\n  hint: ", kind->hint) : text;
}

// "model.py:10-14": the lines that gave the trace its ops.
std::string lines_of(const Trace& trace) {
  const Place* first = nullptr;
  int low = 0, high = 0;
  for (const Place& p : trace.places) {
    if (p.file.empty() || (first && p.file != first->file)) continue;
    low = first ? std::min(low, p.line) : p.line;
    high = std::max(high, p.line);
    if (!first) first = &p;
  }
  if (!first) return "lines unknown";
  return low == high ? cat(first->file, ":", low) : cat(first->file, ":", low, "-", high);
}

[[noreturn]] void fail_recompile(const std::string& name, const std::string& why) {
  throw_compile_error("RecompileError", cat("Detected recompile of ", name, " when ",
                                            stance == Stance::kFailOnRecompile
                                                ? "torch.compile stance is 'fail_on_recompile'"
                                                : "torch._dynamo.config.error_on_recompile is True",
                                            ": ", why));
}

// Calls one of our own Python functions: the frames that it runs are none of the program's.
Owned tell(PyObject* listener, const char* format, ...) {
  struct Aside {
    uint64_t saved = std::exchange(context()[ContextWord::kKernels], 0);
    ~Aside() { context()[ContextWord::kKernels] = saved; }
  } aside;
  va_list values;
  va_start(values, format);
  const Owned args(Py_VaBuildValue(format, values));
  va_end(values);
  checked(args.get());
  return Owned(checked(PyObject_CallObject(listener, args.get())));
}

class Observer final : public SegmentObserver {
 public:
  Observer(Target& target, PyObject* listener) : target_(target), listener_(listener) {}

  void before_compile(const char* why) override {
    if (stance != Stance::kFailOnRecompile && !(is_recompile_an_error && target_.compiled)) return;
    fail_recompile(target_.name, cat("a graph has to be compiled, since ", why));
  }

  void on_break(const std::string& reason, bool has_work) override {
    if (target_.is_whole && only_reads(reason)) {
      has_read_ = has_read_ || has_work || had_work_;
      return;
    }
    if (target_.is_whole && (has_work || stands_for_itself(reason))) refuse(reason, user_place());
    if (!has_work && !had_work_) return;  // nothing was interrupted
    const Place place = user_place();
    pending_ = {reason, place};
    is_pending_ = true;
  }

  void on_branch(bool has_work) override {
    if (target_.is_whole && (has_work || has_read_)) refuse(kValueIsNeeded, user_place());
  }

  void on_run(const std::shared_ptr<const Trace>& trace,
              const ProgramCache::Found& program) override {
    had_work_ = true;
    const bool is_new = program.is_new;
    target_.graphs += 1;
    target_.ops += static_cast<int64_t>(trace->nodes.size());
    target_.compiled += is_new;
    if (is_new) {
      PRONG_LOG(kCapture, target_.name, ": graph ", target_.compiled, ", ",
                plural(trace->nodes.size(), "op"), ", ", plural(trace->inputs.size(), "input"),
                ", ", plural(trace->outputs.size(), "output"), ", from ", lines_of(*trace),
                "; compiled by ", target_.backend_name, " at ", time_of_day(), " in ",
                milliseconds(program.compile_ns), "\n",
                to_graph(*trace, program.number_inputs)->str());
      if (target_.compiled > 1)
        PRONG_LOG(kRecompiles, target_.name, ": graph ", target_.compiled, " was compiled, since ",
                  program.why_new);
    }
    if (!listener_) return;
    WithGil gil;
    Owned description(describe_trace(*trace, NumberInputs(trace->numbers.size(), false)));
    tell(listener_, "(sOiL)", "graph", description.get(), int{is_new},
         static_cast<long long>(program.compile_ns));
  }

  void on_first_run(int64_t ns) override {
    PRONG_LOG(kCapture, target_.name, ": graph ", target_.compiled, " ran for the first time, in ",
              milliseconds(ns));
  }

  Place place() override {
    if (is_pending_) confirm();
    return user_place();
  }

 private:
  struct Break {
    std::string reason;
    Place place;
  };

  // Whoever wrote this into a function that is to be one graph is told, wherever it stands: it must
  // not depend on an op before it.
  static bool stands_for_itself(std::string_view reason) {
    return reason == "calls print" || reason.starts_with("a disabled function is called") ||
           reason.starts_with("graph_break() is called");
  }

  // PyTorch has these in its graphs, too: the call's way does not depend on what is read.
  static bool only_reads(std::string_view reason) {
    return reason.starts_with(kValueIsNeeded) || reason.starts_with(kShapeIsData) ||
           reason.starts_with(kMemoryIsUsed);
  }

  // Tensor work follows: it was a break, and not the end.
  void confirm() {
    is_pending_ = false;
    if (!had_work_) return;
    if (target_.is_whole) refuse(pending_.reason, pending_.place);
    target_.breaks += 1;
    PRONG_LOG(kCapture, target_.name, ": break ", target_.breaks, " at ",
              break_text(pending_.reason, pending_.place));
    if (!listener_) return;
    WithGil gil;
    const BreakKind* kind = break_kind(pending_.reason);
    tell(listener_, "(ss(sis)ss)", "break", pending_.reason.c_str(), pending_.place.file.c_str(),
         pending_.place.line, pending_.place.function.c_str(), kind ? kind->id : "",
         kind ? kind->hint : "");
  }

  [[noreturn]] void refuse(const std::string& reason, const Place& place) {
    throw_compile_error("Unsupported", cat("fullgraph=True, but the graph of ", target_.name,
                                           " breaks at ", break_text(reason, place)));
  }

  Target& target_;
  PyObject* listener_;
  Break pending_;
  bool is_pending_ = false, had_work_ = false;
  bool has_read_ = false;  // of a whole graph: data, after tensor work
};

// Why none of the plans fits this call: a line for each.
std::string misfits(CompiledFunction* f, PyObject* const* args, size_t count, PyObject* kwnames) {
  std::string text;
  const PlanList::Use use(*f->plans);
  for (size_t i = 0; i < f->plans->size(); ++i) {
    Plan& plan = *(*f->plans)[i];
    if (plan.is_dead) continue;
    const std::vector<Kept> held = plan.hold_objects();  // what is asked may be code of a program's
    const auto misfit = PlanReader(plan, f->function).first_misfit(args, count, kwnames);
    if (!text.empty()) text += '\n';
    text += cat("plan ", plan.number, ": ",
                misfit ? to_text(*misfit) : "it fits, but an op failed when it ran");
  }
  return text;
}

void log_plan(CompiledFunction* f, Plan& plan) {
  std::string text = cat(f->target->name, ": plan ", plan.number, " holds while");
  for (const GuardText& g : PlanReader(plan, f->function).guards())
    text = cat(text, "\n  ", to_text(g));
  write_log(LogTopic::kGuards, text);
}

// As PyTorch does: through the logging module, once for each function.
void tell_limit(CompiledFunction* f, const std::string& why) {
  const std::string text =
      cat(f->target->name, " has ", plural(f->plans->size() + f->plans->num_useless(), "plan"),
          ", as many as torch._dynamo.config.recompile_limit allows. Calls that fit none of them "
          "are evaluated each time, which is right but slower. Why the last one fits none:\n",
          why);
  if (is_limit_an_error) throw_compile_error("FailOnRecompileLimitHit", text);
  f->has_told_limit = true;
  Owned logging(checked(PyImport_ImportModule("logging")));
  Owned logger(checked(PyObject_CallMethod(logging.get(), "getLogger", "s", "prong")));
  Owned done(checked(PyObject_CallMethod(logger.get(), "warning", "ss", "%s", text.c_str())));
}

constexpr int kMaxUnplanned = 4;  // so many calls in a row gave no plan: no more attempts

// Evaluates the call and records it; leaves a plan where all of it was followed. `proven`: a plan
// that fits and has not been run with `new_sizes`; it is given them in place of a second plan.
PyObject* evaluate(PyObject* self, PyObject* const* args, size_t count, PyObject* kwnames,
                   StepLog& log, Plan* proven = nullptr, std::vector<int64_t> new_sizes = {}) {
  CompiledFunction* f = as_compiled(self);
  const Ref<Target> target(f->target);  // the function may be dropped by what it calls
  const Owned itself = Owned::borrow(self);
  Owned function = Owned::borrow(f->function), listener = Owned::borrow(f->listener);
  Observer observer(*target, listener.get());
  const Context context_before = context();
  std::optional<Tracker> tracker;
  std::vector<Term> terms;
  static const bool skips_plans = env_has("PRONG_SKIP", "plans");
  const bool may_plan = !skips_plans && !is_recording() && f->unplanned < kMaxUnplanned;
  const bool is_planned =
      may_plan && (proven || f->plans->size() + f->plans->num_useless() < max_plans);
  const bool is_asked = f->listener || f->guard_listener || is_logged(LogTopic::kGuards) ||
                        is_logged(LogTopic::kRecompiles) || stance != Stance::kDefault ||
                        is_recompile_an_error;
  std::string why_new;  // why no plan fits
  if (may_plan && !proven && !f->plans->empty() &&
      (is_asked || (!is_planned && !f->has_told_limit)))
    why_new = misfits(f, args, count, kwnames);
  if (!why_new.empty()) {
    PRONG_LOG(kGuards, target->name, ": no plan fits a call\n", why_new);
    if (f->guard_listener) {
      const Owned callback = Owned::borrow(f->guard_listener);
      Owned done(checked(PyObject_CallFunction(callback.get(), "ss", "misfit", why_new.c_str())));
    }
    if (stance == Stance::kFailOnRecompile || is_recompile_an_error)
      fail_recompile(target->name, cat("no plan fits the call\n", why_new));
    if (!is_planned && !f->has_told_limit) tell_limit(f, why_new);
  }
  std::optional<StepLogScope> log_scope;
  if (!is_recording()) log_scope.emplace(&log);  // else the outer call's is the one
  const HookScope hook;
  CallScope scope(*target, &observer);
  struct TrackerScope {
    ~TrackerScope() {
      set_current_tracker(nullptr);
      thread_recorder().set_tracker(nullptr);
      set_pending_call({});
    }
  };
  std::optional<TrackerScope> tracker_scope;
  if (is_planned) {
    tracker.emplace(count, kwnames, is_asked, target->is_static, &target->numbers);
    tracker_scope.emplace();
    set_current_tracker(&*tracker);
    thread_recorder().set_tracker(&*tracker);
    set_root_call(*tracker, function.get(), args, count, kwnames, terms);
  } else if (scope.is_outermost()) {
    set_pending_call({});
  }
  Owned result(PyObject_Vectorcall(function.get(), args, count, kwnames));
  if (!result) throw PythonError();  // told to the caller, whatever the rest of the work says
  if (tracker && tracker->is_on()) tracker->finish(result.get(), returned_term, context_before);
  scope.finish();
  if (tracker) {
    std::unique_ptr<Plan> plan = tracker->take_plan(context_before);
    if (plan && proven) {
      proven->accept_as(*plan, std::move(new_sizes));
    } else if (plan) {
      plan->number = ++target->plans;
      if (is_logged(LogTopic::kGuards)) log_plan(f, *plan);
      f->plans->add(std::move(plan));
      f->unplanned = 0;
      if (f->guard_listener) {
        const Owned callback = Owned::borrow(f->guard_listener);
        Owned done(checked(PyObject_CallFunction(callback.get(), "ss", "plan", "")));
      }
      if (!why_new.empty())
        PRONG_LOG(kRecompiles, target->name, ": plan ", target->plans,
                  " was recorded, since no other fits\n", why_new);
    } else {
      if (!proven && !tracker->has_learned()) f->unplanned += 1;
      PRONG_LOG(kCapture, target->name, ": no plan, so calls are evaluated: ", tracker->reason(),
                tracker->reason_place());
    }
    f->why_evaluated = tracker->reason();
  }
  return result.release();
}

PyObject* call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  CompiledFunction* f = as_compiled(self);
  const auto count = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
  return guarded([&]() -> PyObject* {
    StepLog log;
    // A debugger or a coverage tool is told of each line, so each line runs.
    const bool is_traced = PyThreadState_GET()->c_tracefunc != nullptr;
    if ((stance == Stance::kForceEager || is_off || is_traced) && !is_recording())
      return checked(PyObject_Vectorcall(f->function, args, nargsf, kwnames));
    if (!is_recording() && !f->listener) {
      auto& plans = *f->plans;
      const PlanList::Use use(plans);
      for (size_t i = 0; i < plans.size(); ++i) {
        if (!plans[i]->fits(args, count, kwnames)) continue;
        if (i) plans.move_up(i);
        const std::shared_ptr<Plan> plan = plans[i ? i - 1 : 0];
        std::vector<int64_t> new_sizes;
        if (const std::optional<PyObject*> result = plan->run(args, &new_sizes, log)) {
          f->target->replays += 1;
          return *result;
        }
        if (!new_sizes.empty()) {
          return evaluate(self, args, count, kwnames, log, plan.get(), std::move(new_sizes));
        }
      }
      if (stance == Stance::kEagerOnRecompile && log.entries.empty())
        return checked(PyObject_Vectorcall(f->function, args, nargsf, kwnames));
    }
    return evaluate(self, args, count, kwnames, log);
  });
}

PyObject* bind(PyObject* self, PyObject* object, PyObject*) {
  if (!object || object == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, object);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_compiled(self)->function);
  Py_VISIT(as_compiled(self)->dict);
  Py_VISIT(as_compiled(self)->listener);
  Py_VISIT(as_compiled(self)->guard_listener);
  if (as_compiled(self)->plans)
    for (const auto& plan : *as_compiled(self)->plans)
      if (const int stop = plan->traverse(visit, arg)) return stop;
  return 0;
}
int clear(PyObject* self) {
  Py_CLEAR(as_compiled(self)->function);
  Py_CLEAR(as_compiled(self)->dict);
  Py_CLEAR(as_compiled(self)->listener);
  Py_CLEAR(as_compiled(self)->guard_listener);
  if (as_compiled(self)->plans) as_compiled(self)->plans->clear();
  return 0;
}
void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (as_compiled(self)->weakrefs) PyObject_ClearWeakRefs(self);
  clear(self);
  if (as_compiled(self)->target) as_compiled(self)->target->release();
  delete as_compiled(self)->plans;
  as_compiled(self)->why_evaluated.~basic_string();
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* repr(PyObject* self) {
  return PyUnicode_FromFormat("<compiled %R>", as_compiled(self)->function);
}

// What the instance's dict lacks is the function's: __name__ is set there, __code__ and
// __defaults__ are not.
PyObject* get_attribute(PyObject* self, PyObject* name) {
  PyObject* own = PyObject_GenericGetAttr(self, name);
  if (own || !PyErr_ExceptionMatches(PyExc_AttributeError)) return own;
  PyErr_Clear();
  return PyObject_GetAttr(as_compiled(self)->function, name);
}

PyObject* counters(PyObject* self, PyObject*) {
  const Target& t = *as_compiled(self)->target;
  return Py_BuildValue("{sLsLsLsLsLsnsnss}", "graphs", (long long)t.graphs, "breaks",
                       (long long)t.breaks, "ops", (long long)t.ops, "compiled",
                       (long long)t.compiled, "replays", (long long)t.replays, "programs",
                       (Py_ssize_t)t.cache->size(), "plans",
                       (Py_ssize_t)as_compiled(self)->plans->size(), "why_evaluated",
                       as_compiled(self)->why_evaluated.c_str());
}
// For each plan a list of (what, value, (file, line, function)).
PyObject* guards(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Owned all(checked(PyList_New(0)));
    const PlanList::Use use(*as_compiled(self)->plans);
    for (const auto& plan : *as_compiled(self)->plans) {
      if (plan->is_dead) continue;
      const std::vector<Kept> held = plan->hold_objects();
      Owned one(checked(PyList_New(0)));
      for (const GuardText& g : PlanReader(*plan, as_compiled(self)->function).guards()) {
        Owned row(
            checked(Py_BuildValue("(ss(sis))", g.what.c_str(), g.was.c_str(), g.place.file.c_str(),
                                  g.place.line, g.place.function.c_str())));
        checked(PyList_Append(one.get(), row.get()));
      }
      checked(PyList_Append(all.get(), one.get()));
    }
    return all.release();
  });
}
PyObject* forget(PyObject* self, PyObject*) {
  as_compiled(self)->target->cache->clear();
  as_compiled(self)->target->numbers.clear();
  as_compiled(self)->plans->clear();
  as_compiled(self)->unplanned = 0;
  as_compiled(self)->has_told_limit = false;
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"_counters", counters, METH_NOARGS, "Graphs run, breaks, ops and graphs compiled so far."},
    {"_guards", guards, METH_NOARGS, "What the plans ask of a call: (what, value, place)."},
    {"_forget", forget, METH_NOARGS, "Drops what was compiled."},
    {nullptr, nullptr, 0, nullptr}};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CompiledFunction, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(CompiledFunction, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CompiledFunction, weakrefs), READONLY, nullptr},
    {"__wrapped__", T_OBJECT, offsetof(CompiledFunction, function), READONLY, nullptr},
    {"_listener", T_OBJECT, offsetof(CompiledFunction, listener), 0, nullptr},
    {"_guard_listener", T_OBJECT, offsetof(CompiledFunction, guard_listener), 0, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {Py_tp_repr, reinterpret_cast<void*>(repr)},
                       {Py_tp_descr_get, reinterpret_cast<void*>(bind)},
                       {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {Py_tp_getset, getset},
                       {0, nullptr}};
PyType_Spec spec = {"prong.CompiledFunction", sizeof(CompiledFunction), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                        Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

// backend: "interpreter", "llvm", or the callable of python_backend.
nb::object compile(nb::handle function, nb::handle backend, nb::handle identity, bool is_whole,
                   bool is_checked, bool is_static, const std::string& name,
                   const std::string& backend_name) {
  auto target = make_ref<Target>();
  Ref<Backend> maker;
  if (nb::isinstance<nb::str>(backend)) {
    const std::string word = nb::cast<std::string>(backend);
    PRONG_CHECK(word == "interpreter" || word == "llvm", kValue, "no back end named '", word, "'");
    maker = word == "llvm" ? native_backend() : interpreter_backend();
  } else {
    maker = python_backend(backend.ptr());
  }
  if (is_checked)
    maker = checked_backend(std::move(maker), [](const std::string& text) {
      throw_compile_error("CompiledDiffers", text);
    });
  target->cache = make_ref<ProgramCache>(std::move(maker));
  target->backend = identity.ptr();
  target->is_whole = is_whole;
  target->is_static = is_static;
  target->name = name;
  target->backend_name = backend_name;
  PyObject* self = checked(compiled_type->tp_alloc(compiled_type, 0));
  as_compiled(self)->vectorcall = call;
  as_compiled(self)->function = Py_NewRef(function.ptr());
  target->retain();
  as_compiled(self)->target = target.get();
  as_compiled(self)->plans = new PlanList(&target->replays);
  new (&as_compiled(self)->why_evaluated) std::string;
  return nb::steal(self);
}

}  // namespace

struct PlaceScope::Held {
  Place place;
  const Place* before;
};

PlaceScope::PlaceScope() {
  if (is_recording()) held_ = new Held{user_place(), place_of_call};
  if (held_) place_of_call = &held_->place;
}

PlaceScope::~PlaceScope() {
  if (held_) place_of_call = held_->before;
  delete held_;
}

void bind_capture(nb::module_& m) {
  PythonDoor& d = door();
  d.is_tensor = [](PyObject* o) { return is_tensor(o); };
  d.tensor_type = tensor_type;
  d.is_exact_tensor = [](PyObject* o) { return Py_TYPE(o) == tensor_type; };
  d.impl_of = [](PyObject* o) { return impl_of(o); };
  d.number_at = [](const Tensor& t, int64_t index) -> PyObject* {
    const int64_t n = t.numel();
    if (index < 0 ? n != 1 : index >= n) return nullptr;
    if (index < 0) return to_number(t);
    return to_number(t.as_strided({}, {}, t.offset() + index * t.strides()[0]));
  };
  d.size_type = size_type_object();
  d.wrap = [](Tensor t) { return wrap(std::move(t)); };
  d.core_function = &core_function;
  d.is_op = [](PyObject* o) { return group_of(o) != nullptr; };
  d.fork = checked(PyObject_GetAttrString(m.ptr(), "fork"));
  d.full = []() -> PyObject* {
    static PyObject* const full = [] {
      const nb::object package = nb::steal(checked(PyImport_ImportModule("prong")));
      return checked(PyObject_GetAttrString(package.ptr(), "full"));
    }();
    return full;
  };
  d.index_tensor = [](PyObject* item) -> PyObject* {
    return guarded([&] { return wrap(index_tensor(item)); });
  };
  d.make_future = &future_of_object;
  d.user_place = &user_place;
  d.set_error = &set_error_from_current_exception;
  compiled_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  checked(PyModule_AddType(m.ptr(), compiled_type));
  m.def("capture_compile", &compile, nb::arg("function"), nb::arg("backend"), nb::arg("identity"),
        nb::arg("is_whole"), nb::arg("is_checked"), nb::arg("is_static"), nb::arg("name"),
        nb::arg("backend_name"));
  m.def("capture_set_up", [](const std::string& folder, nb::handle compile_errors) {
    own_folder = new std::string(folder);
    errors = Py_NewRef(compile_errors.ptr());
  });
  m.def("capture_is_recording", &is_recording);
  m.def("capture_set_stance", [](int which) {
    return static_cast<int>(std::exchange(stance, static_cast<Stance>(which)));
  });
  m.def("capture_set_recompile_is_error", [](bool on) { is_recompile_an_error = on; });
  m.def("capture_set_off", [](bool off) { is_off = off; });
  m.def("capture_set_limit_is_error", [](bool on) { is_limit_an_error = on; });
  m.def("capture_set_plan_limit", [](size_t limit) { max_plans = limit; });
  m.def("capture_settle", [](const std::string& reason) {
    if (is_recording()) thread_recorder().settle(reason.c_str());
  });
  m.def("capture_call_plainly",
        [](const std::string& reason, nb::handle function, nb::args args, nb::kwargs kwargs) {
          const Pause pause(reason.c_str());
          return nb::steal(checked(PyObject_Call(function.ptr(), args.ptr(), kwargs.ptr())));
        });
}

}  // namespace prong::python
