// Operators, subscripts and containers. See evaluator.h.
#include <opcode.h>

#include "capture/evaluator.h"
#include "capture/session.h"

namespace prong::capture {

namespace {

bool is_plain_number(PyObject* o) {
  return PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o);
}

// An index of a tensor that is the same, or made of tensors and constants, at each call.
bool is_index(Tracker& t, Term k, PyObject* key) {
  if (k.is_tensor()) return true;
  if (k.is_number()) return t.is_plain(k, key);
  if (k.is_same()) return is_plain_value(key) || PySlice_Check(key);
  if (!k.is_made() || t.made(k).kind != Made::Kind::kTuple) return false;
  const Made& m = t.made(k);
  for (size_t i = 0; i < m.items.size(); ++i)
    if (!is_index(t, m.items[i], m.objects[i])) return false;
  return true;
}

// The Python function __iter__ of an object's class, with guards on it; null: none. Borrowed.
PyObject* iteration_method(Tracker& t, PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return nullptr;
  static PyObject* name = PyUnicode_InternFromString("__iter__");
  PyObject* method = _PyType_Lookup(type, name);
  if (!method || !PyFunction_Check(method)) return nullptr;
  t.read_type(type);
  t.read_type_of(object);
  return method;
}

// The term of an operator's result; code as for apply_operator, -1: a unary one.
Term operator_term(Tracker& t, int code, uint64_t nodes_before, PyObject* a, Term ta, PyObject* b,
                   Term tb, PyObject* result) {
  const auto is_plain = [](Term term, PyObject* o) { return term.is_same() && is_plain_value(o); };
  const auto is_known_number = [&](Term term, PyObject* o) {
    return term.is_number() || (is_plain(term, o) && is_plain_number(o));
  };
  if ((ta.is_number() || tb.is_number()) && is_known_number(ta, a) && is_known_number(tb, b)) {
    if (code >= 0 && (PyBool_Check(result) || PyLong_CheckExact(result) ||
                      PyFloat_CheckExact(result)))
      return t.number_result(code, a, ta, b, tb, result);
    t.is_plain(ta, a);
    t.is_plain(tb, b);
    return Term::same();
  }
  if (is_plain(ta, a) && is_plain(tb, b) && is_plain_value(result)) return Term::same();
  const bool a_fits = ta.is_tensor() || is_known_number(ta, a),
             b_fits = tb.is_tensor() || is_known_number(tb, b);
  if (a_fits && b_fits) {
    const Term terms[] = {ta, tb};
    PyObject* const values[] = {a, b};
    t.bind_numbers(nodes_before, nullptr, terms, values);
    return t.tensor_result(result);
  }
  t.give_up("an operator on values that are not followed");
  return {};
}

}  // namespace

