// Building, walking, printing and evaluating scalar expressions. Called by PointwiseDef, codegen
// and tests.
#include "ops/scalar.h"

#include <array>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/str.h"

namespace prong {

namespace {

constexpr std::array<std::string_view, 29> kNames = {
    "input", "const", "add",  "sub",   "mul",        "div", "rem", "neg",    "fma",    "sqrt",
    "abs",   "floor", "ceil", "trunc", "round_even", "eq",  "ne",  "lt",     "le",     "gt",
    "ge",    "and",   "or",   "xor",   "not",        "shl", "shr", "select", "bitcast"};

double round_to(double value, DType dtype) {
  switch (dtype) {
  case DType::kFloat32:
    return static_cast<float>(value);
  case DType::kFloat16:
    return static_cast<float>(Half(static_cast<float>(value)));
  case DType::kBFloat16:
    return static_cast<float>(BFloat16(static_cast<float>(value)));
  default:
    return value;
  }
}

int64_t wrap_to(int64_t value, DType dtype) {
  switch (dtype) {
  case DType::kBool:
    return value != 0;
  case DType::kUInt8:
    return static_cast<uint8_t>(value);
  case DType::kInt8:
    return static_cast<int8_t>(value);
  case DType::kInt16:
    return static_cast<int16_t>(value);
  case DType::kInt32:
    return static_cast<int32_t>(value);
  default:
    return value;
  }
}

// Gives a literal the dtype of what it meets.
Scalar adopt(const Scalar& x, DType dtype) {
  if (!x.is_weak()) return x;
  const double value = x.constant_double();
  if (is_floating(dtype)) return Scalar::constant(value, dtype);
  PRONG_ASSERT(value == static_cast<double>(static_cast<int64_t>(value)), "literal ", value,
               " meets ", dtype);
  return Scalar::constant(static_cast<int64_t>(value), dtype);
}

DType common_dtype(ScalarKind kind, const Scalar& a, const Scalar& b) {
  PRONG_ASSERT(!a.is_weak() || !b.is_weak(), name_of(kind), " of two literals");
  if (a.is_weak()) return b.dtype();
  PRONG_ASSERT(b.is_weak() || a.dtype() == b.dtype(), name_of(kind), " of ", a.dtype(), " and ",
               b.dtype());
  return a.dtype();
}

Scalar binary(ScalarKind kind, const Scalar& a, const Scalar& b) {
  const DType dtype = common_dtype(kind, a, b);
  const bool is_comparison = kind >= ScalarKind::kEq && kind <= ScalarKind::kGe;
  return Scalar::make(kind, is_comparison ? DType::kBool : dtype,
                      {adopt(a, dtype), adopt(b, dtype)});
}

Scalar unary(ScalarKind kind, const Scalar& a) { return Scalar::make(kind, a.dtype(), {a}); }

}  // namespace

Scalar::Scalar(double literal) {
  auto* node = new ScalarNode;
  node->kind = ScalarKind::kConst;
  node->is_weak = true;
  node->constant.d = literal;
  node_ = Ref<const ScalarNode>(node);
}

Scalar Scalar::input(int index, DType dtype) {
  auto* node = new ScalarNode;
  node->kind = ScalarKind::kInput;
  node->dtype = dtype;
  node->index = index;
  return Scalar(Ref<const ScalarNode>(node));
}

Scalar Scalar::constant(double value, DType dtype) {
  if (!is_floating(dtype)) return constant(static_cast<int64_t>(value), dtype);
  auto* node = new ScalarNode;
  node->dtype = dtype;
  node->constant.d = round_to(value, dtype);
  return Scalar(Ref<const ScalarNode>(node));
}

Scalar Scalar::constant(int64_t value, DType dtype) {
  if (is_floating(dtype)) return constant(static_cast<double>(value), dtype);
  auto* node = new ScalarNode;
  node->dtype = dtype;
  node->constant.i = wrap_to(value, dtype);
  return Scalar(Ref<const ScalarNode>(node));
}

Scalar Scalar::make(ScalarKind kind, DType dtype, std::initializer_list<Scalar> operands) {
  auto* node = new ScalarNode;
  node->kind = kind;
  node->dtype = dtype;
  for (const Scalar& operand : operands) {
    PRONG_ASSERT(operand.node_ && !operand.is_weak(), name_of(kind), " of a literal");
    node->operands[node->num_operands++] = operand.node_;
  }
  return Scalar(Ref<const ScalarNode>(node));
}

Scalar Scalar::call(const ExternalFunction& f, std::initializer_list<Scalar> operands) {
  PRONG_ASSERT(static_cast<int>(operands.size()) == f.arity, f.symbol, " takes ", f.arity,
               " operands");
  std::array<Scalar, 3> typed;
  size_t n = 0;
  for (const Scalar& operand : operands) typed[n++] = adopt(operand, DType::kFloat64);
  Scalar result = n == 1 ? make(ScalarKind::kCall, DType::kFloat64, {typed[0]})
                  : n == 2
                      ? make(ScalarKind::kCall, DType::kFloat64, {typed[0], typed[1]})
                      : make(ScalarKind::kCall, DType::kFloat64, {typed[0], typed[1], typed[2]});
  const_cast<ScalarNode*>(result.node())->external = &f;  // not shared with anyone yet
  return result;
}

Scalar Scalar::to(DType dtype) const {
  if (is_weak()) return adopt(*this, dtype);
  if (this->dtype() == dtype) return *this;
  return make(ScalarKind::kConvert, dtype, {*this});
}

Scalar operator+(const Scalar& a, const Scalar& b) { return binary(ScalarKind::kAdd, a, b); }
Scalar operator-(const Scalar& a, const Scalar& b) { return binary(ScalarKind::kSub, a, b); }
Scalar operator*(const Scalar& a, const Scalar& b) { return binary(ScalarKind::kMul, a, b); }
Scalar operator/(const Scalar& a, const Scalar& b) { return binary(ScalarKind::kDiv, a, b); }
Scalar operator%(const Scalar& a, const Scalar& b) { return binary(ScalarKind::kRem, a, b); }
Scalar operator-(const Scalar& a) {
  if (a.is_weak()) return Scalar(-a.constant_double());
  return unary(ScalarKind::kNeg, a);
}
Scalar operator==(const Scalar& a, const Scalar& b) { return binary(ScalarKind::kEq, a, b); }
Scalar operator!=(const Scalar& a, const Scalar& b) { return binary(ScalarKind::kNe, a, b); }
Scalar operator<(const Scalar& a, const Scalar& b) { return binary(ScalarKind::kLt, a, b); }
Scalar operator<=(const Scalar& a, const Scalar& b) { return binary(ScalarKind::kLe, a, b); }
Scalar operator>(const Scalar& a, const Scalar& b) { return binary(ScalarKind::kGt, a, b); }
Scalar operator>=(const Scalar& a, const Scalar& b) { return binary(ScalarKind::kGe, a, b); }
Scalar operator&(const Scalar& a, const Scalar& b) { return binary(ScalarKind::kAnd, a, b); }
Scalar operator|(const Scalar& a, const Scalar& b) { return binary(ScalarKind::kOr, a, b); }
Scalar operator^(const Scalar& a, const Scalar& b) { return binary(ScalarKind::kXor, a, b); }
Scalar operator<<(const Scalar& a, const Scalar& b) { return binary(ScalarKind::kShl, a, b); }
Scalar operator>>(const Scalar& a, const Scalar& b) { return binary(ScalarKind::kShr, a, b); }
Scalar operator~(const Scalar& a) { return unary(ScalarKind::kNot, a); }
Scalar operator!(const Scalar& a) {
  PRONG_ASSERT(a.dtype() == DType::kBool, "! of ", a.dtype());
  return unary(ScalarKind::kNot, a);
}

namespace math {

Scalar select(const Scalar& condition, const Scalar& a, const Scalar& b) {
  PRONG_ASSERT(condition.dtype() == DType::kBool, "select on ", condition.dtype());
  const DType dtype = common_dtype(ScalarKind::kSelect, a, b);
  return Scalar::make(ScalarKind::kSelect, dtype, {condition, adopt(a, dtype), adopt(b, dtype)});
}

Scalar fma(const Scalar& a, const Scalar& b, const Scalar& c) {
  const DType dtype = !a.is_weak() ? a.dtype() : common_dtype(ScalarKind::kFma, b, c);
  PRONG_ASSERT(is_floating(dtype), "fma of ", dtype);
  return Scalar::make(ScalarKind::kFma, dtype, {adopt(a, dtype), adopt(b, dtype), adopt(c, dtype)});
}

Scalar sqrt(const Scalar& x) { return unary(ScalarKind::kSqrt, x); }
Scalar abs(const Scalar& x) { return unary(ScalarKind::kAbs, x); }
Scalar floor(const Scalar& x) { return unary(ScalarKind::kFloor, x); }
Scalar ceil(const Scalar& x) { return unary(ScalarKind::kCeil, x); }
Scalar trunc(const Scalar& x) { return unary(ScalarKind::kTrunc, x); }
Scalar round_even(const Scalar& x) { return unary(ScalarKind::kRoundEven, x); }

Scalar to_bits(const Scalar& x) {
  PRONG_ASSERT(x.dtype() == DType::kFloat32 || x.dtype() == DType::kFloat64, "to_bits of ",
               x.dtype());
  return Scalar::make(ScalarKind::kBitcast,
                      x.dtype() == DType::kFloat32 ? DType::kInt32 : DType::kInt64, {x});
}

Scalar from_bits(const Scalar& x) {
  PRONG_ASSERT(x.dtype() == DType::kInt32 || x.dtype() == DType::kInt64, "from_bits of ",
               x.dtype());
  return Scalar::make(ScalarKind::kBitcast,
                      x.dtype() == DType::kInt32 ? DType::kFloat32 : DType::kFloat64, {x});
}

}  // namespace math

std::vector<const ScalarNode*> topological(std::span<const Scalar> roots) {
  std::vector<const ScalarNode*> order;
  std::unordered_set<const ScalarNode*> seen;
  std::vector<std::pair<const ScalarNode*, int>> stack;  // node, next operand to visit
  for (const Scalar& root : roots) {
    if (seen.insert(root.node()).second) stack.emplace_back(root.node(), 0);
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next == node->num_operands) {
        order.push_back(node);
        stack.pop_back();
        continue;
      }
      const ScalarNode* operand = node->operands[next++].get();
      if (seen.insert(operand).second) stack.emplace_back(operand, 0);
    }
  }
  return order;
}

