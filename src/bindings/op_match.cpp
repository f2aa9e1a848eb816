// Matching a Python call against one signature of an op; see op_match.h.
#include "bindings/op_match.h"

#include <algorithm>

#include "bindings/constants.h"
#include "bindings/convert.h"
#include "bindings/tensor_type.h"
#include "eager/batched.h"

namespace prong::python {

namespace {

struct ExtraNames {
  PyObject *out, *requires_grad, *device, *layout, *pin_memory, *memory_format, *non_blocking,
      *names;
} extra_names;

PyObject* interned(const char* text) { return checked(PyUnicode_InternFromString(text)); }

bool is_name(PyObject* given, PyObject* name) {
  return given == name || (name && PyUnicode_Compare(given, name) == 0);
}

[[noreturn]] void throw_extra(const Signature& s, const char* what) {
  throw_error(ErrorKind::kNotImplemented,
              cat(s.op->base_name(), "(): prong has no ", what, " yet"));
}

// A keyword that no argument is called by. False: unknown.
bool take_extra(const Signature& s, PyObject* name, PyObject* value, Extras* extras) {
  const bool is_factory = s.op->family() == Family::kFactory;
  if (is_name(name, extra_names.out)) {
    if (s.op->mutated_argument() >= 0 || s.op->family() == Family::kHost) return false;
    if (value != Py_None) extras->out = value;
    return true;
  }
  if (is_name(name, extra_names.memory_format)) {
    if (value != Py_None && !is_memory_format(value))
      throw_error(ErrorKind::kType, cat(s.op->base_name(),
                                        "(): argument 'memory_format' must be "
                                        "torch.memory_format, not ",
                                        type_name(value)));
    return is_factory || s.op->family() == Family::kCopy || s.op->family() == Family::kView;
  }
  if (!is_factory) return false;
  if (is_name(name, extra_names.requires_grad)) {
    const int truth = PyObject_IsTrue(value);
    checked(truth);
    extras->requires_grad = truth == 1;
    return true;
  }
  if (is_name(name, extra_names.device)) return value == Py_None || check_cpu_device(value);
  if (is_name(name, extra_names.layout)) {
    check_layout(value);
    return true;
  }
  if (is_name(name, extra_names.pin_memory) || is_name(name, extra_names.non_blocking)) {
    const int truth = PyObject_IsTrue(value);
    checked(truth);
    if (truth && is_name(name, extra_names.pin_memory)) throw_extra(s, "pinned memory");
    return true;
  }
  if (is_name(name, extra_names.names)) {
    if (value != Py_None) throw_extra(s, "named dimensions");
    return true;
  }
  return false;
}

bool tensor_list(PyObject* const* items, size_t count, IValue* out, bool allow_none) {
  std::vector<IValue> tensors(count);
  for (size_t i = 0; i < count; ++i) {
    if (allow_none && items[i] == Py_None) continue;
    if (!is_tensor(items[i])) return false;
    tensors[i] = IValue(tensor_of(items[i]));
  }
  *out = IValue::list(std::move(tensors));
  return true;
}

bool int_list(PyObject* const* items, size_t count, IValue* out) {
  Dims dims;
  for (size_t i = 0; i < count; ++i) {
    IValue item;
    if (!try_to_ivalue(items[i], *Type::int_(), &item)) return false;
    dims.push_back(item.to_int());
  }
  *out = IValue(DimsView(dims));
  return true;
}

bool convert_list(const ArgumentSpec& spec, PyObject* object, IValue* out) {
  const Type& element = *spec.type->element();
  const bool is_sequence = PyList_Check(object) || PyTuple_Check(object);
  if (is_sequence && (element.is(TypeKind::kTensor) || element.is(TypeKind::kInt))) {
    PyObject** items = PySequence_Fast_ITEMS(object);
    const auto count = static_cast<size_t>(PySequence_Fast_GET_SIZE(object));
    if (element.is(TypeKind::kTensor)) return tensor_list(items, count, out, false);
    return int_list(items, count, out);
  }
  if (spec.fixed_list_size > 0 && !is_sequence) {  // one number stands for all
    IValue one;
    if (!try_to_ivalue(object, element, &one)) return false;
    *out = IValue::list(std::vector<IValue>(static_cast<size_t>(spec.fixed_list_size), one));
    return true;
  }
  if (element.is(TypeKind::kInt) && is_tensor(object)) {  // a tensor of sizes
    const Tensor t = tensor_of(object);
    if (t.rank() != 1 || is_floating(t.dtype()) || t.dtype() == DType::kBool) return false;
    eager::check_not_batched(t.impl(), "the sizes");
    Dims dims;
    for (int64_t i = 0; i < t.numel(); ++i)
      dims.push_back(t.as_strided({}, {}, t.offset() + i * t.strides()[0]).item_int());
    *out = IValue(DimsView(dims));
    return true;
  }
  if (element.is(TypeKind::kInt) && !is_sequence) {  // x.sum(0) where dim is int[]
    IValue one;
    if (try_to_ivalue(object, element, &one)) {
      *out = IValue::list({one});
      return true;
    }
  }
  return try_to_ivalue(object, *spec.type, out);
}

bool convert_argument(const ArgumentSpec& spec, PyObject* object, bool numbers_as_tensors,
                      IValue* out) {
  if (spec.type->is(TypeKind::kTensor)) {
    if (is_tensor(object)) {
      *out = IValue(tensor_of(object));
      return true;
    }
    if (numbers_as_tensors && number_to_ivalue(object, out)) return true;
    return spec.is_optional && object == Py_None;
  }
  if (object == Py_None && spec.is_optional) return true;
  if (spec.type->is(TypeKind::kList)) return convert_list(spec, object, out);
  return try_to_ivalue(object, *spec.type, out);
}

std::string type_text(const ArgumentSpec& spec) {
  switch (spec.type->kind()) {
  case TypeKind::kTensor:
    return "Tensor";
  case TypeKind::kNumber:
    return "Number";
  case TypeKind::kDType:
    return "torch.dtype";
  case TypeKind::kDevice:
    return "torch.device";
  case TypeKind::kList:
    if (spec.type->element()->is(TypeKind::kInt)) return "tuple of ints";
    if (spec.type->element()->is(TypeKind::kTensor)) return "tuple of Tensors";
    if (spec.type->element()->is(TypeKind::kFloat)) return "tuple of floats";
    return spec.type->str_();
  default:
    return spec.type->str_();
  }
}

// The first item of a list that does not fit, in PyTorch's words; empty if the object is no list.
std::string explain_items(const ArgumentSpec& spec, const std::string& where, PyObject* given) {
  if (!spec.type->is(TypeKind::kList) || (!PyList_Check(given) && !PyTuple_Check(given))) return {};
  const Type& element = *spec.type->element();
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(given); ++i) {
    IValue ignored;
    PyObject* item = PySequence_Fast_GET_ITEM(given, i);
    if (try_to_ivalue(item, element, &ignored)) continue;
    return cat("argument '", PyUnicode_AsUTF8(spec.name), "'", where, " must be ", type_text(spec),
               ", but found element of type ", type_name(item), " at pos ", i);
  }
  return {};
}

void explain(std::string* why, const ArgumentSpec& spec, int position, PyObject* given) {
  if (!why) return;
  const std::string where = position > 0 ? cat(" (position ", position, ")") : "";
  if (*why = explain_items(spec, where, given); !why->empty()) return;
  *why = cat("argument '", PyUnicode_AsUTF8(spec.name), "'", where, " must be ", type_text(spec),
             ", not ", type_name(given));
}

// The positional arguments from `first` on are the items of one list: x.view(2, 3), torch.zeros(2,
// 3).
bool takes_rest(const ArgumentSpec& spec, PyObject* first) {
  if (spec.type->element()->is(TypeKind::kTensor)) return is_tensor(first);
  if (PyList_Check(first) || PyTuple_Check(first)) return false;
  IValue ignored;
  return !PyUnicode_Check(first) && try_to_ivalue(first, *Type::int_(), &ignored);
}

bool fail(std::string* why, std::string text) {
  if (why) *why = std::move(text);
  return false;
}

bool check_keywords(const Signature& s, const PythonCall& call, uint32_t used, Extras* extras,
                    std::string* why) {
  for (size_t k = 0; k < call.keyword_count(); ++k) {
    if (used & (1u << k)) continue;
    PyObject* name = call.keyword(k);
    for (const ArgumentSpec& spec : s.arguments)
      if (is_name(name, spec.name) || is_name(name, spec.alias))
        return fail(why, cat("got multiple values for argument '", PyUnicode_AsUTF8(name), "'"));
    if (!take_extra(s, name, call.keyword_value(k), extras))
      return fail(why, cat("got an unexpected keyword argument '", PyUnicode_AsUTF8(name), "'"));
  }
  return true;
}

}  // namespace

