// Calls of builtin code whose answer follows from its arguments: containers' methods, zip, sum,
// sorted, itertools and the like. They run as they are; Python functions that they call are
// evaluated, and what they give is known by its address. See evaluator.h.
#include <cstring>
#include <optional>
#include <string_view>

#include "capture/error_aside.h"
#include "capture/evaluator.h"
#include "capture/python_names.h"
#include "capture/session.h"

namespace prong::capture {

namespace {

// What builtin code looks at: nothing that its arguments hold, all of it, or only plain values.
enum class Look : uint8_t { kNever, kShallow, kDeep, kPlain };

bool is_in_place(std::string_view name) {  // of operator's functions
  return is_one_of(name, {"iadd", "iand", "iconcat", "ifloordiv", "ilshift", "imatmul", "imod",
                          "imul", "ior", "ipow", "irshift", "isub", "itruediv", "ixor"});
}

Look look_of_builtin(std::string_view name) {
  if (is_one_of(name, {"next", "len", "callable", "isinstance", "issubclass", "list", "tuple",
                       "dict", "slice", "super"}))
    return Look::kShallow;
  // Of those that give iterators: what takes the items later may look at all of them.
  if (is_one_of(name, {"sum", "min", "max", "any", "all", "sorted", "set", "frozenset", "iter",
                       "zip", "enumerate", "map", "filter", "reversed"}))
    return Look::kDeep;
  if (is_one_of(name, {"abs",     "divmod", "pow",   "round",  "int",   "float", "bool",
                       "complex", "str",    "repr",  "format", "chr",   "ord",   "bin",
                       "hex",     "oct",    "ascii", "bytes",  "range", "hash"}))
    return Look::kPlain;
  return Look::kNever;
}

Look look_of_module_function(std::string_view module, std::string_view name) {
  if (module == "builtins") return look_of_builtin(name);
  if (module == "math" || module == "cmath") return Look::kPlain;
  if (module == "_functools") return name == "reduce" ? Look::kShallow : Look::kNever;
  // What it changes is not followed, and what call() calls is anything.
  if (module == "_operator")
    return is_one_of(name, {"setitem", "delitem", "call"}) || is_in_place(name) ? Look::kNever
                                                                                : Look::kDeep;
  if (module == "itertools") return Look::kShallow;
  return Look::kNever;
}

Look look_of_type(PyTypeObject* type) {
  const std::string_view name = type->tp_name;
  if (name.substr(0, 10) == "itertools.") return Look::kDeep;
  if (is_one_of(name, {"functools.partial", "operator.itemgetter"})) return Look::kShallow;
  if (PyType_HasFeature(type, Py_TPFLAGS_BASE_EXC_SUBCLASS)) return Look::kShallow;
  return PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) ? Look::kNever : look_of_builtin(name);
}

// Methods of an object of a builtin type. `is_made`: by the call, so it may be changed.
Look look_of_method(PyTypeObject* type, std::string_view name, bool is_made) {
  if (type == &PyUnicode_Type || type == &PyBytes_Type || type == &PyLong_Type ||
      type == &PyFloat_Type || type == &PyComplex_Type || type == &PyBool_Type)
    return Look::kPlain;
  if (type == &PyTuple_Type) return Look::kDeep;  // index, count
  if (type == &PyRange_Type) return Look::kPlain;
  if (type == &PyList_Type) {
    if (is_one_of(name, {"index", "count"})) return Look::kDeep;
    if (name == "copy") return Look::kShallow;
    if (!is_made) return Look::kNever;
    return is_one_of(name, {"sort", "remove"}) ? Look::kDeep : Look::kShallow;
  }
  if (type == &PyDict_Type || type == &PyODict_Type) {
    if (is_one_of(name, {"get", "keys", "values", "items", "copy", "__contains__", "__getitem__"}))
      return Look::kShallow;
    return is_made ? Look::kShallow : Look::kNever;
  }
  if (type == &PySet_Type || type == &PyFrozenSet_Type) {
    if (is_made || type == &PyFrozenSet_Type) return Look::kPlain;
    return is_one_of(name, {"__contains__", "copy", "difference", "intersection", "isdisjoint",
                            "issubset", "issuperset", "symmetric_difference", "union"})
               ? Look::kDeep
               : Look::kNever;
  }
  if (type == &PyGen_Type && is_made && is_one_of(name, {"send", "__next__", "__iter__"}))
    return Look::kShallow;
  if (type == &PyDictItems_Type || type == &PyDictKeys_Type) return Look::kPlain;
  return Look::kNever;
}

// Is all of it plain, also inside of containers that the call made?
bool is_plain_inside(Tracker& t, Term term, PyObject* o, int depth = 0) {
  if (depth > 8) return false;
  if (!term.is_made()) return t.is_plain(term, o);
  const Made& m = t.made(term);
  if (m.kind == Made::Kind::kException) {  // its words
    PyObject* args = PyObject_GetAttrString(o, "args");
    const bool plain = args && is_plain_value(args);
    Py_XDECREF(args);
    PyErr_Clear();
    return plain;
  }
  if (m.kind != Made::Kind::kTuple && m.kind != Made::Kind::kList && m.kind != Made::Kind::kSet &&
      m.kind != Made::Kind::kDict)
    return false;
  const std::vector<Term> items = m.items;
  const std::vector<PyObject*> objects = m.objects;
  for (size_t i = 0; i < items.size(); ++i)
    if (!objects[i] || !is_plain_inside(t, items[i], objects[i], depth + 1)) return false;
  return true;
}

struct Callee {
  Look look = Look::kNever;
  PyObject* self = nullptr;  // null: none
  std::string_view name;
};

Callee callee_of(Tracker& t, PyObject* function, PyObject* const* args, size_t count,
                 Term self_term) {
  Callee c;
  if (PyType_Check(function)) {
    c.name = reinterpret_cast<PyTypeObject*>(function)->tp_name;
    c.look = look_of_type(reinterpret_cast<PyTypeObject*>(function));
    return c;
  }
  if (PyCFunction_Check(function)) {
    auto* f = reinterpret_cast<PyCFunctionObject*>(function);
    c.name = f->m_ml->ml_name;
    if (!f->m_self || PyModule_Check(f->m_self)) {
      c.look = look_of_module_function(module_of(f), c.name);
      return c;
    }
    if (PyType_Check(f->m_self)) {
      auto* type = reinterpret_cast<PyTypeObject*>(f->m_self);
      const bool is_builtin = !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE);
      if (is_builtin && is_one_of(c.name, {"fromkeys", "from_iterable", "maketrans", "__new__"}))
        c.look = c.name == "maketrans" ? Look::kPlain : Look::kShallow;
      return c;
    }
    c.self = f->m_self;
    const Term known = self_term.is_known() ? self_term : t.find(c.self);
    c.look = look_of_method(Py_TYPE(c.self), c.name, known.is_made());
    return c;
  }
  if (Py_IS_TYPE(function, &PyMethodDescr_Type) && count) {
    auto* d = reinterpret_cast<PyMethodDescrObject*>(function);
    c.name = d->d_method->ml_name;
    if (Py_TYPE(args[0]) == d->d_common.d_type)
      c.look = look_of_method(Py_TYPE(args[0]), c.name, t.find(args[0]).is_made());
    return c;
  }
  // Not attrgetter and methodcaller: what they read of an object, nobody sees.
  const std::string_view type = Py_TYPE(function)->tp_name;
  if (is_one_of(type, {"functools.partial", "operator.itemgetter"}) && self_term.is_known()) {
    c.name = type;
    c.look = type == "operator.itemgetter" ? Look::kDeep : Look::kShallow;
  }
  return c;
}

