// Decoding; see bytecode.h.
#include "capture/bytecode.h"

#include <cstring>

#include <opcode.h>

namespace prong::capture {

namespace {

// Cache entries after an instruction of CPython 3.11.
int caches_after(int opcode) {
  switch (opcode) {
  case BINARY_SUBSCR:
  case STORE_ATTR:
  case LOAD_ATTR:
  case CALL:
    return 4;
  case COMPARE_OP:
    return 2;
  case LOAD_GLOBAL:
    return 5;
  case LOAD_METHOD:
    return 10;
  case STORE_SUBSCR:
  case UNPACK_SEQUENCE:
  case BINARY_OP:
  case PRECALL:
    return 1;
  default:
    return 0;
  }
}

Py_ssize_t extra_index() {
  static const Py_ssize_t index =
      _PyEval_RequestCodeExtraIndex([](void* p) { delete static_cast<Bytecode*>(p); });
  return index;
}

// The exception table: numbers of six bits a byte, the highest first; 0x40: more follow.
std::vector<ExceptionHandler> handlers_of(PyCodeObject* code) {
  std::vector<ExceptionHandler> handlers;
  const auto* at = reinterpret_cast<const uint8_t*>(PyBytes_AS_STRING(code->co_exceptiontable));
  const uint8_t* const end = at + PyBytes_GET_SIZE(code->co_exceptiontable);
  const auto number = [&] {
    int32_t n = *at & 63;
    while (*at++ & 64) n = n << 6 | (*at & 63);
    return n;
  };
  while (at < end) {
    ExceptionHandler h{};
    h.begin = number();
    h.end = h.begin + number();
    h.target = number();
    const int32_t depth = number();
    h.depth = depth >> 1;
    h.keeps_position = depth & 1;
    handlers.push_back(h);
  }
  return handlers;
}

Bytecode* decode(PyCodeObject* code) {
  PyObject* bytes = PyCode_GetCode(code);
  if (!bytes) return nullptr;
  const auto* units = reinterpret_cast<const uint8_t*>(PyBytes_AS_STRING(bytes));
  const auto count = static_cast<int32_t>(PyBytes_GET_SIZE(bytes) / 2);
  auto* b = new Bytecode;
  b->at_unit.assign(static_cast<size_t>(count) + 1, -1);
  int32_t extended = 0, first = -1;
  for (int32_t u = 0; u < count; ++u) {
    const int opcode = units[2 * u];
    const int32_t arg = extended << 8 | units[2 * u + 1];
    if (first < 0) first = u;
    b->at_unit[static_cast<size_t>(u)] = static_cast<int32_t>(b->instructions.size());
    if (opcode == EXTENDED_ARG) {
      extended = arg;
      continue;
    }
    b->instructions.push_back({static_cast<uint8_t>(opcode), arg, u, first});
    extended = 0;
    first = -1;
    u += caches_after(opcode);
  }
  Py_DECREF(bytes);
  b->handlers = handlers_of(code);
  b->num_slots = code->co_nlocalsplus;
  b->stack_size = code->co_stacksize;
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  if (!file) PyErr_Clear();
  b->is_import = file && std::strncmp(file, "<frozen importlib", 17) == 0;
  return b;
}

}  // namespace

const Bytecode* bytecode_of(PyCodeObject* code) {
  auto* object = reinterpret_cast<PyObject*>(code);
  void* found = nullptr;
  if (_PyCode_GetExtra(object, extra_index(), &found) < 0) return nullptr;
  if (found) return static_cast<Bytecode*>(found);
  Bytecode* made = decode(code);
  if (!made) return nullptr;
  if (_PyCode_SetExtra(object, extra_index(), made) < 0) {
    delete made;
    return nullptr;
  }
  return made;
}

}  // namespace prong::capture
