// Tracebacks through frames and tasks, and the classes of errors.
#include "exec/script_error.h"

#include <array>
#include <new>
#include <utility>

namespace prong::exec {

Traceback::~Traceback() {
  Ref<Traceback> next = std::move(cause);
  while (next && next->use_count() == 1) next = std::exchange(next->cause, {});
}

namespace {

using Name = std::pair<ErrorKind, std::string_view>;
constexpr std::array<Name, 18> kNames = {{{ErrorKind::kRuntime, "RuntimeError"},
                                          {ErrorKind::kType, "TypeError"},
                                          {ErrorKind::kValue, "ValueError"},
                                          {ErrorKind::kIndex, "IndexError"},
                                          {ErrorKind::kKey, "KeyError"},
                                          {ErrorKind::kAttribute, "AttributeError"},
                                          {ErrorKind::kNotImplemented, "NotImplementedError"},
                                          {ErrorKind::kAssertion, "AssertionError"},
                                          {ErrorKind::kZeroDivision, "ZeroDivisionError"},
                                          {ErrorKind::kOverflow, "OverflowError"},
                                          {ErrorKind::kOutOfMemory, "MemoryError"},
                                          {ErrorKind::kFileNotFound, "FileNotFoundError"},
                                          {ErrorKind::kOs, "OSError"},
                                          {ErrorKind::kImport, "ImportError"},
                                          {ErrorKind::kBuffer, "BufferError"},
                                          {ErrorKind::kLinAlg, "LinAlgError"},
                                          {ErrorKind::kUnsupported, "RuntimeError"},
                                          {ErrorKind::kInternal, "RuntimeError"}}};

constexpr size_t kShownEntries = 40;  // at either end of a long traceback

std::string text_of(const Traceback* traceback) {
  std::vector<std::string> lines;
  for (const Traceback* t = traceback; t; t = t->cause.get()) {
    if (t->forked_at && t != traceback)
      lines.push_back(t->forked_at->range.highlight("<forked function>"));
    for (const Traceback::Entry& e : t->entries) lines.push_back(e.range.highlight(e.function));
  }
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines.size() > 2 * kShownEntries && i == kShownEntries) {
      const size_t left_out = lines.size() - 2 * kShownEntries;
      out += cat("  ... ", left_out, " more ...\n");
      i += left_out;
    }
    out += lines[i];
  }
  return out;
}

}  // namespace

std::string_view class_name_of(ErrorKind kind) {
  for (const auto& [k, name] : kNames)
    if (k == kind) return name;
  return "RuntimeError";
}

ErrorKind kind_of_class(std::string_view class_name) {
  if (class_name.starts_with("builtins.")) class_name.remove_prefix(9);
  for (const auto& [k, name] : kNames)
    if (name == class_name) return k;
  return ErrorKind::kRuntime;
}

const char* ScriptError::what() const noexcept {
  std::call_once(text_->once, [this] {
    text_->text =
        cat("The following operation failed in the Prong interpreter.\n"
            "Traceback of Prong script (most recent call last):\n",
            text_of(traceback_.get()), class_name_, ": ", message());
  });
  return text_->text.c_str();
}

ScriptError ScriptError::passed(Ref<Traceback> outer) const {
  outer->cause = traceback_;
  ScriptError e(kind(), class_name_, message(), std::move(outer));
  e.original_ = original_;
  e.python_class_ = python_class_;
  return e;
}

ScriptError to_script_error(const std::exception_ptr& e, Ref<Traceback> traceback) {
  const auto wrapped = [&](ErrorKind kind, std::string message) {
    ScriptError error(kind, std::string(class_name_of(kind)), std::move(message),
                      std::move(traceback));
    error.set_original(e);
    return error;
  };
  try {
    std::rethrow_exception(e);
  } catch (const ScriptError& error) {
    return error.passed(std::move(traceback));
  } catch (const Error& error) {
    return wrapped(error.kind(), error.message());
  } catch (const std::bad_alloc&) {
    return wrapped(ErrorKind::kOutOfMemory, "out of memory");
  } catch (const std::exception& error) {
    return wrapped(ErrorKind::kRuntime, error.what());
  } catch (...) {
    return wrapped(ErrorKind::kRuntime, "an exception that is no std::exception");
  }
}

}  // namespace prong::exec
