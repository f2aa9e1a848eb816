// Numbers found anew in each replay of a plan. See number_steps.h and plan.h.
#include "capture/number_steps.h"

#include <cstring>

#include "capture/plan.h"

namespace prong::capture {

namespace {

using Binary = PyObject* (*)(PyObject*, PyObject*);
PyObject* power(PyObject* a, PyObject* b) { return PyNumber_Power(a, b, Py_None); }
PyObject* inplace_power(PyObject* a, PyObject* b) { return PyNumber_InPlacePower(a, b, Py_None); }

// By the argument of BINARY_OP.
constexpr Binary kBinary[] = {PyNumber_Add,
                              PyNumber_And,
                              PyNumber_FloorDivide,
                              PyNumber_Lshift,
                              PyNumber_MatrixMultiply,
                              PyNumber_Multiply,
                              PyNumber_Remainder,
                              PyNumber_Or,
                              power,
                              PyNumber_Rshift,
                              PyNumber_Subtract,
                              PyNumber_TrueDivide,
                              PyNumber_Xor,
                              PyNumber_InPlaceAdd,
                              PyNumber_InPlaceAnd,
                              PyNumber_InPlaceFloorDivide,
                              PyNumber_InPlaceLshift,
                              PyNumber_InPlaceMatrixMultiply,
                              PyNumber_InPlaceMultiply,
                              PyNumber_InPlaceRemainder,
                              PyNumber_InPlaceOr,
                              inplace_power,
                              PyNumber_InPlaceRshift,
                              PyNumber_InPlaceSubtract,
                              PyNumber_InPlaceTrueDivide,
                              PyNumber_InPlaceXor};
constexpr int kNumKinds = 13;  // of binary operators; then their in-place forms
constexpr const char* kBinaryText[] = {"+", "&",  "//", "<<", "@", "*", "%",
                                       "|", "**", ">>", "-",  "/", "^"};
constexpr const char* kCompareText[] = {"<", "<=", "==", "!=", ">", ">="};

PyObject* apply_unary(int code, PyObject* a) {
  switch (code) {
  case kPositive:
    return PyNumber_Positive(a);
  case kNegative:
    return PyNumber_Negative(a);
  case kInvert:
    return PyNumber_Invert(a);
  default: {
    const int truth = PyObject_IsTrue(a);
    return truth < 0 ? nullptr : PyBool_FromLong((truth != 0) == (code == kTruth));
  }
  }
}

// What a key of the memory holds of a number; none: it is too large.
std::optional<int64_t> bits_of(PyObject* number) {
  if (!PyFloat_CheckExact(number)) {
    int overflow = 0;
    const int64_t n = PyLong_AsLongLongAndOverflow(number, &overflow);
    return overflow ? std::nullopt : std::optional(n);
  }
  const double d = PyFloat_AS_DOUBLE(number);
  int64_t bits;
  std::memcpy(&bits, &d, sizeof bits);
  return bits;
}

constexpr size_t kMaxRemembered = 64;

}  // namespace

PyObject* apply_operator(int code, PyObject* a, PyObject* b) {
  if (is_unary(code)) return apply_unary(code, a);
  return code < kCompare ? kBinary[code](a, b) : PyObject_RichCompare(a, b, code - kCompare);
}

const char* operator_text(int code) {
  if (code < kCompare) return kBinaryText[code % kNumKinds];
  if (code < kPositive) return kCompareText[code - kCompare];
  constexpr const char* kUnaryText[] = {"+", "-", "~", "not ", "bool "};
  return kUnaryText[code - kPositive];
}

bool never_fails(int code) {
  if (code >= kCompare) return code != kInvert;
  const char* text = operator_text(code);
  return std::strcmp(text, "+") == 0 || std::strcmp(text, "-") == 0 || std::strcmp(text, "*") == 0;
}

IValue like_recorded(PyObject* value, const IValue& recorded) {
  const bool is_tensor = recorded.is_tensor();
  if (PyFloat_CheckExact(value)) {
    const double d = PyFloat_AS_DOUBLE(value);
    if (is_tensor) return IValue(Tensor::wrapped(d));
    return recorded.is_float() ? IValue(d) : IValue();
  }
  if (!PyLong_CheckExact(value)) return {};
  const long long n = PyLong_AsLongLong(value);
  if (n == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    return {};
  }
  const auto i = static_cast<int64_t>(n);
  if (is_tensor) return IValue(Tensor::wrapped(i));
  return recorded.is_float() ? IValue(static_cast<double>(i)) : IValue(i);
}

// A new reference; null: the call does not fit.
PyObject* Plan::find_outside(NumberStep& s, PyObject* const* args) {
  switch (s.kind) {
  case NumberStep::Kind::kArgument:
    return Py_NewRef(args[s.index]);
  case NumberStep::Kind::kDict:
    if (version_of(s.object.get()) != s.version) {
      PyObject* found = PyDict_GetItemWithError(s.object.get(), s.key.get());
      if (s.size && found)
        found = PyTuple_CheckExact(found) && PyTuple_GET_SIZE(found) == s.size
                    ? PyTuple_GET_ITEM(found, s.index)
                    : nullptr;
      s.last = Kept(found);
      s.version = version_of(s.object.get());
    }
    return Py_XNewRef(s.last.get());
  case NumberStep::Kind::kCell:
    return Py_XNewRef(PyCell_GET(s.object.get()));
  case NumberStep::Kind::kConstant:
    return Py_NewRef(s.object.get());
  default: {
    const TensorImpl* t = fetch(s.tensor, args);
    if (!t) return nullptr;
    return PyLong_FromLongLong(s.index < 0 ? t->numel : t->sizes[static_cast<size_t>(s.index)]);
  }
  }
}

PyObject* Plan::compute(const NumberStep& s, std::span<const Kept> values) const {
  const auto at = [&](size_t i) { return values[static_cast<size_t>(s.of[i])].get(); };
  if (s.kind == NumberStep::Kind::kOperator)
    return apply_operator(s.index, at(0), s.of.size() > 1 ? at(1) : nullptr);
  std::vector<PyObject*> given;
  for (size_t i = 0; i < s.of.size(); ++i) given.push_back(at(i));
  if (!s.is_packed) return PyObject_Vectorcall(s.object.get(), given.data(), given.size(), nullptr);
  PyObject* packed = PyTuple_New(static_cast<Py_ssize_t>(given.size()));
  for (size_t i = 0; packed && i < given.size(); ++i)
    PyTuple_SET_ITEM(packed, static_cast<Py_ssize_t>(i), Py_NewRef(given[i]));
  PyObject* result = packed ? PyObject_CallOneArg(s.object.get(), packed) : nullptr;
  Py_XDECREF(packed);
  return result;
}

// Answers the rehearsal's questions of this stage, from memory where these sizes were there before.
std::optional<int64_t> Plan::rehearse(const NumberStep& s, PyObject* const* args,
                                      const std::vector<std::vector<IValue>>& results,
                                      Found& found) {
  const bool remembers = s.after == 0 && !rehearsal_numbers_vary_late;
  const auto question = static_cast<size_t>(s.index);
  if (remembers && found.remembered) return (*found.remembered)[question];
  if (!found.run || found.run_stage != s.after) {
    std::vector<const TensorImpl*> outside;
    for (const TensorSource& source : rehearsal_roots) {
      if (source.kind != TensorSource::Kind::kProgram) {
        outside.push_back(fetch(source, args));
        if (!outside.back()) return std::nullopt;
      } else if (source.index < s.after) {
        outside.push_back(
            results[static_cast<size_t>(source.index)][static_cast<size_t>(source.output)]
                .tensor_impl());
      } else {
        outside.push_back(nullptr);  // nothing that is asked now depends on it
      }
    }
    if (remembers) {
      for (const TensorImpl* t : outside) {
        found.key.insert(found.key.end(), t->sizes.begin(), t->sizes.end());
        found.key.insert(found.key.end(), t->strides.begin(), t->strides.end());
      }
      bool is_exact = true;
      for (const int32_t n : rehearsal_numbers) {
        const auto bits = bits_of(found.values[static_cast<size_t>(n)].get());
        is_exact = is_exact && bits;
        found.key.push_back(bits.value_or(0));
      }
      if (!is_exact) found.key.clear();
      for (const Remembered& r : remembered_)
        if (is_exact && r.key == found.key) found.remembered = r.answers;
      if (found.remembered) return (*found.remembered)[question];
    }
    found.run.emplace(rehearsal, outside);
    found.run_stage = s.after;
  }
  const auto answer = found.run->answer(rehearsal.questions[question], found.values);
  if (answer && remembers && !found.key.empty()) {
    found.answers.resize(rehearsal.questions.size(), -1);
    found.answers[question] = *answer;
  }
  return answer;
}

bool Plan::find_number(NumberStep& s, size_t index, PyObject* const* args,
                       const std::vector<std::vector<IValue>>& results, Found& found) {
  PyObject* value = nullptr;
  switch (s.kind) {
  case NumberStep::Kind::kOperator:
  case NumberStep::Kind::kCall:
    value = compute(s, found.values);
    break;
  case NumberStep::Kind::kRehearsed:
    try {
      if (const auto n = rehearse(s, args, results, found)) value = PyLong_FromLongLong(*n);
    } catch (const std::exception&) {
      return false;  // an op refuses these sizes: evaluating raises where it should
    }
    break;
  case NumberStep::Kind::kStep:
    value = Py_NewRef(found.step_results[static_cast<size_t>(s.index)].get());
    break;
  case NumberStep::Kind::kItem: {
    const Tensor t = this->value(s.tensor, args, results).to_tensor();
    value = door().number_at(t, s.index);
    break;
  }
  default:
    value = find_outside(s, args);
  }
  found.values[index] = Kept::steal(value);
  if (!value) PyErr_Clear();
  return value && Py_TYPE(value) == s.type;
}

bool Plan::find_numbers(PyObject* const* args, const std::vector<std::vector<IValue>>& results,
                        int32_t stage, Found& found) {
  if (stage == 0) {
    found.values.resize(numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i)
      if (NumberStep& s = numbers[i];
          s.is_needed && s.is_from_outside() && !find_number(s, i, args, results, found))
        return false;
  }
  for (size_t i = 0; i < numbers.size(); ++i)
    if (NumberStep& s = numbers[i]; s.is_needed && s.after == stage && !s.is_from_outside() &&
                                    !find_number(s, i, args, results, found))
      return false;
  for (const NumberCheck& c : number_checks) {
    const auto i = static_cast<size_t>(c.number);
    if (numbers[i].after == stage && !same_value(found.values[i].get(), c.expected.get()))
      return false;
  }
  if (stage == 0 && !found.answers.empty()) {
    if (remembered_.size() == kMaxRemembered) remembered_.erase(remembered_.begin());
    remembered_.push_back({found.key, std::move(found.answers)});
  }
  return true;
}

bool Plan::fill_numbers(PlanProgram& p, const Found& found, std::vector<IValue>* numbers_now) {
  for (VaryingNumber& v : p.varying) {
    PyObject* now = found.values[static_cast<size_t>(v.number)].get();
    IValue& n = (*numbers_now)[v.at];
    if (now != v.last.get()) {
      v.value = like_recorded(now, n);
      v.last = Kept(now);
    }
    n = v.value;
    if (n.is_none()) return false;
  }
  return true;
}

}  // namespace prong::capture
