// The engine of pointwise ops: a body written once becomes loops for this machine, a Scalar
// expression for code generation, and the shape rule, cost and in-place form of its op. Included by
// the files of defs/ that have bodies.
#pragma once

#include <initializer_list>
#include <type_traits>
#include <utility>

#include "ops/op_def.h"
#include "ops/scalar.h"

namespace prong {

// Runs a body on n elements: out[i] = body(in[0][i], in[1][i], ...), all in one compute type. out
// may be an input.
using BlockFn = void (*)(int64_t n, void* out, const void* const* in);

// The types that loops are compiled for. Float16 and bfloat16 compute as float, the integers as
// int64 (wrapping to their width at the end), bool as bool where the body asks for that, else as
// int64.
enum class ComputeType : uint8_t { kFloat, kDouble, kInt, kBool, kComplexFloat, kComplexDouble };
inline constexpr int kNumComputeTypes = 6;
DType dtype_of(ComputeType type);

// Which compute types a body is compiled for.
template <class... T>
struct Types {};
using Floats = Types<float, double>;
using Ints = Types<int64_t>;
using Bits = Types<int64_t, bool>;
using Numbers = Types<float, double, int64_t>;
using AllTypes = Types<float, double, int64_t, bool>;

inline constexpr int kMaxPointwiseInputs = 6;

struct PointwiseVariant {
  SmallVector<int8_t, 8> inputs;  // arguments of the op, in the order of the body's parameters
  // By machine level (0: the baseline, 1: AVX-512), then by compute type; null where the body isn't
  // compiled.
  BlockFn loops[2][kNumComputeTypes] = {};
  bool gives_bool[kNumComputeTypes] = {};
  bool gives_real = false;  // of complex numbers
  ScalarBody body = nullptr;
};

// What a body alone doesn't say. Arguments are numbered as in the schema.
struct PointwiseOptions {
  const char* error_name =
      nullptr;  // "bitwise_and_cpu" not implemented for 'Float'; the op's name and _cpu if null
  uint32_t promotes =
      0;  // bit i: argument i takes part in type promotion; 0: all arguments that are Tensors
  bool keeps_numbers =
      false;  // Python numbers and zero-dim tensors aren't rounded to a 16-bit dtype first
  uint32_t int_to_float =
      0;  // bit v: in variant v, integers and bools compute and answer in the default dtype
  bool refuses_bool = false;  // not implemented for 'Bool'
  bool bool_to_int = false;   // bools compute and answer as int64
  int divisor = -1;           // integers: zeros in this argument raise ZeroDivisionError
  bool is_conditional =
      false;  // the body's first parameter is a bool, which takes no part in promotion
  // Refuses calls; common is the promoted dtype.
  void (*check)(const OpDef& op, std::span<const IValue> args, DType common) = nullptr;
  // The number of the variant that serves these arguments; common is the promoted dtype. Variant 0
  // serves tensors with the defaults of everything else.
  int (*choose)(std::span<const IValue> args, DType common) = nullptr;
};

inline constexpr uint32_t kEveryVariant = ~0u;

// What one call comes to; from tensors or abstract tensors.
struct PointwiseCall {
  const PointwiseVariant* variant;
  ComputeType compute;
  DType common;  // after promotion
  DType result;
  uint32_t direct = 0;  // bit k: input k converts to the compute type without being rounded or
                        // wrapped to `common`
  bool is_conditional = false;
};

struct PointwiseDef {
  PointwiseOptions options;
  std::vector<PointwiseVariant> variants;

  static PointwiseDef&
  of(OpDef& op);  // made on first use; sets the op's kernel, shape rule, cost and family
  void set_options(const OpDef& op, const PointwiseOptions& given);

