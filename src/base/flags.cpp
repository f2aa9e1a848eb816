// Environment variables as text, numbers and lists.
#include "base/flags.h"

#include <charconv>
#include <cstdlib>

namespace prong {

std::string_view env_text(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

bool env_is_on(const char* name) {
  std::string_view text = env_text(name);
  return text == "1" || text == "true" || text == "on" || text == "yes";
}

int64_t env_number(const char* name, int64_t otherwise) {
  std::string_view text = env_text(name);
  int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : otherwise;
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    if (!item.empty()) items.emplace_back(item);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return items;
}

bool env_has(const char* name, std::string_view item) {
  for (const std::string& other : split_list(env_text(name)))
    if (other == item) return true;
  return false;
}

}  // namespace prong
