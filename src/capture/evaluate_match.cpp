// match statements: what patterns ask of their subject. See evaluator.h.
#include <opcode.h>

#include "capture/evaluator.h"
#include "capture/session.h"

namespace prong::capture {

namespace {

// One attribute of the subject for a class pattern; null without an error: it has none.
PyObject* attribute_for_pattern(PyObject* subject, PyObject* type, PyObject* name, PyObject* seen) {
  if (PySet_Contains(seen, name) || PySet_Add(seen, name) < 0) {
    if (!PyErr_Occurred())
      PyErr_Format(PyExc_TypeError, "%s() got multiple sub-patterns for attribute %R",
                   reinterpret_cast<PyTypeObject*>(type)->tp_name, name);
    return nullptr;
  }
  PyObject* value = PyObject_GetAttr(subject, name);
  if (!value && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
  return value;
}

bool matches_self(PyTypeObject* type) {
  constexpr unsigned long kMatchSelf = 1UL << 22;  // _Py_TPFLAGS_MATCH_SELF
  return PyType_HasFeature(type, kMatchSelf);
}

}  // namespace

// The names of the attributes that a class pattern asks for, in order; null: an error, or (with
// `is_self`) the subject itself stands for the only positional one.
bool Evaluator::pattern_names(PyObject* type, int positional, PyObject* keywords, bool* is_self,
                              std::vector<PyObject*>* names) {
  *is_self = false;
  PyObject* given = nullptr;
  if (positional) {
    given = PyObject_GetAttrString(type, "__match_args__");
    if (!given) {
      if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return false;
      PyErr_Clear();
      *is_self = matches_self(reinterpret_cast<PyTypeObject*>(type));
    } else if (!PyTuple_CheckExact(given)) {
      PyErr_Format(PyExc_TypeError, "%s.__match_args__ must be a tuple (got %s)",
                   reinterpret_cast<PyTypeObject*>(type)->tp_name, Py_TYPE(given)->tp_name);
      Py_DECREF(given);
      return false;
    }
    const Py_ssize_t allowed = *is_self ? 1 : given ? PyTuple_GET_SIZE(given) : 0;
    if (allowed < positional) {
      PyErr_Format(PyExc_TypeError, "%s() accepts %zd positional sub-pattern%s (%d given)",
                   reinterpret_cast<PyTypeObject*>(type)->tp_name, allowed, allowed == 1 ? "" : "s",
                   positional);
      Py_XDECREF(given);
      return false;
    }
  }
  for (int k = 0; k < positional && !*is_self; ++k) {
    PyObject* name = PyTuple_GET_ITEM(given, k);
    if (!PyUnicode_CheckExact(name)) {
      PyErr_Format(PyExc_TypeError, "__match_args__ elements must be strings (got %s)",
                   Py_TYPE(name)->tp_name);
      Py_DECREF(given);
      return false;
    }
    names->push_back(name);
  }
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(keywords); ++k)
    names->push_back(PyTuple_GET_ITEM(keywords, k));
  Py_XDECREF(given);  // the class keeps it
  return true;
}

// [subject, class, keyword names] -> [tuple of attributes, or None].
Evaluator::Next Evaluator::match_class(const Instruction& i) {
  PyObject *keywords = top(1), *type = top(2), *subject = top(3);
  const Term subject_term = term(3);
  if (!PyType_Check(type)) return Next::kInterpret;  // which refuses it
  Tracker* t = tracker();
  if (t && !(term(2).is_known() && t->vouch(subject_term, subject, false)))
    t->give_up("a subject that is not followed is matched with a class");
  if (t && PyType_HasFeature(reinterpret_cast<PyTypeObject*>(type), Py_TPFLAGS_HEAPTYPE))
    t->read_type(reinterpret_cast<PyTypeObject*>(type));
  std::vector<PyObject*> values;
  std::vector<Term> terms;
  bool matches = false;
  const int is_instance = PyObject_IsInstance(subject, type);
  if (is_instance < 0) return Next::kError;
  if (is_instance) {
    bool is_self = false;
    std::vector<PyObject*> names;
    if (!pattern_names(type, i.arg, keywords, &is_self, &names)) return Next::kError;
    matches = true;
    if (is_self) {
      values.push_back(Py_NewRef(subject));
      terms.push_back(subject_term);
    }
    PyObject* seen = PySet_New(nullptr);
    for (PyObject* name : names) {
      PyObject* value = seen ? attribute_for_pattern(subject, type, name, seen) : nullptr;
      matches = value != nullptr;
      if (!value) break;
      Term each;
      if ((t = tracker())) each = attribute_term(subject, subject_term, name, value);
      values.push_back(value);
      terms.push_back(each);
    }
    Py_XDECREF(seen);
    if (PyErr_Occurred()) {
      for (PyObject* v : values) Py_DECREF(v);
      return Next::kError;
    }
  }
  PyObject* result = Py_NewRef(Py_None);
  Term made = Term::same();
  if (matches) {
    Py_DECREF(result);
    result = PyTuple_New(static_cast<Py_ssize_t>(values.size()));
    for (size_t k = 0; k < values.size(); ++k)
      PyTuple_SET_ITEM(result, static_cast<Py_ssize_t>(k), Py_NewRef(values[k]));
    if ((t = tracker())) {
      made = t->make(Made::Kind::kTuple, terms, values);
      t->own(made, result);
    }
  } else if ((t = tracker()) && is_instance) {
    t->give_up("a class pattern asks for an attribute that is not there");
  }
  for (PyObject* v : values) Py_DECREF(v);
  drop(3);
  push(result, made);
  return Next::kGo;
}

// [subject, keys] -> [subject, keys, tuple of values, or None].
Evaluator::Next Evaluator::match_keys() {
  PyObject *keys = top(1), *subject = top(2);
  Tracker* t = tracker();
  if (t && !(t->vouch(term(2), subject, false) && t->vouch(term(1), keys, true)))
    t->give_up("a subject that is not followed is matched with keys");
  // Other mappings are asked by their get(), which the interpreter does.
  if (!PyDict_CheckExact(subject)) return Next::kInterpret;
  const Py_ssize_t n = PyTuple_GET_SIZE(keys);
  PyObject* seen = PySet_New(keys);
  const bool is_twice = seen && PySet_GET_SIZE(seen) != n;
  Py_XDECREF(seen);
  if (!seen || is_twice) {
    PyErr_Clear();
    return Next::kInterpret;  // which says which key came twice
  }
  std::vector<Term> terms;
  std::vector<PyObject*> values;
  for (Py_ssize_t k = 0; k < n; ++k) {
    PyObject* value = PyDict_GetItemWithError(subject, PyTuple_GET_ITEM(keys, k));
    if (!value && PyErr_Occurred()) return Next::kError;
    if (!value) break;
    values.push_back(value);
    terms.push_back(
        t ? subscript_term(subject, term(2), PyTuple_GET_ITEM(keys, k), Term::same(), value)
          : Term());
  }
  if (static_cast<Py_ssize_t>(values.size()) < n) {
    push(Py_NewRef(Py_None), Term::same());
    return Next::kGo;
  }
  PyObject* result = PyTuple_New(n);
  for (Py_ssize_t k = 0; k < n; ++k)
    PyTuple_SET_ITEM(result, k, Py_NewRef(values[static_cast<size_t>(k)]));
  Term made;
  if ((t = tracker())) {
    made = t->make(Made::Kind::kTuple, terms, values);
    t->own(made, result);
  }
  push(result, made);
  return Next::kGo;
}

Evaluator::Next Evaluator::step_match(const Instruction& i) {
  Tracker* t = tracker();
  switch (i.opcode) {
  case MATCH_MAPPING:
  case MATCH_SEQUENCE: {
    const unsigned long flag = i.opcode == MATCH_MAPPING ? Py_TPFLAGS_MAPPING : Py_TPFLAGS_SEQUENCE;
    if (t && term().is_same() && !is_plain_value(top())) t->read_type_of(top());
    if (t && !term().is_known()) t->give_up("a subject of unknown origin is matched");
    push(PyBool_FromLong(PyType_HasFeature(Py_TYPE(top()), flag)), Term::same());
    return Next::kGo;
  }
  case MATCH_KEYS:
    return match_keys();
  case MATCH_CLASS:
    return match_class(i);
  default:
    return Next::kInterpret;
  }
}

}  // namespace prong::capture
