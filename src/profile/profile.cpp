// Per-thread buffers of spans, and the session that collects them.
#include "profile/profile.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"

namespace prong::profile {

const char* category_name(Category c) {
  switch (c) {
  case Category::kOp:
    return "cpu_op";
  case Category::kTask:
    return "task";
  case Category::kFunction:
    return "function";
  case Category::kWait:
    return "wait";
  case Category::kKernel:
    return "kernel";
  case Category::kUser:
    return "user_annotation";
  }
  return "";
}

namespace detail {

std::atomic<bool> recording{false};

struct Record {
  Event event;                       // all but end_ns; written before the block's count is raised
  std::atomic<int64_t> end_ns{0};    // 0 while open
  const char* outer_name = nullptr;  // of the span around this one, for its own thread only
};

namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Records of one thread at a time, in blocks that never move and are never freed: a span that ends
// late writes to a place that is still there. Only the thread that holds the buffer appends.
struct Block {
  static constexpr uint32_t kSize = 512;
  Record records[kSize];
  std::atomic<uint32_t> count{0};
  std::atomic<Block*> next{nullptr};
};

struct Buffer {
  std::atomic<uint64_t> session{0};
  Block first;
  Block* last = &first;  // of the holding thread

  Record& append(uint64_t of_session) {
    if (session.load(std::memory_order_relaxed) != of_session) restart(of_session);
    uint32_t n = last->count.load(std::memory_order_relaxed);
    if (n == Block::kSize) {
      Block* next = last->next.load(std::memory_order_relaxed);
      if (!next) {
        next = new Block;
        last->next.store(next, std::memory_order_release);
      }
      last = next;
      n = last->count.load(std::memory_order_relaxed);
    }
    return last->records[n];
  }
  void publish() {
    last->count.store(last->count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  void restart(uint64_t of_session) {
    for (Block* b = &first; b; b = b->next.load(std::memory_order_relaxed))
      b->count.store(0, std::memory_order_relaxed);
    last = &first;
    session.store(of_session, std::memory_order_release);
  }
};

// Never destroyed, since threads may record until the process ends.
struct Registry {
  std::mutex mutex;
  std::vector<Buffer*> buffers;
  std::vector<Buffer*> free_buffers;
  std::unordered_map<uint32_t, std::string> thread_names;
  std::unordered_set<std::string> names;
};
Registry* registry();

std::atomic<uint64_t> session_number{0};
std::atomic<uint64_t> task_ids{0};
std::atomic<int64_t> session_start_ns{0};
std::mutex session_mutex;
int64_t session_unix_ns = 0;
uint32_t session_thread = 0;

Registry* registry() {
  static Registry* r = [] {
    // A fork must not happen while another thread holds these: in the child nobody would let go.
    pthread_atfork(
        [] {
          session_mutex.lock();
          registry()->mutex.lock();
        },
        [] {
          registry()->mutex.unlock();
          session_mutex.unlock();
        },
        [] {
          registry()->mutex.unlock();
          session_mutex.unlock();
        });
    return new Registry;
  }();
  return r;
}

uint32_t this_tid() {
  static thread_local uint32_t tid = 0;
  static thread_local int pid = 0;
  if (int p = getpid(); p != pid) {
    pid = p;
    tid = static_cast<uint32_t>(syscall(SYS_gettid));
  }
  return tid;
}

struct Lease {
  Buffer* buffer = nullptr;
  ~Lease() {
    if (!buffer) return;
    Registry& r = *registry();
    std::lock_guard lock(r.mutex);
    r.free_buffers.push_back(buffer);
    buffer = nullptr;
  }
};
thread_local Lease lease;
thread_local uint64_t task_of_thread = 0;
thread_local const char* name_of_thread = nullptr;

Buffer& buffer_of_thread() {
  if (!lease.buffer) [[unlikely]] {
    Registry& r = *registry();
    std::lock_guard lock(r.mutex);
    if (r.free_buffers.empty()) {
      lease.buffer = new Buffer;
      r.buffers.push_back(lease.buffer);
    } else {
      lease.buffer = r.free_buffers.back();
      r.free_buffers.pop_back();
    }
  }
  return *lease.buffer;
}

void record_mark(Event::Kind kind, uint64_t link) {
  if (!is_on() || !link) return;
  Buffer& buffer = buffer_of_thread();
  Record& r = buffer.append(session_number.load(std::memory_order_acquire));
  r.event = Event{};
  r.event.kind = kind;
  r.event.name = kind == Event::Kind::kFork ? "fork" : "resume";
  r.event.start_ns = now_ns();
  r.event.task = task_of_thread;
  r.event.link = link;
  r.event.tid = this_tid();
  r.end_ns.store(r.event.start_ns, std::memory_order_relaxed);
  buffer.publish();
}

}  // namespace

Record* begin_span(const char* name, Category category, const char* text, uint64_t link,
                   bool is_resumed, uint64_t* session) {
  *session = session_number.load(std::memory_order_acquire);
  Buffer& buffer = buffer_of_thread();
  Record& r = buffer.append(*session);
  r.event = Event{};
  r.event.name = name;
  r.event.detail = text;
  r.event.category = category;
  r.event.task = task_of_thread;
  r.event.link = link;
  r.event.tid = this_tid();
  r.event.is_resumed = is_resumed;
  r.outer_name = name_of_thread;
  name_of_thread = name;
  r.end_ns.store(0, std::memory_order_relaxed);
  r.event.start_ns = now_ns();
  buffer.publish();
  return &r;
}

void end_span(Record* record, uint64_t session) {
  // The place may have been given to a span of a later session meanwhile.
  if (!lease.buffer || lease.buffer->session.load(std::memory_order_relaxed) != session) {
    name_of_thread = nullptr;
    return;
  }
  name_of_thread = record->outer_name;
  record->end_ns.store(now_ns(), std::memory_order_release);
}

}  // namespace detail

using namespace detail;

const char* intern(std::string_view text) {
  Registry& r = *registry();
  std::lock_guard lock(r.mutex);
  return r.names.emplace(text).first->c_str();
}

void OpenSpan::begin(const char* name, Category category, const char* text, bool is_resumed) {
  record_ = is_on() ? begin_span(name, category, text, 0, is_resumed, &session_) : nullptr;
}

void OpenSpan::end() {
  if (record_) end_span(record_, session_);
  record_ = nullptr;
}

void mark_fork(uint64_t child) { record_mark(Event::Kind::kFork, child); }
void mark_resume(uint64_t awaited) { record_mark(Event::Kind::kResume, awaited); }

uint64_t new_task_id() { return task_ids.fetch_add(1, std::memory_order_relaxed) + 1; }
uint64_t current_task() { return task_of_thread; }
void set_current_task(uint64_t id) { task_of_thread = id; }
const char* current_name() { return is_on() ? name_of_thread : nullptr; }

void set_thread_name(std::string_view name) {
  Registry& r = *registry();
  std::lock_guard lock(r.mutex);
  r.thread_names[this_tid()] = std::string(name);
}

void start() {
  std::lock_guard lock(session_mutex);
  PRONG_CHECK(!recording.load(), kRuntime, "a profile is already being recorded");
  session_thread = this_tid();
  session_unix_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count();
  session_start_ns = now_ns();
  session_number.fetch_add(1, std::memory_order_acq_rel);
  recording.store(true, std::memory_order_release);
}

namespace {

void collect(const Buffer& buffer, int64_t start, int64_t end, std::vector<Event>& events) {
  for (const Block* b = &buffer.first; b; b = b->next.load(std::memory_order_acquire)) {
    uint32_t count = b->count.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < count; ++i) {
      Event e = b->records[i].event;
      int64_t ended = b->records[i].end_ns.load(std::memory_order_acquire);
      e.is_clipped = ended == 0 || ended > end;
      e.end_ns = (e.is_clipped ? end : ended) - start;
      e.start_ns -= start;
      if (e.start_ns <= end - start) events.push_back(e);
    }
    if (count < Block::kSize) break;
  }
}

// The threads that have events, the one that began the session first.
void name_threads(Session& session) {
  std::unordered_set<uint32_t> seen;
  auto add = [&](uint32_t tid) {
    if (!seen.insert(tid).second) return;
    auto name = registry()->thread_names.find(tid);
    std::string text = name != registry()->thread_names.end() ? name->second
                       : tid == session_thread                ? "main"
                                                              : "thread";
    session.threads.push_back({tid, text});
  };
  add(session_thread);
  for (const Event& e : session.events) add(e.tid);
}

}  // namespace

Session stop() {
  std::lock_guard lock(session_mutex);
  PRONG_CHECK(recording.load(), kRuntime, "no profile is being recorded");
  recording.store(false, std::memory_order_release);
  int64_t end = now_ns();
  int64_t start = session_start_ns;
  Session session;
  session.duration_ns = end - start;
  session.started_unix_ns = session_unix_ns;
  std::lock_guard registry_lock(registry()->mutex);
  uint64_t number = session_number.load();
  for (Buffer* buffer : registry()->buffers)
    if (buffer->session.load(std::memory_order_acquire) == number)
      collect(*buffer, start, end, session.events);
  std::stable_sort(
      session.events.begin(), session.events.end(), [](const Event& a, const Event& b) {
        return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
      });
  name_threads(session);
  return session;
}

}  // namespace prong::profile
