// Function, ClassType and Object: what graphs call, and the instances (modules, scripted classes)
// they work on.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "ops/schema.h"

namespace prong {

class Definitions;

// A name, a signature and a graph. May be declared first and given its graph later (recursion);
// after define() it does not change, save by the pass pipeline before its first run.
class Function final : public RefCounted {
 public:
  Function(std::string name, Schema schema) : name_(std::move(name)), schema_(std::move(schema)) {}
  ~Function() override;

  const std::string& name() const {
    return name_;
  }  // as in tracebacks and profiles: "align_rows", "forward"
  void set_name(std::string name) { name_ = std::move(name); }
  const Schema& schema() const { return schema_; }  // methods: self is the first argument
  void set_schema(Schema schema) {
    schema_ = std::move(schema);
  }  // when the result's type is known (before callers are built)
  bool is_defined() const { return graph_ != nullptr; }
  Graph& graph() const;  // kInternal unless defined
  void define(std::unique_ptr<Graph> graph);
  // What owns it (see Definitions); null: nothing but references, which do not free circles.
  Definitions* home() const { return home_; }

  // What exec/ made of the graph: written once (try_set_program), read without a lock.
  RefCounted* program() const { return program_.load(std::memory_order_acquire); }
  RefCounted* try_set_program(Ref<RefCounted> program);  // the one that stays

 private:
  friend class Definitions;
  void take_apart();

  std::string name_;
  Schema schema_;
  std::unique_ptr<Graph> graph_;
  std::atomic<RefCounted*> program_{nullptr};  // owned
  Definitions* home_ = nullptr;
  std::vector<Ref<Definitions>> called_homes_;  // of functions that the graph calls, but its own
};

// A module's class, a scripted class or an interface. Attributes live in slots of Object.
class ClassType final : public ClassInfo {
 public:
  enum class Kind : uint8_t { kModule, kClass, kInterface };
  struct Attribute {
    std::string name;
    TypePtr type;
    bool is_parameter = false;
    bool is_buffer = false;
  };
  ClassType(std::string name, Kind k) : kind(k) { qualified_name = std::move(name); }

  Kind kind;
  bool is_module() const { return kind == Kind::kModule; }

  int add_attribute(Attribute a);                   // its slot; kValue if the name is taken
  int find_attribute(std::string_view name) const;  // slot or -1
  const std::vector<Attribute>& attributes() const { return attributes_; }

  void add_method(std::string_view name, Ref<Function> f);  // replaces one of that name
  Function* find_method(std::string_view name) const;       // null when absent
  const std::vector<std::pair<std::string, Ref<Function>>>& methods() const { return methods_; }
  // Compile-time constants of modules (__constants__, numbers): not slots.
  std::vector<std::pair<std::string, IValue>> constants;
  std::vector<Ref<ClassType>> interfaces;  // that it was declared or found to implement

  Definitions* home() const { return home_; }

  // Itself, or an interface all of whose methods it has with fitting signatures.
  bool is_subclass_of(const ClassInfo& other) const override;

 private:
  friend class Definitions;
  void take_apart();

  std::vector<Attribute> attributes_;
  std::vector<std::pair<std::string, Ref<Function>>> methods_;
  Definitions* home_ = nullptr;
};

// Owns functions and classes that refer to each other in circles (recursion, a method's `self`),
// which counts alone would never free: those of one text, or of one archive. They are taken apart
// when it goes. Kept by whoever made it, by instances of its classes, by running tasks of its
// functions and by functions elsewhere that call them; who else keeps a function keeps its home().
class Definitions final : public RefCounted {
 public:
  Definitions() = default;
  explicit Definitions(const std::vector<Ref<Function>>& functions);
  ~Definitions() override;
  void add(Ref<Function> function);  // before it is run; it has no other home
  void add(Ref<ClassType> cls);      // before it has instances

 private:
  std::vector<Ref<Function>> functions_;
  std::vector<Ref<ClassType>> classes_;
};

// An instance. Slots are plain values: two tasks that write the same one race, as in any program.
struct Object final : ObjectBase {
  explicit Object(Ref<ClassType> c)
      : home(c->home()), cls(std::move(c)), slots(cls->attributes().size()) {}
  std::string describe() const override { return cls->qualified_name; }
  IValue& slot(std::string_view name);  // kAttribute with the class's name when absent

  Ref<Definitions> home;
  Ref<ClassType> cls;
  std::vector<IValue> slots;
};

// A Python function or object that graphs call (ignored functions); implemented by bindings/.
struct PyCallable : ObjectBase {
  virtual IValue call(std::span<IValue> args) = 0;
};

// What a `with` of the library's own does (no_grad, record_function: host ops of type Any make
// them); scripted classes have methods __enter__(self) and __exit__(self, type, value, traceback)
// instead.
struct ContextManager : ObjectBase {
  virtual IValue enter() = 0;
  virtual void exit() = 0;  // also when an exception passes; never swallows it
  // Around a wait that takes the task off its thread, while the region is entered.
  virtual void suspend() {}
  virtual void resume() {}
};

}  // namespace prong
