/* CPython 3.11's frames; see frame_311.h. */
#define Py_BUILD_CORE 1
#include "capture/frame_311.h"

#if PY_VERSION_HEX < 0x030b0000 || PY_VERSION_HEX >= 0x030c0000
#error "src/capture/frame_311.c is for CPython 3.11"
#endif

#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_opcode.h>
#include <string.h>

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
