// Sets the pool's size for the length of a test.
#include "forked.h"
#include "runtime/parallel.h"

namespace prong::testing {

ThreadLimit::ThreadLimit(int n) : before_(num_threads()) { set_num_threads(n); }
ThreadLimit::~ThreadLimit() { set_num_threads(before_); }

}  // namespace prong::testing