// Builtin code that calls what it is given, or looks into what its arguments hold.
bool takes_callables(std::string_view name) {
  return is_one_of(name, {"map", "filter", "reduce", "iter", "sorted", "min", "max", "sort",
                          "functools.partial", "itertools.starmap", "itertools.accumulate",
                          "itertools.groupby", "itertools.takewhile", "itertools.dropwhile",
                          "itertools.filterfalse"});
}
bool looks_into_items(std::string_view name) {
  return is_one_of(name,
                   {"dict", "update", "from_iterable", "itertools.starmap", "itertools.compress"});
}

enum class Called : uint8_t {
  kNever,      // it may read or change what nobody sees
  kEvaluated,  // its frames are evaluated, and see to themselves
  kBuiltin     // looks at what it is given, and at all that that holds
};

Called called_by_builtin(Tracker& t, PyObject* f, int depth = 0) {
  if (PyFunction_Check(f)) return Called::kEvaluated;
  if (PyMethod_Check(f))
    return PyFunction_Check(PyMethod_GET_FUNCTION(f)) ? Called::kEvaluated : Called::kNever;
  if (door().is_op(f) || f == Py_None) return Called::kBuiltin;
  if (std::strcmp(Py_TYPE(f)->tp_name, "functools.partial") == 0 && depth < 4) {
    PyObject* inner = PyObject_GetAttrString(f, "func");
    const Called c = inner ? called_by_builtin(t, inner, depth + 1) : Called::kNever;
    Py_XDECREF(inner);
    return c == Called::kEvaluated ? c : Called::kNever;
  }
  if (PyType_Check(f) && PyType_HasFeature(reinterpret_cast<PyTypeObject*>(f), Py_TPFLAGS_HEAPTYPE))
    return Called::kEvaluated;
  if (is_instance_class(Py_TYPE(f))) return Called::kEvaluated;
  if (std::strcmp(Py_TYPE(f)->tp_name, "operator.itemgetter") == 0) return Called::kBuiltin;
  if (Py_IS_TYPE(f, &PyMethodDescr_Type)) {
    auto* d = reinterpret_cast<PyMethodDescrObject*>(f);
    return look_of_method(d->d_common.d_type, d->d_method->ml_name, false) == Look::kNever
               ? Called::kNever
               : Called::kBuiltin;
  }
  const Callee c = callee_of(t, f, nullptr, 0, {});
  if (c.look == Look::kNever || takes_callables(c.name)) return Called::kNever;
  if (c.self && !t.vouch(t.find(c.self), c.self, true)) return Called::kNever;
  return Called::kBuiltin;
}

}  // namespace

