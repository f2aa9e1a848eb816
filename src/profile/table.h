// Sums events by name, and prints them as PyTorch's key_averages().table() does. Called by
// bindings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.h"

namespace prong::profile {

struct Average {
  std::string key;  // the name; with shapes, if grouped by them, in `detail`
  std::string detail;
  Category category = Category::kOp;
  int64_t count = 0;
  int64_t total_ns = 0;  // all spans of that name that are not inside another of that name
  int64_t self_ns = 0;   // less what their children took
};

// In order of first start.
std::vector<Average> key_averages(const Session& session, bool group_by_detail = false);

// sort_by: "" (as they come), "count", or with or without "self_": "cpu_time_total", "cpu_time",
// "cpu_time_avg"; ValueError otherwise. row_limit < 0: all.
std::string table(std::vector<Average> averages, std::string_view sort_by = "", int row_limit = 100,
                  int max_name_width = 55);

}  // namespace prong::profile
