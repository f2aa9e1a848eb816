// Pointwise ops: one body gives the same bits in both machine levels' loops and as an expression;
// promotion, strides, in-place rules.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "ops/kernels/pointwise.h"
#include "ops/scalar_math.h"

namespace prong {
namespace {

Tensor make(DimsView sizes, std::vector<float> values) {
  Tensor t = Tensor::empty(sizes, DType::kFloat32);
  std::copy(values.begin(), values.end(), t.data<float>());
  return t;
}
Tensor ints(DimsView sizes, std::vector<int64_t> values, DType dtype = DType::kInt64) {
  Tensor t = Tensor::empty(sizes, DType::kInt64);
  std::copy(values.begin(), values.end(), t.data<int64_t>());
  return t.to(dtype);
}
std::vector<float> floats_of(const Tensor& t) {
  const Tensor c = t.to(DType::kFloat32).contiguous();
  return {c.data<float>(), c.data<float>() + c.numel()};
}
const OpDef& op(const char* name) { return registry().get(name); }
IValue run(const char* name, std::vector<IValue> args) { return call_op(op(name), args); }
std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.message();
  }
  return "";
}

template <class T>
bool same_bits(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a) && std::isnan(b)) return true;
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// Patterns of all kinds: zeros, denormals, infinities, NaN, and a spread over all exponents.
std::vector<float> all_kinds(int64_t stride) {
  std::vector<float> v;
  for (uint64_t bits = 0; bits < (1ull << 32); bits += static_cast<uint64_t>(stride))
    v.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (float x : {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1.0f, -1.0f, 0.5f, 2.0f, 1e-45f, 88.7f,
                  -103.9f, 1e-38f})
    v.push_back(x);
  while (v.size() % 64) v.push_back(1.5f);
  return v;
}

ScalarValue scalar_of(float x) { return {DType::kFloat32, x, 0}; }

// Every float32 body of the registry, on both levels and as an expression.
TEST(Pointwise, LevelsAndExpressionAgreeBitForBit) {
  const bool has_wide = simd_level() == 1;
  const std::vector<float> x = all_kinds(99991);
  std::vector<float> y = x, z = x, w = x;
  std::shuffle(y.begin(), y.end(), std::mt19937(1));
  std::shuffle(z.begin(), z.end(), std::mt19937(2));
  std::vector<char> bools(x.size());
  for (size_t i = 0; i < x.size(); ++i) bools[i] = y[i] > 0;
  const auto n = static_cast<int64_t>(x.size());
  int bodies = 0;
  for (const auto& definition : registry().all()) {
    if (!definition->pointwise()) continue;
    const PointwiseDef& def = *definition->pointwise();
    for (const PointwiseVariant& v : def.variants) {
      if (!v.loops[0][0]) continue;
      ++bodies;
      const void* in[kMaxPointwiseInputs] = {x.data(), y.data(), z.data(),
                                             w.data(), y.data(), z.data()};
      const size_t arity = v.inputs.size();
      ASSERT_LE(arity, static_cast<size_t>(kMaxPointwiseInputs));
      if (def.options.is_conditional) in[0] = bools.data();
      std::vector<float> narrow(x.size()), wide(x.size());
      v.loops[0][0](n, narrow.data(), in);
      const bool is_bool = v.gives_bool[0];
      if (has_wide) {
        v.loops[1][0](n, wide.data(), in);
        for (size_t i = 0; i < x.size(); ++i) {
          const bool same = is_bool ? reinterpret_cast<char*>(narrow.data())[i] ==
                                          reinterpret_cast<char*>(wide.data())[i]
                                    : same_bits(narrow[i], wide[i]);
          ASSERT_TRUE(same) << definition->name() << " of " << x[i] << ", " << y[i] << ", " << z[i]
                            << ": " << narrow[i] << " and " << wide[i];
        }
      }
      std::vector<Scalar> inputs;
      for (size_t k = 0; k < arity; ++k)
        inputs.push_back(Scalar::input(static_cast<int>(k), def.options.is_conditional && k == 0
                                                                ? DType::kBool
                                                                : DType::kFloat32));
      const Scalar body = v.body(inputs);
      for (size_t i = 0; i < x.size(); i += 97) {
        ScalarValue values[] = {scalar_of(x[i]), scalar_of(y[i]), scalar_of(z[i]),
                                scalar_of(w[i]), scalar_of(y[i]), scalar_of(z[i])};
        if (def.options.is_conditional) values[0] = {DType::kBool, 0, bools[i]};
        const ScalarValue got = evaluate(body, values);
        const bool same = is_bool ? got.i == reinterpret_cast<char*>(narrow.data())[i]
                                  : same_bits(static_cast<float>(got.d), narrow[i]);
        ASSERT_TRUE(same) << definition->name() << " of " << x[i] << ", " << y[i] << ", " << z[i]
                          << ": loop " << narrow[i] << ", expression " << got.d;
      }
    }
  }
  EXPECT_GT(bodies, 80);
}

