// Scalar: an expression of one element, built by running an op's body on it instead of on numbers.
// Made by PointwiseDef (ops), read by codegen/, which turns it into machine code with the same
// bits.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/ref.h"
#include "tensor/dtype.h"

namespace prong {

// All operations, each with one meaning whatever evaluates it. Operands of arithmetic and
// comparisons have the same dtype. Floating-point ones round once, to nearest even, and are never
// contracted or reassociated; which NaN comes out of an operation is left open. Integers wrap
// around.
enum class ScalarKind : uint8_t {
  kInput,  // index(): which operand of the whole expression
  kConst,  // constant_double() of floating dtypes, constant_int() of the others
  kAdd,    // arithmetic, not on bool
  kSub,
  kMul,
  kDiv,  // integers: towards zero; the divisor is never 0 or -1 (see div_trunc)
  kRem,  // integers only: sign of the dividend; the divisor is never 0 or -1
  kNeg,  // floats: flips the sign bit
  kFma,  // a * b + c, rounded once
  kSqrt,
  kAbs,    // floats: clears the sign bit; the smallest integer stays as it is
  kFloor,  // floats
  kCeil,
  kTrunc,
  kRoundEven,
  kEq,  // comparisons give bool; false with a NaN, save kNe
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kAnd,  // of bools and of integers, bitwise
  kOr,
  kXor,
  kNot,
  kShl,      // integers; the count (operand 1, same dtype) is in [0, width)
  kShr,      // arithmetic
  kSelect,   // operand 0 is a bool: operand 1 if it is true, else operand 2
  kBitcast,  // float32 <-> int32, float64 <-> int64
  kConvert,  // between any dtypes. Float to integer: towards zero as int64, the smallest int64 if
             // that does not fit (for int32 as target: as int32, the smallest int32), then wrapped
             // to the target. To bool: != 0. To a smaller float: rounds to nearest even, to a
             // 16-bit one by way of float32. Same dtype: the operand itself, no node.
  kCall,     // external(): a C function of operands of this dtype (float64)
};

// A C function that eager kernels and generated code both call: T f(T...) with T = float64.
struct ExternalFunction {
  const char* symbol;
  void* address;
  int arity;
};

class Scalar;

struct ScalarNode final : RefCounted {
  ScalarKind kind = ScalarKind::kConst;
  DType dtype = DType::kFloat32;
  bool is_weak = false;  // a literal without a dtype of its own yet
  uint8_t num_operands = 0;
  int32_t index = 0;
  union {
    double d;
    int64_t i;
  } constant = {0};
  const ExternalFunction* external = nullptr;
  Ref<const ScalarNode> operands[3];
};

// A reference to an immutable node. C++ literals convert to it and take the dtype of the value they
// meet; two literals cannot meet.
class Scalar {
 public:
  Scalar() = default;  // undefined
  Scalar(double literal);
  Scalar(int literal) : Scalar(static_cast<double>(literal)) {}
  explicit Scalar(Ref<const ScalarNode> node) : node_(std::move(node)) {}
  static Scalar input(int index, DType dtype);
  static Scalar constant(double value, DType dtype);  // rounded to the dtype
  static Scalar constant(int64_t value, DType dtype);
  static Scalar constant(bool value) { return constant(static_cast<int64_t>(value), DType::kBool); }
  static Scalar make(ScalarKind kind, DType dtype, std::initializer_list<Scalar> operands);
  static Scalar call(const ExternalFunction& f, std::initializer_list<Scalar> operands);
  Scalar to(DType dtype) const;  // kConvert

  explicit operator bool() const { return static_cast<bool>(node_); }
  const ScalarNode* node() const { return node_.get(); }
  const Ref<const ScalarNode>& ref() const { return node_; }
  ScalarKind kind() const { return node_->kind; }
  DType dtype() const { return node_->dtype; }
  bool is_weak() const { return node_->is_weak; }
  int index() const { return node_->index; }
  double constant_double() const { return node_->constant.d; }
  int64_t constant_int() const { return node_->constant.i; }
  const ExternalFunction& external() const { return *node_->external; }
  int num_operands() const { return node_->num_operands; }
  Scalar operand(int i) const { return Scalar(node_->operands[i]); }
  friend bool is_same(const Scalar& a, const Scalar& b) { return a.node_ == b.node_; }

