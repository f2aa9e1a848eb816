// Strings: operators and methods of str. Positions count code points, as in Python.
#include <algorithm>

#include "graph/host/tables.h"
#include "graph/host/text.h"

namespace prong {
namespace {

using Args = std::span<IValue>;
constexpr std::string_view kSpaces = " \t\n\r\f\v";

const std::string& s(Args a, size_t n = 0) { return a[n].to_string(); }

std::string from_points(const std::vector<uint32_t>& points, const SliceRange& range) {
  std::string out;
  for (int64_t k = 0; k < range.count; ++k)
    append_utf8(out, points[static_cast<size_t>(range.start + k * range.step)]);
  return out;
}

std::string item(const std::string& text, int64_t i) {
  const int64_t n = length_of(text);
  if (i < 0) i += n;
  PRONG_CHECK(i >= 0 && i < n, kIndex, "string index out of range");
  if (is_ascii(text)) return std::string(1, text[static_cast<size_t>(i)]);
  return from_points(code_points(text), {i, 1, 1});
}

std::string slice(const std::string& text, const IValue& start, const IValue& stop,
                  const IValue& step) {
  const SliceRange range = slice_range(start, stop, step, length_of(text));
  if (is_ascii(text) && range.step == 1)
    return text.substr(static_cast<size_t>(std::max<int64_t>(range.start, 0)),
                       static_cast<size_t>(range.count));
  return from_points(code_points(text), range);
}

std::string repeated(const std::string& text, int64_t n) {
  std::string out;
  for (; n > 0; --n) out += text;
  return out;
}

std::string replaced(const std::string& text, const std::string& from, const std::string& to,
                     int64_t count) {
  std::string out;
  size_t at = 0;
  if (from.empty()) {  // between all characters
    const auto points = code_points(text);
    for (size_t i = 0; i <= points.size(); ++i) {
      if (count < 0 || count-- > 0) out += to;
      if (i < points.size()) append_utf8(out, points[i]);
    }
    return out;
  }
  while (count != 0) {
    const size_t hit = text.find(from, at);
    if (hit == std::string::npos) break;
    out.append(text, at, hit - at).append(to);
    at = hit + from.size();
    --count;
  }
  return out.append(text, at);
}

IValue strings(std::vector<std::string> parts) {
  std::vector<IValue> items;
  for (std::string& part : parts) items.emplace_back(std::move(part));
  return IValue::list(std::move(items));
}

std::vector<std::string> split_spaces(std::string_view text, int64_t count) {
  std::vector<std::string> out;
  while (true) {
    const size_t first = text.find_first_not_of(kSpaces);
    if (first == std::string_view::npos) return out;
    text.remove_prefix(first);
    if (count >= 0 && static_cast<int64_t>(out.size()) == count) {
      out.emplace_back(text.substr(0, text.find_last_not_of(kSpaces) + 1));
      return out;
    }
    const size_t end = std::min(text.find_first_of(kSpaces), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::vector<std::string> split_on(std::string_view text, std::string_view mark, int64_t count) {
  PRONG_CHECK(!mark.empty(), kValue, "empty separator");
  std::vector<std::string> out;
  while (count < 0 || static_cast<int64_t>(out.size()) < count) {
    const size_t hit = text.find(mark);
    if (hit == std::string_view::npos) break;
    out.emplace_back(text.substr(0, hit));
    text.remove_prefix(hit + mark.size());
  }
  out.emplace_back(text);
  return out;
}

std::vector<std::string> split_on_from_right(std::string_view text, std::string_view mark,
                                             int64_t count) {
  PRONG_CHECK(!mark.empty(), kValue, "empty separator");
  std::vector<std::string> out;
  while (count < 0 || static_cast<int64_t>(out.size()) < count) {
    const size_t hit = text.rfind(mark);
    if (hit == std::string_view::npos) break;
    out.emplace_back(text.substr(hit + mark.size()));
    text = text.substr(0, hit);
  }
  out.emplace_back(text);
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<std::string> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t end = text.find_first_of("\n\r\v\f");
    if (end == std::string_view::npos) {
      out.emplace_back(text);
      break;
    }
    const size_t mark = text.substr(end, 2) == "\r\n" ? 2 : 1;
    out.emplace_back(text.substr(0, end + (keep_ends ? mark : 0)));
    text.remove_prefix(end + mark);
  }
  return out;
}

// ASCII letters only: other alphabets keep their case.
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }
bool is_letter(char c) { return lower(c) >= 'a' && lower(c) <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alnum(char c) { return is_letter(c) || is_digit(c); }
bool is_space(char c) { return kSpaces.find(c) != std::string_view::npos; }

template <class F>
std::string mapped(std::string text, F f) {
  bool inside_word = false;
  for (char& c : text) {
    c = f(c, inside_word);
    inside_word = is_letter(c);
  }
  return text;
}
template <bool (*f)(char)>
IValue all_of(Args a) {
  return IValue(!s(a).empty() && std::all_of(s(a).begin(), s(a).end(), f));
}
// islower and isupper: no letter of the other case, and at least one of this.
template <char (*to)(char)>
IValue has_case(Args a) {
  bool any = false;
  for (const char c : s(a)) {
    if (to(c) != c) return IValue(false);
    any |= is_letter(c);
  }
  return IValue(any);
}

std::string stripped(std::string_view text, const IValue& chars, bool left, bool right) {
  const std::string_view set = chars.is_none() ? kSpaces : std::string_view(chars.to_string());
  if (left) text.remove_prefix(std::min(text.find_first_not_of(set), text.size()));
  if (right) text = text.substr(0, text.find_last_not_of(set) + 1);
  return std::string(text);
}

std::string aligned(const std::string& text, int64_t width, const std::string& fill, char align) {
  PRONG_CHECK(length_of(fill) == 1, kType, "The fill character must be exactly one character long");
  const int64_t missing = std::max<int64_t>(width - length_of(text), 0);
  const int64_t left = align == '<'   ? 0
                       : align == '>' ? missing
                                      : missing / 2 + (missing & width & 1);
  return cat(repeated(fill, left), text, repeated(fill, missing - left));
}

// The byte range of [start:end) in code points, clipped as slices are; false if it is empty the
// wrong way round.
bool window(const std::string& text, const IValue& start, const IValue& end, size_t& first,
            size_t& last) {
  const int64_t n = length_of(text);
  const auto clip = [n](const IValue& v, int64_t otherwise) {
    const int64_t i = v.is_none() ? otherwise : v.to_int();
    return i < 0 ? std::max<int64_t>(i + n, 0) : i;
  };
  const int64_t from = clip(start, 0), to = std::min(clip(end, n), n);
  if (from > n || from > to) return false;
  const auto bytes = [&](int64_t points) {
    size_t at = 0;
    for (; points > 0; --points) do
        ++at;
      while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80);
    return at;
  };
  first = bytes(from);
  last = bytes(to);
  return true;
}

int64_t found(Args a, bool from_right) {
  size_t first = 0, last = 0;
  if (!window(s(a), a[2], a[3], first, last)) return -1;
  const std::string_view part = std::string_view(s(a)).substr(first, last - first);
  const size_t hit = from_right ? part.rfind(s(a, 1)) : part.find(s(a, 1));
  return hit == std::string_view::npos ? -1
                                       : length_of(std::string_view(s(a)).substr(0, first + hit));
}
int64_t found_or_raise(Args a, bool from_right) {
  const int64_t i = found(a, from_right);
  PRONG_CHECK(i >= 0, kValue, "substring not found");
  return i;
}
int64_t counted(Args a) {
  size_t first = 0, last = 0;
  if (!window(s(a), a[2], a[3], first, last)) return 0;
  const std::string_view part = std::string_view(s(a)).substr(first, last - first);
  if (s(a, 1).empty()) return length_of(part) + 1;
  int64_t n = 0;
  for (size_t at = part.find(s(a, 1)); at != std::string_view::npos;
       at = part.find(s(a, 1), at + s(a, 1).size()))
    ++n;
  return n;
}

IValue partition(Args a, bool from_right) {
  PRONG_CHECK(!s(a, 1).empty(), kValue, "empty separator");
  const size_t hit = from_right ? s(a).rfind(s(a, 1)) : s(a).find(s(a, 1));
  if (hit == std::string::npos)
    return from_right ? IValue::tuple({IValue(""), IValue(""), a[0]})
                      : IValue::tuple({a[0], IValue(""), IValue("")});
  return IValue::tuple(
      {IValue(s(a).substr(0, hit)), a[1], IValue(s(a).substr(hit + s(a, 1).size()))});
}

std::string joined(const std::string& mark, const std::vector<IValue>& items) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i) out += mark;
    out += items[i].to_string();
  }
  return out;
}