// The other compute types, more briefly.
TEST(Pointwise, DoublesAndIntegersAgreeToo) {
  std::vector<double> d;
  std::vector<int64_t> l;
  std::mt19937_64 random(3);
  for (int i = 0; i < 512; ++i) {
    d.push_back(std::ldexp(static_cast<double>(static_cast<int64_t>(random())),
                           static_cast<int>(random() % 120) - 120));
    l.push_back(i < 256 ? static_cast<int64_t>(random() % 40) - 20
                        : static_cast<int64_t>(random()));
  }
  d[5] = NAN, d[6] = INFINITY, d[7] = -INFINITY, d[8] = 0.0, d[9] = -0.0;
  std::vector<double> d2(d.rbegin(), d.rend()), d3 = d2;
  std::vector<int64_t> l2(l.rbegin(), l.rend()), l3 = l2;
  std::vector<char> bools(512);
  for (size_t i = 0; i < 512; ++i) bools[i] = random() & 1;
  for (const auto& definition : registry().all()) {
    if (!definition->pointwise()) continue;
    const PointwiseDef& def = *definition->pointwise();
    for (const PointwiseVariant& v : def.variants)
      for (const size_t c : {1u, 2u}) {
        if (!v.loops[0][c]) continue;
        const DType dtype = dtype_of(static_cast<ComputeType>(c));
        const void* in[kMaxPointwiseInputs];
        for (size_t k = 0; k < static_cast<size_t>(kMaxPointwiseInputs); ++k)
          in[k] = c == 1 ? static_cast<const void*>((k == 0   ? d
                                                     : k == 1 ? d2
                                                              : d3)
                                                        .data())
                         : static_cast<const void*>((k == 0   ? l
                                                     : k == 1 ? l2
                                                              : l3)
                                                        .data());
        if (def.options.is_conditional) in[0] = bools.data();
        std::vector<int64_t> out(512), wide(512);
        v.loops[0][c](512, out.data(), in);
        if (simd_level() == 1) v.loops[1][c](512, wide.data(), in);
        std::vector<Scalar> inputs;
        for (size_t k = 0; k < v.inputs.size(); ++k)
          inputs.push_back(Scalar::input(
              static_cast<int>(k), def.options.is_conditional && k == 0 ? DType::kBool : dtype));
        const Scalar body = v.body(inputs);
        for (size_t i = 0; i < 512; i += 3) {
          ScalarValue values[kMaxPointwiseInputs];
          for (size_t k = 0; k < v.inputs.size(); ++k)
            values[k] =
                c == 1
                    ? ScalarValue{dtype,
                                  static_cast<const double*>(
                                      k == 0 && def.options.is_conditional ? d.data() : in[k])[i],
                                  0}
                    : ScalarValue{dtype, 0,
                                  static_cast<const int64_t*>(
                                      k == 0 && def.options.is_conditional ? l.data() : in[k])[i]};
          if (def.options.is_conditional) values[0] = {DType::kBool, 0, bools[i]};
          const ScalarValue got = evaluate(body, values);
          if (v.gives_bool[c]) {
            ASSERT_EQ(got.i, reinterpret_cast<char*>(out.data())[i]) << definition->name();
          } else if (c == 1) {
            const double loop = std::bit_cast<double>(out[i]);
            ASSERT_TRUE(same_bits(got.d, loop))
                << definition->name() << " of " << d[i] << ", " << d2[i] << ": loop " << loop
                << ", expression " << got.d;
            if (simd_level() == 1) {
              ASSERT_TRUE(same_bits(loop, std::bit_cast<double>(wide[i]))) << definition->name();
            }
          } else {
            ASSERT_EQ(got.i, out[i]) << definition->name() << " of " << l[i] << ", " << l2[i];
            if (simd_level() == 1) {
              ASSERT_EQ(out[i], wide[i]) << definition->name();
            }
          }
        }
      }
  }
}

