// Writes a session as a Chrome trace (chrome://tracing, Perfetto). Called by bindings.
#pragma once

#include <string>

#include "profile/profile.h"

namespace prong::profile {

// {"traceEvents": [...]}: "X" events with ts and dur in microseconds, arrows from fork to task and
// from task to wait, names of threads.
std::string chrome_trace(const Session& session);
// The same into a file; OSError if it cannot be written.
void write_chrome_trace(const Session& session, const std::string& path);

}  // namespace prong::profile