Evaluator::Next Evaluator::step_operator(const Instruction& i) {
  switch (i.opcode) {
  case UNARY_POSITIVE:
  case UNARY_NEGATIVE:
  case UNARY_INVERT:
  case UNARY_NOT: {
    PyObject* a = top();
    const Term ta = term();
    PyObject* result;
    if (i.opcode == UNARY_NOT) {
      Tracker* t = tracker();
      if (t && ta.is_same() && is_dict(a))
        t->read_length(a);
      else if (t && !t->is_plain(ta, a))
        t->give_up("`not` of a value that is not the same each time");
      const int truth = PyObject_IsTrue(a);
      if (truth < 0) return Next::kError;
      result = PyBool_FromLong(!truth);
      Py_DECREF(pop());
      push(result, Term::same());
      return Next::kGo;
    }
    const uint64_t nodes = thread_recorder().num_recorded();
    result = i.opcode == UNARY_POSITIVE   ? PyNumber_Positive(a)
             : i.opcode == UNARY_NEGATIVE ? PyNumber_Negative(a)
                                          : PyNumber_Invert(a);
    if (!result) return Next::kError;
    Term term;
    if (Tracker* t = tracker()) term = operator_term(*t, -1, nodes, a, ta, a, ta, result);
    Py_DECREF(pop());
    push(result, term);
    return Next::kGo;
  }
  case BINARY_OP:
  case COMPARE_OP: {
    PyObject *b = top(1), *a = top(2);
    const int code = i.opcode == BINARY_OP ? i.arg : kCompare + i.arg;
    const uint64_t nodes = thread_recorder().num_recorded();
    PyObject* result = apply_operator(code, a, b);
    if (!result) return Next::kError;
    Term made;
    if (Tracker* t = tracker()) 
      made = operator_term(*t, code, nodes, a, term(2), b, term(1), result);
    drop(2);
    push(result, made);
    return Next::kGo;
  }
  case IS_OP: {
    PyObject *b = top(1), *a = top(2);
    if (Tracker* t = tracker()) {
      const bool is_none_test =
          (a == Py_None && term(2).is_same()) || (b == Py_None && term(1).is_same());
      const auto fixed = [&](Term x, PyObject* o) {
        return x.is_same() && !(is_plain_value(o) && !PyBool_Check(o) && o != Py_None);
      };
      if (!(is_none_test && term(1).is_known() && term(2).is_known()) &&
          !(fixed(term(1), b) && fixed(term(2), a)))
        t->give_up("`is` between values whose identity is not followed");
    }
    const bool holds = (a == b) != (i.arg != 0);
    drop(2);
    push(PyBool_FromLong(holds), Term::same());
    return Next::kGo;
  }
  case CONTAINS_OP: {
    PyObject *container = top(1), *item = top(2);
    const int found = PySequence_Contains(container, item);
    if (found < 0) return Next::kError;
    if (Tracker* t = tracker()) {
      const bool is_key = t->is_plain(term(2), item);
      if (is_key && term(1).is_same() && is_dict(container)) {
        t->read_dict(container, item, PyDict_GetItem(container, item));
      } else if (!(is_key && t->is_plain(term(1), container)) &&
                 !(is_key && term(1).is_made() && t->made(term(1)).kind == Made::Kind::kDict)) {
        t->give_up("`in` on values that are not followed");
      }
    }
    drop(2);
    push(PyBool_FromLong((found != 0) != (i.arg != 0)), Term::same());
    return Next::kGo;
  }
  case BINARY_SUBSCR: {
    PyObject *key = top(1), *container = top(2);
    PyObject* value = PyObject_GetItem(container, key);
    if (!value) return Next::kError;
    const Term made = subscript_term(container, term(2), key, term(1), value);
    drop(2);
    push(value, made);
    return Next::kGo;
  }
  default: {  // STORE_SUBSCR
    PyObject *key = top(1), *container = top(2), *value = top(3);
    const bool is_op = term(2).is_tensor() && (term(3).is_tensor() || term(3).is_same()) &&
                       term(1).is_same() && is_plain_value(key);
    if (Tracker* t = tracker(); t && !is_op) {
      if (term(2).is_made() && t->made(term(2)).kind == Made::Kind::kDict &&
          t->is_plain(term(1), key) && term(3).is_known()) {
        Made& m = t->made(term(2));
        size_t at = 0;
        while (at < m.keys.size() && !same_value(m.keys[at].get(), key)) ++at;
        if (at == m.keys.size()) {
          m.keys.emplace_back(key);
          m.items.emplace_back();
          m.objects.emplace_back();
        }
        m.items[at] = term(3);
        m.objects[at] = value;
      } else if (term(2).is_made() && t->made(term(2)).kind == Made::Kind::kList &&
                 PyLong_CheckExact(key) && term(1).is_same() && term(3).is_known()) {
        Made& m = t->made(term(2));
        Py_ssize_t at = PyLong_AsSsize_t(key);
        if (at < 0) at += static_cast<Py_ssize_t>(m.items.size());
        if (at >= 0 && at < static_cast<Py_ssize_t>(m.items.size())) {
          m.items[static_cast<size_t>(at)] = term(3);
          m.objects[static_cast<size_t>(at)] = value;
        }
      } else {
        t->give_up("an item of a container is assigned");
      }
    }
    const int done = PyObject_SetItem(container, key, value);
    if (done < 0) return Next::kError;
    drop(3);
    return Next::kGo;
  }
  }
}

