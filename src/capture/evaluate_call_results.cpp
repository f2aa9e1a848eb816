// What a call that ended gave, by what was called: builtins, ops, methods. Called by
// evaluate_calls.cpp.
#include <cstring>

#include "base/str.h"
#include "capture/evaluator.h"
#include "capture/instance_access.h"
#include "capture/python_names.h"
#include "capture/session.h"

namespace prong::capture {

// A builtin failed: would it at each call?
bool Evaluator::is_error_transparent(PyObject* callable, Term term, PyObject* const* args,
                                     const std::vector<Term>& terms) {
  Tracker* t = tracker();
  const bool is_method = term.is_made() && t->peek(term).kind == Made::Kind::kMethod;
  Term unused;
  return term.is_known() &&
         follow_transparent(callable, is_method ? t->peek(term).items[1] : Term(), args, terms,
                            nullptr, &unused);
}

namespace {

// May an op take this as an argument at each call?
bool is_op_argument(Tracker& t, Term term, PyObject* value) {
  if (term.is_tensor() || term.is_number()) return true;
  if (term.is_same() && (PyList_CheckExact(value) || PyTuple_CheckExact(value)) &&
      !is_plain_value(value)) {  // of weights
    if (PyList_CheckExact(value)) t.read_list(value);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(value, i);
      if (!is_op_argument(t, t.same(item), item)) return false;
    }
    return t.is_on();
  }
  if (term.is_same())
    return !door().is_tensor(value) &&
           (is_plain_value(value) || PySlice_Check(value) || !PyList_Check(value));
  if (!term.is_made()) return false;
  const Made& m = t.made(term);
  if (m.kind != Made::Kind::kTuple && m.kind != Made::Kind::kList) return false;
  for (size_t i = 0; i < m.items.size(); ++i)
    if (!is_op_argument(t, m.items[i], m.objects[i])) return false;
  return true;
}

// An op that answers by the dtype of a tensor alone.
bool gives_fact(PyObject* op) {
  const std::string name = name_of_callable(op);
  return tensor_method(std::string_view(name).substr(name.rfind('.') + 1)) == TensorMethod::kFacts;
}

bool is_id(PyObject* callable) {
  static PyObject* const id = PyDict_GetItemString(PyEval_GetBuiltins(), "id");
  return callable == id;
}
bool is_object_new(PyObject* callable) {
  return PyCFunction_Check(callable) &&
         PyCFunction_GET_SELF(callable) == reinterpret_cast<PyObject*>(&PyBaseObject_Type) &&
         std::strcmp(reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name, "__new__") == 0;
}
}  // namespace

// The op that was called gives nothing, and was recorded.
bool Evaluator::has_recorded_step() const {
  Recorder& r = thread_recorder();
  const Trace* trace = r.num_recorded() == nodes_before_call_ + 1 ? r.open_trace() : nullptr;
  return trace && trace->nodes.back().op->schema().results[0]->is(TypeKind::kNone);
}

// After a call of an op: whose numbers are which of its node's.
void Evaluator::bind_numbers(PyObject* op, const std::vector<Term>& terms, PyObject* const* args,
                             PyObject* kwnames, bool is_method) {
  PyObject* name = PyObject_GetAttrString(op, "__name__");
  if (!name) PyErr_Clear();
  tracker()->bind_numbers(nodes_before_call_, {name && PyUnicode_Check(name) ? text_of(name) : "",
                                               terms, args, kwnames, is_method});
  Py_XDECREF(name);
}

// getattr(object, name, default) and hasattr(object, name); nothing: another function.
std::optional<Term> Evaluator::asked_attribute(PyObject* callable, PyObject* const* args,
                                               const std::vector<Term>& terms, PyObject* result) {
  static PyObject* const builtins = PyEval_GetBuiltins();
  static PyObject* const get = PyDict_GetItemString(builtins, "getattr");
  static PyObject* const has = PyDict_GetItemString(builtins, "hasattr");
  if (callable != get && callable != has) return std::nullopt;
  Tracker* t = tracker();
  PyObject* object = args[0];
  PyTypeObject* type = Py_TYPE(object);
  PyObject* dict = instance_dict(object);
  const bool is_default = callable == get && terms.size() == 3 && result == args[2];
  const bool is_absent = callable == has ? result == Py_False : is_default;
  if (!dict || !is_interned(args[1]) || !has_usual_access(type) ||
      type_attribute(type, "__getattr__") || _PyType_Lookup(type, args[1]))
    return std::nullopt;
  PyObject* found = PyDict_GetItemWithError(dict, args[1]);
  if ((found == nullptr) != is_absent) return std::nullopt;
  t->read_type(type);
  t->read_type_of(object);
  const Term read = t->read_dict(dict, args[1], found, type);
  if (callable == has) return Term::same();
  return found ? read : terms[2];
}

