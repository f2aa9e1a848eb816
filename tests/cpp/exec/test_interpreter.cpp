// Programs in the text form, run: control flow, calls, containers, lives of values.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "exec/run.h"
#include "graph/printer.h"
#include "graph/verify.h"

namespace prong::exec {
namespace {

std::vector<Ref<Function>> parse(std::string_view text, const ParseScope& scope = {}) {
  auto functions = parse_functions(text, scope);
  for (const auto& f : functions) verify(f->graph());
  return functions;
}

// Runs the last function of the text.
std::string run_text(std::string_view text, std::vector<IValue> args,
                     const ParseScope& scope = {}) {
  const auto functions = parse(text, scope);
  const auto home = make_ref<Definitions>(functions);
  return repr(run(*functions.back(), std::move(args)));
}

TEST(Interpreter, Arithmetic) {
  EXPECT_EQ(run_text("def f(a: int, b: int) -> int:\n  c: int = host.mul.int(a, a)\n  d: int = "
                     "host.add.int(c, b)\n  return d\n",
                     {IValue(3), IValue(4)}),
            "13");
}

TEST(Interpreter, BranchesGiveTheirYields) {
  const char* text = R"(def f(a: int) -> Tuple[int, str]:
  neg: bool = host.lt.int(a, 0)
  m: int, s: str = if(neg):
    n: int = host.neg.int(a)
    yield n, "was negative"
  else:
    yield a, "as it was"
  t: Tuple[int, str] = tuple(m, s)
  return t
)";
  EXPECT_EQ(run_text(text, {IValue(-5)}), "(5, 'was negative')");
  EXPECT_EQ(run_text(text, {IValue(5)}), "(5, 'as it was')");
}

TEST(Interpreter, LoopCarriesInParallel) {  // fibonacci: the carried values swap
  const char* text = R"(def f(n: int) -> int:
  a: int, b: int = loop(n, True, 0, 1) as (i: int, x: int, y: int):
    s: int = host.add.int(x, y)
    yield True, y, s
  return a
)";
  EXPECT_EQ(run_text(text, {IValue(50)}), "12586269025");
  EXPECT_EQ(run_text(text, {IValue(0)}), "0");
}

TEST(Interpreter, WhileLoopAndUnusedResults) {
  const char* text = R"(def f(n: int) -> int:
  big: bool = host.gt.int(n, 1)
  steps: int, rest: int = loop(None, big, 0, n) as (i: int, s: int, m: int):
    r: int = host.mod.int(m, 2)
    odd: bool = host.eq.int(r, 1)
    next: int = if(odd):
      a: int = host.mul.int(m, 3)
      b: int = host.add.int(a, 1)
      yield b
    else:
      c: int = host.floordiv.int(m, 2)
      yield c
    t: int = host.add.int(s, 1)
    more: bool = host.gt.int(next, 1)
    yield more, t, next
  return steps
)";
  EXPECT_EQ(run_text(text, {IValue(27)}), "111");
  EXPECT_EQ(run_text(text, {IValue(1)}), "0");
}

TEST(Interpreter, NestedLoopsKeepOuterValues) {
  const char* text = R"(def f(n: int, xs: List[int]) -> List[int]:
  k: int = host.mul.int(n, 100)
  loop(n, True) as (i: int):
    loop(n, True) as (j: int):
      p: int = host.mul.int(i, j)
      q: int = host.add.int(p, k)
      v_1: None = host.append(xs, q)
      yield True
    yield True
  return xs
)";
  EXPECT_EQ(run_text(text, {IValue(2), IValue::list({})}), "[200, 200, 200, 201]");
}

TEST(Interpreter, CallsAndDeepRecursion) {
  const char* text = R"(def down(n: int) -> int:
  stop: bool = host.le.int(n, 0)
  r: int = if(stop):
    yield 0
  else:
    m: int = host.sub.int(n, 1)
    s: int = call[down](m)
    t: int = host.add.int(s, 1)
    yield t
  return r
)";
  EXPECT_EQ(run_text(text, {IValue(90000)}), "90000");
  const auto functions = parse(text);
  const auto home = make_ref<Definitions>(functions);
  try {
    run(*functions[0], {IValue(200000)});
    FAIL() << "no error";
  } catch (const ScriptError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kRuntime);
    EXPECT_NE(e.message().find("maximum recursion depth exceeded"), std::string::npos)
        << e.message();
    EXPECT_NE(std::string(e.what()).find(" more ...\n"), std::string::npos);
  }
}