std::string zero_filled(const std::string& text, int64_t width) {
  const std::string zeros(static_cast<size_t>(std::max<int64_t>(width - length_of(text), 0)), '0');
  const bool has_sign = !text.empty() && (text[0] == '-' || text[0] == '+');
  return has_sign ? cat(text[0], zeros, text.substr(1)) : zeros + text;
}

void register_operators(HostRegistry& r) {
  r.add(Effect::kPure, "add.str(a: str, b: str) -> str",
        [](Args a) { return IValue(s(a) + s(a, 1)); });
  r.add(Effect::kPure, "mul.str(a: str, n: int) -> str",
        [](Args a) { return IValue(repeated(s(a), a[1].to_int())); });
  r.add(Effect::kPure, "mul.str_right(n: int, a: str) -> str",
        [](Args a) { return IValue(repeated(s(a, 1), a[0].to_int())); });
  r.add(Effect::kPure, "eq.str(a: str, b: str) -> bool",
        [](Args a) { return IValue(s(a) == s(a, 1)); });
  r.add(Effect::kPure, "ne.str(a: str, b: str) -> bool",
        [](Args a) { return IValue(s(a) != s(a, 1)); });
  r.add(Effect::kPure, "lt.str(a: str, b: str) -> bool",
        [](Args a) { return IValue(s(a) < s(a, 1)); });
  r.add(Effect::kPure, "le.str(a: str, b: str) -> bool",
        [](Args a) { return IValue(s(a) <= s(a, 1)); });
  r.add(Effect::kPure, "gt.str(a: str, b: str) -> bool",
        [](Args a) { return IValue(s(a) > s(a, 1)); });
  r.add(Effect::kPure, "ge.str(a: str, b: str) -> bool",
        [](Args a) { return IValue(s(a) >= s(a, 1)); });
  r.add(Effect::kPure, "contains.str(self: str, item: str) -> bool",
        [](Args a) { return IValue(s(a).find(s(a, 1)) != std::string::npos); });
  r.add(Effect::kPure, "len.str(self: str) -> int", [](Args a) { return IValue(length_of(s(a))); });
  r.add(Effect::kMayRaise, "getitem.str(self: str, i: int) -> str",
        [](Args a) { return IValue(item(s(a), a[1].to_int())); });
  r.add(Effect::kMayRaise, "getslice.str(self: str, start: int?, stop: int?, step: int?) -> str",
        [](Args a) { return IValue(slice(s(a), a[1], a[2], a[3])); });
  r.add(Effect::kReads, "mod.str(a: str, b: t) -> str", [](Args a) {
    return IValue(format_percent(s(a), a[1].is_tuple() ? a[1].items() : std::vector<IValue>{a[1]}));
  });
  r.add(Effect::kReads, "format(value: t, spec: str) -> str",
        [](Args a) { return IValue(format_value(a[0], s(a, 1))); });
  // self.format(*arguments), the arguments as a tuple.
  r.add(Effect::kReads, "str_format(self: str, arguments: t) -> str",
        [](Args a) { return IValue(format_template(s(a), a[1].items())); });
}

}  // namespace

