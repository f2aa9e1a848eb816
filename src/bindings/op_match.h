// Matching a Python call against one signature of an op. Called by op_function.cpp.
#pragma once

#include "bindings/op_function.h"

namespace prong::python {

inline constexpr size_t kMaxArguments = 32;

// Converted arguments, in place, without a heap allocation.
class ArgumentBuffer {
 public:
  ArgumentBuffer() = default;
  ~ArgumentBuffer() { clear(); }
  ArgumentBuffer(const ArgumentBuffer&) = delete;
  ArgumentBuffer& operator=(const ArgumentBuffer&) = delete;
  template <class V>
  void push(V&& value) {
    new (data() + size_) IValue(std::forward<V>(value));
    ++size_;
  }
  void clear() {
    while (size_) data()[--size_].~IValue();
  }
  std::span<const IValue> values() const {
    return {const_cast<ArgumentBuffer*>(this)->data(), size_};
  }
  const IValue& operator[](size_t i) const { return const_cast<ArgumentBuffer*>(this)->data()[i]; }

 private:
  IValue* data() { return reinterpret_cast<IValue*>(raw_); }
  alignas(IValue) unsigned char raw_[kMaxArguments * sizeof(IValue)];
  size_t size_ = 0;
};

// Keyword arguments that belong to no schema but that PyTorch's functions take; borrowed, null: not
// given.
struct Extras {
  PyObject* out = nullptr;
  bool requires_grad = false;
};

struct PythonCall {
  PyObject* self;  // null for a function
  PyObject* const* args;
  size_t count;
  PyObject* kwnames;  // null: none
  size_t keyword_count() const {
    return kwnames ? static_cast<size_t>(PyTuple_GET_SIZE(kwnames)) : 0;
  }
  PyObject* keyword(size_t i) const {
    return PyTuple_GET_ITEM(kwnames, static_cast<Py_ssize_t>(i));
  }
  PyObject* keyword_value(size_t i) const { return args[count + i]; }
};

// True, with `out` and `extras` filled, if the call fits. Else false, and why (if asked) is the
// text of PyTorch's TypeError, without the op's name and "()".
bool match(const Signature& signature, const PythonCall& call, bool numbers_as_tensors,
           ArgumentBuffer* out, Extras* extras, std::string* why);

Signature prepare(const OpDef& op);
void init_op_match();

}  // namespace prong::python