Scalar substitute(const Scalar& expression, std::span<const Scalar> inputs) {
  std::unordered_map<const ScalarNode*, Scalar> mapped;
  for (const ScalarNode* node : topological(std::span(&expression, 1))) {
    if (node->kind == ScalarKind::kInput) {
      PRONG_ASSERT(static_cast<size_t>(node->index) < inputs.size(), "no input ", node->index);
      const Scalar& input = inputs[static_cast<size_t>(node->index)];
      PRONG_ASSERT(input.dtype() == node->dtype, "input ", node->index, " is ", input.dtype(),
                   ", not ", node->dtype);
      mapped.emplace(node, input);
      continue;
    }
    auto* copy = new ScalarNode(*node);
    for (int i = 0; i < node->num_operands; ++i)
      copy->operands[i] = mapped.at(node->operands[i].get()).ref();
    mapped.emplace(node, Scalar(Ref<const ScalarNode>(copy)));
  }
  return mapped.at(expression.node());
}

std::string_view name_of(ScalarKind kind) {
  if (kind == ScalarKind::kConvert) return "convert";
  if (kind == ScalarKind::kCall) return "call";
  return kNames[static_cast<size_t>(kind)];
}

namespace {

std::string_view infix_of(ScalarKind kind) {
  switch (kind) {
  case ScalarKind::kAdd:
    return " + ";
  case ScalarKind::kSub:
    return " - ";
  case ScalarKind::kMul:
    return " * ";
  case ScalarKind::kDiv:
    return " / ";
  case ScalarKind::kRem:
    return " % ";
  case ScalarKind::kEq:
    return " == ";
  case ScalarKind::kNe:
    return " != ";
  case ScalarKind::kLt:
    return " < ";
  case ScalarKind::kLe:
    return " <= ";
  case ScalarKind::kGt:
    return " > ";
  case ScalarKind::kGe:
    return " >= ";
  case ScalarKind::kAnd:
    return " & ";
  case ScalarKind::kOr:
    return " | ";
  case ScalarKind::kXor:
    return " ^ ";
  case ScalarKind::kShl:
    return " << ";
  case ScalarKind::kShr:
    return " >> ";
  default:
    return "";
  }
}

class Printer {
 public:
  explicit Printer(std::span<const std::string> names) : names_(names) {}

