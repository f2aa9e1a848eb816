// Containers and strings that instructions build, change and take apart. See evaluator.h.
#include <opcode.h>

#include "capture/evaluator.h"
#include "capture/session.h"

namespace prong::capture {

namespace {

bool is_container(Tracker& t, Term term) {
  if (!term.is_made()) return false;
  const Made::Kind k = t.made(term).kind;
  return k == Made::Kind::kTuple || k == Made::Kind::kList || k == Made::Kind::kDict ||
         k == Made::Kind::kSet;
}

}  // namespace

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
    if (t) t->own(m, made);
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
      t->own(m, made);
    } else if (t) {
      t->give_up("a tuple of values that are not followed");
    }
    Py_DECREF(pop());
    push(made, m);
    return Next::kGo;
  }
  case LIST_APPEND:
  case LIST_EXTEND:
  case SET_ADD:
  case SET_UPDATE:
  case MAP_ADD:
  case DICT_UPDATE:
  case DICT_MERGE:
    return update_container(i);
  case BUILD_SET: {
    PyObject* made = PySet_New(nullptr);
    if (!made) return Next::kError;
    for (int k = i.arg; k >= 1; --k) {
      if (t && !t->is_plain(term(k), top(k))) t->give_up("a set of values that are not plain");
      if (PySet_Add(made, top(k)) < 0) {
        Py_DECREF(made);
        return Next::kError;
      }
    }
    drop(i.arg);
    Term m;
    if (t && t->is_on()) m = t->adopt(made);
    push(made, m);
    return Next::kGo;
  }
  case BUILD_MAP:
  case BUILD_CONST_KEY_MAP: {
    const bool are_keys_apart = i.opcode == BUILD_CONST_KEY_MAP;
    PyObject* keys = are_keys_apart ? top() : nullptr;
    PyObject* made = PyDict_New();
    if (!made) return Next::kError;
    std::vector<Term> terms;
    std::vector<PyObject*> values, kept;
    for (int k = 0; k < i.arg; ++k) {
      const int at = are_keys_apart ? 1 + i.arg - k : 2 * (i.arg - k) - 1;
      PyObject* key = keys ? PyTuple_GET_ITEM(keys, k) : top(at + 1);
      if (t && !keys && !t->vouch(term(at + 1), key, true))
        t->give_up("a dict has a key of unknown origin");
      if (t && !term(at).is_known()) t->give_up("a container holds a value of unknown origin");
      if (PyDict_SetItem(made, key, top(at)) < 0) {
        Py_DECREF(made);
        return Next::kError;
      }
      terms.push_back(term(at));
      values.push_back(top(at));
      kept.push_back(key);
    }
    Term m;
    if (t && t->is_on()) {
      m = t->make(Made::Kind::kDict, {}, {});
      t->own(m, made);
      for (size_t k = 0; k < kept.size(); ++k) t->set_named(m, kept[k], values[k], terms[k]);
    }
    drop(are_keys_apart ? i.arg + 1 : 2 * i.arg);
    push(made, m);
    return Next::kGo;
  }
  case BUILD_SLICE: {
    PyObject* step = i.arg == 3 ? top(1) : nullptr;
    const int n = i.arg;
    bool plain = t != nullptr, has_numbers = false;
    std::vector<Term> items{term(n), term(n - 1), n == 3 ? term(1) : Term::same()};
    std::vector<PyObject*> objects{top(n), top(n - 1), step ? step : Py_None};
    for (size_t k = 0; k < 3 && plain; ++k) {
      has_numbers |= items[k].is_number();
      plain = items[k].is_number() || t->is_plain(items[k], objects[k]);
    }
    PyObject* made = PySlice_New(top(n), top(n - 1), step);
    if (!made) return Next::kError;
    Term m = Term::same();
    if (t && !plain) t->give_up("a slice of values that are not constants");
    if (t && plain && has_numbers) {
      m = t->make(Made::Kind::kSlice, std::move(items), std::move(objects));
      t->own(m, made);
    }
    drop(n);
    push(made, m);
    return Next::kGo;
  }
  case FORMAT_VALUE:
    return format_value(i);
  case BUILD_STRING:
    return build_string(i);
  default:
    return step_walk(i);
  }
}

