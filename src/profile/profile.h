// Recording of what runs when: scopes in ops, tasks, functions and waits. Near to free when off.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace prong::profile {

enum class Category : uint8_t {
  kOp,        // "aten::mm"
  kTask,      // "<forked function>"
  kFunction,  // a scripted or compiled function, by its name
  kWait,      // a thread that is blocked
  kKernel,    // a compiled kernel, a piece of a parallel loop
  kUser,      // record_function
};
const char* category_name(Category c);

struct Event {
  enum class Kind : uint8_t {
    kSpan,    // from start_ns to end_ns on thread tid
    kFork,    // at start_ns, task `task` forked task `link`
    kResume,  // at start_ns, task `task` went on, since task `link` that it waited for was done
  };
  const char* name = nullptr;    // lives for ever
  const char* detail = nullptr;  // shapes and the like; lives for ever; may be null
  int64_t start_ns = 0;          // since the session began
  int64_t end_ns = 0;
  uint64_t task = 0;  // the task that did it; 0: none
  uint64_t link = 0;  // the other task: of a fork, a resume, a blocked wait (kWait)
  uint32_t tid = 0;   // the operating system's thread id
  Kind kind = Kind::kSpan;
  Category category = Category::kOp;
  bool is_resumed = false;  // goes on with an earlier span of the same task and name
  bool is_clipped = false;  // still running when the session stopped
};

namespace detail {
extern std::atomic<bool> recording;
struct Record;
// Both do nothing of harm when the session ends or changes in between.
Record* begin_span(const char* name, Category category, const char* text, uint64_t link,
                   bool is_resumed, uint64_t* session);
void end_span(Record* record, uint64_t session);
}  // namespace detail

inline bool is_on() { return detail::recording.load(std::memory_order_relaxed); }

// The same pointer for the same text, for ever. For names that are not literals.
const char* intern(std::string_view text);

// Records its own lifetime. `name` must live for ever: a literal or intern(...). A null name
// records nothing.
class Scope {
 public:
  Scope(const char* name, Category category, const char* detail = nullptr, uint64_t link = 0,
        bool is_resumed = false) {
    if (is_on() && name) [[unlikely]]
      record_ = profile::detail::begin_span(name, category, detail, link, is_resumed, &session_);
  }
  ~Scope() {
    if (record_) [[unlikely]]
      profile::detail::end_span(record_, session_);
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  profile::detail::Record* record_ = nullptr;
  uint64_t session_ = 0;
};

// A scope that is begun and ended by two calls on the same thread (record_function's with block).
class OpenSpan {
 public:
  void begin(const char* name, Category category, const char* detail = nullptr,
             bool is_resumed = false);
  void end();

 private:
  profile::detail::Record* record_ = nullptr;
  uint64_t session_ = 0;
};

// The two ends of an arrow between tasks; they use the current task. Called by runtime and exec.
void mark_fork(uint64_t child);
void mark_resume(uint64_t awaited);

// Ids of tasks; 0 when nothing is recorded.
uint64_t new_task_id();
uint64_t current_task();
// Name of the innermost span of this thread; null when there is none or nothing is recorded.
const char* current_name();
void set_current_task(uint64_t id);

// Names this thread in traces, whether or not one is being recorded.
void set_thread_name(std::string_view name);

struct Session {
  std::vector<Event> events;  // by start time
  struct Thread {
    uint32_t tid;
    std::string name;
  };
  std::vector<Thread> threads;  // those with events; the one that began the session first
  int64_t duration_ns = 0;
  int64_t started_unix_ns = 0;
  int num_threads = 0;  // size of the pool; runtime does not stand below, so the caller fills it in
};

// One session at a time for the process; start raises RuntimeError if one is running.
void start();
// Ends it and gives its events; spans that are still open are included up to now.
Session stop();

}  // namespace prong::profile
