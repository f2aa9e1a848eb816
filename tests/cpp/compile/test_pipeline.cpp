// The pipeline: what it leaves to run, and PRONG_SKIP.
#include <gtest/gtest.h>

#include <cstdlib>

#include "compile/pipeline.h"
#include "exec/program.h"
#include "exec/run.h"
#include "graph/printer.h"
#include "graph/verify.h"

namespace prong::compile {
namespace {

const char* const kText = R"(def f(x: Tensor) -> Tensor:
  k: int = host.add.int(1, 1)
  a: Tensor = mul(x, k)
  b: Tensor = mul(x, k)
  c: Tensor = add(a, b)
  unread: Tensor = neg(c)
  return c
)";

TEST(Pipeline, FoldsMergesDropsAndFuses) {
  const auto f = parse_functions(kText);
  optimize(f[0]->graph(), "f");
  verify(f[0]->graph());
  EXPECT_EQ(print(*f[0]), R"(def f(x: Tensor) -> Tensor:
  c: Tensor = fused(x) as (x_1: Tensor):
    a: Tensor = mul(x_1, 2)
    c_1: Tensor = add(a, a)
    yield c_1
  return c
)");
}

TEST(Pipeline, SkipsWhatItIsToldTo) {
  setenv("PRONG_SKIP", "fuse,cse", 1);
  const auto f = parse_functions(kText);
  optimize(f[0]->graph(), "f");
  unsetenv("PRONG_SKIP");
  EXPECT_EQ(print(*f[0]), R"(def f(x: Tensor) -> Tensor:
  a: Tensor = mul(x, 2)
  b: Tensor = mul(x, 2)
  c: Tensor = add(a, b)
  return c
)");
}

TEST(Pipeline, LeavesTheFunctionsOwnGraphAsItWas) {
  install();
  const auto f = parse_functions(kText);
  const std::string before = print(*f[0]);
  const Tensor x = Tensor::empty(Dims{3}, DType::kFloat32);
  for (int i = 0; i < 3; ++i) x.data<float>()[i] = static_cast<float>(i);
  const Tensor y = exec::run(*f[0], {IValue(x)}).to_tensor();
  EXPECT_EQ(y.data<float>()[2], 8.0f);
  EXPECT_EQ(print(*f[0]), before);
  EXPECT_EQ(exec::program_of(*f[0]).fused_sites.size(), 1u);
}

}  // namespace
}  // namespace prong::compile
