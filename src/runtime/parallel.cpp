// The thread count and the loop behind parallel_for. Called through parallel.h.
#include "runtime/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/error.h"

namespace prong {

namespace {
std::atomic<int> thread_count{std::max(1, static_cast<int>(std::thread::hardware_concurrency()))};
}

int num_threads() { return thread_count.load(std::memory_order_relaxed); }

void set_num_threads(int n) {
  PRONG_CHECK(n >= 1, kRuntime, "set_num_threads expects a positive integer, got ", n);
  thread_count = n;
}

namespace detail {

int64_t pick_chunk(int64_t range, int64_t grain) {
  int64_t chunk = std::max<int64_t>(grain, 1);
  int64_t pieces = 4 * static_cast<int64_t>(num_threads());
  int64_t multiple = (range + chunk * pieces - 1) / (chunk * pieces);
  return chunk * std::max<int64_t>(1, multiple);
}

void run_chunks(int64_t begin, int64_t end, int64_t chunk, LoopBody body, void* context) {
  for (int64_t b = begin; b < end; b += chunk) body(context, b, std::min(end, b + chunk));
}

}  // namespace detail

}  // namespace prong
