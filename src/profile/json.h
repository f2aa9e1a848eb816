// Text as a JSON string. Used by the trace and the timeline writers.
#pragma once

#include <string>
#include <string_view>

namespace prong::profile {

// Quoted and escaped; "<" too, so that it may stand inside a script of an HTML page.
void append_json(std::string& out, std::string_view text);
// Nanoseconds as microseconds with three places, as traces have them.
void append_us(std::string& out, long long ns);
// OSError if it cannot be written.
void write_file(const std::string& path, std::string_view text);

}  // namespace prong::profile
