// ScriptTask: a run of scripted code that may be suspended: frames and registers in one object.
// Made by run.cpp and by FORK.
#pragma once

#include <memory>
#include <new>
#include <vector>

#include "exec/program.h"
#include "exec/script_error.h"
#include "profile/profile.h"
#include "runtime/task.h"

namespace prong::exec {

class ScriptTask final : public Task {
 public:
  // A task about to run `program`; arguments are put in through argument(i). The site is null for
  // the outermost call.
  static Ref<ScriptTask> create(const Program& program, Ref<RefCounted> keep_alive,
                                Ref<ForkSite> site);
  ~ScriptTask() override;
  static void operator delete(ScriptTask* self, std::destroying_delete_t);

  IValue& argument(uint32_t i) { return registers_[i]; }
  // The future that gets the result, tied to this task.
  Ref<Future> make_future();

  Ref<Task> run() override;
  const char* name() const override { return site_ ? "<forked function>" : nullptr; }

  // How far the task counted the nodes of the tape; once it has given its value.
  uint64_t last_sequence() const { return last_sequence_; }

 private:
  struct Frame {
    const Program* program;
    uint32_t position;  // of the instruction that runs
    uint32_t base;      // of its registers
    profile::detail::Record* span;
    uint64_t session;
  };
  class Arguments;
  // Tasks are made on one thread and freed on another, which malloc is slow at.
  template <class T>
  struct CachedAllocator {
    using value_type = T;
    CachedAllocator() = default;
    template <class U>
    CachedAllocator(const CachedAllocator<U>&) {}
    T* allocate(size_t n) { return static_cast<T*>(cached_new(n * sizeof(T))); }
    void deallocate(T* p, size_t n) { cached_delete(p, n * sizeof(T)); }
    friend bool operator==(const CachedAllocator&, const CachedAllocator&) { return true; }
  };

  ScriptTask(const Program& program, uint32_t capacity, Ref<RefCounted> keep_alive,
             Ref<ForkSite> site);
  IValue* inline_registers() { return reinterpret_cast<IValue*>(this + 1); }

  Ref<Task> finish(IValue value);
  Ref<Task> interpret();
  // Goes on in the handler of a `with` region, or ends the task: then `next` is what to run after
  // it.
  bool unwind(std::exception_ptr error, Ref<Task>& next);
  void push(const Program& program, Arguments& args);
  void pop();
  void grow(uint32_t registers);
  Ref<Traceback> traceback() const;
  void begin_span(Frame& frame);
  void end_span(Frame& frame);
  void leave_thread();  // before a wait that suspends
  void return_to_thread();

  void enter(Arguments& args);
  void exit(Arguments& args);
  void call_method(Frame& frame, const Instruction& i, Arguments& args);
  [[noreturn]] static void raise(const Program& p, const Instruction& i, const IValue& message);

  uint32_t top_;  // registers in use
  uint32_t capacity_;
  IValue* registers_;  // inline ones, or on the heap
  const uint32_t inline_capacity_;
  std::vector<Frame, CachedAllocator<Frame>> frames_;
  Future* future_ = nullptr;    // Task keeps it alive
  Ref<RefCounted> keep_alive_;  // the entry's program
  Ref<ForkSite> site_;
  std::vector<ContextManager*> managers_;  // entered and not left; registers own them
  std::vector<std::pair<size_t, Ref<RefCounted>>> kept_;  // programs of methods, by depth of frames
  uint64_t last_sequence_ = 0;
  bool is_off_thread_ = true;
};

}  // namespace prong::exec
