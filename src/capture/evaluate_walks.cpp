// Iteration, unpacking and matching of patterns. See evaluator.h.
#include <opcode.h>

#include "capture/evaluator.h"
#include "capture/session.h"

namespace prong::capture {

namespace {

// The Python function __iter__ of an object's class, with guards on it; null: none. Borrowed.
PyObject* iteration_method(Tracker& t, Term term, PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return nullptr;
  static PyObject* name = PyUnicode_InternFromString("__iter__");
  PyObject* method = _PyType_Lookup(type, name);
  if (!method || !PyFunction_Check(method)) return nullptr;
  t.read_type(type);
  if (term.is_same()) t.read_type_of(object);
  return method;
}

}  // namespace

Evaluator::Next Evaluator::step_walk(const Instruction& i) {
  Tracker* t = tracker();
  switch (i.opcode) {
  case GET_LEN: {
    const Py_ssize_t n = PyObject_Size(top());
    if (n < 0) return Next::kError;
    PyObject* length = PyLong_FromSsize_t(n);
    if (!length) return Next::kError;
    Term made = Term::same();
    if (t && term().is_tensor())
      made = t->size_of(top(), 0, length);
    else if (t && !t->vouch(term(), top(), false))
      t->give_up("the length of a matched subject");
    push(length, made);
    return Next::kGo;
  }
  case UNPACK_SEQUENCE:
  case UNPACK_EX:
    return unpack(i);
  case GET_ITER:
  case GET_YIELD_FROM_ITER:
    if (PyCoro_CheckExact(top())) return Next::kInterpret;
    return get_iterator();
  case FOR_ITER:
    return for_iter(i);
  default:
    return Next::kInterpret;
  }
}

Evaluator::Next Evaluator::get_iterator() {
  Tracker* t = tracker();
  PyObject* source = top();
  const std::vector<Term> self{term()};
  PyObject* method = t && (self[0].is_same() || self[0].is_made())
                         ? iteration_method(*t, self[0], source)
                         : nullptr;
  set_pending_call(method ? PendingCall{method, &self, nullptr, 1, {}} : PendingCall{});
  returned_term = {};
  is_escaped_error_followed = false;
  PyObject* iterator = PyObject_GetIter(source);
  set_pending_call({});
  if (!iterator) return Next::kError;
  t = tracker();
  Term m;
  if (t && iterator == source) {
    m = self[0];
  } else if (t && method) {
    m = returned_term;
  } else if (t) {
    m = iterator_term(source, self[0]);
  }
  Py_DECREF(pop());
  push(iterator, m);
  return Next::kGo;
}

// Of a new iterator over what a builtin type's own iteration walks.
Term Evaluator::iterator_term(PyObject* source, Term s) {
  Tracker* t = tracker();
  if (s.is_tensor()) t->pin_size(source, 0);  // so many items are there at each call
  const bool has_places =
      s.is_tensor() ||
      (s.is_made() &&
       (t->made(s).kind == Made::Kind::kTuple || t->made(s).kind == Made::Kind::kList)) ||
      (s.is_same() && (PyRange_Check(source) || PyTuple_CheckExact(source) ||
                       PyList_CheckExact(source) || PyUnicode_CheckExact(source)));
  if (!s.is_tensor() && !t->vouch(s, source, false)) {
    t->give_up("iteration over something that is not followed");
    return {};
  }
  const Term m = t->make(has_places ? Made::Kind::kIterator : Made::Kind::kOpaque, {}, {});
  if (!m.is_made() || !has_places) return m;
  t->made(m).source = s;
  t->made(m).keys.emplace_back(source);
  return m;
}

// Of the value that an iterator gave just now.
Term Evaluator::walked_term(Term iterator, PyObject* value) {
  Tracker* t = tracker();
  if (!iterator.is_made()) {
    t->give_up("an iterator that is not followed");
    return {};
  }
  Made& m = t->made(iterator);
  if (m.is_zip || m.is_enumerate) return zipped_term(iterator, value);
  if (m.kind == Made::Kind::kIterator) {
    const size_t at = m.position++;
    PyObject* source = m.keys[0].get();
    if (m.source.is_made()) {
      const Made& from = t->made(m.source);
      if (at < from.items.size() && (from.objects[at] == value || !from.objects[at]))
        return from.items[at];
    } else if (PyRange_Check(source) || PyUnicode_CheckExact(source)) {
      return Term::same();
    } else if (m.source.is_tensor()) {
      return t->tensor_result(value);
    } else {
      return t->same(value);
    }
  }
  if (m.kind == Made::Kind::kGenerator && returned_term.is_known()) return returned_term;
  const Term found = t->adopt(value);
  if (!found.is_known()) t->give_up("an iterator gives values of unknown origin");
  return found;
}

Evaluator::Next Evaluator::for_iter(const Instruction& i) {
  PyObject* iterator = top();
  returned_term = {};
  is_escaped_error_followed = false;
  set_pending_call({});
  is_walked_by_frame = PyGen_CheckExact(iterator);
  PyObject* value = Py_TYPE(iterator)->tp_iternext(iterator);
  is_walked_by_frame = false;
  if (!value) {
    if (Tracker* t = tracker(); t && !term().is_made())
      t->give_up("an iterator that is not followed");
    if (PyErr_Occurred()) {
      if (!PyErr_ExceptionMatches(PyExc_StopIteration)) return Next::kError;
      PyErr_Clear();
    }
    Py_DECREF(pop());
    jump(i.unit + 1 + i.arg);
    return Next::kGo;
  }
  Term item;
  if (tracker()) item = walked_term(term(), value);
  push(value, item);
  return Next::kGo;
}

Evaluator::Next Evaluator::unpack(const Instruction& i) {
  const bool has_star = i.opcode == UNPACK_EX;
  const int before = has_star ? i.arg & 0xff : i.arg, after = has_star ? i.arg >> 8 : 0;
  PyObject* source = top();
  const bool is_tuple = PyTuple_Check(source) && Py_TYPE(source)->tp_iter == PyTuple_Type.tp_iter;
  const Py_ssize_t n = before + after;
  const bool is_direct = is_tuple || PyList_CheckExact(source);
  Tracker* t = tracker();
  std::vector<PyObject*> items;
  std::vector<Term> terms;
  const Term s = term();
  if (is_direct &&
      (has_star ? PySequence_Fast_GET_SIZE(source) >= n : PySequence_Fast_GET_SIZE(source) == n)) {
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(source); ++k) {
      items.push_back(Py_NewRef(PySequence_Fast_GET_ITEM(source, k)));
      Term each;
      if (t && s.is_made() && static_cast<size_t>(k) < t->made(s).items.size())
        each = t->made(s).items[static_cast<size_t>(k)];
      else if (t && s.is_same() && PyTuple_Check(source))
        each = t->same(items.back());
      else if (t && s.is_same())
        each = t->read_list_item(source, items.back());
      else if (t)
        t->give_up("a sequence that is not followed is unpacked");
      terms.push_back(each);
    }
    if (t && s.is_same() && PyList_CheckExact(source)) t->read_list(source);
  } else if (!unpack_iterable(source, before, has_star ? after : -1, &items, &terms)) {
    for (PyObject* o : items) Py_DECREF(o);
    return Next::kError;
  }
  t = tracker();
  PyObject* held = pop();
  const auto count = static_cast<Py_ssize_t>(items.size());
  for (Py_ssize_t k = count - 1; k >= count - after; --k)
    push(items[static_cast<size_t>(k)], terms[static_cast<size_t>(k)]);
  if (has_star) {
    PyObject* rest = PyList_New(count - n);
    for (Py_ssize_t k = before; rest && k < count - after; ++k)
      PyList_SET_ITEM(rest, k - before, items[static_cast<size_t>(k)]);
    Term m;
    if (t) {
      m = t->make(Made::Kind::kList, {terms.begin() + before, terms.end() - after},
                  {items.begin() + before, items.end() - after});
      t->own(m, rest);
    }
    push(rest, m);
  }
  for (int k = before - 1; k >= 0; --k)
    push(items[static_cast<size_t>(k)], terms[static_cast<size_t>(k)]);
  Py_DECREF(held);
  return Next::kGo;
}