  std::string print(const Scalar& root) {
    const auto order = topological(std::span(&root, 1));
    for (const ScalarNode* node : order)
      for (int i = 0; i < node->num_operands; ++i) ++uses_[node->operands[i].get()];
    std::string out;
    for (const ScalarNode* node : order) {
      std::string text = text_of(*node);
      const bool is_leaf = node->num_operands == 0;
      if (uses_[node] > 1 && !is_leaf) {
        const std::string name = cat("t", next_++);
        out += cat(name, " = ", text, "\n");
        done_[node] = {name, true};
      } else {
        done_[node] = {std::move(text), is_leaf || infix_of(node->kind).empty()};
      }
    }
    return out + done_[root.node()].first;
  }

 private:
  std::string operand(const ScalarNode& node, int i) {
    const auto& [text, is_atom] = done_[node.operands[i].get()];
    return is_atom ? text : cat("(", text, ")");
  }

  std::string text_of(const ScalarNode& node) {
    if (node.kind == ScalarKind::kInput) {
      const auto i = static_cast<size_t>(node.index);
      return i < names_.size() ? names_[i] : cat("x", node.index);
    }
    if (node.kind == ScalarKind::kConst) {
      if (is_floating(node.dtype)) return format_double(node.constant.d);
      return node.dtype == DType::kBool ? cat(node.constant.i != 0) : cat(node.constant.i);
    }
    if (const auto infix = infix_of(node.kind); !infix.empty())
      return cat(operand(node, 0), infix, operand(node, 1));
    std::string out(node.kind == ScalarKind::kCall      ? std::string_view(node.external->symbol)
                    : node.kind == ScalarKind::kConvert ? name_of(node.dtype)
                                                        : name_of(node.kind));
    out += '(';
    for (int i = 0; i < node.num_operands; ++i)
      out += cat(i ? ", " : "", done_[node.operands[i].get()].first);
    return out + ')';
  }

