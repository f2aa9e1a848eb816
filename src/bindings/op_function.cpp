// Python's functions and methods of ops; see op_function.h.
#include "bindings/op_function.h"

#include <structmember.h>

#include <algorithm>
#include <unordered_map>

#include "bindings/convert.h"
#include "bindings/op_match.h"
#include "bindings/op_result.h"
#include "bindings/tensor_type.h"
#include "eager/dispatch.h"
#include "eager/modes.h"
#include "eager/node.h"
#include "ops/kernels/pointwise.h"
#include "profile/profile.h"

namespace prong::python {

namespace {

// ── groups ──

std::unordered_map<std::string_view, OpGroup*>& groups() {
  static auto* map =
      new std::unordered_map<std::string_view, OpGroup*>();  // as long as the process
  return *map;
}

// Below this many elements, giving the GIL up and taking it again costs more than the op.
constexpr int64_t kTinyElements = 1024;

int64_t elements_in(const IValue& v) {
  if (v.is_tensor()) return v.tensor_impl()->numel;
  if (!v.is_list()) return 0;
  int64_t n = 0;
  for (const IValue& item : v.items())
    if (item.is_tensor()) n += item.tensor_impl()->numel;
  return n;
}

bool is_tiny(const OpDef& op, std::span<const IValue> args) {
  switch (op.family()) {
  case Family::kView:
  case Family::kHost:
    return true;
  case Family::kFactory:
    return false;
  default:
    break;
  }
  int64_t n = 0;
  for (const IValue& arg : args) n += elements_in(arg);
  return n < kTinyElements;
}

// out= of a pointwise op: its loops write there, and no result is made beside it.
bool writes_directly(const OpDef& op, std::span<const IValue> args, PyObject* out) {
  if (!op.pointwise() || !is_tensor(out) || context()[ContextWord::kInterceptor] != 0 ||
      context()[ContextWord::kKernels] != 0)
    return false;
  if (!eager::is_grad_enabled()) return true;
  // Where something requires grad, store_out() says that out= has no gradient.
  return !eager::requires_grad(impl_of(out)) && std::ranges::none_of(args, [](const IValue& v) {
    return v.is_tensor() && eager::requires_grad(v.tensor_impl());
  });
}

// What the loops would refuse if they wrote there themselves.
void check_out_overlap(const OpDef& op, std::span<const IValue> args, const IValue& result,
                       PyObject* out) {
  if (!op.pointwise() || !is_tensor(out) || !result.is_tensor() ||
      context()[ContextWord::kInterceptor] != 0 ||
      !(impl_of(out)->sizes == result.tensor_impl()->sizes))
    return;
  const Tensor written = tensor_of(out);
  check_no_internal_overlap(written);
  for (const IValue& v : args)
    if (v.is_tensor() && v.tensor_impl() != written.impl())
      check_inplace_overlap(written, v.to_tensor());
}

bool has_named_results(const OpDef& op) {
  const std::vector<std::string>& names = op.schema().result_names;
  return !names.empty() && !names[0].empty();
}

PyObject* finish(Signature& signature, const ArgumentBuffer& arguments, const Extras& extras) {
  if (extras.out && writes_directly(*signature.op, arguments.values(), extras.out)) {
    const Tensor out = tensor_of(extras.out);
    const Dims sizes = out.sizes();
    {
      WithoutGil released;
      profile::Scope scope(signature.op->trace_name(), profile::Category::kOp);
      run_out(*signature.op, arguments.values(), out);
    }
    if (product(sizes) != 0 && !(sizes == out.sizes()))
      warn_resized(signature.op->base_name().c_str());
    return Py_NewRef(extras.out);
  }
  IValue result = run_op(*signature.op, arguments.values());
  if (extras.requires_grad) require_grad(result);
  if (extras.out) {
    check_out_overlap(*signature.op, arguments.values(), result, extras.out);
    Owned stored(store_out(signature.op->base_name().c_str(), result, extras.out));
    if (!result.is_tuple() || !has_named_results(*signature.op)) return stored.release();
    std::vector<IValue> items;
    for (size_t i = 0; i < result.items().size(); ++i)
      items.emplace_back(
          tensor_of(PySequence_Fast_GET_ITEM(stored.get(), static_cast<Py_ssize_t>(i))));
    return named_result(result_type_of(signature), IValue::tuple(std::move(items)));
  }
  if (result.is_tensor()) [[likely]]
    return wrap(std::move(result).to_tensor());
  if (result.is_tuple() && has_named_results(*signature.op))
    return named_result(result_type_of(signature), result);
  if (result.is_list()) return to_python(IValue::tuple(result.items()));  // as PyTorch
  return to_python(result);
}

std::string given_types(const PythonCall& call) {
  std::string text;
  for (size_t i = 0; i < call.count; ++i) {
    if (i) text += ", ";
    text += type_name(call.args[i]);
  }
  for (size_t k = 0; k < call.keyword_count(); ++k) {
    if (!text.empty()) text += ", ";
    text += cat(PyUnicode_AsUTF8(call.keyword(k)), "=", type_name(call.keyword_value(k)));
  }
  return text;
}

[[noreturn]] void throw_mismatch(const OpGroup& group, const PythonCall& call) {
  ArgumentBuffer arguments;
  if (group.signatures.size() == 1) {
    Extras extras;
    std::string why;
    const Signature& only = group.signatures[0];
    match(only, call, only.has_two_tensors, &arguments, &extras, &why);
    const bool is_about_argument = why.rfind("argument", 0) == 0;
    throw_error(ErrorKind::kType, cat(group.name, is_about_argument ? "(): " : "() ", why));
  }
  std::string text = cat(group.name, "() received an invalid combination of arguments - got (",
                         given_types(call), "), but expected one of:");
  for (const Signature& s : group.signatures) {
    std::string schema = s.op->schema().str();
    Extras extras;
    std::string why;
    match(s, call, s.has_two_tensors, &arguments, &extras, &why);
    const size_t open = schema.find('('), arrow = schema.rfind(" -> ");
    text += cat("\n * ", schema.substr(open, arrow - open), "\n      ", why);
  }
  throw_error(ErrorKind::kType, text);
}

// ── the Python objects ──

struct OpFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  OpGroup* group;
  PyObject* module;  // str
};

PyTypeObject *function_type = nullptr, *method_type = nullptr;

OpFunction* as_function(PyObject* o) { return reinterpret_cast<OpFunction*>(o); }

PyObject* call_function(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  return call_group(*as_function(self)->group, nullptr, args, PyVectorcall_NARGS(nargsf), kwnames);
}

PyObject* call_method(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const auto count = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
  OpGroup* group = as_function(self)->group;
  if (count == 0 || !is_tensor(args[0])) {
    PyErr_Format(PyExc_TypeError, "descriptor '%s' of 'torch.Tensor' object needs a Tensor",
                 group->name.c_str());
    return nullptr;
  }
  return call_group(*group, args[0], args + 1, count - 1, kwnames);
}

PyObject* method_get(PyObject* self, PyObject* object, PyObject*) {
  if (!object || object == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, object);
}

void function_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(as_function(self)->module);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* function_repr(PyObject* self) {
  const char* kind = Py_TYPE(self) == method_type ? "method" : "built-in function";
  return PyUnicode_FromFormat("<%s %s of prong>", kind, as_function(self)->group->name.c_str());
}
PyObject* function_name(PyObject* self, void*) {
  return PyUnicode_FromString(as_function(self)->group->name.c_str());
}
PyObject* function_module(PyObject* self, void*) { return Py_NewRef(as_function(self)->module); }
PyObject* function_qualname(PyObject* self, void*) {
  const char* name = as_function(self)->group->name.c_str();
  return Py_TYPE(self) == method_type ? PyUnicode_FromFormat("Tensor.%s", name)
                                      : PyUnicode_FromString(name);
}
PyObject* function_doc(PyObject* self, void*) {
  std::string text;
  for (const Signature& s : as_function(self)->group->signatures) {
    text += cat(s.op->schema().str(), "\n");
    if (!s.op->doc().empty()) text += cat("    ", s.op->doc(), "\n");
  }
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}
PyObject* function_reduce(PyObject* self, PyObject*) { return function_qualname(self, nullptr); }

PyGetSetDef function_getset[] = {{"__name__", function_name, nullptr, nullptr, nullptr},
                                 {"__qualname__", function_qualname, nullptr, nullptr, nullptr},
                                 {"__module__", function_module, nullptr, nullptr, nullptr},
                                 {"__doc__", function_doc, nullptr, nullptr, nullptr},
                                 {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef function_methods[] = {{"__reduce__", function_reduce, METH_NOARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};
PyMemberDef function_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OpFunction, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot function_slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                {Py_tp_dealloc, reinterpret_cast<void*>(function_dealloc)},
                                {Py_tp_repr, reinterpret_cast<void*>(function_repr)},
                                {Py_tp_getset, function_getset},
                                {Py_tp_methods, function_methods},
                                {Py_tp_members, function_members},
                                {0, nullptr}};
PyType_Slot method_slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(function_dealloc)},
                              {Py_tp_repr, reinterpret_cast<void*>(function_repr)},
                              {Py_tp_descr_get, reinterpret_cast<void*>(method_get)},
                              {Py_tp_getset, function_getset},
                              {Py_tp_methods, function_methods},
                              {Py_tp_members, function_members},
                              {0, nullptr}};
constexpr unsigned kFunctionFlags =
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION;
PyType_Spec function_spec = {"prong.OpFunction", sizeof(OpFunction), 0, kFunctionFlags,
                             function_slots};
PyType_Spec method_spec = {"prong.OpMethod", sizeof(OpFunction), 0,
                           kFunctionFlags | Py_TPFLAGS_METHOD_DESCRIPTOR, method_slots};

PyObject* make_function(OpGroup& group, PyTypeObject* type, PyObject* module) {
  PyObject* self = checked(PyType_GenericAlloc(type, 0));
  as_function(self)->vectorcall = type == method_type ? call_method : call_function;
  as_function(self)->group = &group;
  as_function(self)->module = Py_NewRef(module);
  return self;
}

PyObject* property_getter(PyObject* self, void* group) {
  return call_group(*static_cast<OpGroup*>(group), self, nullptr, 0, nullptr);
}

void add_property(OpGroup& group, const char* name) {
  // The definition must outlive the type: both live as long as the process.
  auto* definition = new PyGetSetDef{name, property_getter, nullptr, nullptr, &group};
  Owned descriptor(checked(PyDescr_NewGetSet(tensor_type, definition)));
  checked(PyDict_SetItemString(tensor_type->tp_dict, name, descriptor.get()));
}

struct Places {
  PyObject *functions, *nn_functional;  // dicts
  PyObject* modules;                    // a dict of dicts: prong.linalg, prong.fft, prong.special
  PyObject *prong, *nn;                 // names of modules
};

// linalg_inv is prong.linalg.inv.
void add_to_module(OpGroup& group, std::string_view name, const Places& places) {
  for (const std::string_view module : {"linalg_", "fft_", "special_"}) {
    if (name.substr(0, module.size()) != module) continue;
    const std::string text(module.substr(0, module.size() - 1));
    PyObject* members = PyDict_GetItemString(places.modules, text.c_str());
    if (!members) {
      Owned made(checked(PyDict_New()));
      checked(PyDict_SetItemString(places.modules, text.c_str(), made.get()));
      members = PyDict_GetItemString(places.modules, text.c_str());
    }
    Owned where(checked(PyUnicode_FromString(cat("prong.", text).c_str())));
    Owned function(make_function(group, function_type, where.get()));
    checked(PyDict_SetItemString(members, std::string(name.substr(module.size())).c_str(),
                                 function.get()));
  }
}

void add_spellings(OpGroup& group, const char* name, const Places& places) {
  add_to_module(group, name, places);
  Spelling where;
  where.function = where.method = false;
  for (const Signature& s : group.signatures) {
    const Spelling& one = s.op->spelling();
    where.function |= one.function;
    where.method |= one.method;
    where.nn_functional |= one.nn_functional;
    where.property |= one.property;
  }
  if (where.function || where.nn_functional) {
    Owned function(make_function(group, function_type, where.function ? places.prong : places.nn));
    if (where.function) checked(PyDict_SetItemString(places.functions, name, function.get()));
    if (where.nn_functional)
      checked(PyDict_SetItemString(places.nn_functional, name, function.get()));
  }
  // What the type defines itself (size, to, __getitem__ ...) does more than the op of that name.
  if (PyDict_GetItemString(tensor_type->tp_dict, name)) return;
  if (where.property) {
    add_property(group, name);
  } else if (where.method) {
    Owned method(make_function(group, method_type, places.prong));
    checked(PyDict_SetItemString(tensor_type->tp_dict, name, method.get()));
  }
}

}  // namespace

