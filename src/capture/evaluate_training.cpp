// Calls of prong._core that training steps make: backward passes, gradients and optimizer state in
// lists, grad mode. See evaluator.h.
#include "capture/evaluator.h"
#include "capture/session.h"

namespace prong::capture {

namespace {

// The items of a list or tuple of tensors whose origin is known, with their terms.
bool read_items(Tracker& t, PyObject* sequence, Term term, std::vector<Term>* terms) {
  if (!PyTuple_CheckExact(sequence) && !PyList_CheckExact(sequence)) return false;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(sequence);
  if (term.is_made()) {
    const Made& m = t.made(term);
    if ((m.kind != Made::Kind::kTuple && m.kind != Made::Kind::kList) ||
        m.items.size() != static_cast<size_t>(n))
      return false;
    *terms = m.items;
    return true;
  }
  if (!term.is_same()) return false;
  if (PyList_CheckExact(sequence)) t.read_list(sequence);
  for (Py_ssize_t i = 0; i < n; ++i)
    terms->push_back(t.same(PySequence_Fast_GET_ITEM(sequence, i)));
  return true;
}

bool has_gradient(PyObject* tensor) {
  PyObject* gradient = PyObject_GetAttrString(tensor, "grad");
  if (!gradient) PyErr_Clear();
  Py_XDECREF(gradient);
  return gradient && gradient != Py_None;
}

Term list_of(Tracker& t, PyObject* list, std::vector<Term> terms) {
  std::vector<PyObject*> objects;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i)
    objects.push_back(PyList_GET_ITEM(list, i));
  const Term made = t.make(Made::Kind::kList, std::move(terms), std::move(objects));
  t.own(made, list);
  return made;
}

// _gather_state(params, state, names): lists of parameters, gradients and state.
Term gathered(Tracker& t, PyObject* const* args, const std::vector<Term>& terms, PyObject* result) {
  if (result == Py_None) {
    t.give_up("an optimizer has no state yet");
    return {};
  }
  std::vector<Term> params;
  PyObject* state = args[1];
  PyObject* names = args[2];
  if (!read_items(t, args[0], terms[0], &params) || !terms[1].is_same() ||
      !t.is_plain(terms[2], names)) {
    t.give_up("the parameters or the state of an optimizer are not followed");
    return {};
  }
  const auto kinds = static_cast<size_t>(PyTuple_GET_SIZE(names));
  std::vector<std::vector<Term>> lists(kinds + 2);
  for (size_t i = 0; i < params.size(); ++i) {
    PyObject* param = PySequence_Fast_GET_ITEM(args[0], static_cast<Py_ssize_t>(i));
    if (!params[i].is_tensor()) {
      t.give_up("a parameter of unknown origin");
      return {};
    }
    const bool has = has_gradient(param);
    t.read_gradient(param, has ? param : Py_None);
    if (!has) continue;
    lists[0].push_back(params[i]);
    lists[1].push_back(Term::tensor());
    if (kinds == 0) continue;
    PyObject* of_param = PyDict_GetItemWithError(state, param);
    if (!t.is_object(param)) t.give_up("the state of a parameter that is an argument");
    t.read_dict(state, param, of_param);
    for (size_t k = 0; k < kinds; ++k) {
      PyObject* name = PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(k));
      lists[k + 2].push_back(t.read_dict(of_param, name, PyDict_GetItemWithError(of_param, name)));
    }
  }
  std::vector<Term> all;
  for (size_t k = 0; k < lists.size(); ++k)
    all.push_back(
        list_of(t, PyList_GET_ITEM(result, static_cast<Py_ssize_t>(k)), std::move(lists[k])));
  return list_of(t, result, std::move(all));
}

