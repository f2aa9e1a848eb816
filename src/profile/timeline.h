// Writes a session as one self-contained HTML page: lanes, nested spans, arrows. Called by
// bindings.
#pragma once

#include <string>

#include "profile/profile.h"

namespace prong::profile {

std::string timeline_page(const Session& session, const std::string& title);
// The same into a file; OSError if it cannot be written.
void write_timeline(const Session& session, const std::string& title, const std::string& path);

}  // namespace prong::profile
