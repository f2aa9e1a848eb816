// Calls that give numbers of the plan: sizes and values of tensors, builtins that compute. See
// evaluator.h.
#include <cstring>

#include "capture/evaluator.h"

namespace prong::capture {

namespace {

bool is_word(const char* word, std::initializer_list<const char*> words) {
  for (const char* w : words)
    if (std::strcmp(word, w) == 0) return true;
  return false;
}

// A builtin that gives the same for the same numbers.
bool computes(PyObject* f) {
  if (f == reinterpret_cast<PyObject*>(&PyLong_Type) ||
      f == reinterpret_cast<PyObject*>(&PyFloat_Type) ||
      f == reinterpret_cast<PyObject*>(&PyBool_Type))
    return true;
  if (!PyCFunction_Check(f)) return false;
  auto* function = reinterpret_cast<PyCFunctionObject*>(f);
  if (!function->m_module || !PyUnicode_Check(function->m_module)) return false;
  if (PyUnicode_CompareWithASCIIString(function->m_module, "math") == 0) return true;
  return PyUnicode_CompareWithASCIIString(function->m_module, "builtins") == 0 &&
         is_word(function->m_ml->ml_name, {"abs", "min", "max", "sum", "pow", "round"});
}

bool is_builtin_named(PyObject* f, const char* name) {
  return PyCFunction_Check(f) &&
         std::strcmp(reinterpret_cast<PyCFunctionObject*>(f)->m_ml->ml_name, name) == 0;
}

}  // namespace

// int(t), float(t): the call reads a tensor.
bool is_number_type(PyObject* callable) {
  return callable == reinterpret_cast<PyObject*>(&PyLong_Type) ||
         callable == reinterpret_cast<PyObject*>(&PyFloat_Type) ||
         callable == reinterpret_cast<PyObject*>(&PyBool_Type);
}

// Unknown: the call is another one.
Term Evaluator::number_term(PyObject* function, Term self, PyObject* self_object,
                            PyObject* const* args, const std::vector<Term>& terms,
                            PyObject* kwnames, PyObject* result) {
  if (kwnames || !tracker()) return {};
  Tracker& t = *tracker();
  const char* word = PyCFunction_Check(function)
                         ? reinterpret_cast<PyCFunctionObject*>(function)->m_ml->ml_name
                         : "";
  if (self.is_tensor()) {
    const bool is_size = std::strcmp(word, "size") == 0;
    if (is_size && terms.empty()) return t.shape_of(self_object, result);
    if (is_size && terms.size() == 1 && PyLong_CheckExact(args[0]) &&
        t.is_plain(terms[0], args[0])) {
      const auto rank = static_cast<long>(door().impl_of(self_object)->sizes.size());
      const long d = PyLong_AsLong(args[0]);
      return t.size_of(self_object, static_cast<int32_t>(d < 0 ? d + rank : d), result);
    }
    if (is_word(word, {"numel", "nelement"}) && terms.empty())
      return t.size_of(self_object, -1, result);
    if (std::strcmp(word, "__len__") == 0) return t.size_of(self_object, 0, result);
    if (std::strcmp(word, "item") == 0 && terms.empty()) return t.item_of(self_object, result);
    if (std::strcmp(word, "tolist") == 0) return t.list_of_items(self_object, result);
    return {};
  }
  if (self.is_made()) {
    if (std::strcmp(word, "numel") != 0 || !t.made(self).is_size) return {};
    PyObject* product = PyLong_FromLong(1);
    Term all = Term::same();
    for (size_t i = 0; i < t.made(self).items.size(); ++i) {
      PyObject* size = t.made(self).objects[i];
      PyObject* next = PyNumber_Multiply(product, size);
      all = t.number_result(5, product, all, size, t.made(self).items[i], next);  // NB_MULTIPLY
      Py_DECREF(product);
      product = next;
    }
    Py_DECREF(product);
    return all;
  }
  if (const Term text = text_term(function, args, terms, result); text.is_known()) return text;
  if (terms.size() == 1 && terms[0].is_tensor()) {
    if (is_builtin_named(function, "len")) return t.size_of(args[0], 0, result);
    if (!is_number_type(function)) return {};
    // float(t) is float(t.item())
    PyObject* item = door().number_at(Tensor(Ref<TensorImpl>(door().impl_of(args[0]))), -1);
    if (!item) {
      PyErr_Clear();
      return {};
    }
    const Term read = t.item_of(args[0], item);
    const Term of_it[] = {read};
    const Term converted =
        read.is_number() ? t.number_call(function, of_it, &item, result) : Term();
    Py_DECREF(item);
    return converted;
  }
  if (terms.size() == 1 && terms[0].is_made() &&
      (function == reinterpret_cast<PyObject*>(&PyTuple_Type) ||
       function == reinterpret_cast<PyObject*>(&PyList_Type))) {
    const Made& from = t.made(terms[0]);
    if (from.kind != Made::Kind::kTuple && from.kind != Made::Kind::kList) return {};
    if (result == args[0]) return terms[0];
    std::vector<Term> items = from.items;
    std::vector<PyObject*> objects = from.objects;
    const Term made = t.make(PyList_CheckExact(result) ? Made::Kind::kList : Made::Kind::kTuple,
                             std::move(items), std::move(objects));
    t.own(made, result);
    return made;
  }
  if (is_builtin_named(function, "divmod") && terms.size() == 2 &&
      (terms[0].is_number() || terms[1].is_number()) && PyTuple_CheckExact(result)) {
    const auto is_known = [&](size_t i) {
      return terms[i].is_number() ||
             (terms[i].is_same() && (PyLong_CheckExact(args[i]) || PyFloat_CheckExact(args[i])));
    };
    if (!is_known(0) || !is_known(1)) return {};
    std::vector<Term> items;
    std::vector<PyObject*> objects{PyTuple_GET_ITEM(result, 0), PyTuple_GET_ITEM(result, 1)};
    for (size_t i = 0; i < 2; ++i)  // NB_FLOOR_DIVIDE, NB_REMAINDER
      items.push_back(
          t.number_result(i == 0 ? 2 : 6, args[0], terms[0], args[1], terms[1], objects[i]));
    return t.make(Made::Kind::kTuple, std::move(items), std::move(objects));
  }
  return computes(function) ? t.number_call(function, terms, args, result) : Term();
}

}  // namespace prong::capture
