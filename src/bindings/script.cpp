// Scripted functions in Python: entries to compile, resolvers that ask Python for names, calls.
#include "bindings/script.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/constants.h"
#include "bindings/op_function.h"
#include "bindings/trace.h"
#include "compile/pipeline.h"
#include "exec/run.h"
#include "graph/builder.h"
#include "graph/host_op.h"
#include "graph/printer.h"

namespace nb = nanobind;

namespace prong::python {

using script::Named;

nb::object call_python_side(nb::handle callable, nb::handle argument) {
  return nb::steal(checked(PyObject_CallOneArg(callable.ptr(), argument.ptr())));
}

namespace {

// A function of Python that a script calls: an ignored one.
class PythonFunction final : public PyCallable {
 public:
  PythonFunction(nb::handle f, Schema signature)
      : function_(make_ref<PyObjectBox>(f.ptr())), signature_(std::move(signature)) {}
  std::string describe() const override { return signature_.name; }
  IValue call(std::span<IValue> args) override {
    WithGil gil;
    PRONG_CHECK(gil.is_held(), kRuntime, "Python has ended");
    Owned tuple(checked(PyTuple_New(static_cast<Py_ssize_t>(args.size()))));
    for (size_t i = 0; i < args.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), to_python(args[i]));
    // Keyword-only arguments go by name.
    Owned result;
    const auto positional = static_cast<size_t>(signature_.num_positional());
    if (positional < args.size()) {
      Owned kwargs(checked(PyDict_New()));
      for (size_t i = positional; i < args.size(); ++i)
        checked(PyDict_SetItemString(kwargs.get(), signature_.arguments[i].name.c_str(),
                                     PyTuple_GET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i))));
      Owned front(checked(PyTuple_GetSlice(tuple.get(), 0, static_cast<Py_ssize_t>(positional))));
      result = Owned(checked(PyObject_Call(function_->get(), front.get(), kwargs.get())));
    } else {
      result = Owned(checked(PyObject_CallObject(function_->get(), tuple.get())));
    }
    IValue out;
    if (!try_to_ivalue(result.get(), *signature_.results[0], &out))
      throw_error(ErrorKind::kRuntime,
                  cat("the ignored function '", signature_.name, "' is declared to return '",
                      signature_.results[0]->str_(), "' but returned a value of type '",
                      type_name(result.get()), "'"));
    return out;
  }

 private:
  Ref<PyObjectBox> function_;
  Schema signature_;
};

class PythonEntity final : public script::Entity {
 public:
  PythonEntity(nb::handle names, std::string text)
      : names_(make_ref<PyObjectBox>(names.ptr())), text_(std::move(text)) {}
  Named attribute(const std::string& name) override {
    WithGil gil;
    return named_from(call_python_side(names_->get(), nb::str(name.c_str())));
  }
  std::string describe() const override { return text_; }

 private:
  Ref<PyObjectBox> names_;  // callable: name → description
  std::string text_;
};

class PythonResolver final : public script::Resolver {
 public:
  explicit PythonResolver(nb::handle names) : names_(make_ref<PyObjectBox>(names.ptr())) {}
  Named lookup(const std::string& name) override {
    WithGil gil;
    return named_from(nb::handle(names_->get()).attr("lookup")(name));
  }
  TypePtr type(const std::string& text) override {
    WithGil gil;
    try {
      return nb::cast<PyType>(nb::handle(names_->get()).attr("type")(text)).type;
    } catch (nb::python_error& e) {
      e.restore();
      PythonError error;
      throw Error(ErrorKind::kRuntime, std::string(nb::str(error.value()).c_str()));
    }
  }
  IValue default_value(const std::string& parameter, const std::string& text,
                       const TypePtr& type) override {
    WithGil gil;
    const nb::object value = nb::handle(names_->get()).attr("default")(parameter, text);
    if (!type) return infer_ivalue(value.ptr());
    IValue out;
    if (!try_to_ivalue(value.ptr(), *type, &out))
      throw_error(ErrorKind::kRuntime,
                  cat("the default of parameter '", parameter, "' is of type '",
                      type_name(value.ptr()), "', not '", type->str_(), "'"));
    return out;
  }

 private:
  Ref<PyObjectBox> names_;
};

Schema signature_from(nb::handle description) {
  // (name, [(argument, type, keyword_only, has_default, default)], result)
  Schema s;
  s.name = nb::cast<std::string>(description[0]);
  for (nb::handle item : description[1]) {
    Argument a;
    a.name = nb::cast<std::string>(item[0]);
    a.type = nb::cast<PyType>(item[1]).type;
    a.is_keyword_only = nb::cast<bool>(item[2]);
    a.has_default = nb::cast<bool>(item[3]);
    if (a.has_default) a.default_value = to_ivalue(nb::object(item[4]).ptr(), a.type);
    s.arguments.push_back(std::move(a));
  }
  s.results = {nb::cast<PyType>(description[2]).type};
  s.result_names = {""};
  return s;
}

TypePtr type_of_value(const IValue& v) {
  if (v.is_none()) return Type::none();
  return type_of_constant(v);
}

}  // namespace