  std::span<const std::string> names_;
  std::unordered_map<const ScalarNode*, int> uses_;
  std::unordered_map<const ScalarNode*, std::pair<std::string, bool>> done_;
  int next_ = 0;
};

}  // namespace

std::string to_string(const Scalar& expression, std::span<const std::string> input_names) {
  return Printer(input_names).print(expression);
}

namespace {

// Arithmetic in the type T, wrapped or rounded to `dtype` by the caller.
template <class T>
T compute(const ScalarNode& node, T a, T b, T c) {
  switch (node.kind) {
  case ScalarKind::kFma:
    return std::fma(a, b, c);
  case ScalarKind::kSqrt:
    return std::sqrt(a);
  case ScalarKind::kFloor:
    return std::floor(a);
  case ScalarKind::kCeil:
    return std::ceil(a);
  case ScalarKind::kTrunc:
    return std::trunc(a);
  case ScalarKind::kRoundEven:
    return std::nearbyint(a);
  case ScalarKind::kAdd:
    return a + b;
  case ScalarKind::kSub:
    return a - b;
  case ScalarKind::kMul:
    return a * b;
  case ScalarKind::kDiv:
    return a / b;
  case ScalarKind::kNeg:
    return -a;
  case ScalarKind::kAbs:
    return std::fabs(a);
  default:
    PRONG_ASSERT(false, name_of(node.kind), " of ", node.dtype);
  }
}

int64_t compute_int(const ScalarNode& node, int64_t x, int64_t y) {
  const auto a = static_cast<uint64_t>(x);
  const auto b = static_cast<uint64_t>(y);
  switch (node.kind) {
  case ScalarKind::kAdd:
    return static_cast<int64_t>(a + b);
  case ScalarKind::kSub:
    return static_cast<int64_t>(a - b);
  case ScalarKind::kMul:
    return static_cast<int64_t>(a * b);
  case ScalarKind::kNeg:
    return static_cast<int64_t>(0 - a);
  case ScalarKind::kAbs:
    return x < 0 ? static_cast<int64_t>(0 - a) : x;
  case ScalarKind::kDiv:
    return x / y;
  case ScalarKind::kRem:
    return x % y;
  case ScalarKind::kAnd:
    return x & y;
  case ScalarKind::kOr:
    return x | y;
  case ScalarKind::kXor:
    return x ^ y;
  case ScalarKind::kNot:
    return node.dtype == DType::kBool ? !x : ~x;
  case ScalarKind::kShl:
    return static_cast<int64_t>(a << b);
  case ScalarKind::kShr:
    return x >> y;
  default:
    PRONG_ASSERT(false, name_of(node.kind), " of ", node.dtype);
  }
}

template <class T>
bool compare(ScalarKind kind, T a, T b) {
  switch (kind) {
  case ScalarKind::kEq:
    return a == b;
  case ScalarKind::kNe:
    return a != b;
  case ScalarKind::kLt:
    return a < b;
  case ScalarKind::kLe:
    return a <= b;
  case ScalarKind::kGt:
    return a > b;
  default:
    return a >= b;
  }
}

int64_t to_integer(double x, DType dtype) {
  if (dtype == DType::kBool) return x != 0;
  return dtype == DType::kInt32 ? math::convert<int32_t>(x)
                                : wrap_to(math::convert<int64_t>(x), dtype);
}

ScalarValue value_of(const ScalarNode& node, const ScalarValue& a, const ScalarValue& b,
                     const ScalarValue& c) {
  ScalarValue out;
  out.dtype = node.dtype;
  if (node.kind == ScalarKind::kConvert) {
    if (is_floating(node.dtype))
      out.d = is_floating(a.dtype)            ? round_to(a.d, node.dtype)
              : node.dtype == DType::kFloat64 ? static_cast<double>(a.i)
                                              : round_to(static_cast<float>(a.i), node.dtype);
    else
      out.i = is_floating(a.dtype) ? to_integer(a.d, node.dtype) : wrap_to(a.i, node.dtype);
  } else if (node.kind == ScalarKind::kBitcast) {
    if (node.dtype == DType::kInt32)
      out.i = math::to_bits(static_cast<float>(a.d));
    else if (node.dtype == DType::kInt64)
      out.i = math::to_bits(a.d);
    else if (node.dtype == DType::kFloat32)
      out.d = math::from_bits(static_cast<int32_t>(a.i));
    else
      out.d = math::from_bits(a.i);
  } else if (node.kind == ScalarKind::kSelect) {
    out = a.i ? b : c;
  } else if (node.kind >= ScalarKind::kEq && node.kind <= ScalarKind::kGe) {
    out.i = is_floating(a.dtype) ? compare(node.kind, a.d, b.d) : compare(node.kind, a.i, b.i);
  } else if (node.kind == ScalarKind::kCall) {
    void* f = node.external->address;
    if (node.num_operands == 1)
      out.d = reinterpret_cast<double (*)(double)>(f)(a.d);
    else if (node.num_operands == 2)
      out.d = reinterpret_cast<double (*)(double, double)>(f)(a.d, b.d);
    else
      out.d = reinterpret_cast<double (*)(double, double, double)>(f)(a.d, b.d, c.d);
  } else if (node.dtype == DType::kFloat64) {
    out.d = compute(node, a.d, b.d, c.d);
  } else if (is_floating(node.dtype)) {
    const auto f = [](const ScalarValue& v) { return static_cast<float>(v.d); };
    out.d = round_to(compute(node, f(a), f(b), f(c)), node.dtype);
  } else {
    out.i = wrap_to(compute_int(node, a.i, b.i), node.dtype);
  }
  return out;
}

}  // namespace

ScalarValue evaluate(const Scalar& expression, std::span<const ScalarValue> inputs) {
  std::unordered_map<const ScalarNode*, ScalarValue> values;
  for (const ScalarNode* node : topological(std::span(&expression, 1))) {
    if (node->kind == ScalarKind::kInput) {
      values[node] = inputs[static_cast<size_t>(node->index)];
    } else if (node->kind == ScalarKind::kConst) {
      values[node] = {node->dtype, node->constant.d, node->constant.i};
      if (is_floating(node->dtype))
        values[node].i = 0;
      else
        values[node].d = 0;
    } else {
      ScalarValue operand[3];
      for (int i = 0; i < node->num_operands; ++i) operand[i] = values.at(node->operands[i].get());
      values[node] = value_of(*node, operand[0], operand[1], operand[2]);
    }
  }
  return values.at(expression.node());
}

}  // namespace prong
