// int(), float(), bool(), str() and friends; numbers from tensors and tensors from lists.
#include <charconv>
#include <cmath>

#include "graph/host/tables.h"
#include "graph/host/text.h"

namespace prong {
namespace {

using Args = std::span<IValue>;

int64_t truncated(double x) {
  PRONG_CHECK(!std::isnan(x), kValue, "cannot convert float NaN to integer");
  PRONG_CHECK(!std::isinf(x), kOverflow, "cannot convert float infinity to integer");
  PRONG_CHECK(x >= -9223372036854775808.0 && x < 9223372036854775808.0, kOverflow, "the float ", x,
              " does not fit into 64 bits as an int");
  return static_cast<int64_t>(x);
}

// Without underscores between digits and without spaces around, as int() and float() read it; empty
// if malformed.
std::string digits(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\n\r\f\v");
  if (first == std::string::npos) return {};
  const size_t last = text.find_last_not_of(" \t\n\r\f\v");
  std::string out;
  for (size_t i = first; i <= last; ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const bool between = i > first && i < last &&
                         std::isalnum(static_cast<unsigned char>(text[i - 1])) &&
                         std::isalnum(static_cast<unsigned char>(text[i + 1]));
    if (!between) return {};
  }
  return out;
}

int64_t parse_int(const std::string& text, int64_t base) {
  PRONG_CHECK(base == 0 || (base >= 2 && base <= 36), kValue,
              "int() base must be >= 2 and <= 36, or 0");
  std::string s = digits(text);
  std::string_view rest = s;
  const bool minus = rest.starts_with('-');
  if (minus || rest.starts_with('+')) rest.remove_prefix(1);
  const auto prefix = [&](char c, int64_t b) {
    if (rest.size() > 2 && rest[0] == '0' && (rest[1] | 32) == c && (base == b || base == 0)) {
      rest.remove_prefix(2);
      base = b;
    }
  };
  const int64_t asked = base;
  prefix('x', 16), prefix('o', 8), prefix('b', 2);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value,
                                            static_cast<int>(base ? base : 10));
  PRONG_CHECK(!rest.empty() && end == rest.data() + rest.size() &&
                  error != std::errc::invalid_argument,
              kValue, "invalid literal for int() with base ", asked, ": ", repr(IValue(text)));
  PRONG_CHECK(error == std::errc() && value <= (uint64_t{1} << 63) - !minus, kOverflow, "the int ",
              s, " does not fit into 64 bits");
  return minus ? static_cast<int64_t>(0 - value) : static_cast<int64_t>(value);
}

double parse_float(const std::string& text) {
  const std::string s = digits(text);
  std::string_view rest = s;
  const bool minus = rest.starts_with('-');
  if (minus || rest.starts_with('+')) rest.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  PRONG_CHECK(!rest.empty() && end == rest.data() + rest.size() &&
                  error != std::errc::invalid_argument && rest[0] != '-',
              kValue, "could not convert string to float: ", repr(IValue(text)));
  if (error == std::errc::result_out_of_range)
    value = std::strtod(s.c_str() + (s.size() - rest.size()), nullptr);
  return minus ? -value : value;
}

bool truth(const IValue& v) {
  switch (v.tag()) {
  case IValue::Tag::kNone:
    return false;
  case IValue::Tag::kBool:
  case IValue::Tag::kInt:
    return v.to_int() != 0;
  case IValue::Tag::kFloat:
    return v.to_double() != 0;
  case IValue::Tag::kString:
    return !v.to_string().empty();
  case IValue::Tag::kList:
  case IValue::Tag::kTuple:
    return !v.items().empty();
  case IValue::Tag::kDict:
    return v.dict()->size() != 0;
  case IValue::Tag::kTensor: {
    const Tensor t = v.to_tensor();
    PRONG_CHECK(t.numel() != 0, kRuntime, "Boolean value of Tensor with no values is ambiguous");
    PRONG_CHECK(t.numel() == 1, kRuntime,
                "Boolean value of Tensor with more than one value is ambiguous");
    return t.item_double() != 0;
  }
  default:
    return true;
  }
}

std::string in_base(int64_t x, int base, std::string_view prefix) {
  char text[72];
  const uint64_t magnitude = x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
  const auto [end, error] = std::to_chars(text, text + sizeof text, magnitude, base);
  (void)error;  // 64 bits always fit
  return cat(x < 0 ? "-" : "", prefix, std::string_view(text, static_cast<size_t>(end - text)));
}

// The shape of nested lists; all must agree.
void measure(const IValue& v, size_t depth, Dims& sizes, std::vector<const IValue*>& leaves) {
  if (!v.is_list() && !v.is_tuple()) {
    PRONG_CHECK(depth == sizes.size(), kValue, "expected sequence of length ", sizes[depth],
                " at dim ", depth, ", got a number");
    leaves.push_back(&v);
    return;
  }
  const auto length = static_cast<int64_t>(v.items().size());
  if (depth == sizes.size() && leaves.empty()) sizes.push_back(length);
  PRONG_CHECK(depth < sizes.size() && sizes[depth] == length, kValue,
              "expected sequence of length ", depth < sizes.size() ? sizes[depth] : 0, " at dim ",
              depth, " (got ", length, ")");
  for (const IValue& item : v.items()) measure(item, depth + 1, sizes, leaves);
}

IValue make_tensor(const IValue& data, const IValue& dtype) {
  Dims sizes;
  std::vector<const IValue*> leaves;
  measure(data, 0, sizes, leaves);
  bool has_float = leaves.empty(), has_int = false;
  for (const IValue* v : leaves) {
    has_float |= v->is_float() || (v->is_tensor() && is_floating(v->tensor_impl()->dtype));
    has_int |= v->is_int() || (v->is_tensor() && is_integral(v->tensor_impl()->dtype));
  }
  const DType natural = has_float ? default_dtype() : has_int ? DType::kInt64 : DType::kBool;
  const DType wanted = dtype.is_none() ? natural : dtype.to_dtype();
  const Tensor t = Tensor::empty(sizes, wanted);
  visit(wanted, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* out = t.data<T>();
    for (const IValue* v : leaves) {
      if (v->is_float() || (v->is_tensor() && is_floating(v->tensor_impl()->dtype))) {
        const double x = v->is_tensor() ? v->to_tensor().item_double() : v->to_double();
        if constexpr (std::is_same_v<T, bool>)
          *out++ = x != 0;
        else if constexpr (std::is_integral_v<T>)
          *out++ = static_cast<T>(truncated(x));
        else if constexpr (std::is_same_v<T, double>)
          *out++ = x;
        else
          *out++ = static_cast<T>(static_cast<float>(x));
      } else {
        const int64_t x = v->is_tensor() ? v->to_tensor().item_int() : v->to_int();
        if constexpr (std::is_same_v<T, bool> || std::is_integral_v<T> || std::is_same_v<T, double>)
          *out++ = static_cast<T>(x);
        else
          *out++ = static_cast<T>(static_cast<float>(x));
      }
    }
  });
  return IValue(t);
}

}  // namespace

