// Signatures and types: parsing, printing, subtyping.
#include <gtest/gtest.h>

#include "ops/schema.h"

namespace prong {
namespace {

TEST(Schema, PrintsAsParsed) {
  for (const char* text : {
           "add(input: Tensor, other: Tensor, *, alpha: Scalar = 1) -> Tensor",
           "max.dim(input: Tensor, dim: int, keepdim: bool = False) -> (Tensor values, Tensor "
           "indices)",
           "sum(input: Tensor, dim: int[]? = None, keepdim: bool = False, *, dtype: dtype? = None) "
           "-> Tensor",
           "conv2d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[2] = [1, 1], "
           "padding: int[2] = [0, 0]) -> Tensor",
           "gelu(input: Tensor, *, approximate: str = \"none\") -> Tensor",
           "norm(input: Tensor, p: float = 2.0) -> Tensor",
           "cat(tensors: Tensor[], dim: int = 0) -> Tensor",
       }) {
    const Schema s = Schema::parse(text);
    EXPECT_EQ(s.str(), Schema::parse(s.str()).str());
    EXPECT_EQ(s.str(), text);
  }
}

TEST(Schema, KnowsVarargsAndPositions) {
  const Schema s = Schema::parse("permute(input: Tensor, dims: int[]) -> Tensor");
  EXPECT_TRUE(s.takes_varargs_ints(1));
  EXPECT_FALSE(s.takes_varargs_ints(0));
  EXPECT_EQ(s.num_positional(), 2);
  EXPECT_EQ(s.find("dims"), 1);
  EXPECT_EQ(s.find("no"), -1);
}

TEST(Schema, BadTextPointsAtTheColumn) {
  try {
    Schema::parse("f(x: Tensr) -> Tensor");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kValue);
    EXPECT_NE(e.message().find("unknown type 'Tensr'"), std::string::npos);
  }
}

TEST(Type, SubtypesAsInScripts) {
  const auto fits = [](const char* a, const char* b) {
    return is_subtype(Type::parse(a), Type::parse(b));
  };
  EXPECT_TRUE(fits("int", "Optional[int]"));
  EXPECT_TRUE(fits("None", "Optional[int]"));
  EXPECT_TRUE(fits("Future[int]", "Future[Any]"));
  EXPECT_TRUE(fits("Future[int]", "Future[Optional[int]]"));
  EXPECT_TRUE(fits("Tuple[int, Tensor]", "Tuple[Optional[int], Any]"));
  EXPECT_TRUE(fits("bool", "Scalar"));
  EXPECT_FALSE(fits("int", "float"));
  EXPECT_FALSE(fits("List[int]", "List[Any]"));
  EXPECT_FALSE(fits("Future[float]", "Future[int]"));
  EXPECT_FALSE(fits("Optional[int]", "int"));
}

TEST(Type, Unifies) {
  const auto u = [](const char* a, const char* b) {
    const TypePtr t = unify(Type::parse(a), Type::parse(b));
    return t ? t->str_() : std::string("none");
  };
  EXPECT_EQ(u("int", "None"), "Optional[int]");
  EXPECT_EQ(u("Tuple[int, None]", "Tuple[None, int]"), "Tuple[Optional[int], Optional[int]]");
  EXPECT_EQ(u("int", "str"), "none");
}

}  // namespace
}  // namespace prong
