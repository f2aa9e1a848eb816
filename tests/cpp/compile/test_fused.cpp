// Fused kernels give what the ops give one by one, bit for bit, for all dtypes and layouts.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "compile/pipeline.h"
#include "eager/dispatch.h"
#include "exec/run.h"
#include "graph/printer.h"
#include "runtime/parallel.h"

namespace prong::compile {
namespace {

Tensor make(DimsView sizes, DType dtype, uint64_t seed = 1) {
  const Tensor t = Tensor::empty(sizes, dtype);
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (int64_t i = 0; i < t.numel(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double x = static_cast<double>(static_cast<int64_t>(state >> 33) - (int64_t{1} << 30)) /
                     (int64_t{1} << 28);
    visit(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_same_v<T, bool>)
        static_cast<T*>(t.raw())[i] = x > 0;
      else if constexpr (std::is_integral_v<T>)
        static_cast<T*>(t.raw())[i] = static_cast<T>(static_cast<int64_t>(x * 10));
      else if constexpr (std::is_same_v<T, double>)
        static_cast<T*>(t.raw())[i] = x;
      else
        static_cast<T*>(t.raw())[i] = T(static_cast<float>(x));
    });
  }
  return t;
}

// Equal bits; any NaN equals any other.
void expect_same(const Tensor& a, const Tensor& b, const std::string& what) {
  ASSERT_EQ(a.dtype(), b.dtype()) << what;
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  const Tensor x = a.contiguous(), y = b.contiguous();
  const auto bytes = static_cast<int64_t>(x.item_bytes());
  for (int64_t i = 0; i < x.numel(); ++i) {
    const char *p = static_cast<const char*>(x.raw()) + i * bytes,
               *q = static_cast<const char*>(y.raw()) + i * bytes;
    if (std::memcmp(p, q, static_cast<size_t>(bytes)) == 0) continue;
    const bool both_nan = visit(x.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      T u, v;
      std::memcpy(&u, p, sizeof u), std::memcpy(&v, q, sizeof v);
      return static_cast<double>(u) != static_cast<double>(u) &&
             static_cast<double>(v) != static_cast<double>(v);
    });
    ASSERT_TRUE(both_nan) << what << ": element " << i << " differs";
  }
}

size_t count_fused(const exec::Program& p) { return p.fused_sites.size(); }

// Runs the text with and without the pipeline; `fused` kernels must be there and must have run.
void compare(std::string_view text, const std::vector<IValue>& args, const std::string& what) {
  install();
  const auto fused = parse_functions(text), plain = parse_functions(text);
  plain[0]->try_set_program(exec::assemble(plain[0]->graph(), "plain"));
  const IValue a = exec::run(*fused[0], args), b = exec::run(*plain[0], args);
  EXPECT_GE(count_fused(exec::program_of(*fused[0])), 1u) << what;
  if (!a.is_tuple()) return expect_same(a.to_tensor(), b.to_tensor(), what);
  for (size_t i = 0; i < a.items().size(); ++i)
    expect_same(a.items()[i].to_tensor(), b.items()[i].to_tensor(), what);
}

const char* const kChain = R"(def f(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
  p: Tensor = mul(x, a)
  q: Tensor = add(p, b)
  t: Tensor = tanh(q)
  s: Tensor = sigmoid(x)
  m: Tensor = mul(t, s)
  g: Tensor = gelu(x)
  r: Tensor = add(m, g)
  return r
)";

TEST(Fused, ChainOfAllFloats) {
  for (const DType d : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16})
    for (const int64_t n : {1, 7, 16, 33, 1000, 100003}) {
      const Dims sizes{n};
      compare(kChain,
              {IValue(make(sizes, d, 1)), IValue(make(sizes, d, 2)), IValue(make(sizes, d, 3))},
              cat(d, " ", n));
    }
}

TEST(Fused, SpecialNumbers) {
  const float values[] = {0.0f,    -0.0f,          INFINITY, -INFINITY, NAN,   1e-45f,
                          -1e-45f, 1.1754942e-38f, 3.4e38f,  -3.4e38f,  88.0f, -88.0f,
                          1.0f,    -1.0f,          0.5f,     9.0f,      -9.0f};
  constexpr int64_t kCount = sizeof values / sizeof values[0];
  const Tensor x = Tensor::empty(Dims{kCount, kCount}, DType::kFloat32),
               y = Tensor::empty(Dims{kCount, kCount}, DType::kFloat32);
  for (int64_t i = 0; i < kCount; ++i)
    for (int64_t j = 0; j < kCount; ++j)
      x.data<float>()[i * kCount + j] = values[i], y.data<float>()[i * kCount + j] = values[j];
  compare(kChain, {IValue(x), IValue(y), IValue(y)}, "special");
}

