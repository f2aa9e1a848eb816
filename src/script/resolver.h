// What names in a script mean. The Python side (bindings/script.cpp) implements Resolver and
// ClassSource over closures, globals and classes; C++ programs and tests use their own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/function.h"
#include "script/ast.h"

namespace prong::script {

struct FunctionEntry;
struct Entity;

// The meaning of a name that is not a variable of the function.
struct Named {
  enum class Kind : uint8_t {
    kMissing,
    kOp,           // name: base name in the op registry
    kBuiltin,      // name: of the language ("len", "jit.fork"); see builtin.cpp
    kConstant,     // value, type
    kFunction,     // entry: compiled from source
    kCompiled,     // function: has a graph already, or is being loaded
    kPython,       // callable, signature: called through Python
    kNamespace,    // entity
    kClass,        // type, entity: calling it makes an instance
    kNamedTuple,   // type; defaults of its last fields in `defaults`
    kException,    // name; object: the Python class
    kObject,       // value (an Object), type: a module outside of self
    kManager,      // value (a ContextManager): an object for `with`
    kUnsupported,  // name: why it cannot be used, and what to do instead
  };
  Kind kind = Kind::kMissing;
  std::string name;
  IValue value;
  TypePtr type;
  Ref<FunctionEntry> entry;
  Ref<Function> function;
  Ref<PyCallable> callable;
  Schema signature;  // of kPython
  Ref<ObjectBase> object;
  Ref<Entity> entity;
  std::vector<IValue> defaults;
};

// Something outside of scripts that has attributes: a module of Python, a class, an enum.
struct Entity : RefCounted {
  virtual Named attribute(const std::string& name) = 0;
  virtual std::string describe() const = 0;
};

class Resolver : public RefCounted {
 public:
  virtual Named lookup(const std::string& name) = 0;
  // The type that an annotation's text means; throws what is wrong with it.
  virtual TypePtr type(const std::string& text) = 0;
  // The default of a parameter; `text` is how it is written. `type` is null where the parameter has
  // no annotation.
  virtual IValue default_value(const std::string& parameter, const std::string& text,
                               const TypePtr& type) = 0;
};

enum class ContainerKind : uint8_t { kNone, kSequence, kDict };

// Where the methods and constants of a class come from.
class ClassSource : public RefCounted {
 public:
  // kFunction (a method, compiled with self), kPython (ignored), kConstant, kUnsupported, kMissing,
  // ... Sets is_property or is_static where they apply.
  struct Member {
    Named named;
    bool is_method = false;  // takes self
    bool is_property = false;
  };
  virtual Member member(const std::string& name) = 0;
  // super().name seen from the class that defines the function `from`.
  virtual Member super_member(const std::string& name, const std::string& from) = 0;
};

// A class as the compiler knows it: the type, its source, what was compiled.
struct ClassEntry : RefCounted {
  Ref<ClassType> cls;
  Ref<ClassSource> source;
  ContainerKind container = ContainerKind::kNone;
  std::vector<std::string> keys;  // attributes of a container's children, in order
  bool is_open =
      false;  // attributes may still be added (__init__ of a scripted class is being compiled)
  bool is_initialized = false;  // __init__ was compiled
};

// One function of source text; compiled at its first use.
struct FunctionEntry : RefCounted {
  enum class State : uint8_t { kPending, kActive, kDone, kFailed };
  std::string name;            // for messages and traces
  std::string qualified_name;  // "module.Class.method"
  SourcePtr source;
  FunctionDefPtr ast;  // parsed at need
  Ref<Resolver> resolver;
  TypePtr self;  // of a method
  State state = State::kPending;
  Ref<Definitions> home;  // that the function gets; null: none
  Ref<Function> function;
  bool has_declared_result = false;
  std::string failure;
};

}  // namespace prong::script
