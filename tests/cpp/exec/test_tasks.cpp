// fork and wait in programs: values, depth, errors through chains of tasks, with-regions around
// waits.
#include <gtest/gtest.h>

#include "eager/modes.h"
#include "exec/run.h"
#include "graph/builder.h"
#include "graph/printer.h"
#include "graph/verify.h"
#include "runtime/future.h"
#include "runtime/parallel.h"

namespace prong::exec {
namespace {

class Tasks : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    threads_ = num_threads();
    set_num_threads(GetParam());
  }
  void TearDown() override { set_num_threads(threads_); }
  int threads_ = 1;
};
INSTANTIATE_TEST_SUITE_P(Threads, Tasks, ::testing::Values(1, 2, 4));

const char* const kMany = R"(def square(x: int) -> int:
  y: int = host.mul.int(x, x)
  return y
def many(n: int) -> int:
  fs: List[Future[int]] = list()
  loop(n, True) as (i: int):
    f: Future[int] = fork[square](i)
    v_1: None = host.append(fs, f)
    yield True
  total: int = loop(n, True, 0) as (i_1: int, acc: int):
    g: Future[int] = host.getitem.list(fs, i_1)
    r: int = wait(g)
    s: int = host.add.int(acc, r)
    yield True, s
  return total
)";

TEST_P(Tasks, ManyAtOnce) {
  const auto functions = parse_functions(kMany);
  EXPECT_EQ(run(*functions[1], {IValue(2000)}).to_int(), 2664667000);
}

const char* const kChain = R"(def chain(n: int) -> int:
  stop: bool = host.le.int(n, 0)
  r: int = if(stop):
    yield 0
  else:
    m: int = host.sub.int(n, 1)
    f: Future[int] = fork[chain](m)
    s: int = wait(f)
    t: int = host.add.int(s, 1)
    yield t
  return r
)";

TEST_P(Tasks, ChainOfTenThousand) {
  const auto functions = parse_functions(kChain);
  const auto home = make_ref<Definitions>(functions);
  EXPECT_EQ(run(*functions[0], {IValue(10000)}).to_int(), 10000);
}

TEST_P(Tasks, TreeOfTasks) {
  const auto functions = parse_functions(R"(def fib(n: int) -> int:
  small: bool = host.lt.int(n, 2)
  r: int = if(small):
    yield n
  else:
    a: int = host.sub.int(n, 1)
    b: int = host.sub.int(n, 2)
    f: Future[int] = fork[fib](a)
    g: Future[int] = fork[fib](b)
    x: int = wait(f)
    y: int = wait(g)
    s: int = host.add.int(x, y)
    yield s
  return r
)");
  const auto home = make_ref<Definitions>(functions);
  EXPECT_EQ(run(*functions[0], {IValue(15)}).to_int(), 610);
}

TEST_P(Tasks, BlocksAndMethodsAreForked) {
  const auto functions = parse_functions(R"(def f(x: int) -> int:
  a: Future[int] = fork(x, 5) as (p: int, q: int):
    m: int = host.mul.int(p, q)
    yield m
  b: int = wait(a)
  again: int = wait(a)
  c: int = host.add.int(b, again)
  return c
)");
  EXPECT_EQ(run(*functions[0], {IValue(3)}).to_int(), 30);
}

TEST_P(Tasks, ForkFromOutsideGivesAFuture) {
  const auto functions = parse_functions(kMany);
  const Ref<Future> f = fork(*functions[0], {IValue(12)});
  f->wait();
  EXPECT_EQ(f->value().to_int(), 144);
}

// ── errors ──

Value* at(GraphBuilder& b, const Ref<SourceText>& source, int line, int column, int end, Value* v) {
  v->producer()->set_range({source, line, column, line, end});
  (void)b;
  return v;
}

struct Failing {
  Ref<Function> bad, middle, outer;
};