bool match(const Signature& s, const PythonCall& call, bool numbers_as_tensors, ArgumentBuffer* out,
           Extras* extras, std::string* why) {
  out->clear();
  size_t next = 0;    // the next positional argument
  uint32_t used = 0;  // keywords taken, as bits
  const int varargs = call.self ? s.varargs_method : s.varargs_function;
  const size_t keywords = call.keyword_count();
  for (size_t i = 0; i < s.arguments.size(); ++i) {
    const ArgumentSpec& spec = s.arguments[i];
    PyObject* given = nullptr;
    int position = 0;
    if (call.self && static_cast<int>(i) == s.self_index) {
      given = call.self;
    } else if (next < call.count && !spec.is_keyword_only) {
      if (static_cast<int>(i) == varargs && takes_rest(spec, call.args[next])) {
        IValue rest;
        const bool fits = spec.type->element()->is(TypeKind::kTensor)
                              ? tensor_list(call.args + next, call.count - next, &rest, false)
                              : int_list(call.args + next, call.count - next, &rest);
        if (!fits) {
          explain(why, spec, static_cast<int>(next + 1), call.args[next]);
          return false;
        }
        out->push(std::move(rest));
        next = call.count;
        continue;
      }
      given = call.args[next++];
      position = static_cast<int>(next);
    } else {
      for (size_t k = 0; k < keywords; ++k) {
        PyObject* name = call.keyword(k);
        if (!is_name(name, spec.name) && !is_name(name, spec.alias)) continue;
        given = call.keyword_value(k);
        used |= 1u << k;
        break;
      }
    }
    if (!given) {
      if (!spec.has_default) {
        if (static_cast<int>(i) == varargs && !call.self) {  // torch.ones() is zero-dim
          out->push(IValue(DimsView()));
          continue;
        }
        return fail(why,
                    cat("missing 1 required ", spec.is_keyword_only ? "keyword-only" : "positional",
                        " arguments: \"", PyUnicode_AsUTF8(spec.name), "\""));
      }
      out->push(*spec.default_value);
      continue;
    }
    IValue value;
    if (!convert_argument(spec, given, numbers_as_tensors, &value)) {
      explain(why, spec, position, given);
      return false;
    }
    out->push(std::move(value));
  }
  if (next < call.count) {
    const int most = s.num_positional - (call.self ? 1 : 0);
    return fail(why, cat("takes ", most, " positional argument", most == 1 ? "" : "s", " but ",
                         call.count, call.count == 1 ? " was" : " were", " given"));
  }
  if (keywords == 0) [[likely]]
    return true;
  return check_keywords(s, call, used, extras, why);
}

