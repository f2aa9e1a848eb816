// The error kinds of the library; each maps to one Python exception type in bindings/.
#pragma once

#include <exception>
#include <string>

#include "base/str.h"

namespace prong {

enum class ErrorKind {
  kRuntime,         // RuntimeError
  kType,            // TypeError
  kValue,           // ValueError
  kIndex,           // IndexError
  kKey,             // KeyError
  kAttribute,       // AttributeError
  kNotImplemented,  // NotImplementedError: a dtype, op or form that Prong does not have yet; the
                    // text says which
  kAssertion,       // AssertionError
  kZeroDivision,    // ZeroDivisionError
  kOverflow,        // OverflowError
  kOutOfMemory,     // MemoryError
  kFileNotFound,    // FileNotFoundError
  kOs,              // OSError
  kImport,          // ImportError
  kBuffer,          // BufferError
  kLinAlg,          // torch.linalg.LinAlgError, a RuntimeError: a singular matrix, no convergence
  kUnsupported,  // a limit of a front end (script, capture); RuntimeError in Python, message ends
                 // with its id
  kInternal,     // a bug in Prong; RuntimeError in Python, message asks to report it
};

// The exception of the library. `context` lines are added on the way out (script tracebacks).
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }

 private:
  ErrorKind kind_;
  std::string message_;
};

[[noreturn]] void throw_error(ErrorKind kind, std::string message);
[[noreturn]] void throw_internal(const char* file, int line, const char* condition,
                                 std::string detail);

}  // namespace prong

// PRONG_CHECK(a == b, kValue, "op: expected ", b, " but got ", a): a user's mistake.
#define PRONG_CHECK(condition, kind, ...)                                        \
  do {                                                                           \
    if (!(condition)) [[unlikely]]                                               \
      ::prong::throw_error(::prong::ErrorKind::kind, ::prong::cat(__VA_ARGS__)); \
  } while (0)

// PRONG_ASSERT(x, "detail"): our own mistake; always on, since a wrong answer costs more than a
// branch.
#define PRONG_ASSERT(condition, ...)                                                      \
  do {                                                                                    \
    if (!(condition)) [[unlikely]]                                                        \
      ::prong::throw_internal(__FILE__, __LINE__, #condition, ::prong::cat(__VA_ARGS__)); \
  } while (0)
