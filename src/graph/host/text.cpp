// UTF-8, slices, and Python's three ways of formatting.
#include "graph/host/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace prong {

std::string str_of(const IValue& value) {
  if (value.is_string()) return value.to_string();
  if (value.is_tensor()) return to_string(value.to_tensor());
  return repr(value);
}

std::vector<uint32_t> code_points(std::string_view s) {
  std::vector<uint32_t> out;
  for (size_t i = 0; i < s.size();) {
    const auto byte = static_cast<unsigned char>(s[i]);
    const size_t length = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    uint32_t point = length == 1 ? byte : byte & (0x7fu >> length);
    for (size_t k = 1; k < length && i + k < s.size(); ++k)
      point = point << 6 | (static_cast<unsigned char>(s[i + k]) & 0x3f);
    out.push_back(point);
    i += length;
  }
  return out;
}

void append_utf8(std::string& out, uint32_t c) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (c >> shift & 0x3f)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6), tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12), tail(6), tail(0);
  } else {
    out += static_cast<char>(0xf0 | c >> 18), tail(12), tail(6), tail(0);
  }
}

int64_t length_of(std::string_view s) {
  return std::count_if(s.begin(), s.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

SliceRange slice_range(const IValue& start, const IValue& stop, const IValue& step, int64_t n) {
  const int64_t by = step.is_none() ? 1 : step.to_int();
  PRONG_CHECK(by != 0, kValue, "slice step cannot be zero");
  const int64_t low = by > 0 ? 0 : -1, high = by > 0 ? n : n - 1;
  const auto clip = [&](const IValue& v, int64_t otherwise) {
    if (v.is_none()) return otherwise;
    const int64_t i = v.to_int();
    return std::clamp(i < 0 ? i + n : i, low, high);
  };
  const int64_t first = clip(start, by > 0 ? low : high), last = clip(stop, by > 0 ? high : low);
  int64_t count = 0;
  if (by > 0 && first < last) count = (last - first - 1) / by + 1;
  if (by < 0 && first > last) count = (first - last - 1) / (by == INT64_MIN ? INT64_MAX : -by) + 1;
  return {first, by, count};
}

// ── format(value, spec) ──

namespace {

struct Spec {
  std::string fill = " ";
  char align = 0, sign = '-', type = 0, grouping = 0;
  bool alternate = false, zero = false;
  int64_t width = 0, precision = -1;
};

Spec parse_spec(std::string_view s, std::string_view of) {
  Spec spec;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '=' || c == '^'; };
  size_t fill_bytes = 1;
  while (fill_bytes < s.size() && (static_cast<unsigned char>(s[fill_bytes]) & 0xc0) == 0x80)
    ++fill_bytes;
  if (s.size() > fill_bytes && is_align(s[fill_bytes])) {
    spec.fill = s.substr(0, fill_bytes);
    spec.align = s[fill_bytes];
    s.remove_prefix(fill_bytes + 1);
  } else if (!s.empty() && is_align(s[0])) {
    spec.align = s[0];
    s.remove_prefix(1);
  }
  const auto take = [&](std::string_view choices, char& to) {
    if (s.empty() || choices.find(s[0]) == std::string_view::npos) return false;
    to = s[0];
    s.remove_prefix(1);
    return true;
  };
  const auto number = [&](int64_t& to) {
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), to);
    if (error == std::errc()) s.remove_prefix(static_cast<size_t>(end - s.data()));
    return error == std::errc();
  };
  take("+- ", spec.sign);
  char unused;
  spec.alternate = take("#", unused);
  if (take("0", unused)) {
    spec.zero = true;
    if (!spec.align) spec.fill = "0", spec.align = '=';
  }
  number(spec.width);
  take(",_", spec.grouping);
  if (take(".", unused))
    PRONG_CHECK(number(spec.precision), kValue, "Format specifier missing precision");
  if (!s.empty()) {
    PRONG_CHECK(s.size() == 1, kValue, "Invalid format specifier '", s, "' for object of type '",
                of, "'");
    spec.type = s[0];
  }
  return spec;
}

std::string pad(const Spec& spec, std::string_view sign, std::string_view body, char align) {
  const int64_t missing = spec.width - length_of(sign) - length_of(body);
  const auto fill = [&](int64_t n) {
    std::string out;
    for (int64_t i = 0; i < n; ++i) out += spec.fill;
    return out;
  };
  if (spec.align) align = spec.align;
  if (missing <= 0) return cat(sign, body);
  if (align == '<') return cat(sign, body, fill(missing));
  if (align == '=') return cat(sign, fill(missing), body);
  if (align == '^') return cat(fill(missing / 2), sign, body, fill(missing - missing / 2));
  return cat(fill(missing), sign, body);
}