Ref<script::Resolver> make_resolver(nb::object names) { return make_ref<PythonResolver>(names); }

Named named_from(nb::handle d) {
  Named n;
  if (d.is_none()) return n;
  const std::string kind = nb::cast<std::string>(d[0]);
  using Kind = Named::Kind;
  if (kind == "op" || kind == "builtin" || kind == "unsupported") {
    n.kind = kind == "op" ? Kind::kOp : kind == "builtin" ? Kind::kBuiltin : Kind::kUnsupported;
    n.name = nb::cast<std::string>(d[1]);
  } else if (kind == "constant") {  // value, type or None
    n.kind = Kind::kConstant;
    if (nb::object(d[2]).is_none()) {
      n.value = infer_ivalue(nb::object(d[1]).ptr());
      n.type = type_of_value(n.value);
    } else {
      n.type = nb::cast<PyType>(d[2]).type;
      n.value = to_ivalue(nb::object(d[1]).ptr(), n.type);
    }
  } else if (kind == "function") {
    n.kind = Kind::kFunction;
    n.entry = nb::cast<PyEntry>(d[1]).entry;
    n.name = n.entry->name;
  } else if (kind == "compiled") {
    n.kind = Kind::kCompiled;
    n.function = nb::cast<PyFunction>(d[1]).function;
    n.name = n.function->name();
  } else if (kind == "python") {  // callable, signature
    n.kind = Kind::kPython;
    n.signature = signature_from(d[2]);
    n.name = n.signature.name;
    n.callable = make_ref<PythonFunction>(nb::object(d[1]), n.signature);
  } else if (kind == "namespace") {  // attribute lookup, text
    n.kind = Kind::kNamespace;
    n.name = nb::cast<std::string>(d[2]);
    n.entity = make_ref<PythonEntity>(nb::object(d[1]), n.name);
  } else if (kind == "class") {  // class, attribute lookup
    n.kind = Kind::kClass;
    const auto& entry = nb::cast<const PyClass&>(d[1]).entry;
    n.type = Type::class_(entry->cls);
    n.name = entry->cls->qualified_name;
    n.entity = make_ref<PythonEntity>(nb::object(d[2]), n.name);
  } else if (kind == "named_tuple") {  // type, name, defaults
    n.kind = Kind::kNamedTuple;
    n.type = nb::cast<PyType>(d[1]).type;
    n.name = nb::cast<std::string>(d[2]);
    const nb::tuple defaults = nb::cast<nb::tuple>(d[3]);
    const size_t first = n.type->fields().size() - defaults.size();
    for (size_t i = 0; i < defaults.size(); ++i)
      n.defaults.push_back(to_ivalue(nb::object(defaults[i]).ptr(), n.type->elements()[first + i]));
  } else if (kind == "exception") {  // name, class
    n.kind = Kind::kException;
    n.name = nb::cast<std::string>(d[1]);
    n.object = make_ref<PyObjectBox>(nb::object(d[2]).ptr());
  } else if (kind == "object") {
    n.kind = Kind::kObject;
    const auto& object = nb::cast<const PyScriptObject&>(d[1]).object;
    n.value = IValue(Ref<ObjectBase>(object));
    n.type = Type::class_(object->cls);
    n.name = object->cls->qualified_name;
  } else {
    throw_error(ErrorKind::kInternal, cat("a name of kind '", kind, "'"));
  }
  return n;
}

