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
  if (k.is_tensor() || k.is_number()) return true;
  if (k.is_same() && (is_plain_value(key) || PySlice_Check(key) || PyRange_Check(key))) return true;
  if (k.is_made() && t.made(k).kind == Made::Kind::kSlice) return true;
  if (PyTuple_CheckExact(key) && (k.is_same() || k.is_made())) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) {
      const Term item = k.is_made() ? t.made(k).items[static_cast<size_t>(i)] : Term::same();
      if (!is_index(t, item, PyTuple_GET_ITEM(key, i))) return false;
    }
    return true;
  }
  return PyList_CheckExact(key) && is_data(t, k, key);
}

constexpr int kFirstInPlace = 13;  // among the arguments of BINARY_OP

// The term of an operator's result; code as for apply_operator.
Term operator_term(Tracker& t, int code, uint64_t nodes_before, PyObject* a, Term ta, PyObject* b,
                   Term tb, PyObject* result) {
  const auto is_plain = [](Term term, PyObject* o) { return term.is_same() && is_plain_value(o); };
  const auto is_known_number = [&](Term term, PyObject* o) {
    return term.is_number() || (is_plain(term, o) && is_plain_number(o));
  };
  if (!is_unary(code) && PyUnicode_CheckExact(a))
    if (const Term text = t.text_operator(code, a, ta, b, tb, result); text.is_known()) return text;
  if ((ta.is_number() || tb.is_number()) && is_known_number(ta, a) && is_known_number(tb, b)) {
    if (code >= 0 &&
        (PyBool_Check(result) || PyLong_CheckExact(result) || PyFloat_CheckExact(result)))
      return is_unary(code) ? t.number_unary(code, a, ta, result)
                            : t.number_result(code, a, ta, b, tb, result);
    t.is_plain(ta, a);
    t.is_plain(tb, b);
    return Term::same();
  }
  if (is_plain(ta, a) && is_plain(tb, b) && is_plain_value(result)) return Term::same();
  if (!is_unary(code))
    if (const auto term = t.tuple_operator(code, a, ta, b, tb, result)) return *term;
  const bool a_fits = ta.is_tensor() || is_known_number(ta, a),
             b_fits = tb.is_tensor() || is_known_number(tb, b);
  if (a_fits && b_fits) {
    const Term terms[] = {ta, tb};
    PyObject* const values[] = {a, b};
    if (!is_unary(code)) t.bind_numbers(nodes_before, {nullptr, terms, values});
    return t.tensor_result(result);
  }
  const bool changes_outside =
      code >= kFirstInPlace && code < kCompare && ta.is_same() && result == a;
  if (!changes_outside && t.vouch(ta, a, true) && t.vouch(tb, b, true))
    if (const Term found = t.adopt(result); found.is_known()) return found;
  if (changes_outside) t.note_changed(a);
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
      Term negated = Term::same();
      if (t && ta.is_same() && is_dict(a))
        t->read_length(a);
      else if (t && ta.is_number())
        negated = t->number_unary(kNot, a, ta, PyObject_IsTrue(a) ? Py_False : Py_True);
      else if (t && !t->is_plain(ta, a) && (ta.is_tensor() || !t->vouch(ta, a, false)))
        t->give_up("`not` of a value that is not the same each time");
      const int truth = PyObject_IsTrue(a);
      if (truth < 0) return Next::kError;
      result = PyBool_FromLong(!truth);
      Py_DECREF(pop());
      push(result, negated);
      return Next::kGo;
    }
    const uint64_t nodes = thread_recorder().num_recorded();
    const int code = i.opcode == UNARY_POSITIVE   ? kPositive
                     : i.opcode == UNARY_NEGATIVE ? kNegative
                                                  : kInvert;
    result = apply_operator(code, a, nullptr);
    if (!result) return Next::kError;
    Term term;
    if (Tracker* t = tracker()) term = operator_term(*t, code, nodes, a, ta, a, ta, result);
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
        return x.is_made() ||
               (x.is_same() && !(is_plain_value(o) && !PyBool_Check(o) && o != Py_None));
      };
      const bool is_of_tensors =
          term(1).is_tensor() && term(2).is_tensor() && t->is_identity_fixed(a, b);
      if (!is_none_test && (t->is_container_argument(a) || t->is_container_argument(b)))
        t->give_up("`is` of a container that is passed");
      if (!is_of_tensors && !(is_none_test && term(1).is_known() && term(2).is_known()) &&
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
    Tracker* t = tracker();
    if (t && term(2).is_number())
      if (const auto is_in = t->number_in(term(2), item, term(1), container, found != 0)) {
        PyObject* const answer = (found != 0) != (i.arg != 0) ? Py_True : Py_False;
        const Term is_so =
            i.arg ? t->number_unary(kNot, found ? Py_True : Py_False, *is_in, answer) : *is_in;
        drop(2);
        push(Py_NewRef(answer), is_so);
        return Next::kGo;
      }
    if (t) {
      const bool is_key = t->is_plain(term(2), item);
      if (is_key && term(1).is_same() && is_dict(container)) {
        t->read_dict(container, item, PyDict_GetItem(container, item));
      } else if (!(is_key && t->is_plain(term(1), container)) &&
                 !(is_key && term(1).is_made() && t->made(term(1)).kind == Made::Kind::kDict) &&
                 !(t->vouch(term(1), container, true) && t->vouch(term(2), item, true))) {
        t->give_up("`in` on values that are not followed");
      }
    }
    drop(2);
    push(PyBool_FromLong((found != 0) != (i.arg != 0)), Term::same());
    return Next::kGo;
  }
  case BINARY_SUBSCR: {
    PyObject *key = top(1), *container = top(2);
    const uint64_t nodes = thread_recorder().num_recorded();
    PyObject* index = tracker() && term(2).is_tensor() ? with_index_tensors(key, term(1)) : nullptr;
    PyObject* value = PyErr_Occurred() ? nullptr : PyObject_GetItem(container, index ? index : key);
    Py_XDECREF(index);
    if (!value) return Next::kError;
    Tracker* t = tracker();
    if (t && term(2).is_tensor() && is_index(*t, term(1), key)) t->bind_index(nodes, term(1), key);
    const Term made = subscript_term(container, term(2), key, term(1), value);
    drop(2);
    push(value, made);
    return Next::kGo;
  }
  default: {  // STORE_SUBSCR
    PyObject *key = top(1), *container = top(2), *value = top(3);
    Tracker* const outer = tracker();
    const bool is_op = outer && term(2).is_tensor() &&
                       (term(3).is_tensor() || term(3).is_number() ||
                        (term(3).is_same() && !door().is_tensor(value))) &&
                       is_index(*outer, term(1), key);
    const uint64_t nodes = thread_recorder().num_recorded();
    if (Tracker* t = tracker(); t && !is_op) {
      const bool is_followed = term(2).is_made()
                                   ? term(3).is_known() && t->vouch(term(1), key, true)
                                   : term(2).is_same() && t->is_plain(term(1), key) &&
                                         t->write_item(container, key, value, term(3));
      if (PySlice_Check(key)) t->pin_twins(std::vector<Term>{term(2), term(3)});
      if (!is_followed) t->note_changed(container);
      if (!is_followed) t->give_up("an item of a container is assigned");
      if (PySlice_Check(key)) t->pin_twins(std::vector<Term>{term(2), term(3)});
    }
    PyObject* index = is_op ? with_index_tensors(key, term(1)) : nullptr;
    const int done =
        PyErr_Occurred() ? -1 : PyObject_SetItem(container, index ? index : key, value);
    Py_XDECREF(index);
    if (done < 0) return Next::kError;
    if (Tracker* t = tracker(); t && term(2).is_made() && term(3).is_known())
      t->set_item(term(2), key, value, term(3));
    if (Tracker* t = tracker(); t && is_op) t->bind_index(nodes, term(1), key, term(3), value);
    drop(3);
    return Next::kGo;
  }
  }
}