// variable.get() or variable.get(default)
Term Evaluator::context_variable_term(PyObject* variable, const std::vector<Term>& terms,
                                      PyObject* result) {
  Tracker* t = tracker();
  PyObject* now = nullptr;
  if (PyContextVar_Get(variable, nullptr, &now) < 0) PyErr_Clear();
  Py_XDECREF(now);  // the context keeps it, or the variable
  t->read_context_variable(variable, now);
  if (now == result) return t->same(result);
  if (!now && terms.size() == 1) return terms[0];
  t->give_up("a context variable with a default of its own");
  return {};
}

Term Evaluator::call_term(PyObject* callable, Term term, PyObject* const* args,
                          const std::vector<Term>& terms, PyObject* kwnames, PyObject* result) {
  static PyObject* const is_instance = PyDict_GetItemString(PyEval_GetBuiltins(), "isinstance");
  Tracker* t = tracker();
  if (!t) return {};
  if (term.is_same() && PyWeakref_CheckRef(callable) && terms.empty() && result != Py_None) {
    t->keep_alive(result);  // so it stays this object
    return t->same(result);
  }
  if (term.is_made() && PyWeakref_CheckRef(callable) && terms.empty() && result != Py_None)
    return t->find(result);  // of what the call made
  if (term.is_made() && t->peek(term).kind == Made::Kind::kOpaque && terms.empty() &&
      result == Py_None && std::strcmp(Py_TYPE(callable)->tp_name, "nanobind.nb_func") == 0)
    return Term::same();  // it took a hook away that the call had added
  if (PyObject* self =
          term.is_same() && PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : nullptr;
      self && PyContextVar_CheckExact(self))
    return context_variable_term(self, terms, result);
  if (term.is_same() && callable == reinterpret_cast<PyObject*>(&PyType_Type) &&
      terms.size() == 1 && terms[0].is_known()) {
    if (terms[0].is_same() && !is_plain_value(args[0])) t->read_type_of(args[0]);
    t->know(result);
    return Term::same();
  }
  if (term.is_same() && terms.size() == 1 && is_id(callable) &&
      (terms[0].is_tensor() ? t->is_object(args[0])
                            : terms[0].is_same() && !is_plain_value(args[0]))) {
    if (!terms[0].is_tensor()) t->know(args[0]);
    t->keep_alive(args[0]);  // another object with its address would have its id
    return Term::same();
  }
  if (term.is_same() && is_object_new(callable) && terms.size() == 1 && terms[0].is_same())
    return t->make_instance(result);
  if (term.is_same() && !kwnames && PyCFunction_Check(callable) && terms.size() >= 2 &&
      terms[0].is_same() && !PyType_Check(args[0]) && !PyModule_Check(args[0]) &&
      PyUnicode_CheckExact(args[1]) && t->is_plain(terms[1], args[1]))
    if (const auto followed = asked_attribute(callable, args, terms, result)) return *followed;
  if (term.is_same())
    if (const CoreFunction f = door().core_function(callable); f != CoreFunction::kOther)
      return core_call_term(f, args, terms, kwnames, result);
  Term self;
  PyObject* self_object = nullptr;
  PyObject* function = callable;
  if (term.is_made() && t->made(term).kind == Made::Kind::kMethod) {
    self = t->made(term).items[1];
    self_object = t->made(term).objects[1];
    if (PyMethod_Check(callable)) function = PyMethod_GET_FUNCTION(callable);
  } else if (term.is_made() && t->made(term).kind == Made::Kind::kOpaque) {
    self = term;
  } else if (!term.is_same()) {
    t->give_up("a callable of unknown origin");
    return {};
  }
  if (self.is_made() && t->peek(self).kind == Made::Kind::kFuture)
    return future_result(callable, self);
  bool all_fit = door().is_op(function) || self.is_tensor();
  for (size_t i = 0; i < terms.size() && all_fit; ++i)
    all_fit = is_op_argument(*t, terms[i], args[i]);
  if (!t->is_on()) return {};  // a list that it was given holds something else than weights
  if (door().is_op(function)) {
    if (all_fit) {
      if (t->has_numbers()) bind_numbers(function, terms, args, kwnames, self.is_known());
      if (PyBool_Check(result) && gives_fact(function)) return Term::same();
      return result == Py_None && has_recorded_step() ? Term::same() : t->tensor_result(result);
    }
    t->give_up("an op's argument is not followed");
    return {};
  }
  const bool is_append =
      self.is_made() && t->peek(self).kind == Made::Kind::kList && PyCFunction_Check(function) &&
      std::strcmp(reinterpret_cast<PyCFunctionObject*>(function)->m_ml->ml_name, "append") == 0;
  if (is_append && terms.size() == 1 && terms[0].is_known()) {
    t->append(self, args[0], terms[0]);
    return Term::same();
  }
  if (function == is_instance && terms.size() == 2 && terms[0].is_number() && terms[1].is_same() &&
      t->has_fixed_type(terms[0]))
    return Term::same();
  if (term.is_same() && PyType_Check(function))
    if (const auto walk = zip_term(function, args, terms, kwnames)) return *walk;
  if (const Term made = number_term(function, self, self_object, args, terms, kwnames, result);
      made.is_known() || !t->is_on())
    return made;
  t->pin_all(terms);
  bool all_plain = true;
  for (size_t i = 0; i < terms.size(); ++i) all_plain = all_plain && t->is_plain(terms[i], args[i]);
  const char* word = PyCFunction_Check(function)
                         ? reinterpret_cast<PyCFunctionObject*>(function)->m_ml->ml_name
                     : PyType_Check(function) ? reinterpret_cast<PyTypeObject*>(function)->tp_name
                                              : "";
  if (self.is_tensor()) {
    if (!all_plain && !all_fit) {
      t->give_up("a method's argument is not followed");
      return {};
    }
    const TensorMethod method = tensor_method(word);
    if (method == TensorMethod::kSizes) t->looked_at_sizes();
    if (method == TensorMethod::kSizes || method == TensorMethod::kFacts) return Term::same();
    if (method == TensorMethod::kConversion && door().is_exact_tensor(result))
      return t->tensor_result(result);
    if (std::strcmp(word, "requires_grad_") == 0 && result == self_object && all_plain &&
        !door().impl_of(result)->requires_grad && t->began_without_gradients(result))
      return Term::tensor();
    if (std::strcmp(word, "requires_grad_") == 0 && result == self_object && all_plain &&
        t->make_leaf(result))
      return Term::tensor();
    t->give_up(std::string("method ") + word + " of a tensor");
    return {};
  }
  if (self.is_made() && self_object) {
    Term followed;
    if (follow_transparent(function, self, args, terms, result, &followed)) return followed;
    t->give_up(std::string("method ") + word + " of a container");
    return {};
  }
  PyObject* bound = PyCFunction_Check(function) ? PyCFunction_GET_SELF(function) : nullptr;
  if (bound && PyList_CheckExact(bound) && std::strcmp(word, "append") == 0 && terms.size() == 1 &&
      t->find(bound).is_same() && t->append_outside(bound, args[0], terms[0]))
    return Term::same();
  if (bound && is_dict(bound) && std::strcmp(word, "get") == 0 && all_plain && !kwnames &&
      !terms.empty()) {
    PyObject* found = PyDict_GetItemWithError(bound, args[0]);
    const Term read = t->read_dict(bound, args[0], found);
    return found ? read : Term::same();
  }
  if (bound && is_dict(bound) && terms.empty() && is_one_of(word, {"keys", "values", "items"}))
    return t->read_all(bound, word[0] == 'k' ? 0 : word[0] == 'v' ? 1 : 2);
  if (bound && PyModule_Check(bound) && std::strcmp(word, "iter") == 0 && terms.size() == 1 &&
      terms[0].is_made() && t->made(terms[0]).kind != Made::Kind::kDict) {
    if (t->made(terms[0]).kind == Made::Kind::kIterator) return terms[0];
    const Term m = t->make(Made::Kind::kIterator, {}, {});
    t->made(m).source = terms[0];
    t->made(m).keys.emplace_back(args[0]);
    return m;
  }
  const bool is_builtin = PyType_Check(function) || (bound && PyModule_Check(bound));
  if (is_builtin && std::strcmp(word, "len") == 0 && terms.size() == 1) {
    if (terms[0].is_same() && is_dict(args[0])) t->read_length(args[0]);
    if (terms[0].is_same() && PyList_CheckExact(args[0])) t->read_list(args[0]);
    const bool known = terms[0].is_tensor() || terms[0].is_made() || all_plain ||
                       (terms[0].is_same() &&
                        (is_dict(args[0]) || PyList_CheckExact(args[0]) || PyTuple_Check(args[0])));
    if (known) return Term::same();
  }
  if (is_builtin && std::strcmp(word, "isinstance") == 0 && terms.size() == 2 &&
      terms[0].is_known() && terms[1].is_same()) {
    if (terms[0].is_same() && !is_plain_value(args[0])) t->read_type_of(args[0]);
    return Term::same();
  }
  if (is_builtin && !kwnames && is_one_of(word, {"getattr", "hasattr", "setattr", "type"}))
    return attribute_call_term(word, args, terms, result);
  const bool is_pure_place =
      PyType_Check(function)
          ? !PyType_HasFeature(reinterpret_cast<PyTypeObject*>(function), Py_TPFLAGS_HEAPTYPE)
          : PyCFunction_Check(function) &&
                reinterpret_cast<PyCFunctionObject*>(function)->m_module &&
                is_one_of(text_of(reinterpret_cast<PyCFunctionObject*>(function)->m_module),
                          {"builtins", "math"});
  if (is_builtin && all_plain && is_pure_place &&
      (is_plain_value(result) || PyRange_Check(result)) &&
      is_one_of(word, {"abs",    "min",  "max",   "sum",   "int",  "float", "bool", "str",  "round",
                       "divmod", "pow",  "range", "sqrt",  "ceil", "floor", "log",  "exp",  "cos",
                       "sin",    "prod", "gcd",   "isqrt", "chr",  "ord",   "hash", "tuple"}))
    return Term::same();
  if (Term followed; follow_transparent(function, self, args, terms, result, &followed))
    return followed;
  if (bound) t->note_changed(bound);
  t->give_up(std::string("calls ") + name_of_callable(callable));
  return {};
}

}  // namespace prong::capture