namespace {

// Waits for the compile lock without the GIL, since its holder may want that.
class CompileGuard {
 public:
  CompileGuard() {
    if (!script::compile_lock().try_lock()) {
      WithoutGil released;
      script::compile_lock().lock();
    }
  }
  ~CompileGuard() { script::compile_lock().unlock(); }
};

PyEntry declare(std::string name, std::string qualified_name, std::string text, std::string file,
                int first_line, int removed_columns, nb::object names,
                std::optional<PyClass> self) {
  auto entry = make_ref<script::FunctionEntry>();
  entry->name = std::move(name);
  entry->qualified_name = std::move(qualified_name);
  entry->source = std::make_shared<const script::Source>(std::move(text), std::move(file),
                                                         first_line, removed_columns);
  entry->resolver = make_ref<PythonResolver>(names);
  if (self) entry->self = Type::class_(self->entry->cls);
  return {std::move(entry)};
}

// Arguments of a call from Python, one IValue for each of the schema. `self` null: a function.
std::vector<IValue> arguments_of(const Function& f, const Ref<Object>& self, nb::args args,
                                 nb::kwargs kwargs) {
  const Schema& s = f.schema();
  std::vector<IValue> out(s.arguments.size());
  size_t next = 0;
  if (self) out[next++] = IValue(Ref<ObjectBase>(self));
  std::vector<bool> given(s.arguments.size(), false);
  const auto take = [&](size_t i, PyObject* value) {
    const Argument& a = s.arguments[i];
    if (!try_to_ivalue(value, *a.type, &out[i])) {
      // A number where a tensor is declared, as in eager calls of ops.
      std::string hint;
      if (a.type->is(TypeKind::kTensor))
        hint = cat(" (parameters without an annotation are Tensors; annotate '", a.name,
                   "' otherwise)");
      throw_error(ErrorKind::kRuntime,
                  cat(f.name(), "() expected a value of type '", a.type->str_(), "' for argument '",
                      a.name, "' but got a value of type '", type_name(value), "'", hint,
                      "\n    its signature is ", s.str()));
    }
    given[i] = true;
  };
  const auto positional = static_cast<size_t>(s.num_positional());
  for (nb::handle value : args) {
    if (next >= positional)
      throw_error(ErrorKind::kRuntime,
                  cat(f.name(), "() expected at most ", positional - (self ? 1 : 0),
                      " positional arguments but got ", args.size(), "\n    its signature is ",
                      s.str()));
    take(next++, value.ptr());
  }
  for (auto [key, value] : kwargs) {
    const std::string name = nb::cast<std::string>(key);
    const int at = s.find(name);
    if (at < 0)
      throw_error(ErrorKind::kRuntime, cat(f.name(), "() got an unknown argument '", name,
                                           "'\n    its signature is ", s.str()));
    if (given[static_cast<size_t>(at)] || (self && at == 0))
      throw_error(ErrorKind::kRuntime, cat(f.name(), "() got argument '", name, "' twice"));
    take(static_cast<size_t>(at), value.ptr());
  }
  for (size_t i = self ? 1 : 0; i < out.size(); ++i) {
    if (given[i]) continue;
    const Argument& a = s.arguments[i];
    if (!a.has_default)
      throw_error(ErrorKind::kRuntime, cat(f.name(), "() is missing value for argument '", a.name,
                                           "'\n    its signature is ", s.str()));
    out[i] = a.default_value;
    if (out[i].is_list() || out[i].is_dict())
      out[i] = to_ivalue(nb::steal(to_python(out[i])).ptr(), a.type);  // a list of its own
  }
  return out;
}

nb::object run_function(Function& f, std::vector<IValue> args) {
  IValue result;
  {
    WithoutGil released;
    result = is_tracing() ? traced_call(f, std::move(args)) : exec::run(f, std::move(args));
  }
  return nb::steal(to_python(std::move(result)));
}

// print() of scripts, wherever sys.stdout leads.
void print_to_python(std::string_view text) {
  WithGil gil;
  if (!gil.is_held()) return;
  PyObject* out = PySys_GetObject("stdout");
  if (!out || out == Py_None) return;
  Owned chars(
      checked(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace")));
  checked(PyFile_WriteObject(chars.get(), out, Py_PRINT_RAW));
}

nb::dict signature_of(const Function& f) {
  nb::dict out;
  nb::list arguments;
  for (const Argument& a : f.schema().arguments)
    arguments.append(
        nb::make_tuple(a.name, PyType{a.type}, a.is_keyword_only, a.has_default,
                       a.has_default ? nb::steal(to_python(a.default_value)) : nb::none()));
  out["arguments"] = arguments;
  out["result"] = PyType{f.schema().results[0]};
  return out;
}

}  // namespace

void bind_script(nb::module_& m) {
  compile::install();
  set_print_hook(&print_to_python);
  nb::class_<PyEntry>(m, "ScriptEntry")
      .def("compile",
           [](const PyEntry& e) {
             CompileGuard guard;
             return PyFunction{script::compile(*e.entry)};
           })
      .def_prop_ro("name", [](const PyEntry& e) { return e.entry->name; })
      .def_prop_ro("is_compiled", [](const PyEntry& e) {
        return e.entry->state == script::FunctionEntry::State::kDone;
      });
  m.def("declare_script", &declare, nb::arg("name"), nb::arg("qualified_name"), nb::arg("text"),
        nb::arg("file"), nb::arg("first_line"), nb::arg("removed_columns"), nb::arg("names"),
        nb::arg("self").none() = nb::none());

  nb::class_<PyFunction>(m, "GraphFunction", nb::is_weak_referenceable())
      .def("__call__",
           [](const PyFunction& f, nb::args args, nb::kwargs kwargs) {
             return run_function(*f.function, arguments_of(*f.function, {}, args, kwargs));
           })
      .def("call_method",
           [](const PyFunction& f, const PyScriptObject& self, nb::args args, nb::kwargs kwargs) {
             return run_function(*f.function, arguments_of(*f.function, self.object, args, kwargs));
           })
      .def_prop_ro("name", [](const PyFunction& f) { return f.function->name(); })
      .def_prop_ro("schema", [](const PyFunction& f) { return f.function->schema().str(); })
      .def_prop_ro("signature", [](const PyFunction& f) { return signature_of(*f.function); })
      .def_prop_ro("graph", [](const PyFunction& f) { return print(*f.function); })
      .def(
          "program", [](const PyFunction& f) { return exec::program_of(*f.function).str(); },
          "The bytecode that runs, after all passes.");

  m.def(
      "op_name",
      [](nb::handle object) -> std::optional<std::string> {
        const OpGroup* group = object.is_none() ? nullptr : group_of(object.ptr());
        if (!group) return std::nullopt;
        return group->name;
      },
      nb::arg("object").none(), "The base name of the op behind a function or method, or None.");
}

}  // namespace prong::python
