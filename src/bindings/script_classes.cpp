// Classes and objects of scripts in Python: modules, scripted classes, interfaces.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/script.h"
#include "graph/builder.h"

namespace nb = nanobind;

namespace prong::python {

namespace {

// Members of a class asked of an object with member(name) and super_member(name, from): None, or a
// tuple (description, is_method, is_property).
class PythonClassSource final : public script::ClassSource {
 public:
  explicit PythonClassSource(nb::handle source) : source_(make_ref<PyObjectBox>(source.ptr())) {}
  Member member(const std::string& name) override {
    WithGil gil;
    return member_from(nb::handle(source_->get()).attr("member")(name));
  }
  Member super_member(const std::string& name, const std::string& from) override {
    WithGil gil;
    return member_from(nb::handle(source_->get()).attr("super_member")(name, from));
  }

 private:
  static Member member_from(nb::object d) {
    Member m;
    if (d.is_none()) return m;
    m.named = named_from(d[0]);
    m.is_method = nb::cast<bool>(d[1]);
    m.is_property = nb::cast<bool>(d[2]);
    return m;
  }
  Ref<PyObjectBox> source_;
};

ClassType::Kind class_kind(const std::string& text) {
  if (text == "module") return ClassType::Kind::kModule;
  if (text == "interface") return ClassType::Kind::kInterface;
  return ClassType::Kind::kClass;
}

// Functions of Python that know the Python side of objects; see python/prong/jit/objects.py.
PyObject* wrap_hook = nullptr;
PyObject* unwrap_hook = nullptr;

PyObject* object_to_python(ObjectBase* object) {
  auto* instance = dynamic_cast<Object*>(object);
  if (!instance || !wrap_hook) return nullptr;
  const nb::object handle = nb::cast(PyScriptObject{Ref<Object>(instance)});
  return PyObject_CallOneArg(wrap_hook, handle.ptr());
}

bool class_from_python(PyObject* object, const Type& type, IValue* out) {
  if (!unwrap_hook) return false;
  const nb::object given = nb::steal(checked(PyObject_CallOneArg(unwrap_hook, object)));
  if (given.is_none()) return false;
  const Ref<Object> instance = nb::cast<const PyScriptObject&>(given).object;
  if (instance->cls.get() != type.class_info() &&
      !instance->cls->is_subclass_of(*type.class_info()))
    return false;
  *out = IValue(Ref<ObjectBase>(instance));
  return true;
}

size_t slot_of(const PyScriptObject& o, const std::string& name) {
  const int slot = o.object->cls->find_attribute(name);
  PRONG_CHECK(slot >= 0, kAttribute, "'", o.object->cls->qualified_name, "' has no attribute '",
              name, "'");
  return static_cast<size_t>(slot);
}

}  // namespace

void bind_script_classes(nb::module_& m) {
  nb::class_<PyClass>(m, "ScriptClass")
      .def("__init__",
           [](PyClass* self, std::string name, const std::string& kind) {
             auto entry = make_ref<script::ClassEntry>();
             entry->cls = make_ref<ClassType>(std::move(name), class_kind(kind));
             script::register_class(entry);
             new (self) PyClass{std::move(entry)};
           })
      .def("set_source",
           [](const PyClass& c, nb::object source) {
             c.entry->source = make_ref<PythonClassSource>(source);
           })
      .def(
          "add_attribute",
          [](const PyClass& c, std::string name, const PyType& type, bool is_parameter,
             bool is_buffer) {
            ClassType::Attribute a;
            a.name = std::move(name);
            a.type = type.type;
            a.is_parameter = is_parameter;
            a.is_buffer = is_buffer;
            c.entry->cls->add_attribute(std::move(a));
          },
          nb::arg("name"), nb::arg("type"), nb::arg("is_parameter") = false,
          nb::arg("is_buffer") = false)
      .def(
          "add_constant",
          [](const PyClass& c, std::string name, nb::object value) {
            IValue v = infer_ivalue(value.ptr());
            if (!v.is_none()) (void)type_of_constant(v);  // throws for what has no type
            c.entry->cls->constants.emplace_back(std::move(name), std::move(v));
          },
          nb::arg("name"), nb::arg("value").none())
      .def("set_container",
           [](const PyClass& c, const std::string& kind, std::vector<std::string> keys) {
             c.entry->container =
                 kind == "dict" ? script::ContainerKind::kDict : script::ContainerKind::kSequence;
             c.entry->keys = std::move(keys);
           })
      // Declares a method of an interface, or adds a compiled one.
      .def("add_method", [](const PyClass& c, const std::string& name,
                            const PyFunction& f) { c.entry->cls->add_method(name, f.function); })
      .def("declare_method",
           [](const PyClass& c, const std::string& name, const PyEntry& e) {
             // Of an interface: the signature only; the body is never run.
             auto f = script::compile(*e.entry);
             c.entry->cls->add_method(name, f);
           })
      .def("add_interface",
           [](const PyClass& c, const PyClass& interface) {
             c.entry->cls->interfaces.push_back(interface.entry->cls);
           })
      .def("method",
           [](const PyClass& c, const std::string& name) -> std::optional<PyFunction> {
             std::unique_lock lock(script::compile_lock(), std::try_to_lock);
             if (!lock) {
               WithoutGil released;
               lock.lock();
             }
             Ref<Function> f = script::method_of(*c.entry->cls, name);
             if (!f) return std::nullopt;
             return PyFunction{std::move(f)};
           })
      .def("fits",
           [](const PyClass& c, const PyClass& interface) {
             return c.entry->cls->is_subclass_of(*interface.entry->cls);
           })
      .def_prop_ro("id",
                   [](const PyClass& c) { return reinterpret_cast<uintptr_t>(c.entry->cls.get()); })
      .def_prop_ro("name", [](const PyClass& c) { return c.entry->cls->qualified_name; })
      .def_prop_ro("type", [](const PyClass& c) { return PyType{Type::class_(c.entry->cls)}; })
      .def_prop_ro("attributes",
                   [](const PyClass& c) {
                     nb::list out;
                     for (const ClassType::Attribute& a : c.entry->cls->attributes())
                       out.append(
                           nb::make_tuple(a.name, PyType{a.type}, a.is_parameter, a.is_buffer));
                     return out;
                   })
      .def_prop_ro("constants",
                   [](const PyClass& c) {
                     nb::dict out;
                     for (const auto& [name, v] : c.entry->cls->constants)
                       out[name.c_str()] = nb::steal(to_python(v));
                     return out;
                   })
      .def("make_object",
           [](const PyClass& c) { return PyScriptObject{make_ref<Object>(c.entry->cls)}; })
      .def("_is_same", [](const PyClass& a, const PyClass& b) {
        return a.entry->cls.get() == b.entry->cls.get();
      });

  nb::class_<PyScriptObject>(m, "ScriptObject", nb::is_weak_referenceable())
      .def("get",
           [](const PyScriptObject& o, const std::string& name) {
             return nb::steal(to_python(o.object->slots[slot_of(o, name)]));
           })
      .def(
          "set",
          [](const PyScriptObject& o, const std::string& name, nb::object value) {
            const size_t slot = slot_of(o, name);
            const TypePtr& type = o.object->cls->attributes()[slot].type;
            IValue v;
            if (!try_to_ivalue(value.ptr(), *type, &v))
              throw_error(ErrorKind::kRuntime,
                          cat("attribute '", name, "' of '", o.object->cls->qualified_name,
                              "' is of type '", type->str_(), "' and cannot be a '",
                              type_name(value.ptr()), "'"));
            o.object->slots[slot] = std::move(v);
          },
          nb::arg("name"), nb::arg("value").none())
      .def("set_object",
           [](const PyScriptObject& o, const std::string& name, const PyScriptObject& value) {
             o.object->slots[slot_of(o, name)] = IValue(Ref<ObjectBase>(value.object));
           })
      .def("has", [](const PyScriptObject& o,
                     const std::string& name) { return o.object->cls->find_attribute(name) >= 0; })
      .def_prop_ro(
          "id", [](const PyScriptObject& o) { return reinterpret_cast<uintptr_t>(o.object.get()); })
      .def_prop_ro(
          "class_id",
          [](const PyScriptObject& o) { return reinterpret_cast<uintptr_t>(o.object->cls.get()); })
      .def_prop_ro("script_class",
                   [](const PyScriptObject& o) {
                     // A class that came out of an archive has no source: its methods are there
                     // already.
                     Ref<script::ClassEntry> entry(script::find_class(*o.object->cls));
                     if (!entry) {
                       entry = make_ref<script::ClassEntry>();
                       entry->cls = o.object->cls;
                       script::register_class(entry);
                     }
                     return PyClass{std::move(entry)};
                   })
      .def(
          "get_object",
          [](const PyScriptObject& o, const std::string& name) -> std::optional<PyScriptObject> {
            const IValue& v = o.object->slots[slot_of(o, name)];
            auto* inner = v.is_object() ? dynamic_cast<Object*>(v.object()) : nullptr;
            if (!inner || !inner->cls->is_module()) return std::nullopt;
            return PyScriptObject{Ref<Object>(inner)};
          },
          "The module in an attribute, or None where it holds something else.")
      .def_prop_ro("class_name",
                   [](const PyScriptObject& o) { return o.object->cls->qualified_name; });
  m.def("_set_object_hooks", [](nb::object wrap, nb::object unwrap) {
    wrap_hook = wrap.release().ptr();
    unwrap_hook = unwrap.release().ptr();
  });
  converters().object_to_python = &object_to_python;
  converters().class_from_python = &class_from_python;
}

}  // namespace prong::python
