// Strings that a call makes of its numbers: f-strings, format(), str(), %, join(). They are numbers
// of the plan as well, made anew in each replay. See evaluator.h and number_steps.h.
#include <cstring>
#include <string_view>

#include "capture/evaluator.h"
#include "capture/python_names.h"

namespace prong::capture {

namespace {

// C's own function; null where a program has put one of its own in that place. Borrowed.
PyObject* builtin(const char* name) {
  PyObject* found = PyDict_GetItemString(PyEval_GetBuiltins(), name);
  return found && PyCFunction_Check(found) ? found : nullptr;
}

PyObject* converted_as(int conversion, PyObject* value) {
  return conversion == 1   ? PyObject_Str(value)
         : conversion == 2 ? PyObject_Repr(value)
                           : PyObject_ASCII(value);
}

// Works for all numbers of the types that it worked for now? `text`: what follows each % or colon.
bool is_safe_percent(std::string_view text, PyObject* const* values, size_t count) {
  if (text.find_first_of("*(") != std::string_view::npos) return false;
  bool has_whole = false;  // of whole numbers only
  for (size_t i = text.find('%'); i != std::string_view::npos; i = text.find('%', i + 1)) {
    i = text.find_first_not_of("#0- +.123456789lhL", i + 1);
    if (i == std::string_view::npos) return false;
    if (text[i] == 'c') return false;
    has_whole |= std::strchr("diouxX", text[i]) != nullptr;
  }
  for (size_t i = 0; has_whole && i < count; ++i)
    if (!PyLong_Check(values[i])) return false;
  return true;
}

bool is_safe_spec(PyObject* spec) {
  return !spec || (PyUnicode_Check(spec) && !std::strchr(text_of(spec), 'c'));
}

}  // namespace

// A string that `function` makes of numbers and plain values; unknown: of something else.
Term Tracker::text_call(PyObject* function, std::span<const Term> terms, PyObject* const* values,
                        PyObject* result, bool is_packed, bool is_safe) {
  if (!function || !PyUnicode_CheckExact(result)) return {};
  bool has_number = false;
  for (size_t i = 0; i < terms.size(); ++i) {
    has_number |= terms[i].is_number();
    if (!terms[i].is_number() && !(terms[i].is_same() && values[i] && is_plain_value(values[i])))
      return {};
  }
  if (!has_number) return {};
  NumberStep step{NumberStep::Kind::kCall};
  step.object = Kept(function);
  step.is_packed = is_packed;
  step.is_safe = is_safe;
  for (size_t i = 0; i < terms.size(); ++i) step.of.push_back(step_of(terms[i], values[i]));
  return number(std::move(step), result);
}

// a % b, where a is a constant; a + b of strings.
Term Tracker::text_operator(int code, PyObject* a, Term ta, PyObject* b, Term tb,
                            PyObject* result) {
  if (!PyUnicode_CheckExact(result) || !PyUnicode_CheckExact(a)) return {};
  const std::string_view word = operator_text(code);
  const Term both[] = {ta, tb};
  PyObject* const values[] = {a, b};
  if (word == "+" && PyUnicode_CheckExact(b))
    return text_call(builtin_join(), both, values, result, true, true);
  if (word != "%" || !ta.is_same()) return {};
  std::vector<Term> terms{tb};
  std::vector<PyObject*> given{b};
  const bool is_tuple = PyTuple_Check(b);
  if (is_tuple) {
    if (!tb.is_made() || made(tb).kind != Made::Kind::kTuple) return {};
    terms = made(tb).items;
    given = made(tb).objects;
  }
  PyObject* method = PyObject_GetAttrString(a, "__mod__");
  if (!method) {
    PyErr_Clear();
    return {};
  }
  const Term made_now = text_call(method, terms, given.data(), result, is_tuple,
                                  is_safe_percent(text_of(a), given.data(), given.size()));
  Py_DECREF(method);
  return made_now;
}

// "".join, which lives on.
PyObject* builtin_join() {
  static PyObject* const join = [] {
    PyObject* empty = PyUnicode_FromString("");
    PyObject* method = empty ? PyObject_GetAttrString(empty, "join") : nullptr;
    Py_XDECREF(empty);
    return method;
  }();
  return join;
}

// The same of calls: str(n), repr(n), format(n, spec), "...".format(n), "...".join(parts).
Term Evaluator::text_term(PyObject* function, PyObject* const* args, const std::vector<Term>& terms,
                          PyObject* result) {
  Tracker& t = *tracker();
  if (!PyUnicode_CheckExact(result) || terms.empty()) return {};
  if (function == reinterpret_cast<PyObject*>(&PyUnicode_Type) || function == builtin("repr"))
    return terms.size() == 1 ? t.text_call(function, terms, args, result, false, true) : Term();
  if (function == builtin("format"))
    return t.text_call(function, terms, args, result, false,
                       is_safe_spec(terms.size() > 1 ? args[1] : nullptr));
  if (!PyCFunction_Check(function)) return {};
  PyObject* self = PyCFunction_GET_SELF(function);
  if (!self || !PyUnicode_CheckExact(self)) return {};
  const std::string_view word = reinterpret_cast<PyCFunctionObject*>(function)->m_ml->ml_name;
  if (word == "format")
    return t.text_call(function, terms, args, result, false,
                       std::string_view(text_of(self)).find('c') == std::string_view::npos);
  if (word != "join" || terms.size() != 1 || !terms[0].is_made()) return {};
  const Made::Kind kind = t.made(terms[0]).kind;
  if (kind != Made::Kind::kTuple && kind != Made::Kind::kList) return {};
  const std::vector<Term> items = t.made(terms[0]).items;
  const std::vector<PyObject*> objects = t.made(terms[0]).objects;
  return t.text_call(function, items, objects.data(), result, true, true);
}

Evaluator::Next Evaluator::build_string(const Instruction& i) {
  PyObject* parts = PyTuple_New(i.arg);
  if (!parts) return Next::kError;
  std::vector<Term> terms;
  std::vector<PyObject*> values;
  for (int k = 0; k < i.arg; ++k) {
    values.push_back(top(i.arg - k));
    terms.push_back(term(i.arg - k));
    PyTuple_SET_ITEM(parts, k, Py_NewRef(values.back()));
  }
  PyObject* joined = PyObject_CallOneArg(builtin_join(), parts);
  Py_DECREF(parts);
  if (!joined) return Next::kError;
  Term made = Term::same();
  if (Tracker* t = tracker()) {
    made = t->text_call(builtin_join(), terms, values.data(), joined, true, true);
    for (size_t k = 0; !made.is_known() && k < terms.size(); ++k)
      if (!t->is_plain(terms[k], values[k]))
        t->give_up("a string of values that are not constants");
    if (!made.is_known()) made = Term::same();
  }
  drop(i.arg);
  push(joined, made);
  return Next::kGo;
}

// f"{value!r:spec}"
Evaluator::Next Evaluator::format_value(const Instruction& i) {
  PyObject* spec = i.arg & 4 ? top(1) : nullptr;
  const int at = spec ? 2 : 1;
  Kept value(top(at));
  Term made = term(at);
  Tracker* t = tracker();
  const int conversion = i.arg & 3;
  if (t && made.is_tensor() && !conversion && door().is_exact_tensor(value.get()) &&
      door().impl_of(value.get())->sizes.size() == 0) {  // as Tensor.__format__ does
    t->set_reading(true);
    PyObject* item = door().number_at(Tensor(Ref<TensorImpl>(door().impl_of(value.get()))), -1);
    t->set_reading(false);
    if (!item) return Next::kError;
    if (t = tracker(); t) made = t->item_of(value.get(), item);
    value = Kept::steal(item);
    t = tracker();
  }
  if (t && spec && !t->is_plain(term(1), spec))
    t->give_up("a string of values that are not constants");
  if (t && !made.is_number() && !t->is_plain(made, value.get()))
    t->give_up("a string of values that are not constants");
  if (conversion) {
    PyObject* function = conversion == 1   ? reinterpret_cast<PyObject*>(&PyUnicode_Type)
                         : conversion == 2 ? builtin("repr")
                                           : builtin("ascii");
    PyObject* converted = converted_as(conversion, value.get());
    if (!converted) return Next::kError;
    if ((t = tracker()) && made.is_number()) {
      PyObject* given = value.get();
      made = t->text_call(function, {&made, 1}, &given, converted, false, true);
    }
    value = Kept::steal(converted);
  }
  if (!PyUnicode_CheckExact(value.get()) || spec) {
    PyObject* formatted = PyObject_Format(value.get(), spec);
    if (!formatted) return Next::kError;
    if ((t = tracker()) && made.is_number()) {
      const Term both[] = {made, Term::same()};
      PyObject* const given[] = {value.get(), spec};
      made = t->text_call(builtin("format"), {both, spec ? size_t{2} : size_t{1}}, given, formatted,
                          false, is_safe_spec(spec));
    }
    value = Kept::steal(formatted);
  }
  if ((t = tracker()) && !made.is_known()) t->give_up("a string of values that are not constants");
  drop(at);
  push(Py_NewRef(value.get()), made.is_number() ? made : Term::same());
  return Next::kGo;
}

}  // namespace prong::capture