Term Evaluator::subscript_term(PyObject* container, Term c, PyObject* key, Term k,
                               PyObject* value) {
  Tracker* t = tracker();
  if (!t) return {};
  const bool is_key = t->is_plain(k, key);
  if (c.is_tensor() && is_index(*t, k, key)) return t->tensor_result(value);
  if (c.is_made() && is_key) {
    const Made& m = t->made(c);
    if (m.kind == Made::Kind::kDict) {
      for (size_t i = 0; i < m.keys.size(); ++i)
        if (same_value(m.keys[i].get(), key)) return m.items[i];
    } else if (PyLong_CheckExact(key) &&
               (m.kind == Made::Kind::kTuple || m.kind == Made::Kind::kList)) {
      Py_ssize_t at = PyLong_AsSsize_t(key);
      if (at < 0) at += static_cast<Py_ssize_t>(m.items.size());
      if (at >= 0 && at < static_cast<Py_ssize_t>(m.items.size()))
        return m.items[static_cast<size_t>(at)];
    }
  }
  if (c.is_same() && is_key) {
    if (is_plain_value(container) && is_plain_value(value)) return Term::same();
    if (is_dict(container)) return t->read_dict(container, key, value);
    if (PyTuple_CheckExact(container)) return PyLong_CheckExact(key) ? t->same(value) : Term();
    if (PyList_CheckExact(container) && PyLong_CheckExact(key))
      return t->read_list_item(container, value);
    if (PyTuple_Check(container) && is_plain_value(value))
      return Term::same();  // a Size, as recorded
  }
  t->give_up("an item of a container that is not followed");
  return {};
}