  PointwiseCall plan(const OpDef& op, std::span<const IValue> args) const;
  // True where the call may raise because of its data (integer division); such a call can't be
  // fused.
  bool checks_data(const PointwiseCall& call) const {
    return options.divisor >= 0 &&
           (call.compute == ComputeType::kInt || call.compute == ComputeType::kBool);
  }
};

// The whole call as an expression, conversions included: operands are the inputs of the variant, in
// the dtypes that they are stored in (Python numbers: int64, float64, bool). The result has
// call.result.
Scalar emit(const PointwiseCall& call, std::span<const Scalar> operands);

// ── running ──

// The kernel, shape rule and cost of every pointwise op.
IValue run_pointwise(const OpDef& op, std::span<const IValue> args);
IValue pointwise_shape(const OpDef& op, std::span<const IValue> args);
Cost pointwise_cost(const OpDef& op, std::span<const IValue> args);

// The in-place form: args[0] is written and returned. Checks shape, dtype and overlap.
IValue run_inplace(const OpDef& base, std::span<const IValue> args);
// Raises what run_inplace would, save what depends on the data; reads no element.
void check_inplace_call(const OpDef& base, std::span<const IValue> args);
// out=: writes the result into `out`, resized if its shape is another.
IValue run_out(const OpDef& op, std::span<const IValue> args, const Tensor& out);

// Typed entries for bindings and composite kernels: no boxing.
Tensor unary(const OpDef& op, const Tensor& x);
Tensor binary(const OpDef& op, const Tensor& x, const Tensor& y);

// The machine level of loops that this process runs: 1 with AVX-512, else 0. Tests compare both.
int simd_level();

// Memory that the two views share: no element, the very same view, or something in between.
enum class Overlap : uint8_t { kNone, kSame, kPartial };
Overlap overlap(const Tensor& a, const Tensor& b);
void check_no_internal_overlap(const Tensor& written);
void check_inplace_overlap(const Tensor& written, const Tensor& read);

// ── from bodies to loops ──

namespace detail {

template <class F, class R, class... A>
PRONG_INLINE void each(int64_t n, R* out, const A*... in) {
  F f;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<R>(f(in[i]...));
}

template <class F, class T, bool kConditional, size_t I>
using InputType = std::conditional_t<kConditional && I == 0, bool, T>;

template <class F, class T, bool kConditional, class Indices>
struct Loop;
template <class F, class T, bool kConditional, size_t... I>
struct Loop<F, T, kConditional, std::index_sequence<I...>> {
  using Body = decltype(F{}(std::declval<InputType<F, T, kConditional, I>>()...));
  static_assert(
      std::is_same_v<Body, T> || std::is_same_v<Body, bool> || std::is_same_v<T, bool>,
      "a body gives the type of its parameters or bool: a literal like 0.5 needs lit(x, 0.5)");
  using Result = std::conditional_t<std::is_same_v<Body, bool>, bool, T>;

  __attribute__((optimize("O3"), flatten)) static void baseline(int64_t n, void* out,
                                                                const void* const* in) {
    each<F>(n, static_cast<Result*>(out),
            static_cast<const InputType<F, T, kConditional, I>*>(in[I])...);
  }
#if defined(__x86_64__)
  __attribute__((target("arch=x86-64-v4,prefer-vector-width=512"), optimize("O3"),
                 flatten)) static void
  wide(int64_t n, void* out, const void* const* in) {
    each<F>(n, static_cast<Result*>(out),
            static_cast<const InputType<F, T, kConditional, I>*>(in[I])...);
  }
#else
  static constexpr auto wide = &baseline;
#endif