TEST(Interpreter, Containers) {
  const char* text = R"(def f(a: int, b: str) -> Tuple[int, str, List[int], Dict[str, int]]:
  l: List[int] = list(a, 2, a)
  x: int, y: int, z: int = list_unpack(l)
  d: Dict[str, int] = dict(b, x, "two", y)
  t: Tuple[int, str] = tuple(z, b)
  p: int, q: str = tuple_unpack(t)
  s: str = tuple_get[1](t)
  e: Tuple[int, str, List[int], Dict[str, int]] = tuple(p, s, l, d)
  return e
)";
  EXPECT_EQ(run_text(text, {IValue(1), IValue("one")}),
            "(1, 'one', [1, 2, 1], {'one': 1, 'two': 2})");
  try {
    run_text("def f(l: List[int]) -> int:\n  x: int, y: int = list_unpack(l)\n  return x\n",
             {IValue::list({IValue(1)})});
    FAIL() << "no error";
  } catch (const ScriptError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kValue);
    EXPECT_EQ(e.message(), "not enough values to unpack (expected 2, got 1)");
  }
}

TEST(Interpreter, IsInstance) {
  const char* text =
      "def f(v: Any) -> Tuple[bool, bool]:\n  a: bool = isinstance[int, List[str]](v)\n  b: bool = "
      "isinstance[Optional[float]](v)\n"
      "  t: Tuple[bool, bool] = tuple(a, b)\n  return t\n";
  EXPECT_EQ(run_text(text, {IValue(1)}), "(True, False)");
  EXPECT_EQ(run_text(text, {IValue::list({IValue("x")})}), "(True, False)");
  EXPECT_EQ(run_text(text, {IValue::list({IValue(2)})}), "(False, False)");
  EXPECT_EQ(run_text(text, {IValue()}), "(False, True)");
}

Ref<ClassType> counter_class(Definitions& home) {
  auto cls = make_ref<ClassType>("Counter", ClassType::Kind::kClass);
  home.add(cls);
  cls->add_attribute({"count", Type::int_()});
  ParseScope scope;
  scope.types.push_back(Type::class_(cls));
  for (const auto& f : parse_functions(R"(def bump(self: Counter, by: int) -> int:
  old: int = get_attr[count](self)
  new: int = host.add.int(old, by)
  set_attr[count](self, new)
  return new
def __enter__(self: Counter) -> int:
  r: int = call_method[bump](self, 100)
  return r
def __exit__(self: Counter, type: Any, value: Any, traceback: Any) -> None:
  r: int = call_method[bump](self, 1000)
  return None
)",
                                       scope))
    cls->add_method(f->name(), f);
  return cls;
}

TEST(Interpreter, ObjectsAndMethods) {
  const auto home = make_ref<Definitions>();
  const Ref<ClassType> cls = counter_class(*home);
  ParseScope scope;
  scope.types.push_back(Type::class_(cls));
  EXPECT_EQ(run_text(R"(def f(n: int) -> int:
  c: Counter = new_object()
  set_attr[count](c, n)
  a: int = call_method[bump](c, 1)
  b: int = call_method[bump](c, a)
  return b
)",
                     {IValue(5)}, scope),
            "12");
}

TEST(Interpreter, WithLeavesOnErrorsToo) {
  const auto home = make_ref<Definitions>();
  const Ref<ClassType> cls = counter_class(*home);
  ParseScope scope;
  scope.types.push_back(Type::class_(cls));
  const auto functions = parse(R"(def inner(n: int) -> int:
  q: int = host.floordiv.int(1, n)
  return q
def f(c: Counter, n: int) -> int:
  out: int = with(c) as (entered: int):
    r: int = with(c) as (again: int):
      q: int = call[inner](n)
      s: int = host.add.int(q, again)
      yield s
    yield r
  return out
)",
                               scope);
  const auto object = make_ref<Object>(cls);
  object->slots[0] = IValue(0);
  const IValue c{Ref<ObjectBase>(object)};
  EXPECT_EQ(repr(run(*functions[1], {c, IValue(1)})), "201");
  EXPECT_EQ(object->slots[0].to_int(), 2200);
  EXPECT_THROW(run(*functions[1], {c, IValue(0)}), ScriptError);
  EXPECT_EQ(object->slots[0].to_int(), 4400);
}