double ulps(float got, double want) {
  const auto w = static_cast<float>(want);
  if (std::isnan(w) || std::isnan(got)) return std::isnan(w) && std::isnan(got) ? 0 : 1e9;
  if (got == w) return 0;
  if (std::isinf(w) || std::isinf(got)) return 1e9;
  int exponent;
  std::frexp(w, &exponent);
  return std::fabs(static_cast<double>(got) - want) /
         std::ldexp(1.0, std::max(exponent - 24, -149));
}

TEST(Pointwise, MathIsAccurate) {
  const struct {
    const char* name;
    double (*truth)(double);
    double low, high;
  } functions[] = {{"exp", std::exp, -103, 88.7},    {"expm1", std::expm1, -103, 88.7},
                   {"log", std::log, -1, 1e38},      {"log2", std::log2, -1, 1e38},
                   {"log10", std::log10, -1, 1e38},  {"log1p", std::log1p, -2, 1e38},
                   {"tanh", std::tanh, -1e3, 1e3},   {"erf", std::erf, -1e3, 1e3},
                   {"sin", std::sin, -1e15, 1e15},   {"cos", std::cos, -1e15, 1e15},
                   {"atan", std::atan, -1e38, 1e38}, {"exp2", std::exp2, -149, 128},
                   {"tan", std::tan, -1e15, 1e15},   {"asin", std::asin, -1e38, 1e38},
                   {"acos", std::acos, -1e38, 1e38}, {"sinh", std::sinh, -1e38, 1e38},
                   {"cosh", std::cosh, -1e38, 1e38}, {"asinh", std::asinh, -1e38, 1e38},
                   {"acosh", std::acosh, -2, 1e38},  {"atanh", std::atanh, -2, 2},
                   {"erfc", std::erfc, -1e38, 1e38}};
  const std::vector<float> x = all_kinds(30011);
  const Tensor t = make({{static_cast<int64_t>(x.size())}}, x);
  for (const auto& f : functions) {
    const std::vector<float> y = floats_of(run(f.name, {t}).to_tensor());
    for (size_t i = 0; i < x.size(); ++i)
      if (x[i] >= f.low && x[i] <= f.high) {
        ASSERT_LE(ulps(y[i], f.truth(x[i])), 2.6) << f.name << " of " << x[i] << " gives " << y[i];
      }
  }
}

TEST(Pointwise, PromotesAndBroadcasts) {
  const Tensor a = make({{2, 1}}, {1, 2}), b = ints({{3}}, {10, 20, 30});
  const Tensor sum = run("add", {a, b}).to_tensor();
  EXPECT_EQ(sum.dtype(), DType::kFloat32);
  EXPECT_EQ(sum.sizes(), (Dims{2, 3}));
  EXPECT_EQ(floats_of(sum), (std::vector<float>{11, 21, 31, 12, 22, 32}));
  EXPECT_EQ(run("add", {b, 0.5}).to_tensor().dtype(), DType::kFloat32);
  EXPECT_EQ(run("add", {b, 1}).to_tensor().dtype(), DType::kInt64);
  EXPECT_EQ(run("div", {b, 2}).to_tensor().dtype(), DType::kFloat32);
  EXPECT_EQ(run("lt", {a, b}).to_tensor().dtype(), DType::kBool);
  EXPECT_EQ(floats_of(run("add", {a, b, 2}).to_tensor())[0], 21);
  const Tensor bytes = ints({{2}}, {250, 7}, DType::kUInt8);
  EXPECT_EQ(floats_of(run("add", {bytes, 10}).to_tensor()), (std::vector<float>{4, 17}));  // wraps
  const Tensor flags = ints({{2}}, {1, 0}, DType::kBool);
  EXPECT_EQ(floats_of(run("bitwise_not", {flags}).to_tensor()), (std::vector<float>{0, 1}));
  EXPECT_EQ(floats_of(run("add", {flags, flags}).to_tensor()), (std::vector<float>{1, 0}));
  EXPECT_EQ(
      message_of([&] {
        run("add", {a, make({{3, 2}}, {1, 2, 3, 4, 5, 6})});
      }),
      "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0");
}

