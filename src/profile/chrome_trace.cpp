// The Chrome trace of a session, as chrome://tracing and Perfetto read it.
#include "profile/chrome_trace.h"

#include <unistd.h>

#include <unordered_map>

#include "base/str.h"
#include "profile/json.h"

namespace prong::profile {

namespace {

// One event object; fields are appended in order.
class Entry {
 public:
  Entry(std::string& out, const char* phase, std::string_view name, uint32_t tid) : out_(out) {
    out_ += out_.back() == '[' ? "\n{\"ph\":\"" : ",\n{\"ph\":\"";
    out_ += phase;
    out_ += "\",\"name\":";
    append_json(out_, name);
    out_ += cat(",\"pid\":", static_cast<int64_t>(getpid()), ",\"tid\":", tid);
  }
  ~Entry() { out_ += '}'; }
  Entry& text(const char* key, std::string_view value) {
    this->key(key);
    append_json(out_, value);
    return *this;
  }
  Entry& time(const char* key, int64_t ns) {
    this->key(key);
    append_us(out_, ns);
    return *this;
  }
  Entry& number(const char* key, uint64_t value) {
    this->key(key);
    out_ += std::to_string(value);
    return *this;
  }
  Entry& raw(const char* key, std::string_view value) {
    this->key(key);
    out_ += value;
    return *this;
  }

 private:
  void key(const char* key) { out_ += cat(",\"", key, "\":"); }
  std::string& out_;
};

struct Ends {
  const Event* first = nullptr;
  const Event* last = nullptr;
};

std::string args_of(const Event& e) {
  std::string args = "{";
  auto add = [&](const char* key) { args += cat(args.size() > 1 ? "," : "", "\"", key, "\":"); };
  if (e.task) {
    add("task");
    args += std::to_string(e.task);
  }
  if (e.link) {
    add("waits for task");
    args += std::to_string(e.link);
  }
  if (e.detail) {
    add("detail");
    append_json(args, e.detail);
  }
  if (e.is_resumed) {
    add("resumed");
    args += "true";
  }
  if (e.is_clipped) {
    add("still running");
    args += "true";
  }
  return args + "}";
}

void add_arrow(std::string& out, const char* name, uint64_t id, int64_t from_ns, uint32_t from_tid,
               int64_t to_ns, uint32_t to_tid) {
  Entry(out, "s", name, from_tid).text("cat", "task").number("id", id).time("ts", from_ns);
  Entry(out, "f", name, to_tid)
      .text("cat", "task")
      .number("id", id)
      .time("ts", to_ns)
      .text("bp", "e");
}

void add_arrows(std::string& out, const Session& session) {
  std::unordered_map<uint64_t, Ends> tasks;
  for (const Event& e : session.events) {
    if (e.kind != Event::Kind::kSpan || e.category != Category::kTask) continue;
    Ends& ends = tasks[e.task];
    if (!ends.first) ends.first = &e;
    ends.last = &e;
  }
  uint64_t id = 0;
  for (const Event& e : session.events) {
    if (e.kind == Event::Kind::kSpan) continue;
    auto found = tasks.find(e.link);
    if (found == tasks.end()) continue;
    const Ends& ends = found->second;
    if (e.kind == Event::Kind::kFork)
      add_arrow(out, "fork", ++id, e.start_ns, e.tid, ends.first->start_ns, ends.first->tid);
    else if (ends.last->end_ns <= e.start_ns)
      add_arrow(out, "wait", ++id, ends.last->end_ns, ends.last->tid, e.start_ns, e.tid);
  }
}

}  // namespace

std::string chrome_trace(const Session& session) {
  std::string out = cat("{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"started_unix_us\":",
                        session.started_unix_ns / 1000, ",\"traceEvents\":[");
  for (const Session::Thread& thread : session.threads) {
    std::string args = "{\"name\":";
    append_json(args, thread.name);
    Entry(out, "M", "thread_name", thread.tid).raw("args", args + "}");
  }
  for (const Event& e : session.events)
    if (e.kind == Event::Kind::kSpan)
      Entry(out, "X", e.name, e.tid)
          .text("cat", category_name(e.category))
          .time("ts", e.start_ns)
          .time("dur", e.end_ns - e.start_ns)
          .raw("args", args_of(e));
  add_arrows(out, session);
  out += "\n]}\n";
  return out;
}

void write_chrome_trace(const Session& session, const std::string& path) {
  write_file(path, chrome_trace(session));
}

}  // namespace prong::profile