Evaluator::Next Evaluator::step_container(const Instruction& i) {
  Tracker* t = tracker();
  switch (i.opcode) {
  case BUILD_TUPLE:
  case BUILD_LIST: {
    const bool is_tuple = i.opcode == BUILD_TUPLE;
    PyObject* made = is_tuple ? PyTuple_New(i.arg) : PyList_New(i.arg);
    if (!made) return Next::kError;
    std::vector<Term> items;
    std::vector<PyObject*> objects;
    bool all_plain = true;
    for (int k = 0; k < i.arg; ++k) {
      PyObject* item = top(i.arg - k);
      items.push_back(term(i.arg - k));
      objects.push_back(item);
      all_plain = all_plain && items.back().is_same() && is_plain_value(item);
      if (is_tuple)
        PyTuple_SET_ITEM(made, k, item);
      else
        PyList_SET_ITEM(made, k, item);
    }
    sp_ -= i.arg;
    Term m;
    if (t)
      m = is_tuple && all_plain ? Term::same()
                                : t->make(is_tuple ? Made::Kind::kTuple : Made::Kind::kList,
                                          std::move(items), std::move(objects));
    push(made, m);
    return Next::kGo;
  }
  case LIST_TO_TUPLE: {
    PyObject* made = PyList_AsTuple(top());
    if (!made) return Next::kError;
    Term m;
    if (t && term().is_made()) {
      const Made& from = t->made(term());
      m = t->make(Made::Kind::kTuple, from.items, from.objects);
    } else if (t) {
      t->give_up("a tuple of values that are not followed");
    }
    Py_DECREF(pop());
    push(made, m);
    return Next::kGo;
  }
  case LIST_EXTEND: {
    PyObject* items = top();
    PyObject* list = top(1 + i.arg);
    if (t) {
      const Term into = term(1 + i.arg), from = term();
      if (into.is_made() && from.is_same() && PyTuple_CheckExact(items)) {
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(items); ++k) {
          const Term item = t->same(PyTuple_GET_ITEM(items, k));
          t->made(into).items.push_back(item);
          t->made(into).objects.push_back(PyTuple_GET_ITEM(items, k));
        }
      } else if (into.is_made() && from.is_made() &&
                 (t->made(from).kind == Made::Kind::kTuple ||
                  t->made(from).kind == Made::Kind::kList)) {
        const std::vector<Term> terms = t->made(from).items;
        const std::vector<PyObject*> objects = t->made(from).objects;
        Made& m = t->made(into);
        m.items.insert(m.items.end(), terms.begin(), terms.end());
        m.objects.insert(m.objects.end(), objects.begin(), objects.end());
      } else {
        t->give_up("a list is extended by values that are not followed");
      }
    }
    PyObject* none = _PyList_Extend(reinterpret_cast<PyListObject*>(list), items);
    if (!none) {
      if (PyErr_ExceptionMatches(PyExc_TypeError) && !Py_TYPE(items)->tp_iter &&
          !PySequence_Check(items)) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "Value after * must be an iterable, not %.200s",
                     Py_TYPE(items)->tp_name);
      }
      return Next::kError;
    }
    Py_DECREF(none);
    Py_DECREF(pop());
    return Next::kGo;
  }
  case LIST_APPEND: {
    PyObject* list = top(1 + i.arg);
    if (PyList_Append(list, top()) < 0) return Next::kError;
    if (t) {
      const Term into = term(1 + i.arg);
      if (into.is_made() && term().is_known()) {
        t->made(into).items.push_back(term());
        t->made(into).objects.push_back(top());
      } else {
        t->give_up("a list of values that are not followed");
      }
    }
    Py_DECREF(pop());
    return Next::kGo;
  }
  case MAP_ADD: {
    lose("a dict comprehension");
    PyObject* dict = top(2 + i.arg);
    if (PyDict_SetItem(dict, top(2), top(1)) < 0) return Next::kError;
    drop(2);
    return Next::kGo;
  }
  case BUILD_MAP: {
    PyObject* made = PyDict_New();
    if (!made) return Next::kError;
    std::vector<Term> items;
    std::vector<PyObject*> objects;
    std::vector<Kept> keys;
    for (int k = 0; k < i.arg; ++k) {
      PyObject *key = top(2 * (i.arg - k)), *value = top(2 * (i.arg - k) - 1);
      if (PyDict_SetItem(made, key, value) < 0) {
        Py_DECREF(made);
        return Next::kError;
      }
      if (t && !t->is_plain(term(2 * (i.arg - k)), key))
        t->give_up("a dict with keys that are not constants");
      items.push_back(term(2 * (i.arg - k) - 1));
      objects.push_back(value);
      keys.emplace_back(key);
    }
    if (t && PyDict_GET_SIZE(made) != i.arg) t->give_up("a dict with one key twice");
    Term m;
    if (t && t->is_on()) m = t->make(Made::Kind::kDict, std::move(items), std::move(objects));
    if (m.is_made()) t->made(m).keys = std::move(keys);
    drop(2 * i.arg);
    push(made, m);
    return Next::kGo;
  }
  case BUILD_CONST_KEY_MAP: {
    PyObject* keys = top();
    PyObject* made = PyDict_New();
    if (!made) return Next::kError;
    std::vector<Term> items;
    std::vector<PyObject*> objects;
    std::vector<Kept> kept;
    for (int k = 0; k < i.arg; ++k) {
      PyObject* value = top(1 + i.arg - k);
      if (PyDict_SetItem(made, PyTuple_GET_ITEM(keys, k), value) < 0) {
        Py_DECREF(made);
        return Next::kError;
      }
      items.push_back(term(1 + i.arg - k));
      objects.push_back(value);
      kept.emplace_back(PyTuple_GET_ITEM(keys, k));
    }
    if (t && PyDict_GET_SIZE(made) != i.arg) t->give_up("a dict with one key twice");
    Term m;
    if (t && t->is_on()) m = t->make(Made::Kind::kDict, std::move(items), std::move(objects));
    if (m.is_made()) t->made(m).keys = std::move(kept);
    drop(i.arg + 1);
    push(made, m);
    return Next::kGo;
  }
  case BUILD_SLICE: {
    PyObject* step = i.arg == 3 ? top(1) : nullptr;
    const int n = i.arg;
    bool plain = t != nullptr;
    for (int k = 1; k <= n; ++k) plain = plain && t->is_plain(term(k), top(k));
    PyObject* made = PySlice_New(top(n), top(n - 1), step);
    if (!made) return Next::kError;
    if (t && !plain) t->give_up("a slice of values that are not constants");
    drop(n);
    push(made, Term::same());
    return Next::kGo;
  }
  case FORMAT_VALUE:
    return format_value(i);
  case BUILD_STRING: {
    PyObject* parts = PyTuple_New(i.arg);
    PyObject* empty = parts ? PyUnicode_FromString("") : nullptr;
    bool plain = true;
    for (int k = 0; empty && k < i.arg; ++k) {
      PyTuple_SET_ITEM(parts, k, Py_NewRef(top(i.arg - k)));
      plain = plain && t && t->is_plain(term(i.arg - k), top(i.arg - k));
    }
    PyObject* joined = empty ? PyUnicode_Join(empty, parts) : nullptr;
    Py_XDECREF(parts);
    Py_XDECREF(empty);
    if (!joined) return Next::kError;
    if (t && !plain) t->give_up("a string of values that are not constants");
    drop(i.arg);
    push(joined, Term::same());
    return Next::kGo;
  }
  case DICT_MERGE: {
    PyObject *more = top(), *dict = top(1 + i.arg);
    // The first keywords of a call; a second dict may repeat some, which the interpreter refuses in
    // words of its own.
    if (!PyDict_CheckExact(more) || PyDict_GET_SIZE(dict) != 0) return Next::kInterpret;
    if (t) {
      const Term from = term(), into = term(1 + i.arg);
      if (into.is_made() && from.is_made() && t->made(from).kind == Made::Kind::kDict) {
        for (size_t k = 0; k < t->made(from).items.size(); ++k) {
          t->made(into).keys.emplace_back(t->made(from).keys[k].get());
          t->made(into).items.push_back(t->made(from).items[k]);
          t->made(into).objects.push_back(t->made(from).objects[k]);
        }
      } else {
        t->give_up("keyword arguments from a dict that is not followed");
      }
    }
    if (PyDict_Update(dict, more) < 0) return Next::kError;
    Py_DECREF(pop());
    return Next::kGo;
  }
  case BUILD_SET:
  case SET_ADD:
  case DICT_UPDATE:
    return Next::kInterpret;
  case GET_LEN: {
    const Py_ssize_t n = PyObject_Size(top());
    if (n < 0) return Next::kError;
    PyObject* length = PyLong_FromSsize_t(n);
    if (!length) return Next::kError;
    lose("the length of a matched subject");
    push(length, {});
    return Next::kGo;
  }
  case UNPACK_SEQUENCE:
    return unpack(i);
  case GET_ITER: {
    PyObject* source = top();
    const std::vector<Term> self{term()};
    PyObject* method = t && self[0].is_same() ? iteration_method(*t, source) : nullptr;
    set_pending_call(method ? PendingCall{method, &self, nullptr, 1, {}} : PendingCall{});
    returned_term = {};
    PyObject* iterator = PyObject_GetIter(source);
    set_pending_call({});
    if (!iterator) return Next::kError;
    Term m;
    if (method) {
      m = returned_term;
    } else if (t) {
      const Term s = term();
      const bool followed =
          (s.is_made() && t->made(s).kind != Made::Kind::kDict) ||
          (s.is_same() && (PyRange_Check(source) || PyTuple_CheckExact(source) ||
                           PyList_CheckExact(source) || PyUnicode_CheckExact(source)));
      if (s.is_made() && t->made(s).kind == Made::Kind::kIterator) {
        m = s;
      } else if (followed) {
        if (s.is_same() && PyList_CheckExact(source)) t->read_list(source);
        m = t->make(Made::Kind::kIterator, {}, {});
        t->made(m).source = s;
        t->made(m).keys.emplace_back(source);
      } else if (s.is_tensor()) {
        t->looked_at_sizes();
        t->give_up("iteration over a tensor");
      } else {
        t->give_up("iteration over something that is not followed");
      }
    }
    Py_DECREF(pop());
    push(iterator, m);
    return Next::kGo;
  }
  case FOR_ITER:
    return for_iter(i);
  default:
    return Next::kInterpret;
  }
}