// Puts `mark` between groups of digits of the whole part.
std::string grouped(std::string_view digits, char mark, size_t size) {
  if (!mark) return std::string(digits);
  size_t whole = 0;
  while (whole < digits.size() && std::isxdigit(static_cast<unsigned char>(digits[whole]))) ++whole;
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i && (whole - i) % size == 0) out += mark;
    out += digits[i];
  }
  return out + std::string(digits.substr(whole));
}

[[noreturn]] void unknown_code(char code, std::string_view of) {
  throw_error(ErrorKind::kValue,
              cat("Unknown format code '", code, "' for object of type '", of, "'"));
}

std::string sign_of(const Spec& spec, bool negative) {
  if (negative) return "-";
  return spec.sign == '-' ? std::string() : std::string(1, spec.sign);
}

std::string float_body(double magnitude, const Spec& spec) {
  if (std::isnan(magnitude) || std::isinf(magnitude)) {
    const bool upper = spec.type == 'F' || spec.type == 'E' || spec.type == 'G';
    return std::isnan(magnitude) ? (upper ? "NAN" : "nan") : (upper ? "INF" : "inf");
  }
  char type = spec.type == 'n' ? 'g' : spec.type;
  if (type == 0) {
    if (spec.precision < 0) return format_double(magnitude);
    // As 'g', but with at least one digit after the point where there is no exponent.
    char text[400];
    std::snprintf(text, sizeof text, "%.*g", static_cast<int>(std::max<int64_t>(spec.precision, 1)),
                  magnitude);
    std::string out = text;
    if (out.find_first_of(".e") == std::string::npos) out += ".0";
    return out;
  }
  const bool percent = type == '%';
  if (percent) type = 'f', magnitude *= 100;
  const char form[] = {'%',
                       spec.alternate ? '#' : '.',
                       spec.alternate ? '.' : '*',
                       spec.alternate ? '*' : type,
                       spec.alternate ? type : '\0',
                       '\0'};
  std::string out(400 + static_cast<size_t>(std::max<int64_t>(spec.precision, 0)), '\0');
  out.resize(static_cast<size_t>(
      std::snprintf(out.data(), out.size(), form,
                    static_cast<int>(spec.precision < 0 ? 6 : spec.precision), magnitude)));
  return percent ? out + "%" : out;
}

std::string format_float(double x, const Spec& spec) {
  if (spec.type && std::string_view("eEfFgGn%").find(spec.type) == std::string_view::npos)
    unknown_code(spec.type, "float");
  const std::string body = grouped(float_body(std::fabs(x), spec), spec.grouping, 3);
  return pad(spec, sign_of(spec, std::signbit(x) && !std::isnan(x)), body, '>');
}

std::string format_int(int64_t x, const Spec& spec) {
  if (spec.type && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos)
    return format_float(static_cast<double>(x), spec);
  PRONG_CHECK(spec.precision < 0, kValue, "Precision not allowed in integer format specifier");
  if (spec.type == 'c') {
    std::string c;
    append_utf8(c, static_cast<uint32_t>(x));
    return pad(spec, "", c, '<');
  }
  int base = 10;
  switch (spec.type) {
  case 0:
  case 'd':
  case 'n':
    break;
  case 'x':
  case 'X':
    base = 16;
    break;
  case 'o':
    base = 8;
    break;
  case 'b':
    base = 2;
    break;
  default:
    unknown_code(spec.type, "int");
  }
  char text[72];
  const uint64_t magnitude = x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
  const char* end = std::to_chars(text, text + sizeof text, magnitude, base).ptr;
  std::string body(text, static_cast<size_t>(end - text));
  if (spec.type == 'X')
    std::transform(body.begin(), body.end(), body.begin(),
                   [](char c) { return static_cast<char>(std::toupper(c)); });
  body = grouped(body, spec.grouping, base == 10 ? 3 : 4);
  std::string sign = sign_of(spec, x < 0);
  if (spec.alternate && base != 10) sign += cat("0", spec.type);
  return pad(spec, sign, body, '>');
}

std::string format_str(std::string_view s, const Spec& spec) {
  if (spec.type && spec.type != 's') unknown_code(spec.type, "str");
  PRONG_CHECK(spec.align != '=' || spec.zero, kValue,
              "'=' alignment not allowed in string format specifier");
  std::string cut(s);
  if (spec.precision >= 0 && length_of(s) > spec.precision) {
    cut.clear();
    const auto points = code_points(s);
    for (int64_t i = 0; i < spec.precision; ++i) append_utf8(cut, points[static_cast<size_t>(i)]);
  }
  Spec left = spec;
  if (left.align == '=') left.align = '<';
  return pad(left, "", cut, '<');
}

}  // namespace

