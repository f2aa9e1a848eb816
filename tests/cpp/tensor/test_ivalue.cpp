// Run-time values: containers, equality, printing.
#include <gtest/gtest.h>

#include "tensor/ivalue.h"

namespace prong {
namespace {

TEST(IValue, PrintsAsPython) {
  EXPECT_EQ(repr(IValue(1.0)), "1.0");
  EXPECT_EQ(repr(IValue(true)), "True");
  EXPECT_EQ(repr(IValue("it's")), "\"it's\"");
  EXPECT_EQ(repr(IValue::tuple({IValue(1)})), "(1,)");
  EXPECT_EQ(repr(IValue::list({IValue(1), IValue(), IValue("a\n")})), "[1, None, 'a\\n']");
}

TEST(IValue, EqualityCrossesNumberTypes) {
  EXPECT_TRUE(equal(IValue(1), IValue(1.0)));
  EXPECT_TRUE(equal(IValue(true), IValue(1)));
  EXPECT_FALSE(equal(IValue("1"), IValue(1)));
  EXPECT_EQ(hash_of(IValue(1)), hash_of(IValue(1.0)));
  EXPECT_THROW(hash_of(IValue::list({})), Error);
}

TEST(IValue, DictKeepsOrderAndForgetsErased) {
  DictBox d;
  d.set(IValue("b"), IValue(1));
  d.set(IValue("a"), IValue(2));
  d.set(IValue("c"), IValue(3));
  EXPECT_TRUE(d.erase(IValue("b")));
  EXPECT_FALSE(d.erase(IValue("b")));
  ASSERT_EQ(d.size(), 2u);
  EXPECT_EQ(d.entry(0).first.to_string(), "a");
  EXPECT_EQ(d.find(IValue("c"))->to_int(), 3);
  EXPECT_EQ(d.find(IValue("b")), nullptr);
}

TEST(IValue, WrongTagIsAnInternalError) {
  try {
    IValue("x").to_int();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInternal);
  }
}

}  // namespace
}  // namespace prong
