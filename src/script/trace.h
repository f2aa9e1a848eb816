// TraceRecorder: the front end that watches a call run once and writes its ops down as a graph.
// Driven by bindings (jit.trace).
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "eager/dispatch.h"
#include "graph/builder.h"

namespace prong::script {

// Declare the inputs, run the call with this as interceptor, then finish(). What the call does
// outside of ops (branches, loops, sizes that it reads) is in the graph as it went this time.
class TraceRecorder final : public eager::Interceptor {
 public:
  // With `self`, a module: its tensors and those of its submodules are read from it at each call.
  TraceRecorder(std::string name, Ref<Object> self);
  ~TraceRecorder() override;

  // The next argument, made like this: a tensor, or tuples, lists and dicts of tensors. Gives what
  // to call with: the same data as tensors of their own.
  IValue input(const std::string& name, const IValue& example);
  Ref<Function> finish(const IValue& result);
  // What the call read of tensors (item, size): what was made of that is in the graph as constants.
  const std::vector<std::string>& values_read() const { return values_read_; }

  // The recorder that watches this thread; null: none.
  static TraceRecorder* current();

  // ── while it watches ──
  IValue run(const OpDef& op, std::span<const IValue> args) override;
  // A call of a compiled function: one node, however it goes inside.
  IValue call(Function& function, std::vector<IValue> args);
  // A forked call: begin, run it here, end (or abandon, when it raised). `result` is waited for
  // with wait(), once or more often.
  void begin_fork();
  void end_fork(const IValue& result, const Ref<Future>& future);
  void abandon_fork();
  void wait(const Ref<Future>& future, const IValue& result);
  void note_read(std::string what) { values_read_.push_back(std::move(what)); }

 private:
  struct Scope;  // the top block, or that of a fork that is open
  struct Place {
    Object* holder;
    size_t slot;
  };
  struct Forked {
    size_t scope;
    Value* future;
  };

  GraphBuilder& build();
  void check_thread() const;
  void find_state(Object& object);
  Value* state(const Place& place);
  Value* object_value(Object* object);
  // The value in the innermost scope, handed into open forks where it comes from further out.
  Value* inward(size_t scope, Value* value);
  Value* find(const void* key);
  Value* tensor_value(const Tensor& t);
  Value* list_value(const IValue& v, const TypePtr& wanted);
  Value* value_of(const IValue& v, const TypePtr& wanted = {});
  void bind(const IValue& v, Value* value);
  void copy_before_write(const IValue& target);

  std::string name_;
  Ref<Object> self_;
  Schema schema_;
  std::unique_ptr<Graph> graph_;
  std::vector<std::unique_ptr<Scope>> scopes_;
  std::unordered_map<const void*, Place> places_;      // tensors and submodules of self
  std::unordered_map<const Object*, Value*> objects_;  // read so far, in the top block
  std::unordered_map<const Future*, Forked> futures_;
  std::unordered_set<const void*> inside_;  // tensors made in forks that are closed
  std::vector<IValue> alive_;               // all that is known by its address
  std::vector<std::string> values_read_;
  std::thread::id thread_ = std::this_thread::get_id();
};

}  // namespace prong::script