// def align_rows(n): return 1 // n;  def middle(n): return wait(fork(align_rows, n));  def
// outer(n): the same of middle
Failing failing() {
  auto source =
      make_ref<SourceText>("x.py",
                           "def align_rows(n: int):\n    return 1 // n\n"
                           "def middle(n: int):\n    f = fork(align_rows, n)\n    return wait(f)\n"
                           "def outer(n: int):\n    f = fork(middle, n)\n    return wait(f)\n");
  Failing out;
  const auto function = [](std::string name) {
    return make_ref<Function>(name, Schema::parse(cat(name, "(n: int) -> int")));
  };
  out.bad = function("align_rows"), out.middle = function("middle"), out.outer = function("outer");
  auto g = std::make_unique<Graph>();
  Value* n = g->add_input(Type::int_(), "n");
  GraphBuilder b(*g);
  b.yield({at(b, source, 2, 11, 17, b.host("floordiv.int", {b.constant(IValue(1)), n}))});
  out.bad->define(std::move(g));
  const auto forking = [&](const Ref<Function>& f, const Ref<Function>& callee, int line) {
    auto graph = std::make_unique<Graph>();
    Value* input = graph->add_input(Type::int_(), "n");
    GraphBuilder builder(*graph);
    Value* future = at(builder, source, line, 8, 27 - (callee == out.middle ? 4 : 0),
                       builder.fork(callee, std::span(&input, 1)));
    builder.yield({at(builder, source, line + 1, 11, 18, builder.wait(future))});
    f->define(std::move(graph));
  };
  forking(out.middle, out.bad, 4);
  forking(out.outer, out.middle, 7);
  return out;
}

TEST_P(Tasks, ErrorsTellTheirWayThroughTasks) {
  const Failing f = failing();
  EXPECT_EQ(run(*f.outer, {IValue(1)}).to_int(), 1);
  try {
    run(*f.outer, {IValue(0)});
    FAIL() << "no error";
  } catch (const ScriptError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kZeroDivision);
    EXPECT_EQ(e.message(), "integer division or modulo by zero");
    EXPECT_EQ(std::string(e.what()), R"(The following operation failed in the Prong interpreter.
Traceback of Prong script (most recent call last):
  File "x.py", line 8, in outer
    return wait(f)
           ~~~~~~~ <--- HERE
  File "x.py", line 7, in <forked function>
    f = fork(middle, n)
        ~~~~~~~~~~~~~~~ <--- HERE
  File "x.py", line 5, in middle
    return wait(f)
           ~~~~~~~ <--- HERE
  File "x.py", line 4, in <forked function>
    f = fork(align_rows, n)
        ~~~~~~~~~~~~~~~~~~~ <--- HERE
  File "x.py", line 2, in align_rows
    return 1 // n
           ~~~~~~ <--- HERE
ZeroDivisionError: integer division or modulo by zero)");
    EXPECT_TRUE(e.original());
  }
}

TEST_P(Tasks, RaiseKeepsItsClass) {
  const auto functions = parse_functions(R"(def g(x: str) -> int:
  raise[ValueError](x)
  u: int = uninitialized()
  return u
def h(x: str) -> int:
  raise[my.module.MyError](x)
  return 0
def f(x: str) -> int:
  a: Future[int] = fork[g](x)
  r: int = wait(a)
  return r
)");
  for (const auto& [function, kind, name] :
       {std::tuple{2, ErrorKind::kValue, "ValueError"},
        std::tuple{0, ErrorKind::kValue, "ValueError"},
        std::tuple{1, ErrorKind::kRuntime, "my.module.MyError"}}) {
    try {
      run(*functions[static_cast<size_t>(function)], {IValue("the text")});
      FAIL() << "no error";
    } catch (const ScriptError& e) {
      EXPECT_EQ(e.kind(), kind);
      EXPECT_EQ(e.class_name(), name);
      EXPECT_EQ(e.message(), "the text");
    }
  }
}

TEST_P(Tasks, LongChainsOfErrorsStayCheap) {
  const auto functions = parse_functions(R"(def chain(n: int) -> int:
  stop: bool = host.le.int(n, 0)
  r: int = if(stop):
    q: int = host.floordiv.int(1, n)
    yield q
  else:
    m: int = host.sub.int(n, 1)
    f: Future[int] = fork[chain](m)
    s: int = wait(f)
    yield s
  return r
)");
  const auto home = make_ref<Definitions>(functions);
  try {
    run(*functions[0], {IValue(10000)});
    FAIL() << "no error";
  } catch (const ScriptError& e) {
    const std::string text = e.what();
    EXPECT_LT(text.size(), 20000u);
    EXPECT_NE(text.find("ZeroDivisionError: integer division or modulo by zero"),
              std::string::npos);
  }
}

const char* const kWaits = R"(def waits(x: Future[int]) -> int:
  r: int = wait(x)
  return r
)";

