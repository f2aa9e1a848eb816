// Tensors that a call makes of Python data. A plan keeps constant data as a tensor of its own and
// copies it in each replay; a lone number is filled in. Called by evaluate_calls.cpp and
// evaluate_operators.cpp.
#include "capture/evaluator.h"
#include "capture/session.h"
#include "capture/tracker.h"

namespace prong::capture {

namespace {

bool becomes_index(PyObject* item) {
  return PyList_CheckExact(item) || PyTuple_CheckExact(item) || Py_IS_TYPE(item, &PyRange_Type);
}

}  // namespace

bool is_data(Tracker& t, Term term, PyObject* value) {
  if (term.is_number()) return true;
  if (term.is_same() && is_plain_value(value)) return true;
  if (!PyList_CheckExact(value) && !PyTuple_CheckExact(value)) return false;
  if (term.is_same()) {
    if (PyList_CheckExact(value)) t.read_list(value);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i)
      if (!is_data(t, Term::same(), PySequence_Fast_GET_ITEM(value, i))) return false;
    return t.is_on();
  }
  if (!term.is_made()) return false;
  const std::vector<Term> items = t.made(term).items;
  const std::vector<PyObject*> objects = t.made(term).objects;
  for (size_t i = 0; i < items.size(); ++i)
    if (!is_data(t, items[i], objects[i])) return false;
  return true;
}

// torch.tensor(...) and the like.
PyObject* Evaluator::make_tensor(PyObject* callable, PyObject* const* args,
                                 const std::vector<Term>& terms, PyObject* kwnames, Term* result) {
  const auto by_name = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  const size_t count = terms.size() - static_cast<size_t>(by_name);
  PyObject* made = PyObject_Vectorcall(callable, args, count, kwnames);
  Tracker* t = tracker();
  if (!made || !t) return made;
  bool fits = count == 1 && door().is_exact_tensor(made) && !door().impl_of(made)->requires_grad &&
              is_data(*t, terms[0], args[0]);
  for (size_t i = 1; i < terms.size(); ++i) fits = fits && terms[i].is_same();
  if (!fits) {
    *result = call_term(callable, Term::same(), args, terms, kwnames, made);
    return made;
  }
  if (terms[0].is_number()) {
    static PyObject* const dtype_name = PyUnicode_InternFromString("dtype");
    static PyObject* const by_dtype = PyTuple_Pack(1, dtype_name);
    PyObject* shape = PyTuple_New(0);
    PyObject* dtype = PyObject_GetAttr(made, dtype_name);
    Py_DECREF(made);
    PyObject* const given[] = {shape, args[0], dtype};
    PyObject* filled = invoke(door().full(), Term::same(), given,
                              {Term::same(), terms[0], Term::same()}, by_dtype, result);
    Py_DECREF(shape);
    Py_XDECREF(dtype);
    return filled;
  }
  t->pin_all({&terms[0], 1});
  t->keep_constant(made);
  PyObject* copy = PyObject_CallMethod(made, "clone", nullptr);
  Py_DECREF(made);
  if (copy) *result = t->tensor_result(copy);
  return copy;
}

// The key to take instead of `key`, a new reference: lists of constants in it are index tensors
// that the plan keeps. Null: there is none, or (an error is set) they are no indices.
PyObject* Evaluator::with_index_tensors(PyObject* key, Term k) {
  Tracker* t = tracker();
  const auto keep = [&](PyObject* item, Term term) -> PyObject* {
    if (!becomes_index(item) || !(Py_IS_TYPE(item, &PyRange_Type) || is_data(*t, term, item)))
      return Py_NewRef(item);
    t->pin_all({&term, 1});
    PyObject* tensor = door().index_tensor(item);
    if (tensor && t->is_on()) t->keep_constant(tensor);
    return tensor;
  };
  if (!PyTuple_CheckExact(key)) return becomes_index(key) ? keep(key, k) : nullptr;
  const Py_ssize_t n = PyTuple_GET_SIZE(key);
  bool has_index = false;
  for (Py_ssize_t i = 0; i < n; ++i) has_index |= becomes_index(PyTuple_GET_ITEM(key, i));
  if (!has_index) return nullptr;
  const std::vector<Term> terms =
      k.is_made() ? t->made(k).items : std::vector<Term>(static_cast<size_t>(n), Term::same());
  PyObject* changed = PyTuple_New(n);
  for (Py_ssize_t i = 0; changed && i < n; ++i) {
    PyObject* item = keep(PyTuple_GET_ITEM(key, i), terms[static_cast<size_t>(i)]);
    if (item)
      PyTuple_SET_ITEM(changed, i, item);
    else
      Py_CLEAR(changed);
  }
  return changed;
}

}  // namespace prong::capture