// Takes the items of anything that can be iterated: `before` and `after` (-1: no star), and what is
// between. False: an error is set, in the interpreter's words.
bool Evaluator::unpack_iterable(PyObject* source, int before, int after,
                                std::vector<PyObject*>* items, std::vector<Term>* terms) {
  is_raise_followed_ = false;
  if (!Py_TYPE(source)->tp_iter && !PySequence_Check(source)) {
    PyErr_Format(PyExc_TypeError, "cannot unpack non-iterable %.200s object",
                 Py_TYPE(source)->tp_name);
    return false;
  }
  push(Py_NewRef(source), term());
  if (get_iterator() == Next::kError) {
    drop(1);
    return false;
  }
  PyObject* iterator = pop();
  const Term walk = terms_[static_cast<size_t>(sp_ - slots_)];
  const auto wanted = static_cast<size_t>(before);
  bool is_right = true;
  while (after >= 0 || items->size() <= wanted) {
    returned_term = {};
    is_escaped_error_followed = false;
    set_pending_call({});
    PyObject* value = PyIter_Next(iterator);
    if (!value) break;
    items->push_back(value);
    terms->push_back(tracker() ? walked_term(walk, value) : Term());
    if (after < 0 && items->size() > wanted) break;
  }
  Py_DECREF(iterator);
  if (PyErr_Occurred()) return false;
  const auto least = wanted + static_cast<size_t>(after < 0 ? 0 : after);
  if (items->size() < least) {
    if (after < 0)
      PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected %d, got %zd)", before,
                   static_cast<Py_ssize_t>(items->size()));
    else
      PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected at least %d, got %zd)",
                   before + after, static_cast<Py_ssize_t>(items->size()));
    is_right = false;
  } else if (after < 0 && items->size() > wanted) {
    PyErr_Format(PyExc_ValueError, "too many values to unpack (expected %d)", before);
    is_right = false;
  }
  is_raise_followed_ = !is_right && tracker();
  return is_right;
}

}  // namespace prong::capture