// _run_backward(roots, gradients, keep_graph, create_graph, inputs, returns, allow_unused)
Term ran_backward(Tracker& t, PyObject* const* args, const std::vector<Term>& terms,
                  PyObject* result, uint64_t nodes_before) {
  std::vector<Term> given;
  for (const size_t i : {size_t{0}, size_t{1}, size_t{4}})
    if (!read_items(t, args[i], terms[i], &given)) {
      t.give_up("a backward pass from tensors that are not followed");
      return {};
    }
  for (const Term& each : given)
    if (!each.is_known()) t.give_up("a backward pass from a tensor of unknown origin");
  for (const size_t i : {size_t{2}, size_t{3}, size_t{5}, size_t{6}})
    if (!t.is_plain(terms[i], args[i])) t.give_up("a backward pass with options that vary");
  t.note_backward(args, nodes_before);
  t.ran_backward();
  std::vector<Term> items;
  std::vector<PyObject*> objects;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result); ++i) {
    objects.push_back(PyTuple_GET_ITEM(result, i));
    items.push_back(objects.back() == Py_None ? Term::same() : Term::tensor());
  }
  if (items.empty()) return Term::same();
  const Term made = t.make(Made::Kind::kTuple, std::move(items), std::move(objects));
  t.own(made, result);
  return made;
}

}  // namespace

Term Evaluator::core_call_term(CoreFunction function, PyObject* const* args,
                               const std::vector<Term>& terms, PyObject* kwnames,
                               PyObject* result) {
  Tracker& t = *tracker();
  if (kwnames) {
    t.give_up("keyword arguments of a function that takes none");
    return {};
  }
  switch (function) {
  case CoreFunction::kRunBackward:
    if (terms.size() == 7) return ran_backward(t, args, terms, result, nodes_before_call_);
    break;
  case CoreFunction::kGatherState:
    if (terms.size() == 3) return gathered(t, args, terms, result);
    break;
  case CoreFunction::kClearGradients:
  case CoreFunction::kGradientsOf: {
    std::vector<Term> params, gradients;
    if (terms.size() != 1 || !read_items(t, args[0], terms[0], &params)) break;
    for (size_t i = 0; i < params.size(); ++i) {
      PyObject* param = PySequence_Fast_GET_ITEM(args[0], static_cast<Py_ssize_t>(i));
      if (!params[i].is_tensor()) {
        t.give_up("a parameter of unknown origin");
        return {};
      }
      if (function == CoreFunction::kClearGradients) {
        t.write_gradient(param, Py_None);
        continue;
      }
      const bool has = has_gradient(param);
      t.read_gradient(param, has ? param : Py_None);
      if (has) gradients.push_back(Term::tensor());
    }
    return function == CoreFunction::kClearGradients ? Term::same()
                                                     : list_of(t, result, std::move(gradients));
  }
  case CoreFunction::kGetMode:
    return Term::same();
  case CoreFunction::kSetMode:
    if (terms.empty() || (terms.size() == 1 && t.is_plain(terms[0], args[0]))) return Term::same();
    break;
  case CoreFunction::kGetAutocast: {  // as when the call began, or as the call set it
    PyObject* const* items = &PyTuple_GET_ITEM(result, 0);
    const Term made = t.make(Made::Kind::kTuple, std::vector<Term>(3, Term::same()),
                             std::vector<PyObject*>(items, items + 3));
    t.own(made, result);
    return made;
  }
  case CoreFunction::kSetAutocast:
    if (terms.size() == 3 && t.is_plain(terms[0], args[0]) && terms[1].is_same() &&
        t.is_plain(terms[2], args[2]))
      return Term::same();
    break;
  case CoreFunction::kTapeStep:
  case CoreFunction::kTapeWrite:
  case CoreFunction::kRandomState:
    return t.tape_step_term(function, args, terms, result);
  case CoreFunction::kRuleOfTypes:
    for (size_t i = 0; i < terms.size(); ++i)
      if (!terms[i].is_same() || door().is_tensor(args[i])) {
        t.give_up("a rule of dtypes is asked about values that vary");
        return {};
      }
    return t.same(result);
  case CoreFunction::kProfileIsOn:
    t.looked_for_profile(result == Py_True);
    return Term::same();
  case CoreFunction::kMakeTensor:
    t.give_up("a tensor is made of data that is not followed");
    return {};
  case CoreFunction::kOther:
    break;
  }
  t.give_up("a call of the tape that is not followed");
  return {};
}

}  // namespace prong::capture
