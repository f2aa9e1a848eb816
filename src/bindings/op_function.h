// Python's functions and methods of ops: one generic call path over the schemas in the registry.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/errors.h"
#include "bindings/python.h"
#include "ops/op_def.h"

namespace prong::python {

// One argument of a schema, prepared for matching.
struct ArgumentSpec {
  PyObject* name;    // interned
  PyObject* alias;   // interned, or null: NumPy's spelling (axis for dim) that PyTorch also takes
  const Type* type;  // without Optional
  bool is_optional;  // None is taken
  bool is_keyword_only;
  bool has_default;
  int fixed_list_size;
  const IValue* default_value;
};

struct Signature {
  const OpDef* op;
  std::vector<ArgumentSpec> arguments;
  int num_positional;
  int self_index;        // which argument a method's object is
  bool has_two_tensors;  // then a Python number may stand for one of them
  int varargs_function;  // the argument that takes the rest of the positional ones, -1: none
  int varargs_method;
  PyTypeObject* result_type = nullptr;  // of named results, made on first use
};

// All ops of one base name: what one Python function stands for.
struct OpGroup {
  std::string name;
  std::vector<Signature> signatures;
};

// Calls the group: `self` null for a function. `args` and the values of `kwnames` lie as in
// vectorcall.
PyObject* call_group(OpGroup& group, PyObject* self, PyObject* const* args, size_t count,
                     PyObject* kwnames);

OpGroup* find_group(std::string_view base_name);  // null when there is no such op
OpGroup& group_named(const char* base_name);      // kAttribute when there is none

// The group behind a Python object (a function or a method descriptor of ours), or null.
OpGroup* group_of(PyObject* object);

// Runs one op on converted arguments, without the GIL unless the op is tiny.
IValue run_op(const OpDef& op, std::span<const IValue> args);
// The same by exact op name, trailing defaults filled in.
IValue run_named(const char* op_name, std::span<const IValue> args);
template <class... A>
IValue run_named(const char* op_name, A&&... args) {
  const IValue values[] = {IValue(std::forward<A>(args))...};
  return run_named(op_name, std::span<const IValue>(values));
}

// Adds the types, `functions` (dict), `nn_functional` (dict), and methods to the Tensor type.
void init_op_functions(PyObject* module);

// Result types of the ops made so far: {"max": type} for prong.return_types.
PyTypeObject* result_type_of(Signature& signature);

}  // namespace prong::python
