// ScriptTask: memory, spans of the profile, tracebacks; and the entry points of run.h.
#include "exec/script_task.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "exec/run.h"
#include "runtime/context.h"
#include "runtime/future.h"

namespace prong::exec {

namespace {

std::atomic<uint32_t> max_frames{100000};

// Room for calls of small functions, so that most tasks need one piece of memory.
constexpr uint32_t kSpareRegisters = 4;

}  // namespace

void set_recursion_limit(uint32_t frames) {
  max_frames.store(std::max(frames, 1u), std::memory_order_relaxed);
}
uint32_t recursion_limit() { return max_frames.load(std::memory_order_relaxed); }

// ── memory ──

Ref<ScriptTask> ScriptTask::create(const Program& program, Ref<RefCounted> keep_alive,
                                   Ref<ForkSite> site) {
  const uint32_t capacity = program.num_registers + kSpareRegisters;
  void* memory = cached_new(sizeof(ScriptTask) + capacity * sizeof(IValue));
  return Ref<ScriptTask>(new (memory)
                             ScriptTask(program, capacity, std::move(keep_alive), std::move(site)));
}

void ScriptTask::operator delete(ScriptTask* self, std::destroying_delete_t) {
  const size_t bytes = sizeof(ScriptTask) + self->inline_capacity_ * sizeof(IValue);
  self->~ScriptTask();
  cached_delete(self, bytes);
}

ScriptTask::ScriptTask(const Program& program, uint32_t capacity, Ref<RefCounted> keep_alive,
                       Ref<ForkSite> site)
    : top_(program.num_registers), capacity_(capacity), registers_(inline_registers()),
      inline_capacity_(capacity), keep_alive_(std::move(keep_alive)), site_(std::move(site)) {
  for (uint32_t k = 0; k < capacity; ++k) new (&registers_[k]) IValue();
  frames_.push_back({&program, 0, 0, nullptr, 0});
}

ScriptTask::~ScriptTask() {
  for (uint32_t k = 0; k < capacity_; ++k) registers_[k].~IValue();
  if (registers_ != inline_registers()) std::free(registers_);
}

// IValues hold no pointers into themselves, so they may be moved as bytes.
void ScriptTask::grow(uint32_t registers) {
  const uint32_t capacity = std::max(registers, capacity_ * 2);
  auto* bigger = static_cast<IValue*>(std::malloc(capacity * sizeof(IValue)));
  if (!bigger) throw std::bad_alloc();
  std::memcpy(static_cast<void*>(bigger), static_cast<void*>(registers_),
              capacity_ * sizeof(IValue));
  for (uint32_t k = capacity_; k < capacity; ++k) new (&bigger[k]) IValue();
  if (registers_ != inline_registers()) std::free(registers_);
  registers_ = bigger;
  capacity_ = capacity;
}

// ── ends ──

Ref<Future> ScriptTask::make_future() {
  auto future = make_ref<Future>();
  future->set_producer(*this);
  future_ = future.get();
  return future;
}

Ref<Task> ScriptTask::finish(IValue value) {
  last_sequence_ = context()[ContextWord::kSequence];
  return future_->finish_value(std::move(value));
}

Ref<Traceback> ScriptTask::traceback() const {
  auto out = make_ref<Traceback>();
  out->forked_at = site_;
  for (size_t k = 0; k < frames_.size(); ++k) {
    const Frame& frame = frames_[k];
    if (k + 1 < frames_.size() && frames_[k + 1].program->is_fused)
      continue;  // that one knows the line
    out->entries.push_back({frame.program->name, frame.program->range_at(frame.position)});
  }
  return out;
}

// ── the profile: spans belong to threads ──

// A span that goes on after a suspension, in a session that saw its beginning, counts as one with
// it.
void ScriptTask::begin_span(Frame& frame) {
  if (frame.program->is_fused) return;
  const bool is_resumed = frame.session != 0;
  frame.span =
      profile::detail::begin_span(frame.program->profile_name, profile::Category::kFunction,
                                  nullptr, 0, is_resumed, &frame.session);
}

void ScriptTask::end_span(Frame& frame) {
  if (!frame.span) return;
  profile::detail::end_span(frame.span, frame.session);
  frame.span = nullptr;
}

void ScriptTask::leave_thread() {
  for (size_t k = managers_.size(); k-- > 0;) managers_[k]->suspend();
  for (size_t k = frames_.size(); k-- > 0;) end_span(frames_[k]);
  is_off_thread_ = true;
}

void ScriptTask::return_to_thread() {
  is_off_thread_ = false;
  if (profile::is_on())
    for (Frame& frame : frames_) begin_span(frame);
  for (ContextManager* m : managers_) m->resume();
}

// ── entry points ──

namespace {

Ref<ScriptTask> task_for(Function& function, std::vector<IValue>& args, Ref<ForkSite> site) {
  const Program& program = program_of(function);
  PRONG_CHECK(args.size() == program.num_parameters, kType, function.name(), "() takes ",
              program.num_parameters, " arguments, got ", args.size());
  Ref<ScriptTask> task = ScriptTask::create(program, program.keeper(), std::move(site));
  for (uint32_t k = 0; k < args.size(); ++k) task->argument(k) = std::move(args[k]);
  return task;
}

}  // namespace

IValue run(Function& function, std::vector<IValue> args) {
  Ref<ScriptTask> task = task_for(function, args, {});
  const Ref<Future> future = task->make_future();
  future->wait();
  // The caller counts on as if the function's body stood there: sums of gradients go by these
  // counts.
  if (!future->has_error()) context()[ContextWord::kSequence] = task->last_sequence();
  return future->value();
}

Ref<Future> fork(Function& function, std::vector<IValue> args) {
  auto site = make_ref<ForkSite>();
  site->function = Ref<Function>(&function);
  Ref<ScriptTask> task = task_for(function, args, std::move(site));
  Ref<Future> future = task->make_future();
  submit(std::move(task));
  return future;
}

}  // namespace prong::exec
