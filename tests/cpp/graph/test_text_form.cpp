// Printer and parser agree; bad text is answered with a place.
#include <gtest/gtest.h>

#include "graph/builder.h"
#include "graph/printer.h"
#include "graph/verify.h"

namespace prong {
namespace {

std::string round_trip(std::string_view text) {
  std::string out;
  for (const auto& f : parse_functions(text)) {
    if (f->is_defined()) verify(f->graph());
    out += print(*f);
  }
  return out;
}

TEST(TextForm, PrintsWhatItParsed) {
  const std::string_view text = R"(declare later(x: int, *, y: str = "z") -> List[int]
def twice(x: int, by: float = 2.0, *, label: str = "a\"b\n") -> int:
  y: int = host.mul.int(x, 2)
  return y
def main(n: int, xs: List[int], s: Optional[str]) -> Tuple[int, float]:
  nothing: Optional[str] = constant(None)
  total: int = loop(n, True, 0) as (i: int, acc: int):
    even: int = host.mod.int(i, 2)
    is_even: bool = host.eq.int(even, 0)
    more: int = if(is_even):
      r: int = call[twice](i, 2.0, "x")
      yield r
    else:
      v_1: None = host.append(xs, i)
      raise[ValueError]("odd")
      u: int = uninitialized()
      yield u
    sum: int = host.add.int(acc, more)
    yield True, sum
  f: Future[int] = fork[twice](total, 1e-300, "y")
  g: Future[int] = fork(total) as (t: int):
    yield t
  a: int = wait(f)
  b: int = wait(g)
  c: int = host.add.int(a, b)
  flag: bool = isinstance[str, List[int]](s)
  assert(flag, "wanted a string")
  pair: Tuple[int, float] = tuple(c, -inf)
  p: int, q: float = tuple_unpack(pair)
  d: Dict[str, int] = dict("k", p, "l", 3)
  l: List[float] = list(q, 1.5)
  return pair
)";
  EXPECT_EQ(round_trip(text), text);
}

TEST(TextForm, NamesInPrintAreUnique) {
  Graph g;
  Value* a = g.add_input(Type::int_(), "a");
  GraphBuilder b(g);
  Value* s = b.host("add.int", {a, a})->set_name("a");
  b.yield({b.host("add.int", {s, a})->set_name("True")});
  verify(g);
  EXPECT_EQ(g.str(),
            "def graph(a: int) -> int:\n  a_1: int = host.add.int(a, a)\n  True_: int = "
            "host.add.int(a_1, a)\n"
            "  return True_\n");
}

void expect_error(std::string_view text, std::string_view part) {
  try {
    parse_functions(text);
    FAIL() << "no error for " << text;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kValue);
    EXPECT_NE(e.message().find(part), std::string::npos) << e.message();
  }
}

TEST(TextForm, ErrorsNameThePlace) {
  expect_error("def f(x: int) -> int:\n  return y\n",
               "<text>:2:10: unknown value 'y'\n    return y\n           ^");
  expect_error("def f(x: int) -> int:\n  y: int = no_such(x)\n  return y\n",
               "unknown op 'no_such'");
  expect_error("def f(x: int) -> int:\n  y: int = host.add.int(x)\n  return y\n",
               "lacks its argument 'b'");
  expect_error("def f(x: Foo) -> int:\n  return x\n", "unknown type 'Foo'");
  expect_error("def f(x: int) -> int:\n  y: int = host.neg.int(x)\n", "ends in 'return'");
}

TEST(Verify, FindsWhatIsWrong) {
  Graph g;
  Value* x = g.add_input(Type::int_(), "x");
  GraphBuilder b(g);
  Node* cond = b.if_(b.constant(IValue(true)));
  GraphBuilder inner(cond->body(0));
  Value* hidden = inner.host("neg.int", {x});
  inner.yield({hidden});
  GraphBuilder other(cond->body(1));
  other.yield({x});
  Value* out = cond->add_output(Type::int_());
  b.yield({out});
  EXPECT_NO_THROW(verify(g));
  b.yield({hidden});  // not visible here
  EXPECT_THROW(verify(g), Error);
  b.yield({out});
  cond->body(1)->set_results({});
  EXPECT_THROW(verify(g), Error);
}

TEST(Graph, EditingKeepsUses) {
  Graph g;
  Value* x = g.add_input(Type::int_(), "x");
  GraphBuilder b(g);
  Value* y = b.host("add.int", {x, x});
  Value* z = b.host("add.int", {y, x});
  b.yield({z});
  EXPECT_EQ(x->uses().size(), 3u);
  y->replace_all_uses_with(x);
  EXPECT_FALSE(y->has_uses());
  y->producer()->erase();
  verify(g);
  EXPECT_EQ(x->uses().size(), 2u);
  const auto copy = g.copy();
  verify(*copy);
  EXPECT_EQ(copy->str(), g.str());
}

}  // namespace
}  // namespace prong
