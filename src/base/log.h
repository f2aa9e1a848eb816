// What Prong tells about its work when asked: PRONG_LOG=passes,codegen on stderr. Called
// everywhere.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/str.h"

namespace prong {

// Equal to folder names, save kSchedule (runtime, interop), kMemory (allocator, plans), and kGuards
// and kRecompiles (capture).
enum class LogTopic : uint8_t {
  kCapture,
  kScript,
  kPasses,
  kCodegen,
  kExec,
  kSchedule,
  kMemory,
  kGuards,
  kRecompiles
};

namespace detail {
uint32_t read_log_topics();  // bits, from PRONG_LOG
inline const uint32_t log_topics = read_log_topics();
}  // namespace detail

// A constant of the process, so that a question in a hot place costs a load.
inline bool is_logged(LogTopic topic) {
  return (detail::log_topics >> static_cast<int>(topic)) & 1;
}

// Writes text, each line with the topic before it, in one piece; asks nothing.
void write_log(LogTopic topic, std::string_view text);

}  // namespace prong

// PRONG_LOG(kPasses, "fuse: ", n, " groups"): builds its text only if the topic is wanted.
#define PRONG_LOG(topic, ...)                                                  \
  do {                                                                         \
    if (::prong::is_logged(::prong::LogTopic::topic)) [[unlikely]]             \
      ::prong::write_log(::prong::LogTopic::topic, ::prong::cat(__VA_ARGS__)); \
  } while (0)