  static Scalar expression(std::span<const Scalar> in) { return F{}(in[I]...); }
};

// How many parameters the body has, asked with a type that it is compiled for.
template <class F, class T, bool kConditional>
constexpr size_t count_parameters() {
  using C = InputType<F, T, kConditional, 0>;
  if constexpr (std::is_invocable_v<F, C>)
    return 1;
  else if constexpr (std::is_invocable_v<F, C, T>)
    return 2;
  else if constexpr (std::is_invocable_v<F, C, T, T>)
    return 3;
  else if constexpr (std::is_invocable_v<F, C, T, T, T>)
    return 4;
  else if constexpr (std::is_invocable_v<F, C, T, T, T, T>)
    return 5;
  else
    return 6;
}

template <class T>
inline constexpr ComputeType compute_type =
    std::is_same_v<T, float>        ? ComputeType::kFloat
    : std::is_same_v<T, double>     ? ComputeType::kDouble
    : std::is_same_v<T, bool>       ? ComputeType::kBool
    : std::is_same_v<T, Complex64>  ? ComputeType::kComplexFloat
    : std::is_same_v<T, Complex128> ? ComputeType::kComplexDouble
                                    : ComputeType::kInt;

// Loops of complex numbers are plain ones: they are rare, and compiled once.
template <class F, class T, bool kConditional, class Indices>
struct ComplexLoop;
template <class F, class T, bool kConditional, size_t... I>
struct ComplexLoop<F, T, kConditional, std::index_sequence<I...>> {
  using Result = decltype(F{}(std::declval<InputType<F, T, kConditional, I>>()...));
  static void run(int64_t n, void* out, const void* const* in) {
    F f;
    for (int64_t i = 0; i < n; ++i)
      static_cast<Result*>(out)[i] =
          f(static_cast<const InputType<F, T, kConditional, I>*>(in[I])[i]...);
  }
};

template <class F, bool kConditional>
void add_complex(PointwiseVariant& v) {
  using Indices = std::make_index_sequence<count_parameters<F, Complex64, kConditional>()>;
  const auto add = [&]<class T>(TypeTag<T>) {
    using L = ComplexLoop<F, T, kConditional, Indices>;
    const auto c = static_cast<size_t>(compute_type<T>);
    v.loops[0][c] = v.loops[1][c] = &L::run;
    v.gives_bool[c] = std::is_same_v<typename L::Result, bool>;
    v.gives_real = std::is_floating_point_v<typename L::Result>;
  };
  add(TypeTag<Complex64>{});
  add(TypeTag<Complex128>{});
}

template <class F, bool kConditional, class First, class... Rest>
PointwiseVariant make_variant(Types<First, Rest...>) {
  static_assert(std::is_empty_v<F>, "a body captures nothing");
  using Indices = std::make_index_sequence<count_parameters<F, First, kConditional>()>;
  PointwiseVariant v;
  const auto add = [&]<class T>(TypeTag<T>) {
    using L = Loop<F, T, kConditional, Indices>;
    const auto c = static_cast<size_t>(compute_type<T>);
    v.loops[0][c] = L::baseline;
    v.loops[1][c] = L::wide;
    v.gives_bool[c] = std::is_same_v<typename L::Result, bool>;
  };
  add(TypeTag<First>{});
  (add(TypeTag<Rest>{}), ...);
  v.body = &Loop<F, First, kConditional, Indices>::expression;
  for (size_t i = 0; i < Indices::size(); ++i) v.inputs.push_back(static_cast<int8_t>(i));
  return v;
}

}  // namespace detail

template <class T, class F>
OpDef& OpDef::pointwise(F body) {
  return pointwise<T>(body, PointwiseOptions{});
}
template <class T, class F>
OpDef& OpDef::pointwise(F, const PointwiseOptions& options) {
  PointwiseDef& def = PointwiseDef::of(*this);
  def.set_options(*this, options);
  def.variants.push_back(detail::make_variant<F, false>(T{}));
  return *this;
}
template <class T, class F>
OpDef& OpDef::conditional(F, const PointwiseOptions& options) {
  PointwiseDef& def = PointwiseDef::of(*this);
  PointwiseOptions with_condition = options;
  with_condition.is_conditional = true;
  def.set_options(*this, with_condition);
  def.variants.push_back(detail::make_variant<F, true>(T{}));
  return *this;
}
template <bool kConditional, class F>
OpDef& OpDef::complex(F) {
  detail::add_complex<F, kConditional>(PointwiseDef::of(*this).variants.back());
  return *this;
}
template <class T, class F>
OpDef& OpDef::variant(std::initializer_list<int> arguments, F) {
  PointwiseDef::of(*this).variants.push_back(detail::make_variant<F, false>(T{}));
  return inputs(arguments);
}

}  // namespace prong
