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
  _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), evaluator ? evaluator : _PyEval_EvalFrameDefault);
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
  if ((frame->f_code->co_flags & (plain | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE)) != plain)
    return 0;
  if (thread->cframe->use_tracing || thread->tracing) return 0;
  return frame->owner == FRAME_OWNED_BY_GENERATOR && _PyInterpreterFrame_LASTI(frame) >= 0;
}

PyObject* prong_frame_generator(ProngFrame* frame) { return (PyObject*)_PyFrame_GetGenerator(frame); }
ProngFrame* prong_generator_frame(PyObject* generator) {
  PyGenObject* g = (PyGenObject*)generator;
  return g->gi_frame_state >= FRAME_COMPLETED ? NULL : (ProngFrame*)g->gi_iframe;
}
void prong_suspend_generator(ProngFrame* frame) { _PyFrame_GetGenerator(frame)->gi_frame_state = FRAME_SUSPENDED; }
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
void prong_set_position(ProngFrame* frame, int unit) { frame->prev_instr = _PyCode_CODE(frame->f_code) + unit; }
void prong_set_stack_top(ProngFrame* frame, int top) { frame->stacktop = top; }

int prong_is_traced(PyThreadState* thread) { return thread->cframe->use_tracing; }

int prong_must_break(PyThreadState* thread) {
  return _Py_atomic_load_relaxed(&thread->interp->ceval.eval_breaker) != 0 || thread->cframe->use_tracing;
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