std::string format_value(const IValue& value, std::string_view spec) {
  if (spec.empty()) return str_of(value);
  if (value.is_float()) return format_float(value.to_double(), parse_spec(spec, "float"));
  if (value.is_int() || value.is_bool()) return format_int(value.to_int(), parse_spec(spec, "int"));
  if (value.is_string()) return format_str(value.to_string(), parse_spec(spec, "str"));
  if (value.is_tensor() && value.tensor_impl()->numel == 1 && value.tensor_impl()->sizes.empty()) {
    const Tensor t = value.to_tensor();
    return is_floating(t.dtype()) ? format_float(t.item_double(), parse_spec(spec, "float"))
                                  : format_int(t.item_int(), parse_spec(spec, "int"));
  }
  throw_error(ErrorKind::kType,
              cat("unsupported format string passed to ", name_of(value.tag()), ".__format__"));
}

// ── "{}".format and "%" ──

std::string format_template(std::string_view s, const std::vector<IValue>& arguments) {
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    const char c = s[i];
    if ((c == '{' || c == '}') && i + 1 < s.size() && s[i + 1] == c) {
      out += c;
      ++i;
      continue;
    }
    PRONG_CHECK(c != '}', kValue, "Single '}' encountered in format string");
    if (c != '{') {
      out += c;
      continue;
    }
    const size_t end = s.find('}', i);
    PRONG_CHECK(end != std::string_view::npos, kValue, "Single '{' encountered in format string");
    std::string_view field = s.substr(i + 1, end - i - 1);
    i = end;
    std::string_view spec;
    if (const size_t colon = field.find(':'); colon != std::string_view::npos) {
      spec = field.substr(colon + 1);
      field = field.substr(0, colon);
    }
    const bool wants_repr = field.ends_with("!r");
    if (wants_repr || field.ends_with("!s")) field.remove_suffix(2);
    size_t index = next;
    if (field.empty()) {
      ++next;
    } else {
      const auto [p, error] = std::from_chars(field.data(), field.data() + field.size(), index);
      PRONG_CHECK(error == std::errc() && p == field.data() + field.size(), kKey,
                  repr(IValue(field)));
    }
    PRONG_CHECK(index < arguments.size(), kIndex, "Replacement index ", index,
                " out of range for positional args tuple");
    out += wants_repr ? format_value(IValue(repr(arguments[index])), spec)
                      : format_value(arguments[index], spec);
  }
  return out;
}

std::string format_percent(std::string_view s, const std::vector<IValue>& arguments) {
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '%') {
      out += s[i];
      continue;
    }
    Spec spec;
    bool left = false;
    for (++i; i < s.size() && std::string_view("-+ #0").find(s[i]) != std::string_view::npos; ++i) {
      if (s[i] == '-') left = true;
      if (s[i] == '+' || s[i] == ' ') spec.sign = s[i];
      if (s[i] == '#') spec.alternate = true;
      if (s[i] == '0') spec.zero = true;
    }
    const auto number = [&](int64_t& to) {
      to = 0;
      for (; i < s.size() && std::isdigit(static_cast<unsigned char>(s[i])); ++i)
        to = to * 10 + (s[i] - '0');
    };
    number(spec.width);
    if (i < s.size() && s[i] == '.') {
      ++i;
      number(spec.precision);
    }
    PRONG_CHECK(i < s.size(), kValue, "incomplete format");
    const char code = s[i];
    if (code == '%') {
      out += '%';
      continue;
    }
    PRONG_CHECK(next < arguments.size(), kType, "not enough arguments for format string");
    const IValue& v = arguments[next++];
    spec.align = left ? '<' : '>';
    if (code == 's' || code == 'r') {
      out += format_str(code == 's' ? str_of(v) : repr(v), spec);
      continue;
    }
    PRONG_CHECK(std::string_view("diuoxXeEfFgGc").find(code) != std::string_view::npos, kValue,
                "unsupported format character '", code, "' (0x", static_cast<int>(code),
                ") at index ", i);
    PRONG_CHECK(v.is_number() || (code == 'c' && v.is_string()), kType, "%", code,
                " format: a real number is required, not ",
                v.is_string() ? std::string_view("str") : name_of(v.tag()));
    if (spec.zero && !left) spec.fill = "0", spec.align = '=';
    if (code == 'c' && v.is_string()) {
      out += format_str(v.to_string(), spec);
    } else if (code == 'd' || code == 'i' || code == 'u') {
      spec.type = 'd';
      spec.precision = -1;
      out += format_int(v.is_float() ? static_cast<int64_t>(v.to_double()) : v.to_int(), spec);
    } else if (std::string_view("oxXc").find(code) != std::string_view::npos) {
      spec.type = code;
      out += format_int(v.to_int(), spec);
    } else {
      spec.type = code;
      out += format_float(v.to_double(), spec);
    }
  }
  PRONG_CHECK(next == arguments.size(), kType,
              "not all arguments converted during string formatting");
  return out;
}

}  // namespace prong
