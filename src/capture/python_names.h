// Names of Python's callables and attributes as text, and what is known of them by name. Used by
// the evaluate*.cpp files, transparent.cpp and objects.cpp; the GIL is held.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace prong::capture {

using Words = std::initializer_list<std::string_view>;
inline bool is_one_of(std::string_view word, Words words) {
  for (const std::string_view w : words)
    if (w == word) return true;
  return false;
}

const char* text_of(PyObject* name);  // a str's; "" where it has none
std::string name_of_callable(PyObject* callable);
// As CPython's `opcode` module spells it.
std::string name_of_opcode(int opcode);
const char* module_of(PyCFunctionObject* function);  // "" where it has none

// Methods of tensors that are no ops.
enum class TensorMethod : uint8_t {
  kOther,
  kSizes,       // tells sizes or strides
  kFacts,       // tells what the guards ask of every tensor
  kConversion,  // gives a tensor, maybe the same one
};
TensorMethod tensor_method(std::string_view name);

}  // namespace prong::capture
