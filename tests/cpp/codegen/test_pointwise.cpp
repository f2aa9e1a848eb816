// Fused regions give the bits of the eager kernels: every pointwise op of the registry, dtypes,
// special values, layouts.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "codegen/fused_region.h"
#include "graph/builder.h"
#include "runtime/background.h"

namespace prong {
namespace {

// A region of one node: op(inputs..., defaults).
std::shared_ptr<Graph> single(const OpDef& op, size_t num_tensors) {
  auto graph = std::make_shared<Graph>();
  GraphBuilder b(*graph);
  std::vector<Value*> args;
  for (size_t i = 0; i < op.schema().arguments.size(); ++i) {
    if (i < num_tensors)
      args.push_back(graph->add_input(Type::tensor()));
    else
      args.push_back(b.constant(op.schema().arguments[i].default_value));
  }
  Value* out = b.op(op, args);
  graph->top()->set_results(std::array{out});
  return graph;
}

Tensor values(DType dtype, int shift) {
  static const double specials[] = {
      0.0,      -0.0,     1.0,    -1.0,   0.5,    -0.5,       2.0,       3.0,   INFINITY, -INFINITY,
      NAN,      1e-40,    -1e-40, 1e-310, 1e30,   -1e30,      88.7,      -88.7, 89.5,     -104.0,
      0.999999, 1.000001, 1e-8,   700.0,  -745.5, 3.14159265, 1.5707963, 16.0,  65504.0,  100.0};
  const int64_t n = 333;  // not a multiple of any vector
  const Tensor t = Tensor::empty(Dims{n}, DType::kFloat64);
  uint64_t state = 88172645463325252ull + static_cast<uint64_t>(shift);
  for (int64_t i = 0; i < n; ++i) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    const double random = (static_cast<double>(state >> 11) / 9007199254740992.0 - 0.5) * 40;
    t.data<double>()[i] =
        i % 3 == 0 ? specials[static_cast<size_t>(i / 3 * (1 + shift)) % std::size(specials)]
                   : random;
  }
  return t.to(dtype);
}

// Equal bits; which NaN is not compared.
void expect_same(const Tensor& a, const Tensor& b, const std::string& what) {
  ASSERT_EQ(a.dtype(), b.dtype()) << what;
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  const Tensor x = a.contiguous(), y = b.contiguous();
  const size_t width = x.item_bytes();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const char *p = static_cast<char*>(x.raw()) + i * static_cast<int64_t>(width),
               *q = static_cast<char*>(y.raw()) + i * static_cast<int64_t>(width);
    if (std::memcmp(p, q, width) == 0) continue;
    bool both_nan = false;
    if (is_floating(x.dtype())) {
      const Tensor xd = x.to(DType::kFloat64), yd = y.to(DType::kFloat64);
      both_nan = std::isnan(xd.data<double>()[i]) && std::isnan(yd.data<double>()[i]);
      ASSERT_TRUE(both_nan) << what << " element " << i << ": eager " << xd.data<double>()[i]
                            << " fused " << yd.data<double>()[i];
    }
    ASSERT_TRUE(both_nan) << what << " element " << i;
  }
}

size_t tensor_arguments(const OpDef& op) {
  size_t n = 0;
  while (n < op.schema().arguments.size() && op.schema().arguments[n].type->is(TypeKind::kTensor))
    ++n;
  for (size_t i = n; i < op.schema().arguments.size(); ++i)
    if (!op.schema().arguments[i].has_default) return 0;
  return n;
}

TEST(FusedRegion, HasTheBitsOfEveryEagerOp) {
  int compared = 0, turn = 0;
  for (const auto& op : registry().all()) {
    const size_t n = tensor_arguments(*op);
    if (!op->pointwise() || op->mutated_argument() >= 0 || n == 0) continue;
    auto region =
        codegen::make_fused_region(single(*op, n), op->name(), codegen::Compile::kInPlace);
    for (const DType d : {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kInt64,
                          DType::kFloat16, DType::kUInt8, DType::kBool}) {
      // A kernel takes some ten milliseconds to compile; every fourth op stands for the conversions
      // of the rarer types.
      const bool is_rare = d == DType::kFloat16 || d == DType::kUInt8 || d == DType::kBool;
      if (is_rare && ++turn % 4 != 0) continue;
      std::vector<IValue> given, args;
      for (size_t i = 0; i < n; ++i) given.push_back(IValue(values(d, static_cast<int>(i))));
      args = given;
      for (size_t i = n; i < op->schema().arguments.size(); ++i)
        args.push_back(op->schema().arguments[i].default_value);
      IValue eager;
      try {
        eager = op->kernel()(*op, args);
      } catch (const Error&) {
        continue;  // not for this dtype
      }
      IValue fused;
      if (!region->run(given, std::span(&fused, 1))) continue;
      ++compared;
      expect_same(eager.to_tensor(), fused.to_tensor(), cat(op->name(), " ", d));
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(compared, 100);
}

TEST(FusedRegion, BroadcastsAndTakesStridedInputs) {
  const OpDef& add = registry().get("add");
  auto region = codegen::make_fused_region(single(add, 2), "add", codegen::Compile::kInPlace);
  const Tensor a = values(DType::kFloat32, 0).as_strided(Dims{15, 20}, Dims{20, 1}, 0);
  for (const Tensor& b : {values(DType::kFloat32, 1).as_strided(Dims{20}, Dims{1}, 3),
                          values(DType::kFloat32, 1).as_strided(Dims{15, 1}, Dims{2, 1}, 0),
                          values(DType::kFloat32, 1).as_strided(Dims{15, 20}, Dims{1, 15}, 0),
                          values(DType::kFloat64, 2).as_strided({}, {}, 4),
                          values(DType::kInt64, 2).as_strided(Dims{2, 1, 1}, Dims{7, 1, 1}, 0)}) {
    const IValue args[] = {IValue(a), IValue(b), IValue(1)};
    IValue fused;
    ASSERT_TRUE(region->run(std::span(args, 2), std::span(&fused, 1)));
    expect_same(add.kernel()(add, std::span(args)).to_tensor(), fused.to_tensor(),
                cat("add with ", b.sizes()));
  }
}

TEST(FusedRegion, DeclinesUntilTheBackgroundHasMadeTheKernel) {
  const OpDef& tanh = registry().get("tanh");
  auto region = codegen::make_fused_region(single(tanh, 1), "tanh", codegen::Compile::kBackground);
  auto dropped = codegen::make_fused_region(single(tanh, 1), "tanh", codegen::Compile::kBackground);
  // For each layout and dtype anew.
  for (const DType d : {DType::kFloat32, DType::kFloat64}) {
    const IValue x(values(d, 0));
    IValue fused;
    dropped->run(std::span(&x, 1), std::span(&fused, 1));
    while (!region->run(std::span(&x, 1), std::span(&fused, 1))) wait_for_background();
    expect_same(tanh.kernel()(tanh, std::span(&x, 1)).to_tensor(), fused.to_tensor(), cat(d));
  }
  dropped = {};
  wait_for_background();
}

TEST(FusedRegion, DeclinesWhatCannotBroadcast) {
  auto region = codegen::make_fused_region(single(registry().get("add"), 2), "add",
                                           codegen::Compile::kInPlace);
  const IValue args[] = {IValue(Tensor::empty(Dims{3}, DType::kFloat32)),
                         IValue(Tensor::empty(Dims{4}, DType::kFloat32))};
  IValue fused;
  EXPECT_FALSE(region->run(args, std::span(&fused, 1)));
}

}  // namespace
}  // namespace prong