PyObject* call_group(OpGroup& group, PyObject* self, PyObject* const* args, size_t count,
                     PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    const PythonCall call{self, args, count, kwnames};
    ArgumentBuffer arguments;
    const bool is_single = group.signatures.size() == 1;
    // With several overloads, one that takes the numbers as they are goes before one that would
    // have to make tensors of them.
    for (int pass = is_single ? 1 : 0; pass < 2; ++pass) {
      for (Signature& s : group.signatures) {
        if (pass == 1 && !is_single && !s.has_two_tensors) continue;
        Extras extras;
        if (match(s, call, pass == 1 && s.has_two_tensors, &arguments, &extras, nullptr))
          return finish(s, arguments, extras);
      }
    }
    throw_mismatch(group, call);
  });
}

OpGroup* find_group(std::string_view base_name) {
  const auto it = groups().find(base_name);
  return it == groups().end() ? nullptr : it->second;
}

OpGroup& group_named(const char* base_name) {
  OpGroup* group = find_group(base_name);
  PRONG_CHECK(group, kAttribute, "prong has no op '", base_name, "' yet");
  return *group;
}

OpGroup* group_of(PyObject* object) {
  if (Py_TYPE(object) != function_type && Py_TYPE(object) != method_type) return nullptr;
  return as_function(object)->group;
}