// A task and the future that it waits for may not keep each other.
TEST_P(Tasks, GoWithTheFutureThatTheyWaitFor) {
  const auto functions = parse_functions(kWaits);
  auto promise = make_ref<Future>();
  const Ref<Future> first = fork(*functions[0], {IValue(promise)});
  const Ref<Future> second = fork(*functions[0], {IValue(first)});
  EXPECT_FALSE(second->wait_for(0.01));
  promise = {};
  second->wait();
  ASSERT_TRUE(first->is_done());
  try {
    first->value();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kRuntime);
    EXPECT_NE(e.message().find("dropped before it was done"), std::string::npos) << e.message();
  }
  EXPECT_THROW(second->value(), Error);
}

TEST_P(Tasks, GoOnWhenTheFutureIsDone) {
  const auto functions = parse_functions(kWaits);
  auto promise = make_ref<Future>();
  std::vector<Ref<Future>> waiting;
  for (int i = 0; i < 20; ++i) waiting.push_back(fork(*functions[0], {IValue(promise)}));
  EXPECT_FALSE(waiting.back()->wait_for(0.01));
  promise->set_value(IValue(7));
  promise = {};
  for (const auto& f : waiting) {
    f->wait();
    EXPECT_EQ(f->value().to_int(), 7);
  }
}

TEST_P(Tasks, WaitForWhatIsNoFuture) {
  const auto functions = parse_functions(
      "def f(x: Optional[Future[int]]) -> int:\n  g: Future[int] = unchecked_cast(x)\n  r: int = "
      "wait(g)\n  return r\n");
  try {
    run(*functions[0], {IValue()});
    FAIL();
  } catch (const ScriptError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kRuntime);
    EXPECT_EQ(e.message(), "wait: the future can't be None");
  }
}

// ── context ──

TEST_P(Tasks, ModesTravelWithTasksAndComeBack) {
  const auto functions = parse_functions(R"(def grad() -> bool:
  g: bool = host.is_grad_enabled()
  return g
def fail(n: int) -> int:
  q: int = host.floordiv.int(1, n)
  return q
def f(n: int) -> Tuple[bool, bool, bool]:
  m: Any = host.no_grad()
  a: bool, b: bool = with(m) as (e: Any):
    fu: Future[bool] = fork[grad]()
    inside: bool = wait(fu)
    h: bool = host.is_grad_enabled()
    fv: Future[int] = fork[fail](n)
    q: int = wait(fv)
    yield inside, h
  c: bool = host.is_grad_enabled()
  t: Tuple[bool, bool, bool] = tuple(a, b, c)
  return t
)");
  for (int repeat = 0; repeat < 50; ++repeat) {
    EXPECT_EQ(repr(run(*functions[2], {IValue(1)})), "(False, False, True)");
    EXPECT_TRUE(eager::is_grad_enabled());
    EXPECT_THROW(run(*functions[2], {IValue(0)}), ScriptError);
    EXPECT_TRUE(eager::is_grad_enabled());
  }
}

// ── Python inside tasks ──

// Runs a forking script from inside a task, as an ignored Python function may.
struct Reentering final : PyCallable {
  explicit Reentering(Ref<Function> f) : function(std::move(f)) {}
  std::string describe() const override { return "test"; }
  IValue call(std::span<IValue> args) override { return run(*function, {args[0]}); }
  Ref<Function> function;
};

TEST_P(Tasks, BlockingRunsNestInTasks) {
  const auto inner = parse_functions(kMany);
  ParseScope scope;
  scope.pool.push_back(IValue(Ref<ObjectBase>(make_ref<Reentering>(inner[1]))));
  const auto functions = parse_functions(R"(def ignored(n: int) -> int:
  r: int = call_python[$0](n)
  return r
def f(n: int) -> int:
  fs: List[Future[int]] = list()
  loop(n, True) as (i: int):
    f: Future[int] = fork[ignored](i)
    v_1: None = host.append(fs, f)
    yield True
  total: int = loop(n, True, 0) as (i_1: int, acc: int):
    g: Future[int] = host.getitem.list(fs, i_1)
    r: int = wait(g)
    s: int = host.add.int(acc, r)
    yield True, s
  return total
)",
                                         scope);
  int64_t expected = 0;
  for (int64_t i = 0; i < 40; ++i)
    for (int64_t k = 0; k < i; ++k) expected += k * k;
  EXPECT_EQ(run(*functions[1], {IValue(40)}).to_int(), expected);
}

}  // namespace
}  // namespace prong::exec
