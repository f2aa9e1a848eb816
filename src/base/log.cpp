// Topics and output of PRONG_LOG.
#include "base/log.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/flags.h"

namespace prong {

namespace {
constexpr const char* kTopics[] = {"capture",  "script", "passes", "codegen",   "exec",
                                   "schedule", "memory", "guards", "recompiles"};
}

uint32_t detail::read_log_topics() {
  uint32_t bits = 0;
  for (const std::string& name : split_list(env_text("PRONG_LOG"))) {
    bool is_known = name == "all";
    for (int i = 0; i < static_cast<int>(std::size(kTopics)); ++i)
      if (name == "all" || name == kTopics[i]) {
        bits |= 1u << i;
        is_known = true;
      }
    if (!is_known)
      std::fprintf(stderr,
                   "PRONG_LOG: there is no topic \"%s\"; topics are capture, script, passes, "
                   "codegen, exec, schedule, memory, guards, recompiles and all\n",
                   name.c_str());
  }
  return bits;
}

void write_log(LogTopic topic, std::string_view text) {
  std::string out;
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    out += '[';
    out += kTopics[static_cast<int>(topic)];
    out += "] ";
    out += line;
    out += '\n';
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  std::fwrite(out.data(), 1, out.size(), stderr);
}

}  // namespace prong
