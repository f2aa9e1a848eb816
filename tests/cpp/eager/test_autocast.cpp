// Autocast: what each rule does to the arguments of an op, and that the state is the task's own.
#include "eager/autocast.h"

#include <gtest/gtest.h>

#include "eager/dispatch.h"
#include "ops/autocast.h"
#include "runtime/context.h"

namespace prong::eager {
namespace {

Tensor filled(DType dtype) {
  const IValue args[] = {IValue(DimsView(Dims{2, 2})), IValue(dtype)};
  return run(registry().get("ones"), args).to_tensor();
}

DType dtype_of_product(DType a, DType b) {
  const IValue args[] = {filled(a), filled(b)};
  return run(registry().get("mm"), args).to_tensor().dtype();
}

TEST(Autocast, IsOffAtFirst) {
  EXPECT_FALSE(is_autocast_enabled());
  EXPECT_EQ(autocast().dtype, DType::kBFloat16);
  EXPECT_TRUE(autocast().keeps_casts);
  EXPECT_EQ(dtype_of_product(DType::kFloat32, DType::kFloat32), DType::kFloat32);
}

TEST(Autocast, ProductsRunInTheLowDType) {
  const ContextGuard restored;
  set_autocast({.enabled = true});
  EXPECT_EQ(dtype_of_product(DType::kFloat32, DType::kFloat32), DType::kBFloat16);
  EXPECT_EQ(dtype_of_product(DType::kFloat32, DType::kBFloat16), DType::kBFloat16);
  EXPECT_EQ(dtype_of_product(DType::kFloat64, DType::kFloat64), DType::kFloat64);
  set_autocast({.enabled = true, .dtype = DType::kFloat16});
  EXPECT_EQ(dtype_of_product(DType::kFloat32, DType::kFloat32), DType::kFloat16);
}

TEST(Autocast, JoinsRunInTheWidestDType) {
  const ContextGuard restored;
  set_autocast({.enabled = true});
  const auto join = [](DType a, DType b) {
    const IValue args[] = {IValue(std::vector<Tensor>{filled(a), filled(b)}), IValue(0)};
    return run(registry().get("cat"), args).to_tensor().dtype();
  };
  EXPECT_EQ(join(DType::kBFloat16, DType::kFloat32), DType::kFloat32);
  EXPECT_EQ(join(DType::kBFloat16, DType::kBFloat16), DType::kBFloat16);
}

TEST(Autocast, RulesStandForNamesAndNotForInPlaceForms) {
  EXPECT_EQ(autocast_rule(registry().get("mm")), AutocastRule::kLower);
  EXPECT_EQ(autocast_rule(registry().get("mse_loss")), AutocastRule::kFloat32);
  EXPECT_EQ(autocast_rule(registry().get("cat")), AutocastRule::kWidest);
  EXPECT_EQ(autocast_rule(registry().get("add")), AutocastRule::kNone);
}

TEST(Autocast, TheStateGoesWithItsScope) {
  {
    const ContextGuard restored;
    set_autocast({.enabled = true, .dtype = DType::kFloat16, .keeps_casts = false});
    EXPECT_TRUE(is_autocast_enabled());
    EXPECT_EQ(autocast().dtype, DType::kFloat16);
    EXPECT_FALSE(autocast().keeps_casts);
  }
  EXPECT_FALSE(is_autocast_enabled());
}

}  // namespace
}  // namespace prong::eager