// The term of what builtin code gave; false: it is not of this kind. `result` null: it failed, and
// the answer says whether it would at each call.
bool Evaluator::follow_transparent(PyObject* function, Term self, PyObject* const* args,
                                   const std::vector<Term>& terms, PyObject* result, Term* out) {
  const bool is_miss = !result && (PyErr_ExceptionMatches(PyExc_StopIteration) ||
                                   PyErr_ExceptionMatches(PyExc_KeyError));
  std::optional<ErrorAside> aside;
  if (!result) aside.emplace();
  Tracker* t = tracker();
  if (!t) return false;  // it gave up on one of the arguments
  const Callee c = callee_of(*t, function, args, terms.size(), self);
  if (c.look == Look::kNever) return false;
  if (PyType_Check(function)) {
    auto* type = reinterpret_cast<PyTypeObject*>(function);
    if (PyType_HasFeature(type, Py_TPFLAGS_BASE_EXC_SUBCLASS) && !t->is_builtin_exception(type))
      return false;
  }
  bool is_fragile = false;
  for (const Term& term : terms) is_fragile |= t->is_fragile(term);
  if (is_fragile && c.self) return false;
  bool is_deep = c.look == Look::kDeep || looks_into_items(c.name);
  if (takes_callables(c.name))
    for (size_t i = 0; i < terms.size(); ++i) {
      if (!PyCallable_Check(args[i]) && args[i] != Py_None) continue;
      const Called by = called_by_builtin(*t, args[i]);
      if (by == Called::kNever || (by == Called::kBuiltin && c.name == "functools.partial"))
        return false;
      is_deep |= by == Called::kBuiltin;
    }
  bool has_tensor = false;
  const auto fits = [&](Term term, PyObject* o) {
    if (!term.is_known()) return false;
    if (term.is_tensor()) t->looked_at_sizes();
    has_tensor |= t->holds_tensor(term, o);
    if (c.name == "join" && term.is_made() && t->peek(term).kind != Made::Kind::kInstance)
      return true;
    return c.look == Look::kPlain ? is_plain_inside(*t, term, o) : t->vouch(term, o, is_deep);
  };
  if (c.self && !fits(self.is_known() ? self : t->find(c.self), c.self)) return false;
  for (size_t i = 0; i < terms.size(); ++i)
    if (!fits(terms[i], args[i])) return false;
  if (c.self && self.is_made()) {
    std::vector<Term> changed{self};
    changed.insert(changed.end(), terms.begin(), terms.end());
    t->pin_twins(changed);
  }
  for (const Term& term : terms)  // where it stands now, nobody has seen
    if (term.is_made() && (t->made(term).is_zip || t->made(term).is_enumerate)) {
      t->made(term).kind = Made::Kind::kOpaque;
      t->made(term).is_zip = t->made(term).is_enumerate = false;
    }
  if (!t->is_on()) return false;
  if (!result) return !has_tensor || is_miss;
  if (is_fragile && !t->find(result).is_known()) return false;
  if (c.name == "__new__" && is_instance_class(Py_TYPE(result)))
    *out = t->make_instance(result);
  else
    *out = t->adopt(result);
  return out->is_known();
}

}  // namespace prong::capture
