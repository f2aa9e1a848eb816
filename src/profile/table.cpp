// Averages by name, and the table that profiles print.
#include "profile/table.h"

#include <algorithm>
#include <cstdio>
#include <unordered_map>

#include "base/error.h"

namespace prong::profile {

namespace {

// The spans around the one that is being added up, innermost last.
struct Open {
  int64_t end_ns;
  size_t average;
};

class Sums {
 public:
  explicit Sums(bool group_by_detail) : group_by_detail_(group_by_detail) {}

  void add(const Event& e) {
    std::vector<Open>& stack = stacks_[e.tid];
    while (!stack.empty() && stack.back().end_ns <= e.start_ns) stack.pop_back();
    size_t at = place_of(e);
    int64_t duration = e.end_ns - e.start_ns;
    Average& average = averages_[at];
    if (!e.is_resumed) ++average.count;
    average.self_ns += duration;
    bool is_inside_itself =
        std::any_of(stack.begin(), stack.end(), [at](const Open& o) { return o.average == at; });
    if (!is_inside_itself) average.total_ns += duration;
    if (!stack.empty()) averages_[stack.back().average].self_ns -= duration;
    stack.push_back({e.end_ns, at});
  }
  std::vector<Average> take() { return std::move(averages_); }

 private:
  size_t place_of(const Event& e) {
    std::string key = e.name;
    if (group_by_detail_ && e.detail) key = key + '\n' + e.detail;
    auto [it, is_new] = places_.emplace(std::move(key), averages_.size());
    if (is_new) {
      Average average;
      average.key = e.name;
      if (group_by_detail_ && e.detail) average.detail = e.detail;
      average.category = e.category;
      averages_.push_back(std::move(average));
    }
    return it->second;
  }

  const bool group_by_detail_;
  std::vector<Average> averages_;
  std::unordered_map<std::string, size_t> places_;
  std::unordered_map<uint32_t, std::vector<Open>> stacks_;
};

std::string time_text(double ns) {
  char text[40];
  if (ns >= 1e9)
    std::snprintf(text, sizeof text, "%.3fs", ns * 1e-9);
  else if (ns >= 1e6)
    std::snprintf(text, sizeof text, "%.3fms", ns * 1e-6);
  else
    std::snprintf(text, sizeof text, "%.3fus", ns * 1e-3);
  return text;
}

std::string percent_text(int64_t part, int64_t whole) {
  char text[40];
  double percent = whole ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
  std::snprintf(text, sizeof text, "%.2f%%", percent);
  return text;
}

double average_ns(const Average& a) {
  return static_cast<double>(a.total_ns) / static_cast<double>(std::max<int64_t>(a.count, 1));
}

void sort_averages(std::vector<Average>& averages, std::string_view by) {
  auto descending = [&](auto key) {
    std::stable_sort(averages.begin(), averages.end(),
                     [&](const Average& a, const Average& b) { return key(a) > key(b); });
  };
  if (by.empty()) return;
  if (by == "count")
    descending([](const Average& a) { return a.count; });
  else if (by == "cpu_time_total")
    descending([](const Average& a) { return a.total_ns; });
  else if (by == "self_cpu_time_total" || by == "self_cpu_time")
    descending([](const Average& a) { return a.self_ns; });
  else if (by == "cpu_time" || by == "cpu_time_avg")
    descending([](const Average& a) { return average_ns(a); });
  else
    throw_error(ErrorKind::kValue,
                cat("table: cannot sort by \"", by,
                    "\"; expected \"cpu_time_total\", \"self_cpu_time_total\", \"cpu_time\", "
                    "\"count\" or nothing"));
}

void append_cell(std::string& out, std::string_view text, size_t width, bool is_left) {
  if (text.size() < width && !is_left) out.append(width - text.size(), ' ');
  out += text;
  if (text.size() < width && is_left) out.append(width - text.size(), ' ');
  out += "  ";
}

void append_row(std::string& out, const std::vector<std::string>& cells,
                const std::vector<size_t>& widths) {
  for (size_t i = 0; i < cells.size(); ++i) append_cell(out, cells[i], widths[i], i == 0);
  out += '\n';
}

}  // namespace

std::vector<Average> key_averages(const Session& session, bool group_by_detail) {
  Sums sums(group_by_detail);
  for (const Event& e : session.events)
    if (e.kind == Event::Kind::kSpan) sums.add(e);
  return sums.take();
}

std::string table(std::vector<Average> averages, std::string_view sort_by, int row_limit,
                  int max_name_width) {
  sort_averages(averages, sort_by);
  int64_t self_total = 0;
  size_t name_width = 4, detail_width = 0;
  for (const Average& a : averages) {
    if (a.category != Category::kWait) self_total += a.self_ns;
    name_width = std::max(name_width, a.key.size());
    detail_width = std::max(detail_width, a.detail.size());
  }
  if (max_name_width > 0) name_width = std::min(name_width, static_cast<size_t>(max_name_width));
  if (row_limit >= 0 && averages.size() > static_cast<size_t>(row_limit))
    averages.resize(static_cast<size_t>(row_limit));

  std::vector<std::string> titles = {"Name",      "Self CPU %",   "Self CPU",  "CPU total %",
                                     "CPU total", "CPU time avg", "# of Calls"};
  std::vector<size_t> widths = {name_width + 2, 12, 12, 12, 12, 12, 12};
  if (detail_width) {
    titles.push_back("Input Shapes");
    widths.push_back(std::max<size_t>(detail_width, 12));
  }
  std::vector<std::string> rules;
  for (size_t width : widths) rules.push_back(std::string(width, '-'));
  std::string out;
  append_row(out, rules, widths);
  append_row(out, titles, widths);
  append_row(out, rules, widths);
  for (const Average& a : averages) {
    std::string name = a.key;
    if (name.size() > name_width && name_width > 3) name = name.substr(0, name_width - 3) + "...";
    bool is_wait = a.category == Category::kWait;  // no share of the CPU's time
    std::vector<std::string> cells = {name,
                                      is_wait ? "" : percent_text(a.self_ns, self_total),
                                      time_text(static_cast<double>(a.self_ns)),
                                      is_wait ? "" : percent_text(a.total_ns, self_total),
                                      time_text(static_cast<double>(a.total_ns)),
                                      time_text(average_ns(a)),
                                      std::to_string(a.count)};
    if (detail_width) cells.push_back(a.detail);
    append_row(out, cells, widths);
  }
  append_row(out, rules, widths);
  out += "Self CPU time total: " + time_text(static_cast<double>(self_total)) + '\n';
  return out;
}

}  // namespace prong::profile
