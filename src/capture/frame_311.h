/* The one door to CPython 3.11's frames: C, because the internal headers do not compile as C++.
   Called by the evaluator and by bindings/. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct _PyInterpreterFrame ProngFrame;
typedef PyObject* (*ProngEvaluator)(PyThreadState*, ProngFrame*, int throwflag);

/* Frames of all Python functions go to `evaluator` from now on; null: to the interpreter again. */
void prong_set_evaluator(ProngEvaluator evaluator);
/* The interpreter's own evaluation, from where the frame stands. */
PyObject* prong_interpret(PyThreadState* thread, ProngFrame* frame, int throwflag);

/* A frame of a plain function that has not started, on a thread without tracing or profiling. */
int prong_is_evaluable(PyThreadState* thread, ProngFrame* frame);

/* By sys.settrace or sys.setprofile. */
int prong_is_traced(void);
/* Does the garbage collector run, on this thread or one that waits for the GIL? */
int prong_is_collecting(PyThreadState* thread);

/* A frame of a generator that stands at a yield and goes on with what was sent. */
int prong_is_resumed_generator(PyThreadState* thread, ProngFrame* frame);
PyObject* prong_frame_generator(ProngFrame* frame);     /* borrowed */
ProngFrame* prong_generator_frame(PyObject* generator); /* null: it has ended */
/* The generator of a frame that is left by a yield counts as suspended. */
void prong_suspend_generator(ProngFrame* frame);
int prong_position(ProngFrame* frame); /* the unit of the instruction that ran last */
int prong_stack_top(ProngFrame* frame);

/* Makes the frame the current one, as the interpreter does; room for what must be put back. -1:
 * RecursionError is set. */
typedef struct {
  void* words[8];
} ProngEntry;
int prong_enter_frame(PyThreadState* thread, ProngFrame* frame, ProngEntry* entry);
void prong_leave_frame(PyThreadState* thread, ProngEntry* entry);

PyCodeObject* prong_frame_code(ProngFrame* frame); /* borrowed, like the next three */
PyFunctionObject* prong_frame_function(ProngFrame* frame);
PyObject* prong_frame_globals(ProngFrame* frame);
PyObject* prong_frame_builtins(ProngFrame* frame);
PyObject**
prong_frame_slots(ProngFrame* frame); /* locals, cells and free variables, then the stack */
void prong_set_position(ProngFrame* frame,
                        int unit); /* the instruction that runs; -1: before the first */
void prong_set_stack_top(ProngFrame* frame,
                         int top); /* in slots; -1 while the evaluator holds the stack */
/* To tracers: the error that is set was raised in the current frame; it leaves the frame. */
void prong_tell_error(PyThreadState* thread);
void prong_tell_exit(PyThreadState* thread);
/* Lets signal handlers, other threads and pending calls run, if any wait. -1: a Python error is
   set; 1: something waits that only the interpreter serves. */
int prong_breathe(PyThreadState* thread);

/* The innermost frame of this thread whose file does not start with `own_folder`: its code
   (borrowed) and the line it is at. Null: none. */
PyCodeObject* prong_user_frame(const char* own_folder, int* line);

#ifdef __cplusplus
}
#endif