// Instructions that add to the container below what is added.
Evaluator::Next Evaluator::update_container(const Instruction& i) {
  Tracker* t = tracker();
  const int count = i.opcode == MAP_ADD ? 2 : 1;
  PyObject* container = top(count + i.arg);
  const Term into = term(count + i.arg), added_term = term();
  PyObject* added = top();
  const bool is_shallow = i.opcode == LIST_APPEND || i.opcode == LIST_EXTEND ||
                          i.opcode == DICT_UPDATE || i.opcode == DICT_MERGE || i.opcode == MAP_ADD;
  if (t && !(is_container(*t, into) && added_term.is_known() &&
             (i.opcode == LIST_APPEND || i.opcode == MAP_ADD ||
              t->vouch(added_term, added, !is_shallow)) &&
             (i.opcode != MAP_ADD || t->vouch(term(2), top(2), true))))
    t->give_up("a container gets values that are not followed");
  std::vector<Term> terms;
  std::vector<PyObject*> values;
  if (t && i.opcode == LIST_EXTEND && added_term.is_made() &&
      (t->made(added_term).kind == Made::Kind::kTuple ||
       t->made(added_term).kind == Made::Kind::kList)) {
    terms = t->made(added_term).items;
    values = t->made(added_term).objects;
  }
  int done = 0;
  switch (i.opcode) {
  case LIST_APPEND:
    done = PyList_Append(container, added);
    break;
  case LIST_EXTEND: {
    PyObject* none = _PyList_Extend(reinterpret_cast<PyListObject*>(container), added);
    done = none ? 0 : -1;
    Py_XDECREF(none);
    if (done < 0 && PyErr_ExceptionMatches(PyExc_TypeError) && !Py_TYPE(added)->tp_iter &&
        !PySequence_Check(added)) {
      PyErr_Clear();
      PyErr_Format(PyExc_TypeError, "Value after * must be an iterable, not %.200s",
                   Py_TYPE(added)->tp_name);
    }
    break;
  }
  case SET_ADD:
    done = PySet_Add(container, added);
    break;
  case SET_UPDATE:
    done = _PySet_Update(container, added);
    break;
  case MAP_ADD:
    done = PyDict_SetItem(container, top(2), added);
    break;
  default:
    // Others than dicts, and keywords given twice, are refused in words of the interpreter's own.
    if (!PyDict_CheckExact(added) || (i.opcode == DICT_MERGE && PyDict_GET_SIZE(container) != 0))
      return Next::kInterpret;
    done = PyDict_Update(container, added);
  }
  if (done < 0) return Next::kError;
  if (t = tracker(); t && i.opcode == LIST_APPEND) t->append(into, added, added_term);
  if (t && i.opcode == LIST_EXTEND && added_term.is_tensor()) {
    t->pin_size(added, 0);
    const Py_ssize_t n = PyList_GET_SIZE(container);
    for (Py_ssize_t k = n - door().impl_of(added)->sizes[0]; k < n; ++k) {
      values.push_back(PyList_GET_ITEM(container, k));
      terms.push_back(t->tensor_result(values.back()));
    }
  }
  if (t && !terms.empty()) t->extend(into, values, terms);
  if (t && i.opcode == MAP_ADD) t->set_named(into, top(2), added, added_term);
  drop(count);
  return Next::kGo;
}

Evaluator::Next Evaluator::delete_item() {
  PyObject *key = top(1), *container = top(2);
  if (Tracker* t = tracker();
      t && !((is_container(*t, term(2)) ||
              (term(2).is_made() && t->made(term(2)).kind == Made::Kind::kInstance)) &&
             t->vouch(term(1), key, true))) {
    t->note_changed(container);
    t->give_up("an item of a container is deleted");
  }
  if (Tracker* t = tracker()) t->pin_twins(std::vector<Term>{term(2)});
  if (PyObject_DelItem(container, key) < 0) return Next::kError;
  drop(2);
  return Next::kGo;
}

}  // namespace prong::capture