TEST(Fused, LayoutsAndBroadcasts) {
  const Tensor x = make(Dims{33, 65}, DType::kFloat32), row = make(Dims{65}, DType::kFloat32, 2),
               column = make(Dims{33, 1}, DType::kFloat32, 3);
  const Tensor turned =
      make(Dims{65, 33}, DType::kFloat32, 4).as_strided(Dims{33, 65}, Dims{1, 33}, 0);
  const Tensor one = make(Dims{1, 1}, DType::kFloat32, 5),
               zero_dim = make(Dims{}, DType::kFloat32, 6);
  compare(kChain, {IValue(x), IValue(row), IValue(column)}, "row and column");
  compare(kChain, {IValue(turned), IValue(x), IValue(one)}, "turned");
  compare(kChain, {IValue(x), IValue(zero_dim), IValue(turned)}, "zero-dim");
  compare(kChain, {IValue(zero_dim), IValue(zero_dim), IValue(zero_dim)}, "all zero-dim");
  compare(kChain, {IValue(one), IValue(one), IValue(make(Dims{1, 1, 1}, DType::kFloat32))},
          "all single");
  compare(kChain, {IValue(column), IValue(row), IValue(column)},
          "outer");  // an inner value is smaller than the result
  compare(kChain,
          {IValue(make(Dims{0, 4}, DType::kFloat32)), IValue(make(Dims{4}, DType::kFloat32)),
           IValue(one)},
          "empty");
  compare(kChain,
          {IValue(make(Dims{5, 3, 4}, DType::kFloat32)), IValue(make(Dims{3, 1}, DType::kFloat32)),
           IValue(make(Dims{4}, DType::kFloat32))},
          "3-d");
}

// Complex numbers come after the real ones; tests/parity compares them.
constexpr int kNumRealDTypes = static_cast<int>(DType::kComplex64);

TEST(Fused, MixedDtypesAndNumbers) {
  const char* text =
      R"(def f(x: Tensor, y: Tensor, k: int, z: float) -> Tuple[Tensor, Tensor, Tensor]:
  p: Tensor = mul(x, y)
  q: Tensor = add(p, k, alpha=3)
  c: Tensor = gt(q, 1)
  w: Tensor = where(c, p, q)
  s: Tensor = sub(w, z)
  t: Tuple[Tensor, Tensor, Tensor] = tuple(q, c, s)
  return t
)";
  // Each dtype with itself and with one other: a kernel for each pair takes its time.
  for (int a = 0; a < kNumRealDTypes; ++a)
    for (const int b : {a, (a * 3 + 1) % kNumRealDTypes}) {
      const DType da = static_cast<DType>(a), db = static_cast<DType>(b);
      compare(
          text,
          {IValue(make(Dims{70}, da, 1)), IValue(make(Dims{70}, db, 2)), IValue(2), IValue(0.3)},
          cat(da, " ", db));
    }
}

TEST(Fused, ErrorsAreThoseOfTheOps) {
  install();
  const auto f = parse_functions(kChain);
  try {
    exec::run(*f[0],
              {IValue(make(Dims{3}, DType::kFloat32)), IValue(make(Dims{4}, DType::kFloat32)),
               IValue(make(Dims{3}, DType::kFloat32))});
    FAIL() << "no error";
  } catch (const exec::ScriptError& e) {
    EXPECT_EQ(e.message(),
              "The size of tensor a (3) must match the size of tensor b (4) at non-singleton "
              "dimension 0");
    EXPECT_EQ(e.traceback()->entries.size(), 1u);
    EXPECT_EQ(e.traceback()->entries[0].function, "f");
  }
}

TEST(Fused, GradientsNeedTheOps) {
  install();
  const auto f = parse_functions(kChain);
  const Tensor x = make(Dims{8}, DType::kFloat32);
  x.impl()->requires_grad = true;
  const IValue y = exec::run(*f[0], {IValue(x), IValue(x), IValue(x)});
  EXPECT_TRUE(y.tensor_impl()->requires_grad);
  EXPECT_EQ(eager::grad_fn_name(y.to_tensor()), "AddBackward0");
}

TEST(Fused, SameOnAnyNumberOfThreads) {
  install();
  const auto f = parse_functions(kChain);
  const int before = num_threads();
  const std::vector<IValue> args{IValue(make(Dims{300001}, DType::kFloat32)),
                                 IValue(make(Dims{300001}, DType::kFloat32, 2)),
                                 IValue(make(Dims{1}, DType::kFloat32, 3))};
  set_num_threads(1);
  const Tensor one = exec::run(*f[0], args).to_tensor();
  set_num_threads(4);
  expect_same(exec::run(*f[0], args).to_tensor(), one, "threads");
  set_num_threads(before);
}

}  // namespace
}  // namespace prong::compile
