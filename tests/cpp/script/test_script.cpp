// The front end from text to verified graphs, and its messages.
#include <gtest/gtest.h>

#include "graph/printer.h"
#include "graph/verify.h"
#include "script/text_unit.h"

namespace prong::script {
namespace {

std::string compiled(const std::string& text, const std::string& name = "f") {
  const TextUnit unit(text);
  const Ref<Function> f = unit.function(name);
  verify(f->graph());
  return print(*f);
}

std::string failure(const std::string& text, const std::string& name = "f") {
  try {
    const std::string graph = compiled(text, name);
    return "compiled: " + graph;
  } catch (const Error& e) {
    return e.message();
  }
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const char* const kPrograms[] = {
    "def f(x):\n    return x + 1\n",
    "def f(x, n: int):\n    for i in range(n):\n        x = x * 2\n    return x\n",
    "def f(n: int) -> int:\n    if n < 2:\n        return n\n    return f(n - 1) + f(n - 2)\n",
    "def f(n: int):\n    if n < 2:\n        return n\n    return f(n - 1) + f(n - 2)\n",
    "def g(x):\n    return x.neg()\ndef f(x):\n    a = torch.jit.fork(g, x)\n    return g(x), "
    "torch.jit.wait(a)\n",
    "def g(x):\n    return x\ndef f(x):\n    jobs = []\n    for i in range(3):\n        "
    "jobs.append(torch.jit.fork(g, x))\n"
    "    t = torch.zeros_like(x)\n    for j in jobs:\n        t = t * 2 + torch.jit.wait(j)\n    "
    "return t\n",
    "def f(n: int):\n    total = 0\n    for i in range(n):\n        with torch.no_grad():\n        "
    "    v = i * 2\n"
    "            if i % 3 == 0:\n                continue\n            with torch.no_grad():\n     "
    "           if i % 2 == 0:\n"
    "                    continue\n                u = i * i\n            total += v + u\n    "
    "return total\n",
    "def f(x):\n    while bool(x.sum() < 100):\n        x = x * 2\n        if bool(x.sum() > "
    "50):\n            return x, 1\n    return x, 0\n",
    "def f(v: List[int]):\n    return [k * 10 for k in reversed(v) if k > 1]\n",
    "def f(x: Optional[Tensor], y):\n    if x is not None and x.dim() > 1:\n        return x + y\n "
    "   return y\n",
    "def f(x: Optional[int] = None):\n    if x is None:\n        x = 3\n    return x + 1\n",
    "def f(d: Dict[str, int]):\n    s = 0\n    for k, v in d.items():\n        s += v\n        if "
    "k == 'stop':\n            break\n    return s\n",
    "def f(x):\n    a, *b = [1, 2, 3]\n    c = (a, x)\n    d, e = c\n    return b, e, f'{a:03d} "
    "{d!r}', 'x%d' % a\n",
    "def f(x, i: int):\n    x[i, 1:] = 0\n    x[..., None, -1] += 1\n    return x[0], x[:, None, "
    "::2], x[..., 0]\n",
    "def f(n: int):\n    x = 0\n    while True:\n        x += 1\n        if x > n:\n            "
    "return x\n",
    "def f(n: int):\n    for i in range(n):\n        if i == 7:\n            break\n    else:\n    "
    "    return 'none'\n    return 'found'\n",
    "def f(x):\n    assert x.dim() == 2, f'got {x.dim()}'\n    if x.size(0) > 3:\n        raise "
    "ValueError('too many')\n    return x\n",
    "def f(x):\n    return x if x.dim() > 0 else None\n",
    "def f(x):\n    j = torch.jit.fork(x.neg)\n    k = torch.jit.fork(torch.add, x, x, alpha=3)\n  "
    "  return j.wait() + k.wait()\n",
    "def f(a: int, b: int):\n    return a < b < 10 and not (a == 3 or b > 4)\n",
    "def f(x: float, s: str):\n    return math.sqrt(x) + math.pi, s.upper().split(','), len(s), "
    "min(x, 2), sum([1, 2]), s in 'abc'\n",
    "def f():\n    return torch.ones(2) * 3\n",
    "def f(n: int):\n    best = None\n    for i in range(n):\n        if i > 2:\n            best "
    "= i\n    if best is not None:\n        return best\n    return -1\n",
    "def f(x):\n    y = 0\n    for i in range(3):\n        y = y + x\n    return y\n",
    "def f(x):\n    # type: (Tensor) -> Tensor\n    z = []  # type: List[Tensor]\n    "
    "z.append(x)\n    return z[0]\n",
    "def f(x: List[Tuple[int, str]]):\n    return {k: v for v, k in x}\n",
    "def f(n: int):\n    if n > 0:\n        y = 1\n    else:\n        raise RuntimeError('no')\n   "
    " return y\n",
    "def f(n: int):\n    for i in range(n):\n        for j in range(i):\n            if j == 3:\n  "
    "              return j\n            if j == 2:\n                continue\n        if i == "
    "5:\n            break\n    return -1\n",
};

class Compiles : public testing::TestWithParam<const char*> {};
TEST_P(Compiles, ToAVerifiedGraph) {
  if (!registry().find("add") || !registry().find("sum")) GTEST_SKIP() << "this build lacks ops";
  const std::string out = failure(GetParam());
  EXPECT_TRUE(has(out, "compiled: ")) << GetParam() << "\n" << out;
  if (getenv("SHOW")) printf("%s\n%s\n", GetParam(), out.c_str());
}
INSTANTIATE_TEST_SUITE_P(Programs, Compiles, testing::ValuesIn(kPrograms));

TEST(Messages, NameThePlace) {
  const std::string m = failure("def f(x):\n    return x + nowhere\n");
  EXPECT_TRUE(has(m, "undefined name 'nowhere'")) << m;
  EXPECT_TRUE(has(m, "line 2, in f\n    return x + nowhere\n               ^^^^^^^")) << m;
}

TEST(Messages, Futures) {
  EXPECT_TRUE(has(failure("def f(x):\n    return torch.jit.wait(x)\n"),
                  "needs a Future but got a value of type 'Tensor'"));
  EXPECT_TRUE(has(failure("def f(x):\n    return torch.jit.fork(x)\n"),
                  "cannot call a value of type 'Tensor'"));
  const std::string m = failure(
      "def g(x: int) -> int:\n    return x\ndef f(x: int) -> Future[float]:\n    return "
      "torch.jit.fork(g, x)\n");
  EXPECT_TRUE(has(m, "'Future[float]'") && has(m, "'Future[int]'")) << m;
  EXPECT_TRUE(
      has(failure("def f(x):\n    y: List[Future] = []\n    return x\n"), "contained type"));
}

TEST(Messages, Types) {
  EXPECT_TRUE(has(failure("def g(x):\n    return x\ndef f(n: int):\n    return g(n)\n"),
                  "expected a value of type 'Tensor' but got 'int'"));
  EXPECT_TRUE(has(
      failure("def g(x, k: int):\n    return x\ndef f(x):\n    return torch.jit.fork(g, x, j=3)\n"),
      "unknown argument 'j'"));
  EXPECT_TRUE(has(failure("def f(n: int):\n    if n > 0:\n        y = 1\n    return y\n"),
                  "'y' is not defined on the else path"));
  EXPECT_TRUE(has(failure("def f(x: Optional[int]):\n    return x + 1\n"), "may be None"));
  EXPECT_TRUE(has(
      failure("def f(x):\n    try:\n        return x\n    except ValueError:\n        return x\n"),
      "try is not available"));
  EXPECT_TRUE(has(failure("def f(x:\n    return x\n"), "syntax error"));
}

}  // namespace
}  // namespace prong::script
