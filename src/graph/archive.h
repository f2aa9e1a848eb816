// Saved functions and modules: graphs as text, values as text, tensors as bytes, in a zip archive.
// Called by bindings (jit.save, jit.load) and by C++ programs that run what Python saved.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/function.h"

namespace prong {

struct Archive {
  IValue root;             // a module or another object; None: only a function
  Ref<Function> function;  // a free function; null: only an object
  std::vector<std::pair<std::string, std::string>> extra_files;
  Ref<Definitions> home = {};  // of what was loaded; who keeps the function keeps this too
};

// With all classes, functions, tensors and objects that are reached. kRuntime, naming the function,
// for what cannot be saved: a call of a Python function, a future, an object of Python.
std::string save_archive(const Archive& archive);

// Tensors that shared memory share it again; functions keep names, defaults and source lines.
// kRuntime for bytes that are no archive of Prong's or are of a later version.
Archive load_archive(std::string_view bytes);

}  // namespace prong