// Every layout of operands gives what contiguous ones give.
TEST(Pointwise, WalksAnyLayout) {
  const int64_t rows = 300, columns = 217;
  Tensor x = Tensor::empty({{rows, columns}}, DType::kFloat32);
  for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = static_cast<float>(i % 1013) * 0.25f;
  const Tensor turned = x.as_strided({{columns, rows}}, {{1, columns}}, 0);
  const Tensor gaps = x.as_strided({{rows / 2, columns / 3}}, {{2 * columns, 3}}, 1);
  const Tensor row = x.as_strided({{columns}}, {{1}}, 5);
  const Tensor column = x.as_strided({{rows, 1}}, {{columns, 1}}, 3);
  const auto expect = [&](const Tensor& a, const Tensor& b) {
    const Dims shape = broadcast_shapes(a.sizes(), b.sizes());
    const Tensor got = run("sub", {a, b}).to_tensor();
    const Tensor da = broadcast_to(a, shape).clone(), db = broadcast_to(b, shape).clone();
    ASSERT_EQ(got.sizes(), shape);
    for (int64_t i = 0; i < got.numel(); ++i)
      ASSERT_EQ(got.data<float>()[i], da.data<float>()[i] - db.data<float>()[i]);
  };
  expect(x, row);
  expect(row, x);
  expect(x, column);
  expect(column, row);
  expect(turned, turned.clone());
  expect(turned, column.as_strided({{rows}}, {{columns}}, 0));
  expect(gaps, gaps.clone());
  expect(gaps, make({}, {3}));
  // Written through a view, and converted on the way.
  Tensor whole = x.to(DType::kFloat64);
  const Tensor view = whole.as_strided({{columns, rows}}, {{1, columns}}, 0);
  run_inplace(op("add"), std::vector<IValue>{view, turned, 1});
  for (int64_t i = 0; i < whole.numel(); ++i)
    ASSERT_EQ(whole.data<double>()[i], 2.0 * x.data<float>()[i]);
}

TEST(Pointwise, InPlaceChecksTypeShapeAndOverlap) {
  Tensor n = ints({{4}}, {1, 2, 3, 4});
  const uint64_t before = n.version();
  run_inplace(op("add"), std::vector<IValue>{n, 1, 1});
  EXPECT_EQ(n.data<int64_t>()[3], 5);
  EXPECT_GT(n.version(), before);
  EXPECT_EQ(message_of([&] {
              run_inplace(op("add"), std::vector<IValue>{n, 0.5, 1});
            }),
            "result type Float can't be cast to the desired output type Long");
  EXPECT_EQ(
      message_of([&] {
        run_inplace(op("add"), std::vector<IValue>{n, ints({{2, 4}}, std::vector<int64_t>(8)), 1});
      }),
      "output with shape [4] doesn't match the broadcast shape [2, 4]");
  const Tensor shifted = n.as_strided({{3}}, {{1}}, 1), head = n.as_strided({{3}}, {{1}}, 0);
  EXPECT_EQ(message_of([&] {
              run_inplace(op("add"), std::vector<IValue>{head, shifted, 1});
            }),
            "unsupported operation: some elements of the input tensor and the written-to tensor "
            "refer to a single memory "
            "location. Please clone() the tensor before performing the operation.");
  const Tensor spread = n.as_strided({{3, 4}}, {{0, 1}}, 0);
  EXPECT_NE(message_of([&] {
              run_inplace(op("add"), std::vector<IValue>{spread, 1, 1});
            }).find("more than one element"),
            std::string::npos);
}

TEST(Pointwise, RefusesAsPyTorchDoes) {
  const Tensor x = make({{2}}, {1, 2}), n = ints({{2}}, {1, 0}), flags = n.to(DType::kBool);
  EXPECT_EQ(message_of([&] {
              run("bitwise_and", {x, x});
            }),
            "\"bitwise_and_cpu\" not implemented for 'Float'");
  EXPECT_EQ(message_of([&] { run("floor_divide", {n, n}); }), "ZeroDivisionError");
  EXPECT_EQ(message_of([&] {
              run("add", {n, n, 0.5});
            }),
            "For integral input tensors, argument alpha must not be a floating point number.");
  EXPECT_EQ(message_of([&] {
              run("pow", {n, -1});
            }),
            "Integers to negative integer powers are not allowed.");
  EXPECT_NE(message_of([&] {
              run("sub", {flags, flags});
            }).find("two bool tensors is not supported"),
            std::string::npos);
}

}  // namespace
}  // namespace prong