void register_conversions(HostRegistry& r) {
  r.add(Effect::kPure, "int.int(x: int) -> int", [](Args a) { return IValue(a[0].to_int()); });
  r.add(Effect::kPure, "int.bool(x: bool) -> int", [](Args a) { return IValue(a[0].to_int()); });
  r.add(Effect::kMayRaise, "int.float(x: float) -> int",
        [](Args a) { return IValue(truncated(a[0].to_double())); });
  r.add(Effect::kMayRaise, "int.number(x: Scalar) -> int", [](Args a) {
    return IValue(a[0].is_float() ? truncated(a[0].to_double()) : a[0].to_int());
  });
  r.add(Effect::kMayRaise, "int.str(x: str, base: int = 10) -> int",
        [](Args a) { return IValue(parse_int(a[0].to_string(), a[1].to_int())); });
  r.add(Effect::kReads, "int.Tensor(x: Tensor) -> int", [](Args a) {
    const Tensor t = a[0].to_tensor();
    return IValue(is_floating(t.dtype()) ? truncated(t.item_double()) : t.item_int());
  });
  r.add(Effect::kPure, "float.float(x: float) -> float",
        [](Args a) { return IValue(a[0].to_double()); });
  r.add(Effect::kPure, "float.int(x: int) -> float",
        [](Args a) { return IValue(a[0].to_double()); });
  r.add(Effect::kPure, "float.bool(x: bool) -> float",
        [](Args a) { return IValue(a[0].to_double()); });
  r.add(Effect::kPure, "float.number(x: Scalar) -> float",
        [](Args a) { return IValue(a[0].to_double()); });
  r.add(Effect::kMayRaise, "float.str(x: str) -> float",
        [](Args a) { return IValue(parse_float(a[0].to_string())); });
  r.add(Effect::kReads, "float.Tensor(x: Tensor) -> float",
        [](Args a) { return IValue(a[0].to_tensor().item_double()); });
  r.add(Effect::kPure, "bool.bool(x: bool) -> bool", [](Args a) { return std::move(a[0]); });
  r.add(Effect::kPure, "bool.int(x: int) -> bool", [](Args a) { return IValue(truth(a[0])); });
  r.add(Effect::kPure, "bool.float(x: float) -> bool", [](Args a) { return IValue(truth(a[0])); });
  r.add(Effect::kPure, "bool.number(x: Scalar) -> bool",
        [](Args a) { return IValue(truth(a[0])); });
  r.add(Effect::kPure, "bool.str(x: str) -> bool", [](Args a) { return IValue(truth(a[0])); });
  r.add(Effect::kReads, "bool.Tensor(x: Tensor) -> bool",
        [](Args a) { return IValue(truth(a[0])); });
  r.add(Effect::kReads, "bool.any(x: t) -> bool", [](Args a) { return IValue(truth(a[0])); });
  r.add(Effect::kPure, "str.str(x: str) -> str", [](Args a) { return std::move(a[0]); });
  r.add(Effect::kPure, "str.int(x: int) -> str", [](Args a) { return IValue(str_of(a[0])); });
  r.add(Effect::kPure, "str.float(x: float) -> str", [](Args a) { return IValue(str_of(a[0])); });
  r.add(Effect::kReads, "str.any(x: t) -> str", [](Args a) { return IValue(str_of(a[0])); });
  r.add(Effect::kReads, "repr(x: t) -> str", [](Args a) { return IValue(repr(a[0])); });
  r.add(Effect::kMayRaise, "ord(c: str) -> int", [](Args a) {
    const std::vector<uint32_t> points = code_points(a[0].to_string());
    PRONG_CHECK(points.size() == 1, kType, "ord() expected a character, but string of length ",
                points.size(), " found");
    return IValue(static_cast<int64_t>(points[0]));
  });
  r.add(Effect::kMayRaise, "chr(i: int) -> str", [](Args a) {
    PRONG_CHECK(a[0].to_int() >= 0 && a[0].to_int() < 0x110000, kValue,
                "chr() arg not in range(0x110000)");
    std::string s;
    append_utf8(s, static_cast<uint32_t>(a[0].to_int()));
    return IValue(std::move(s));
  });
  r.add(Effect::kPure, "hex(x: int) -> str",
        [](Args a) { return IValue(in_base(a[0].to_int(), 16, "0x")); });
  r.add(Effect::kPure, "oct(x: int) -> str",
        [](Args a) { return IValue(in_base(a[0].to_int(), 8, "0o")); });
  r.add(Effect::kPure, "bin(x: int) -> str",
        [](Args a) { return IValue(in_base(a[0].to_int(), 2, "0b")); });
  // torch.tensor: a fresh tensor from a number or nested lists.
  r.add(Effect::kReads, "tensor(data: t, *, dtype: dtype? = None) -> Tensor",
        [](Args a) { return make_tensor(a[0], a[1]); });
}

}  // namespace prong
