// ScriptError: an error that passed frames of scripts, with where it came from. Thrown by run() and
// by waiting for a future of a scripted task; translated by bindings/.
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "exec/program.h"

namespace prong::exec {

// The frames of one task when the error passed it, outermost first, and what it was waiting for, if
// that failed.
struct Traceback final : RefCounted {
  struct Entry {
    std::string function;
    SourceRange range;
  };
  std::vector<Entry> entries;
  Ref<ForkSite> forked_at;  // null: the outermost call
  Ref<Traceback> cause;     // of the task whose error was met in a wait
  ~Traceback() override;    // chains may be long: no recursion
};

//  kind(), message(): of the error itself ("RuntimeError", "The size of tensor a ...").
//  what(): with the traceback, through all tasks.
class ScriptError : public Error {
 public:
  ScriptError(ErrorKind kind, std::string class_name, std::string message, Ref<Traceback> traceback)
      : Error(kind, std::move(message)), class_name_(std::move(class_name)),
        traceback_(std::move(traceback)), text_(std::make_shared<Text>()) {}

  const char* what() const noexcept override;
  const std::string& class_name() const { return class_name_; }  // "ValueError", "module.MyError"
  const Ref<Traceback>& traceback() const { return traceback_; }

  // The exception that an op, a host op or a Python callable threw; null for `raise` in a script.
  const std::exception_ptr& original() const { return original_; }
  void set_original(std::exception_ptr e) { original_ = std::move(e); }
  // What the raise node carried: the Python class of a `raise MyError(...)`; null otherwise.
  const Ref<ObjectBase>& python_class() const { return python_class_; }
  void set_python_class(Ref<ObjectBase> c) { python_class_ = std::move(c); }

  // The same error, having passed another task.
  ScriptError passed(Ref<Traceback> outer) const;

 private:
  struct Text {
    std::once_flag once;
    std::string text;
  };
  std::string class_name_;
  Ref<Traceback> traceback_;
  std::shared_ptr<Text> text_;  // made when asked for
  std::exception_ptr original_;
  Ref<ObjectBase> python_class_;
};

std::string_view class_name_of(ErrorKind kind);        // "ValueError"
ErrorKind kind_of_class(std::string_view class_name);  // kRuntime for classes that are not built in

// Of an exception of any C++ type, for `what()` texts.
ScriptError to_script_error(const std::exception_ptr& e, Ref<Traceback> traceback);

}  // namespace prong::exec