Evaluator::Next Evaluator::format_value(const Instruction& i) {
  PyObject* spec = i.arg & 4 ? top(1) : nullptr;
  const int at = spec ? 2 : 1;
  PyObject* value = top(at);
  if (Tracker* t = tracker();
      t && !(t->is_plain(term(at), value) && (!spec || t->is_plain(term(1), spec))))
    t->give_up("a string of values that are not constants");
  PyObject* converted = nullptr;
  switch (i.arg & 3) {
  case 1:
    converted = PyObject_Str(value);
    break;
  case 2:
    converted = PyObject_Repr(value);
    break;
  case 3:
    converted = PyObject_ASCII(value);
    break;
  default:
    converted = Py_NewRef(value);
  }
  if (!converted) return Next::kError;
  if (!PyUnicode_CheckExact(converted) || spec) {
    PyObject* formatted = PyObject_Format(converted, spec);
    Py_DECREF(converted);
    if (!formatted) return Next::kError;
    converted = formatted;
  }
  drop(at);
  push(converted, Term::same());
  return Next::kGo;
}

Evaluator::Next Evaluator::for_iter(const Instruction& i) {
  PyObject* iterator = top();
  PyObject* value = Py_TYPE(iterator)->tp_iternext(iterator);
  if (!value) {
    if (PyErr_Occurred()) {
      if (!PyErr_ExceptionMatches(PyExc_StopIteration)) return Next::kError;
      PyErr_Clear();
    }
    Py_DECREF(pop());
    jump(i.unit + 1 + i.arg);
    return Next::kGo;
  }
  Term item;
  if (Tracker* t = tracker()) {
    if (!term().is_made()) {
      t->give_up("an iterator that is not followed");
    } else {
      Made& m = t->made(term());
      const size_t at = m.position++;
      PyObject* source = m.keys[0].get();
      if (m.source.is_made()) {
        const Made& from = t->made(m.source);
        if (at < from.items.size() && (from.objects[at] == value || !from.objects[at]))
          item = from.items[at];
        else
          t->give_up("a list changed while it was walked");
      } else if (PyRange_Check(source) || PyUnicode_CheckExact(source)) {
        item = Term::same();
      } else {
        item = t->same(value);
      }
    }
  }
  push(value, item);
  return Next::kGo;
}

