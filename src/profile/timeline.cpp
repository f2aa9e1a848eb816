// Fills a session into the timeline page.
#include "profile/timeline.h"

#include <unordered_map>

#include "base/error.h"
#include "base/str.h"
#include "profile/json.h"

namespace prong::profile {

extern const char* const timeline_template;  // timeline.html

namespace {

// The page's "names": each text once, spans refer to it by number.
class Names {
 public:
  int number(const char* text) {
    auto [it, is_new] = numbers_.emplace(text, static_cast<int>(numbers_.size()));
    if (is_new) {
      if (!json_.empty()) json_ += ',';
      append_json(json_, text);
    }
    return it->second;
  }
  const std::string& json() const { return json_; }

 private:
  std::unordered_map<std::string, int> numbers_;
  std::string json_;
};

std::string session_json(const Session& session, const std::string& title) {
  std::unordered_map<uint32_t, size_t> lanes;
  std::string threads, spans, marks;
  for (const Session::Thread& thread : session.threads) {
    lanes.emplace(thread.tid, lanes.size());
    threads += cat(threads.empty() ? "" : ",", "{\"tid\":", thread.tid, ",\"name\":");
    append_json(threads, thread.name);
    threads += '}';
  }
  Names names;
  for (const Event& e : session.events) {
    size_t lane = lanes.at(e.tid);
    if (e.kind != Event::Kind::kSpan) {
      marks +=
          cat(marks.empty() ? "[" : ",[", e.kind == Event::Kind::kFork ? 1 : 0, ",", lane, ",");
      append_us(marks, e.start_ns);
      marks += cat(",", e.task, ",", e.link, "]");
      continue;
    }
    spans += cat(spans.empty() ? "[" : ",[", lane, ",", names.number(e.name), ",",
                 static_cast<int>(e.category), ",");
    append_us(spans, e.start_ns);
    spans += ',';
    append_us(spans, e.end_ns - e.start_ns);
    spans += cat(",", e.task, ",", e.link, ",", (e.is_resumed ? 1 : 0) | (e.is_clipped ? 2 : 0),
                 ",", e.detail ? names.number(e.detail) : -1, "]");
  }
  std::string out = "{\"title\":";
  append_json(out, title);
  out += cat(",\"started_unix_ms\":", session.started_unix_ns / 1000000, ",\"duration_us\":");
  append_us(out, session.duration_ns);
  out += cat(",\"num_threads\":", session.num_threads, ",\"threads\":[", threads, "],\"names\":[",
             names.json(), "],\"spans\":[", spans, "],\"marks\":[", marks, "]}");
  return out;
}

}  // namespace

std::string timeline_page(const Session& session, const std::string& title) {
  constexpr std::string_view kHole = ">PRONG_SESSION<";
  std::string page = timeline_template;
  size_t at = page.find(kHole);
  PRONG_ASSERT(at != std::string::npos, "timeline.html has no place for the session");
  page.replace(at + 1, kHole.size() - 2, session_json(session, title));
  return page;
}

void write_timeline(const Session& session, const std::string& title, const std::string& path) {
  write_file(path, timeline_page(session, title));
}

}  // namespace prong::profile
