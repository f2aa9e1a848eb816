// Names of the language that need no import, and those of torch that are no ops. Read by resolvers.
#pragma once

#include <string>
#include <string_view>

namespace prong::script {

// The builtin behind a name of Python ("len"), or empty.
std::string_view builtin_of_python(std::string_view name);
// The builtin behind a dotted name below torch ("jit.fork", "no_grad"), or empty.
std::string_view builtin_of_torch(std::string_view name);
bool is_exception_name(std::string_view name);

}  // namespace prong::script
