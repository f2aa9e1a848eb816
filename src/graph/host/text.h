// Python's text of values, and Unicode: strings are UTF-8 inside, code points for who indexes them.
// Used in this folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/ivalue.h"

namespace prong {

std::string str_of(const IValue& value);  // str(value): strings as they are, the rest as repr

inline bool is_ascii(std::string_view s) {
  for (const char c : s)
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  return true;
}
std::vector<uint32_t> code_points(std::string_view utf8);
void append_utf8(std::string& out, uint32_t code_point);
int64_t length_of(std::string_view utf8);  // in code points

// format(value, spec) of Python's mini language, for str, int, float, bool and one-element tensors.
std::string format_value(const IValue& value, std::string_view spec);
// template.format(*arguments): {}, {0}, {:>8.3f}, {!r}, {{ and }}.
std::string format_template(std::string_view text, const std::vector<IValue>& arguments);
// text % arguments: %d %i %s %r %f %e %g %x %o %c %% with flags, width and precision.
std::string format_percent(std::string_view text, const std::vector<IValue>& arguments);

// Python's slice.indices: where a slice of something of length n starts, its step, and how many
// items it has.
struct SliceRange {
  int64_t start, step, count;
};
SliceRange slice_range(const IValue& start, const IValue& stop, const IValue& step, int64_t n);

}  // namespace prong