Signature prepare(const OpDef& op) {
  const Schema& schema = op.schema();
  PRONG_ASSERT(schema.arguments.size() <= kMaxArguments, op.name(), " has too many arguments");
  Signature s;
  s.op = &op;
  s.num_positional = schema.num_positional();
  int tensors = 0;
  for (const Argument& a : schema.arguments) {
    ArgumentSpec spec;
    spec.name = interned(a.name.c_str());
    spec.alias = a.name == "dim"       ? interned("axis")
                 : a.name == "keepdim" ? interned("keepdims")
                 : a.name == "input"   ? interned("x")
                 : a.name == "other"   ? interned("x2")
                                       : nullptr;
    if (spec.alias && schema.find(PyUnicode_AsUTF8(spec.alias)) >= 0) spec.alias = nullptr;
    spec.is_optional = a.type->is(TypeKind::kOptional);
    spec.type = spec.is_optional ? a.type->element().get() : a.type.get();
    spec.is_keyword_only = a.is_keyword_only;
    spec.has_default = a.has_default;
    spec.fixed_list_size = a.fixed_list_size;
    spec.default_value = &a.default_value;
    tensors += spec.type->is(TypeKind::kTensor);
    s.arguments.push_back(spec);
  }
  s.has_two_tensors = tensors >= 2;
  s.self_index = std::max(0, std::max(schema.find("input"), schema.find("self")));
  const auto varargs = [&](int skipped) {
    int found = -1, positional = 0;
    for (int i = 0; i < s.num_positional; ++i) {
      if (i == skipped) continue;
      ++positional;
      const Type& type = *s.arguments[static_cast<size_t>(i)].type;
      // A list of tensors may come last (einsum); a list of ints only alone (view, zeros).
      if (type.is(TypeKind::kList) && ((type.element()->is(TypeKind::kInt) &&
                                        s.arguments[static_cast<size_t>(i)].fixed_list_size == 0) ||
                                       type.element()->is(TypeKind::kTensor)))
        found = i;
      else
        found = -1;
    }
    if (found < 0) return -1;
    const bool is_ints =
        s.arguments[static_cast<size_t>(found)].type->element()->is(TypeKind::kInt);
    return is_ints && positional != 1 ? -1 : found;
  };
  s.varargs_function = varargs(-1);
  s.varargs_method = varargs(s.self_index);
  return s;
}

void init_op_match() {
  extra_names = {interned("out"),          interned("requires_grad"), interned("device"),
                 interned("layout"),       interned("pin_memory"),    interned("memory_format"),
                 interned("non_blocking"), interned("names")};
}

}  // namespace prong::python