Evaluator::Next Evaluator::unpack(const Instruction& i) {
  PyObject* source = top();
  // Other lengths and other types have messages of their own in the interpreter.
  const bool is_tuple =
      PyTuple_Check(source) && Py_TYPE(source)->tp_iter == PyTuple_Type.tp_iter;
  if (!(is_tuple || PyList_CheckExact(source)) ||
      PySequence_Fast_GET_SIZE(source) != i.arg)
    return Next::kInterpret;
  std::vector<Term> terms(static_cast<size_t>(i.arg));
  if (Tracker* t = tracker()) {
    const Term s = term();
    for (int k = 0; k < i.arg; ++k) {
      if (s.is_made() && t->made(s).items.size() == static_cast<size_t>(i.arg))
        terms[static_cast<size_t>(k)] = t->made(s).items[static_cast<size_t>(k)];
      else if (s.is_same() && PyTuple_Check(source))
        terms[static_cast<size_t>(k)] = t->same(PyTuple_GET_ITEM(source, k));
      else if (s.is_same())
        terms[static_cast<size_t>(k)] = t->read_list_item(source, PyList_GET_ITEM(source, k));
      else
        t->give_up("a sequence that is not followed is unpacked");
    }
  }
  PyObject* held = pop();
  for (int k = i.arg - 1; k >= 0; --k)
    push(Py_NewRef(PySequence_Fast_GET_ITEM(held, k)), terms[static_cast<size_t>(k)]);
  Py_DECREF(held);
  return Next::kGo;
}

}  // namespace prong::capture
