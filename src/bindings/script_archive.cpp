// Saved scripts in Python: bytes of an archive from a function or module, and back.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "bindings/script.h"
#include "graph/archive.h"

namespace nb = nanobind;

namespace prong::python {

namespace {

nb::bytes save(std::optional<PyFunction> function, std::optional<PyScriptObject> object,
               nb::dict extra_files) {
  Archive archive;
  if (function) archive.function = function->function;
  if (object) archive.root = IValue(Ref<ObjectBase>(object->object));
  for (auto [name, content] : extra_files) {
    const nb::object bytes =
        nb::isinstance<nb::str>(content) ? content.attr("encode")("utf-8") : nb::borrow(content);
    char* data = nullptr;
    Py_ssize_t size = 0;
    checked(PyBytes_AsStringAndSize(bytes.ptr(), &data, &size));
    archive.extra_files.emplace_back(nb::cast<std::string>(name),
                                     std::string(data, static_cast<size_t>(size)));
  }
  const std::string bytes = save_archive(archive);
  return nb::bytes(bytes.data(), bytes.size());
}

nb::tuple load(nb::bytes bytes) {
  const Archive archive = load_archive(std::string_view(bytes.c_str(), bytes.size()));
  nb::object function = nb::none(), object = nb::none();
  if (archive.function) function = nb::cast(PyFunction{archive.function});
  if (archive.root.is_object()) {
    auto* instance = dynamic_cast<Object*>(archive.root.object());
    PRONG_CHECK(instance, kRuntime, "the archive holds no module");
    object = nb::cast(PyScriptObject{Ref<Object>(instance)});
  }
  nb::dict extra_files;
  for (const auto& [name, content] : archive.extra_files)
    extra_files[name.c_str()] = nb::bytes(content.data(), content.size());
  return nb::make_tuple(function, object, extra_files);
}

}  // namespace

void bind_script_archive(nb::module_& m) {
  m.def("save_script", &save, nb::arg("function").none(), nb::arg("object").none(),
        nb::arg("extra_files"));
  m.def("load_script", &load, nb::arg("bytes"));
}

}  // namespace prong::python