IValue run_op(const OpDef& op, std::span<const IValue> args) {
  // Recording an op is quick, and asks Python where it stands.
  if (context()[ContextWord::kKernels] || is_tiny(op, args)) return eager::run(op, args);
  WithoutGil released;
  return eager::run(op, args);
}

IValue run_named(const char* op_name, std::span<const IValue> args) {
  const OpDef& op = registry().get(op_name);
  if (args.size() == op.schema().arguments.size()) return run_op(op, args);
  return run_op(op, op.schema().with_defaults(args));
}

void init_op_functions(PyObject* module) {
  init_op_match();
  function_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&function_spec)));
  method_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&method_spec)));
  checked(PyModule_AddType(module, function_type));
  checked(PyModule_AddType(module, method_type));
  Owned functions(checked(PyDict_New())), nn_functional(checked(PyDict_New())),
      modules(checked(PyDict_New()));
  Owned prong(checked(PyUnicode_InternFromString("prong")));
  Owned nn(checked(PyUnicode_InternFromString("prong.nn.functional")));
  for (const auto& op : registry().all()) {
    OpGroup*& group = groups()[op->base_name()];
    if (!group) {
      group = new OpGroup;
      group->name = op->base_name();
    }
    group->signatures.push_back(prepare(*op));
  }
  const Places places{functions.get(), nn_functional.get(), modules.get(), prong.get(), nn.get()};
  for (const auto& [name, group] : groups()) {
    add_spellings(*group, group->name.c_str(), places);
    for (const Signature& s : group->signatures)
      for (const std::string& alias : s.op->spelling().aliases)
        add_spellings(*group, alias.c_str(), places);
  }
  PyType_Modified(tensor_type);
  checked(PyModule_AddObjectRef(module, "functions", functions.get()));
  checked(PyModule_AddObjectRef(module, "nn_functional", nn_functional.get()));
  checked(PyModule_AddObjectRef(module, "op_modules", modules.get()));
}

}  // namespace prong::python
