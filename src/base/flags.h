// Reads what the environment asks for: PRONG_SKIP, PRONG_NUM_THREADS and the like. Each flag is
// read once by its owner.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace prong {

std::string_view env_text(const char* name);              // empty if it is not set
bool env_is_on(const char* name);                         // 1, true, on, yes
int64_t env_number(const char* name, int64_t otherwise);  // otherwise, if it is no number

// "fuse, cse" → {"fuse", "cse"}
std::vector<std::string> split_list(std::string_view text);
// Whether the list in that variable holds `item`.
bool env_has(const char* name, std::string_view item);

}  // namespace prong