// ── who keeps what ──

struct Counted final : PyCallable {
  static inline int alive = 0;
  Counted() { ++alive; }
  ~Counted() override { --alive; }
  std::string describe() const override { return "counted"; }
  IValue call(std::span<IValue>) override { return IValue(1); }
};

std::vector<Ref<Function>> even_and_odd() {
  ParseScope scope;
  scope.pool.push_back(IValue(Ref<ObjectBase>(make_ref<Counted>())));
  return parse(R"(def even(n: int) -> bool:
  one: int = call_python[$0]()
  m: int = host.sub.int(n, one)
  end: bool = host.lt.int(m, 0)
  r: bool = if(end):
    yield True
  else:
    o: bool = call[odd](m)
    yield o
  return r
def odd(n: int) -> bool:
  m: int = host.sub.int(n, 1)
  end: bool = host.lt.int(m, 0)
  r: bool = if(end):
    yield False
  else:
    f: Future[bool] = fork[even](m)
    e: bool = wait(f)
    yield e
  return r
)",
               scope);
}

TEST(Home, FreesFunctionsThatCallEachOther) {
  auto functions = even_and_odd();
  auto home = make_ref<Definitions>(functions);
  EXPECT_TRUE(run(*functions[0], {IValue(10)}).to_bool());
  const Ref<Function> kept = functions[1];
  functions.clear();
  EXPECT_EQ(Counted::alive, 1);
  home = {};
  EXPECT_EQ(Counted::alive, 0);
  try {
    run(*kept, {IValue(1)});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kRuntime);
    EXPECT_NE(e.message().find("what it belongs to"), std::string::npos) << e.message();
  }
}

TEST(Home, StaysForCallersElsewhereAndForTasks) {
  auto functions = even_and_odd();
  auto home = make_ref<Definitions>(functions);
  ParseScope scope;
  scope.functions = functions;
  auto caller = parse("def f(n: int) -> bool:\n  r: bool = call[odd](n)\n  return r\n", scope);
  functions.clear();
  scope = {};
  home = {};
  auto future = fork(*caller[0], {IValue(51)});
  caller.clear();
  future->wait();
  EXPECT_TRUE(future->value().to_bool());
  // The task itself may still be on its way out on another thread.
  future = {};
  for (int k = 0; k < 2000 && Counted::alive; ++k)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(Counted::alive, 0);
}

TEST(Home, StaysForInstances) {
  auto home = make_ref<Definitions>();
  Ref<ClassType> cls = counter_class(*home);
  auto object = make_ref<Object>(cls);
  object->slots[0] = IValue(1);
  cls = {};
  home = {};
  EXPECT_EQ(
      run(*object->cls->find_method("bump"), {IValue(Ref<ObjectBase>(object)), IValue(4)}).to_int(),
      5);
  cls = object->cls;
  object = {};
  EXPECT_TRUE(cls->methods().empty());
}

TEST(Interpreter, ValuesEndAtTheirLastUse) {
  const auto functions = parse(R"(def f(xs: List[int]) -> bool:
  n: int = host.len.list(xs)
  b: bool = host.gt.int(n, 3)
  r: bool = if(b):
    yield True
  else:
    s: int = host.len.list(xs)
    c: bool = host.gt.int(s, 1)
    yield c
  return r
)");
  const Program& p = program_of(*functions[0]);
  EXPECT_EQ(p.str(), R"(program f: 1 parameters, 3 registers
  0: r1 = host len.list (r0)
  5: r1 = host gt.int (r1^, 3)
  11: jump_unless 25 (r1^)
  15: drop (r0^)
  18: r2 = move (True)
  22: jump 40
  25: r0 = host len.list (r0^)
  30: r0 = host gt.int (r0^, 1)
  36: r2 = move (r0^)
  40: return (r2^)
)") << p.str();
}

TEST(Interpreter, WrongNumberOfArguments) {
  const auto functions = parse("def f(a: int) -> int:\n  return a\n");
  try {
    run(*functions[0], {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kType);
    EXPECT_EQ(e.message(), "f() takes 1 arguments, got 0");
  }
}

}  // namespace
}  // namespace prong::exec