void register_strings(HostRegistry& r) {
  register_operators(r);
  const auto method = [&r](std::string_view schema, HostFn f) {
    r.add(Effect::kMayRaise, schema, f);
  };
  method("upper(self: str) -> str",
         [](Args a) { return IValue(mapped(s(a), [](char c, bool) { return upper(c); })); });
  method("lower(self: str) -> str",
         [](Args a) { return IValue(mapped(s(a), [](char c, bool) { return lower(c); })); });
  method("swapcase(self: str) -> str", [](Args a) {
    return IValue(mapped(s(a), [](char c, bool) { return lower(c) == c ? upper(c) : lower(c); }));
  });
  method("title(self: str) -> str", [](Args a) {
    return IValue(mapped(s(a), [](char c, bool inside) { return inside ? lower(c) : upper(c); }));
  });
  method("capitalize(self: str) -> str", [](Args a) {
    std::string text = mapped(s(a), [](char c, bool) { return lower(c); });
    if (!text.empty()) text[0] = upper(text[0]);
    return IValue(std::move(text));
  });
  method("strip(self: str, chars: str? = None) -> str",
         [](Args a) { return IValue(stripped(s(a), a[1], true, true)); });
  method("lstrip(self: str, chars: str? = None) -> str",
         [](Args a) { return IValue(stripped(s(a), a[1], true, false)); });
  method("rstrip(self: str, chars: str? = None) -> str",
         [](Args a) { return IValue(stripped(s(a), a[1], false, true)); });
  method("removeprefix(self: str, prefix: str) -> str", [](Args a) {
    return s(a).starts_with(s(a, 1)) ? IValue(s(a).substr(s(a, 1).size())) : a[0];
  });
  method("removesuffix(self: str, suffix: str) -> str", [](Args a) {
    return s(a).ends_with(s(a, 1)) ? IValue(s(a).substr(0, s(a).size() - s(a, 1).size())) : a[0];
  });
  method("split(self: str, sep: str? = None, maxsplit: int = -1) -> List[str]", [](Args a) {
    return strings(a[1].is_none() ? split_spaces(s(a), a[2].to_int())
                                  : split_on(s(a), s(a, 1), a[2].to_int()));
  });
  method("rsplit(self: str, sep: str, maxsplit: int = -1) -> List[str]",
         [](Args a) { return strings(split_on_from_right(s(a), s(a, 1), a[2].to_int())); });
  method("splitlines(self: str, keepends: bool = False) -> List[str]",
         [](Args a) { return strings(split_lines(s(a), a[1].to_bool())); });
  method("partition(self: str, sep: str) -> Tuple[str, str, str]",
         [](Args a) { return partition(a, false); });
  method("rpartition(self: str, sep: str) -> Tuple[str, str, str]",
         [](Args a) { return partition(a, true); });
  r.add(Effect::kReads, "join(self: str, items: List[str]) -> str",
        [](Args a) { return IValue(joined(s(a), a[1].items())); });
  method("replace(self: str, old: str, new: str, count: int = -1) -> str",
         [](Args a) { return IValue(replaced(s(a), s(a, 1), s(a, 2), a[3].to_int())); });
  method("find(self: str, sub: str, start: int? = None, end: int? = None) -> int",
         [](Args a) { return IValue(found(a, false)); });
  method("rfind(self: str, sub: str, start: int? = None, end: int? = None) -> int",
         [](Args a) { return IValue(found(a, true)); });
  method("index.str(self: str, sub: str, start: int? = None, end: int? = None) -> int",
         [](Args a) { return IValue(found_or_raise(a, false)); });
  method("rindex(self: str, sub: str, start: int? = None, end: int? = None) -> int",
         [](Args a) { return IValue(found_or_raise(a, true)); });
  method("count.str(self: str, sub: str, start: int? = None, end: int? = None) -> int",
         [](Args a) { return IValue(counted(a)); });
  method("startswith(self: str, prefix: str) -> bool",
         [](Args a) { return IValue(s(a).starts_with(s(a, 1))); });
  method("endswith(self: str, suffix: str) -> bool",
         [](Args a) { return IValue(s(a).ends_with(s(a, 1))); });
  method("isalpha(self: str) -> bool", all_of<is_letter>);
  method("isdigit(self: str) -> bool", all_of<is_digit>);
  method("isdecimal(self: str) -> bool", all_of<is_digit>);
  method("isnumeric(self: str) -> bool", all_of<is_digit>);
  method("isalnum(self: str) -> bool", all_of<is_alnum>);
  method("isspace(self: str) -> bool", all_of<is_space>);
  method("islower(self: str) -> bool", has_case<lower>);
  method("isupper(self: str) -> bool", has_case<upper>);
  method("isidentifier(self: str) -> bool", [](Args a) {
    const std::string& text = s(a);
    const auto fits = [](char c) { return is_letter(c) || is_digit(c) || c == '_'; };
    return IValue(!text.empty() && !is_digit(text[0]) &&
                  std::all_of(text.begin(), text.end(), fits));
  });
  method("zfill(self: str, width: int) -> str",
         [](Args a) { return IValue(zero_filled(s(a), a[1].to_int())); });
  method("ljust(self: str, width: int, fillchar: str = \" \") -> str",
         [](Args a) { return IValue(aligned(s(a), a[1].to_int(), s(a, 2), '<')); });
  method("rjust(self: str, width: int, fillchar: str = \" \") -> str",
         [](Args a) { return IValue(aligned(s(a), a[1].to_int(), s(a, 2), '>')); });
  method("center(self: str, width: int, fillchar: str = \" \") -> str",
         [](Args a) { return IValue(aligned(s(a), a[1].to_int(), s(a, 2), '^')); });
}

}  // namespace prong
