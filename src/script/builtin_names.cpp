// Tables of the names that mean builtins.
#include "script/builtin_names.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace prong::script {

namespace {

constexpr std::string_view kPython[] = {
    "len",        "range",   "enumerate", "zip",   "reversed", "iter",   "int",      "float",
    "bool",       "str",     "repr",      "list",  "tuple",    "dict",   "set",      "print",
    "min",        "max",     "abs",       "sum",   "any",      "all",    "sorted",   "super",
    "isinstance", "getattr", "hasattr",   "round", "divmod",   "pow",    "ord",      "chr",
    "hex",        "oct",     "bin",       "hash",  "id",       "format", "frozenset"};

constexpr std::pair<std::string_view, std::string_view> kTorch[] = {
    {"jit.fork", "jit.fork"},
    {"jit._fork", "jit.fork"},
    {"jit.wait", "jit.wait"},
    {"jit._wait", "jit.wait"},
    {"jit.annotate", "jit.annotate"},
    {"jit.isinstance", "jit.isinstance"},
    {"jit.is_scripting", "jit.is_scripting"},
    {"jit.is_tracing", "jit.is_tracing"},
    {"futures.wait_all", "futures.wait_all"},
    {"futures.collect_all", "futures.collect_all"},
    {"no_grad", "manager:no_grad"},
    {"enable_grad", "manager:enable_grad"},
    {"set_grad_enabled", "manager:set_grad_enabled"},
    {"inference_mode", "manager:inference_mode"},
    {"autograd.profiler.record_function", "manager:record_function"},
    {"profiler.record_function", "manager:record_function"},
    {"is_grad_enabled", "host:is_grad_enabled"},
    {"is_inference_mode_enabled", "host:is_inference_mode_enabled"},
    {"tensor", "torch.tensor"},
    {"as_tensor", "torch.tensor"},
    {"is_tensor", "torch.is_tensor"},
    {"Size", "torch.Size"},
    {"device", "torch.device"},
};

constexpr std::string_view kExceptions[] = {
    "Exception",     "RuntimeError",   "ValueError",     "TypeError",           "KeyError",
    "IndexError",    "AttributeError", "AssertionError", "NotImplementedError", "ZeroDivisionError",
    "OverflowError", "StopIteration"};

}  // namespace

std::string_view builtin_of_python(std::string_view name) {
  const auto found = std::find(std::begin(kPython), std::end(kPython), name);
  return found == std::end(kPython) ? std::string_view() : *found;
}

std::string_view builtin_of_torch(std::string_view name) {
  for (const auto& [from, to] : kTorch)
    if (from == name) return to;
  return {};
}

bool is_exception_name(std::string_view name) {
  return std::find(std::begin(kExceptions), std::end(kExceptions), name) != std::end(kExceptions);
}

}  // namespace prong::script