Term Evaluator::subscript_term(PyObject* container, Term c, PyObject* key, Term k,
                               PyObject* value) {
  Tracker* t = tracker();
  if (!t) return {};
  if (c.is_tensor() && is_index(*t, k, key)) return t->tensor_result(value);
  if (c.is_made() && PySlice_Check(key)) {
    t->pin_all({&k, 1});
    if (const auto part = t->item_of_tuple(c, key, value)) return *part;
  }
  const bool is_key = t->is_plain(k, key);
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
  const bool is_tensor_key = k.is_tensor() && t->is_object(key);
  if (c.is_same() && (is_key || is_tensor_key) && is_any_dict(container) &&
      PyDict_GetItemWithError(container, key) == value)  // a defaultdict has it by now
    return t->read_dict(container, key, value);
  if (c.is_same() && is_key) {
    if (is_plain_value(container) && is_plain_value(value)) return Term::same();
    if (is_dict(container)) return t->read_dict(container, key, value);
    if (PyTuple_CheckExact(container)) return PyLong_CheckExact(key) ? t->same(value) : Term();
    if (PyList_CheckExact(container) && PyLong_CheckExact(key))
      return t->read_list_item(container, value);
    if (PyTuple_Check(container) && is_plain_value(value))
      return Term::same();  // a Size, as recorded
  }
  if (!c.is_tensor() && t->vouch(c, container, false) && t->vouch(k, key, true))
    if (const Term found = t->adopt(value); found.is_known()) return found;
  t->give_up("an item of a container that is not followed");
  return {};
}

}  // namespace prong::capture
