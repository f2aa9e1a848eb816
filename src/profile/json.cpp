// JSON strings, times and files for the writers here.
#include "profile/json.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"

namespace prong::profile {

void append_json(std::string& out, std::string_view text) {
  out += '"';
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == '<') {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      out += code;
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_us(std::string& out, long long ns) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3f", static_cast<double>(ns) * 1e-3);
  out += text;
}

void write_file(const std::string& path, std::string_view text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  PRONG_CHECK(file, kOs, "cannot write ", path, ": ", std::strerror(errno));
  bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  is_written = std::fclose(file) == 0 && is_written;
  PRONG_CHECK(is_written, kOs, "cannot write all of ", path, ": ", std::strerror(errno));
}

}  // namespace prong::profile