 private:
  Ref<const ScalarNode> node_;
};

Scalar operator+(const Scalar& a, const Scalar& b);
Scalar operator-(const Scalar& a, const Scalar& b);
Scalar operator*(const Scalar& a, const Scalar& b);
Scalar operator/(const Scalar& a, const Scalar& b);
Scalar operator%(const Scalar& a, const Scalar& b);
Scalar operator-(const Scalar& a);
Scalar operator==(const Scalar& a, const Scalar& b);
Scalar operator!=(const Scalar& a, const Scalar& b);
Scalar operator<(const Scalar& a, const Scalar& b);
Scalar operator<=(const Scalar& a, const Scalar& b);
Scalar operator>(const Scalar& a, const Scalar& b);
Scalar operator>=(const Scalar& a, const Scalar& b);
Scalar operator&(const Scalar& a, const Scalar& b);
Scalar operator|(const Scalar& a, const Scalar& b);
Scalar operator^(const Scalar& a, const Scalar& b);
Scalar operator<<(const Scalar& a, const Scalar& b);
Scalar operator>>(const Scalar& a, const Scalar& b);
Scalar operator~(const Scalar& a);
Scalar operator!(const Scalar& a);  // of a bool

// The nodes that `roots` need, each once, operands before their users. (Bodies share
// subexpressions, so walking operands without this is exponential.)
std::vector<const ScalarNode*> topological(std::span<const Scalar> roots);

// `expression` with every kInput(i) replaced by inputs[i] (same dtypes).
Scalar substitute(const Scalar& expression, std::span<const Scalar> inputs);

// "x0 * x1 + 0.5"; subexpressions used more than once get a line of their own: "t0 = abs(x0)\nt0 *
// t0".
std::string to_string(const Scalar& expression, std::span<const std::string> input_names = {});
std::string_view name_of(ScalarKind kind);  // "add"

// A number of some dtype: `d` for floating dtypes, `i` for the others.
struct ScalarValue {
  DType dtype = DType::kFloat32;
  double d = 0;
  int64_t i = 0;
};
// Runs the expression on numbers: the meaning of the kinds, for tests and constant folding.
ScalarValue evaluate(const Scalar& expression, std::span<const ScalarValue> inputs);

// The vocabulary of bodies, for numbers and for Scalar alike. Bodies are generic lambdas in
// namespace prong that say `using namespace math`.
namespace math {

#define PRONG_INLINE inline __attribute__((always_inline))

template <class T>
inline constexpr bool is_scalar = std::is_same_v<T, Scalar>;

// A literal of the type of `like`: lit(x, 0.5). Plain 0.5 would turn a float into a double;
// integers need no lit.
template <class T>
PRONG_INLINE T lit(const T& like, double value) {
  if constexpr (is_scalar<T>)
    return is_floating(like.dtype()) ? Scalar::constant(value, like.dtype())
                                     : Scalar::constant(static_cast<int64_t>(value), like.dtype());
  else
    return static_cast<T>(value);
}

// condition ? a : b, both evaluated.
template <class C, class T>
PRONG_INLINE T select(const C& condition, const T& a, const T& b) {
  return condition ? a : b;
}
Scalar select(const Scalar& condition, const Scalar& a, const Scalar& b);
inline Scalar select(const Scalar& condition, const Scalar& a, double b) {
  return select(condition, a, Scalar(b));
}
inline Scalar select(const Scalar& condition, double a, const Scalar& b) {
  return select(condition, Scalar(a), b);
}

PRONG_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
PRONG_INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
Scalar fma(const Scalar& a, const Scalar& b, const Scalar& c);
PRONG_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }
PRONG_INLINE double sqrt(double x) { return __builtin_sqrt(x); }
Scalar sqrt(const Scalar& x);
PRONG_INLINE float abs(float x) { return __builtin_fabsf(x); }
PRONG_INLINE double abs(double x) { return __builtin_fabs(x); }
PRONG_INLINE int64_t abs(int64_t x) { return x < 0 ? -x : x; }
PRONG_INLINE int32_t abs(int32_t x) { return x < 0 ? -x : x; }
Scalar abs(const Scalar& x);
PRONG_INLINE float floor(float x) { return __builtin_floorf(x); }
PRONG_INLINE double floor(double x) { return __builtin_floor(x); }
Scalar floor(const Scalar& x);
PRONG_INLINE float ceil(float x) { return __builtin_ceilf(x); }
PRONG_INLINE double ceil(double x) { return __builtin_ceil(x); }
Scalar ceil(const Scalar& x);
PRONG_INLINE float trunc(float x) { return __builtin_truncf(x); }
PRONG_INLINE double trunc(double x) { return __builtin_trunc(x); }
Scalar trunc(const Scalar& x);
PRONG_INLINE float round_even(float x) { return __builtin_nearbyintf(x); }
PRONG_INLINE double round_even(double x) { return __builtin_nearbyint(x); }
Scalar round_even(const Scalar& x);

// The bits of a float as an integer of the same width, and back.
PRONG_INLINE int32_t to_bits(float x) { return std::bit_cast<int32_t>(x); }
PRONG_INLINE int64_t to_bits(double x) { return std::bit_cast<int64_t>(x); }
Scalar to_bits(const Scalar& x);
PRONG_INLINE float from_bits(int32_t x) { return std::bit_cast<float>(x); }
PRONG_INLINE double from_bits(int64_t x) { return std::bit_cast<double>(x); }
Scalar from_bits(const Scalar& x);

// Converts as kConvert says.
template <class To, class T>
PRONG_INLINE auto convert(const T& x) {
  if constexpr (is_scalar<T>) {
    return x.to(DTypeOf<To>::value);
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != T(0);
  } else if constexpr (std::is_floating_point_v<T> && std::is_integral_v<To>) {
    // What the hardware does, written so that it is defined: NaN and what does not fit become the
    // smallest.
    using Wide = std::conditional_t<std::is_same_v<To, int32_t>, int32_t, int64_t>;
    constexpr T limit = sizeof(Wide) == 4 ? T(2147483648.0) : T(9223372036854775808.0);
    const bool fits = (x >= -limit) & (x < limit);
    return static_cast<To>(fits ? static_cast<Wide>(fits ? x : T(0))
                                : std::numeric_limits<Wide>::min());
  } else {
    return static_cast<To>(x);
  }
}

// An external function on numbers and on Scalars.
template <class T, class F, class... X>
PRONG_INLINE T call_external(const ExternalFunction& external, F* function, const T& x,
                             const X&... more) {
  if constexpr (is_scalar<T>)
    return Scalar::call(external, {x, more...});
  else
    return function(x, more...);
}

}  // namespace math
}  // namespace prong
