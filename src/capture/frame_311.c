/* CPython 3.11's frames; see frame_311.h. */
#define Py_BUILD_CORE 1
#include "capture/frame_311.h"

#if PY_VERSION_HEX < 0x030b0000 || PY_VERSION_HEX >= 0x030c0000
#error "src/capture/frame_311.c is for CPython 3.11"
#endif

#include <internal/pycore_ceval.h>
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_opcode.h>
#include <internal/pycore_pystate.h>
#include <string.h>

void prong_set_evaluator(ProngEvaluator evaluator) {
  _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(),
                                       evaluator ? evaluator : _PyEval_EvalFrameDefault);
}

PyObject* prong_interpret(PyThreadState* thread, ProngFrame* frame, int throwflag) {
  return _PyEval_EvalFrameDefault(thread, frame, throwflag);
}

int prong_is_evaluable(PyThreadState* thread, ProngFrame* frame) {
  const PyCodeObject* code = frame->f_code;
  const int plain = CO_OPTIMIZED | CO_NEWLOCALS;
  if ((code->co_flags & plain) != plain || frame->f_locals) return 0;
  if (code->co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE)) return 0;
  if (thread->cframe->use_tracing || thread->tracing) return 0;
  return _PyInterpreterFrame_LASTI(frame) == -1;
}

int prong_is_resumed_generator(PyThreadState* thread, ProngFrame* frame) {
  const int plain = CO_OPTIMIZED | CO_NEWLOCALS | CO_GENERATOR;
  if ((frame->f_code->co_flags &
       (plain | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE)) != plain)
    return 0;
  if (thread->cframe->use_tracing || thread->tracing) return 0;
  return frame->owner == FRAME_OWNED_BY_GENERATOR && _PyInterpreterFrame_LASTI(frame) >= 0;
}

int prong_is_traced(void) { return PyThreadState_Get()->cframe->use_tracing; }
int prong_is_collecting(PyThreadState* thread) { return thread->interp->gc.collecting; }

PyObject* prong_frame_generator(ProngFrame* frame) {
  return (PyObject*)_PyFrame_GetGenerator(frame);
}
ProngFrame* prong_generator_frame(PyObject* generator) {
  PyGenObject* g = (PyGenObject*)generator;
  return g->gi_frame_state >= FRAME_COMPLETED ? NULL : (ProngFrame*)g->gi_iframe;
}
void prong_suspend_generator(ProngFrame* frame) {
  _PyFrame_GetGenerator(frame)->gi_frame_state = FRAME_SUSPENDED;
}
int prong_position(ProngFrame* frame) { return _PyInterpreterFrame_LASTI(frame); }
int prong_stack_top(ProngFrame* frame) { return frame->stacktop; }

typedef struct {
  _PyCFrame cframe;
} Entry;
_Static_assert(sizeof(Entry) <= sizeof(ProngEntry), "ProngEntry is too small");

int prong_enter_frame(PyThreadState* thread, ProngFrame* frame, ProngEntry* entry) {
  _PyCFrame* c = &((Entry*)entry)->cframe;
  _PyCFrame* previous = thread->cframe;
  c->use_tracing = previous->use_tracing;
  c->previous = previous;
  thread->cframe = c;
  frame->is_entry = true;
  frame->previous = previous->current_frame;
  c->current_frame = frame;
  if (_Py_EnterRecursiveCallTstate(thread, "")) {
    thread->recursion_remaining--; /* leave gives back what a failed entry did not take */
    prong_leave_frame(thread, entry);
    return -1;
  }
  return 0;
}

void prong_leave_frame(PyThreadState* thread, ProngEntry* entry) {
  _PyCFrame* c = &((Entry*)entry)->cframe;
  _Py_LeaveRecursiveCallTstate(thread);
  thread->cframe = c->previous;
  thread->cframe->use_tracing = c->use_tracing;
}

PyCodeObject* prong_frame_code(ProngFrame* frame) { return frame->f_code; }
PyFunctionObject* prong_frame_function(ProngFrame* frame) { return frame->f_func; }
PyObject* prong_frame_globals(ProngFrame* frame) { return frame->f_globals; }
PyObject* prong_frame_builtins(ProngFrame* frame) { return frame->f_builtins; }
PyObject** prong_frame_slots(ProngFrame* frame) { return frame->localsplus; }
void prong_set_position(ProngFrame* frame, int unit) {
  frame->prev_instr = _PyCode_CODE(frame->f_code) + unit;
}
void prong_set_stack_top(ProngFrame* frame, int top) { frame->stacktop = top; }

/* What a tracer or profiler is told, with the error that is set put aside; what it raises replaces
 * it. */
static void tell(PyThreadState* thread, Py_tracefunc told, PyObject* with, int what) {
  if (!told || thread->tracing) return;
  PyObject *kind, *error, *trace, *about = NULL;
  PyErr_Fetch(&kind, &error, &trace);
  if (what == PyTrace_EXCEPTION) {
    PyErr_NormalizeException(&kind, &error, &trace);
    about = PyTuple_Pack(3, kind, error, trace ? trace : Py_None);
  }
  PyFrameObject* frame = PyThreadState_GetFrame(thread);
  const int before = thread->tracing_what;
  thread->tracing_what = what;
  PyThreadState_EnterTracing(thread);
  const int failed = (what == PyTrace_EXCEPTION && !about) || told(with, frame, what, about);
  PyThreadState_LeaveTracing(thread);
  thread->tracing_what = before;
  Py_XDECREF(frame);
  Py_XDECREF(about);
  if (!failed) {
    PyErr_Restore(kind, error, trace);
    return;
  }
  Py_XDECREF(kind);
  Py_XDECREF(error);
  Py_XDECREF(trace);
}

void prong_tell_error(PyThreadState* thread) {
  tell(thread, thread->c_tracefunc, thread->c_traceobj, PyTrace_EXCEPTION);
}
void prong_tell_exit(PyThreadState* thread) {
  tell(thread, thread->c_tracefunc, thread->c_traceobj, PyTrace_RETURN);
  tell(thread, thread->c_profilefunc, thread->c_profileobj, PyTrace_RETURN);
}

int prong_breathe(PyThreadState* thread) {
  if (!_Py_atomic_load_relaxed(&thread->interp->ceval.eval_breaker)) return 0;
  PyEval_RestoreThread(PyEval_SaveThread()); /* another thread may wait for the GIL */
  if (Py_MakePendingCalls() < 0) return -1;  /* signal handlers too */
  return _Py_atomic_load_relaxed(&thread->interp->ceval.eval_breaker) != 0;
}

PyCodeObject* prong_user_frame(const char* own_folder, int* line) {
  const size_t n = strlen(own_folder);
  struct _PyInterpreterFrame* f = PyThreadState_Get()->cframe->current_frame;
  for (; f; f = f->previous) {
    const char* file = PyUnicode_AsUTF8(f->f_code->co_filename);
    if (!file) {
      PyErr_Clear();
      continue;
    }
    if (n && strncmp(file, own_folder, n) == 0) continue;
    *line = PyCode_Addr2Line(f->f_code, _PyInterpreterFrame_LASTI(f) * (int)sizeof(_Py_CODEUNIT));
    return f->f_code;
  }
  return NULL;
}
