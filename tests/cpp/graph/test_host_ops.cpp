// The language's operations give what Python gives, errors included.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/host/text.h"
#include "graph/host_op.h"
#include "graph/printer.h"

namespace prong {
namespace {

IValue call(std::string_view name, std::vector<IValue> args) {
  const HostOp& op = host_registry().get(name);
  for (size_t i = args.size(); i < op.schema.arguments.size(); ++i)
    args.push_back(op.schema.arguments[i].default_value);
  return op.fn(args);
}

// "add.int(2, 3)" → "5", or "IndexError: text".
std::string eval(std::string_view name, std::string_view arguments) {
  try {
    return repr(call(name, parse_literal(arguments).items()));
  } catch (const Error& e) {
    static constexpr const char* kinds[] = {
        "RuntimeError",      "TypeError",      "ValueError",          "IndexError",
        "KeyError",          "AttributeError", "NotImplementedError", "AssertionError",
        "ZeroDivisionError", "OverflowError"};
    return cat(kinds[static_cast<int>(e.kind())], ": ", e.message());
  }
}

struct Case {
  const char *name, *arguments, *expected;
};

TEST(HostOps, AgreeWithPython) {
  const Case cases[] = {
      {"floordiv.int", "(-7, 2)", "-4"},
      {"mod.int", "(-7, 2)", "1"},
      {"floordiv.int", "(7, -2)", "-4"},
      {"mod.int", "(7, -2)", "-1"},
      {"floordiv.float", "(-7.5, 2.0)", "-4.0"},
      {"mod.float", "(-7.5, 2.0)", "0.5"},
      {"mod.float", "(7.5, -2.0)", "-0.5"},
      {"mod.float", "(6.0, -2.0)", "-0.0"},
      {"truediv.int", "(1, 4)", "0.25"},
      {"truediv.int", "(1, 0)", "ZeroDivisionError: division by zero"},
      {"truediv.float", "(1.0, 0.0)", "ZeroDivisionError: float division by zero"},
      {"floordiv.int", "(1, 0)", "ZeroDivisionError: integer division or modulo by zero"},
      {"mod.int", "(1, 0)", "ZeroDivisionError: integer modulo by zero"},
      {"floordiv.float", "(1.0, 0.0)", "ZeroDivisionError: float floor division by zero"},
      {"pow.int", "(2, 62)", "4611686018427387904"},
      {"pow.int", "(-2, 63)", "-9223372036854775808"},
      {"pow.int", "(2, 63)",
       "OverflowError: the result of int arithmetic does not fit into 64 bits"},
      {"add.int", "(9223372036854775807, 1)",
       "OverflowError: the result of int arithmetic does not fit into 64 bits"},
      {"add.number", "(1, 2.5)", "3.5"},
      {"eq.number", "(9007199254740993, 9007199254740992.0)", "False"},
      {"lt.float", "(nan, 1.0)", "False"},
      {"ne.number", "(nan, nan)", "True"},
      {"round.float", "(2.5,)", "2"},
      {"round.float_digits", "(2.675, 2)", "2.67"},
      {"round.int_digits", "(1250, -2)", "1200"},
      {"round.int_digits", "(-1350, -2)", "-1400"},
      {"int.float", "(-3.9,)", "-3"},
      {"int.float", "(nan,)", "ValueError: cannot convert float NaN to integer"},
      {"int.str", "(\" -1_0 \",)", "-10"},
      {"int.str", "(\"0x1F\", 16)", "31"},
      {"int.str", "(\"x\",)", "ValueError: invalid literal for int() with base 10: 'x'"},
      {"float.str", "(\" 1e3\",)", "1000.0"},
      {"float.str", "(\"-inf\",)", "-inf"},
      {"float.str", "(\"--1\",)", "ValueError: could not convert string to float: '--1'"},
      {"math_sqrt", "(-1.0,)", "ValueError: math domain error"},
      {"math_exp", "(1000.0,)", "OverflowError: math range error"},
      {"math_log", "(0.0,)", "ValueError: math domain error"},
      {"math_floor.float", "(-0.5,)", "-1"},
      {"getitem.str", "(\"h\u00e9llo\", 1)", "'\u00e9'"},
      {"getitem.str", "(\"abc\", 3)", "IndexError: string index out of range"},
      {"getslice.str", "(\"h\u00e9llo\", None, None, -2)", "'olh'"},
      {"split", "(\" a  b c \",)", "['a', 'b', 'c']"},
      {"split", "(\" a  b c \", None, 1)", "['a', 'b c']"},
      {"split", "(\"a,b,,c\", \",\")", "['a', 'b', '', 'c']"},
      {"rsplit", "(\"a,b,c\", \",\", 1)", "['a,b', 'c']"},
      {"title", "(\"hello wORLD\",)", "'Hello World'"},
      {"replace", "(\"aaa\", \"a\", \"b\", 2)", "'bba'"},
      {"replace", "(\"ab\", \"\", \"-\")", "'-a-b-'"},
      {"find", "(\"h\u00e9llo\", \"l\")", "2"},
      {"rfind", "(\"hello\", \"l\")", "3"},
      {"count.str", "(\"aaaa\", \"aa\")", "2"},
      {"center", "(\"ab\", 5)", "'  ab '"},
      {"zfill", "(\"-5\", 4)", "'-005'"},
      {"getitem.list", "([1, 2, 3], -1)", "3"},
      {"getitem.list", "([1, 2, 3], -4)", "IndexError: list index out of range"},
      {"getslice.list", "([0, 1, 2, 3, 4], -1, None, -2)", "[4, 2, 0]"},
      {"getslice.list", "([0, 1, 2, 3, 4], 1, 100, 2)", "[1, 3]"},
      {"getslice.list", "([0, 1], None, None, 0)", "ValueError: slice step cannot be zero"},
      {"pop.list", "([],)", "IndexError: pop from empty list"},
      {"index.list", "([1, 2], 3)", "ValueError: 3 is not in list"},
      {"sorted", "([3, 1, 2],)", "[1, 2, 3]"},
      {"min.list", "([],)", "ValueError: min() arg is an empty sequence"},
      {"max.list", "([1.5, 2.5],)", "2.5"},
      {"sum.int", "([1, 2, 3],)", "6"},
      {"range_length", "(0, 10, 3)", "4"},
      {"range_length", "(10, 0, -3)", "4"},
      {"range_length", "(0, 1, 0)", "ValueError: range() arg 3 must not be zero"},
      {"format", "(3.14159, \".2f\")", "'3.14'"},
      {"format", "(1234567, \",\")", "'1,234,567'"},
      {"format", "(255, \"#06x\")", "'0x00ff'"},
      {"format", "(-5, \"05d\")", "'-0005'"},
      {"format", "(\"ab\", \"*^6\")", "'**ab**'"},
      {"format", "(0.5, \".1%\")", "'50.0%'"},
      {"format", "(3, \"q\")", "ValueError: Unknown format code 'q' for object of type 'int'"},
      {"str_format", "(\"{} {1} {0:>4}{{}}\", (1, 2))", "'1 2    1{}'"},
      {"mod.str", "(\"%d %5.1f %s|%-4d|\", (7, 2.25, \"x\", 3))", "'7   2.2 x|3   |'"},
      {"mod.str", "(\"%d\", \"x\")", "TypeError: %d format: a real number is required, not str"},
      {"mod.str", "(\"%d %d\", (1,))", "TypeError: not enough arguments for format string"},
      {"ord", "(\"ab\",)", "TypeError: ord() expected a character, but string of length 2 found"},
      {"chr", "(8364,)", "'\u20ac'"},
      {"hex", "(-255,)", "'-0xff'"},
      {"bool.any", "([],)", "False"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(eval(c.name, c.arguments), c.expected) << c.name << c.arguments;
}

TEST(HostOps, ListsChangeInPlace) {
  const IValue list = IValue::list({IValue(0), IValue(1), IValue(2), IValue(3), IValue(4)});
  call("delslice.list", {list, IValue(4), IValue(), IValue(-2)});
  EXPECT_EQ(repr(list), "[1, 3]");
  call("setslice.list", {list, IValue(1), IValue(1), IValue(), list});
  EXPECT_EQ(repr(list), "[1, 1, 3, 3]");
  call("extend", {list, list});
  EXPECT_EQ(list.items().size(), 8u);
  call("sort", {list, IValue(true)});
  EXPECT_EQ(repr(list), "[3, 3, 3, 3, 1, 1, 1, 1]");
  call("insert", {list, IValue(-100), IValue(9)});
  EXPECT_EQ(repr(call("pop.list", {list, IValue(0)})), "9");
}

TEST(HostOps, DictsKeepTheirOrder) {
  const IValue d = IValue(make_ref<DictBox>());
  for (int i : {3, 1, 2}) call("setitem.dict", {d, IValue(i), IValue(i * 10)});
  EXPECT_EQ(repr(call("keys", {d})), "[3, 1, 2]");
  EXPECT_EQ(repr(call("pop.dict", {d, IValue(1)})), "10");
  EXPECT_EQ(repr(call("items", {d})), "[(3, 30), (2, 20)]");
  try {
    call("getitem.dict", {d, IValue("x")});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kKey);
    EXPECT_EQ(e.message(), "'x'");
  }
}

TEST(HostOps, SignaturesResolve) {
  TypeBindings bindings;
  const HostOp& append = host_registry().get("append");
  EXPECT_TRUE(match_type(append.schema.arguments[0].type, Type::list(Type::str()), bindings));
  EXPECT_TRUE(match_type(append.schema.arguments[1].type, Type::str(), bindings));
  EXPECT_FALSE(match_type(append.schema.arguments[1].type, Type::int_(), bindings));
  const HostOp& items = host_registry().get("items");
  bindings.clear();
  EXPECT_TRUE(match_type(items.schema.arguments[0].type, Type::dict(Type::str(), Type::tensor()),
                         bindings));
  EXPECT_EQ(substitute(items.schema.results[0], bindings)->str_(), "List[Tuple[str, Tensor]]");
  EXPECT_EQ(host_registry().overloads("add")[0]->name(), "add.int");
  EXPECT_TRUE(host_registry().overloads("no_such").empty());
}

}  // namespace
}  // namespace prong
