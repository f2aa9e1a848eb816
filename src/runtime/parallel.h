// Parallel loops inside ops, and the size of the one thread pool. Called by kernels and bindings.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace prong {

// The number of threads that run Prong's work at once: forked tasks and loops inside ops together,
// the calling thread included. Default: PRONG_NUM_THREADS, OMP_NUM_THREADS or the CPUs given to us.
int num_threads();
// May be called at any time, also while work is running; n < 1 raises RuntimeError.
void set_num_threads(int n);

namespace detail {
using LoopBody = void (*)(void* body, int64_t begin, int64_t end);
// Calls body for every chunk of [begin, end); see parallel_chunks.
void run_chunks(int64_t begin, int64_t end, int64_t chunk, LoopBody body, void* context);
// A chunk of at least `grain`, and of a multiple of it, that leaves each thread a few chunks.
int64_t pick_chunk(int64_t range, int64_t grain);
}  // namespace detail

// Calls f(b, e) for consecutive pieces [b, e) that cover [begin, end) once, on any threads of the
// pool, and returns when all are done.
//  - A piece is never smaller than `grain`, save the last. A range of at most `grain` is
//    f(begin, end) on this thread at the cost of a comparison; one thread costs hardly more.
//  - Where pieces begin depends on the number of threads. A result that depends on the pieces (a
//    floating-point sum) needs parallel_chunks.
//  - If f throws, later pieces are skipped, and the exception of the lowest piece that failed is
//    rethrown here: the one that a sequential loop would have raised. So is one of the interrupt
//    hook (interrupt.h).
//  - f may call parallel_for, fork and wait. A thread inside a loop never picks up a forked task.
template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain, F&& f) {
  int64_t range = end - begin;
  if (range <= 0) return;
  if (range <= grain) {
    f(begin, end);
    return;
  }
  using Body = std::remove_reference_t<F>;
  detail::run_chunks(
      begin, end, detail::pick_chunk(range, grain),
      [](void* body, int64_t b, int64_t e) { (*static_cast<Body*>(body))(b, e); },
      const_cast<void*>(static_cast<const void*>(std::addressof(f))));
}

// The same with pieces that depend on the range and `chunk` only, at any number of threads:
// [begin, begin + chunk), [begin + chunk, begin + 2 * chunk) and so on. For reductions:
//   parallel_chunks(0, n, 4096, [&](int64_t b, int64_t e) { partial[b / 4096] = sum(b, e); });
template <class F>
void parallel_chunks(int64_t begin, int64_t end, int64_t chunk, F&& f) {
  if (end - begin <= 0) return;
  if (end - begin <= chunk) {
    f(begin, end);
    return;
  }
  using Body = std::remove_reference_t<F>;
  detail::run_chunks(
      begin, end, chunk,
      [](void* body, int64_t b, int64_t e) { (*static_cast<Body*>(body))(b, e); },
      const_cast<void*>(static_cast<const void*>(std::addressof(f))));
}

}  // namespace prong
