// Out-of-line throwing and number formatting, so that the headers stay light.
#include "base/error.h"

#include <charconv>
#include <cmath>

namespace prong {

void throw_error(ErrorKind kind, std::string message) { throw Error(kind, std::move(message)); }

void throw_internal(const char* file, int line, const char* condition, std::string detail) {
  std::string_view path(file);
  const auto src = path.rfind("src/");
  if (src != std::string_view::npos) path = path.substr(src);
  throw Error(ErrorKind::kInternal, cat("internal error at ", path, ":", line, ": ", condition,
                                        detail.empty() ? "" : ": ", detail,
                                        " (this is a bug in prong, please report it)"));
}

std::string format_double(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, x).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace prong
