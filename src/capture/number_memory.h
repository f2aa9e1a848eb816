// NumberMemory: which Python numbers a compiled function has seen change between its calls, and
// where it has found other tensors, and which lists it changes: from then on these are inputs of
// its plans, not facts. Called by tracker.cpp; the GIL is held.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace prong::capture {

class NumberMemory {
 public:
  // Notes an int or float read from `key` of `owner` (null: the argument with that number). True if
  // it has had two values.
  bool varies(const void* owner, uint64_t key, PyObject* value);
  // The same of a tensor: true if there has been another one.
  bool is_replaced(const void* owner, uint64_t key, const void* tensor);
  // Of lists and dicts that a call changed beside reading them: where they stand, they or others
  // will be changed again.
  bool note_changing(const void* container, const void* key);  // false: it was known
  bool is_changing(const void* container, const void* key) const {
    return changing_.count(container) || (key && changing_.count(key));
  }
  void clear() {
    seen_.clear();
    tensors_.clear();
    changing_.clear();
  }

 private:
  struct Seen {
    bool is_float;
    uint64_t bits;
    bool varies = false;
  };
  std::map<std::pair<const void*, uint64_t>, Seen> seen_;
  std::map<std::pair<const void*, uint64_t>, const void*> tensors_;  // null: there were several
  std::set<const void*> changing_;  // they themselves, and the names that they were found under
};

}  // namespace prong::capture
