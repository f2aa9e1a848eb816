/* The one door to CPython 3.11's frames: C, because the internal headers do not compile as C++. Called by the evaluator
   and by bindings/. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The innermost frame of this thread whose file does not start with `own_folder`: its code (borrowed) and the line it
   is at. Null: none. */
PyCodeObject* prong_user_frame(const char* own_folder, int* line);

#ifdef __cplusplus
}
#endif
