// String building for messages: cat("got ", 3, " and ", shape) without streams. Used everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace prong {

std::string
format_double(double x);  // shortest form that reads back equal; always with a point or exponent

inline void append_to(std::string& out, std::string_view s) { out.append(s); }
inline void append_to(std::string& out, const char* s) { out.append(s); }
inline void append_to(std::string& out, const std::string& s) { out.append(s); }
inline void append_to(std::string& out, char c) { out.push_back(c); }
inline void append_to(std::string& out, bool b) { out.append(b ? "True" : "False"); }
inline void append_to(std::string& out, double x) { out.append(format_double(x)); }
template <class T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool> &&
         !std::is_same_v<T, char>) void append_to(std::string& out, T x) {
  out.append(std::to_string(x));
}

// Anything iterable with begin/end of integers or strings prints as a Python list: [2, 3].
template <class C>
requires(requires(const C& c) {
  c.begin();
  c.end();
} && !std::is_convertible_v<C, std::string_view>) void append_to(std::string& out, const C& items) {
  out.push_back('[');
  bool first = true;
  for (const auto& item : items) {
    if (!first) out.append(", ");
    first = false;
    append_to(out, item);
  }
  out.push_back(']');
}

template <class... Args>
std::string cat(const Args&... args) {
  std::string out;
  (append_to(out, args), ...);
  return out;
}

}  // namespace prong
