// The public C++ API on what was saved: calls, forks, attributes, and what it says of mistakes.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "graph/archive.h"
#include "graph/printer.h"
#include "prong/module.h"
#include "script/text_unit.h"

namespace prong::api {
namespace {

std::string saved_function() {
  const script::TextUnit unit(R"(
def power(x: Tensor, n: int) -> Tensor:
    if n == 0:
        return torch.ones_like(x)
    half = torch.jit.fork(power, x, n // 2)
    y = torch.jit.wait(half)
    return y * y * x if n % 2 == 1 else y * y

def f(x: Tensor, n: int = 3, names: Optional[List[str]] = None) -> Tuple[Tensor, Dict[str, float]]:
    if n < 0:
        raise ValueError("n is negative")
    out: Dict[str, float] = {"n": float(n)}
    if names is not None:
        for name in names:
            out[name] = 1.5
    return power(x, n), out
)");
  return save_archive({{}, unit.function("f"), {}});
}

TEST(Api, RunsASavedFunction) {
  const Module f = Module::from_bytes(saved_function());
  const Tensor x = Tensor::from(std::vector<float>{1, 2, 3}, {3});
  const std::vector<Value> out = f({x, 5, Value::list({"a", "b"})}).items();
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].to_tensor().data<float>()[2], 243.0f);
  const auto entries = out[1].entries();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].first.to_string(), "n");
  EXPECT_EQ(entries[0].second.to_double(), 5.0);
  EXPECT_EQ(f({x}).items()[0].to_tensor().data<float>()[1], 8.0f);
  EXPECT_EQ(f.methods(), std::vector<std::string>{"forward"});
}

TEST(Api, ForksCalls) {
  const Module f = Module::from_bytes(saved_function());
  std::vector<Pending> running;
  for (int n = 0; n < 20; ++n)
    running.push_back(f.fork({Tensor::from(std::vector<double>{2}, {1}), n}));
  double expected = 1;
  for (const Pending& p : running) {
    EXPECT_EQ(p.wait().items()[0].to_tensor().data<double>()[0], expected);
    EXPECT_TRUE(p.is_done());
    expected *= 2;
  }
  const Pending failed = f.fork({Tensor(), -1});
  EXPECT_THROW(failed.wait(), std::exception);
}

Module counter() {
  auto home = make_ref<Definitions>();
  auto part = make_ref<ClassType>("Part", ClassType::Kind::kModule);
  auto whole = make_ref<ClassType>("Whole", ClassType::Kind::kModule);
  home->add(part);
  home->add(whole);
  part->add_attribute({"scale", Type::float_()});
  whole->add_attribute({"part", Type::class_(part)});
  whole->add_attribute({"bias", Type::tensor(), true});
  ParseScope scope;
  scope.types = {Type::class_(part), Type::class_(whole)};
  const auto functions = parse_functions(R"(def forward(self: Whole, x: float) -> float:
  p: Part = get_attr[part](self)
  s: float = get_attr[scale](p)
  y: float = host.mul.float(x, s)
  return y
)",
                                         scope);
  whole->add_method("forward", functions[0]);
  home->add(functions[0]);
  const auto inner = make_ref<Object>(part), outer = make_ref<Object>(whole);
  inner->slots[0] = IValue(2.0);
  outer->slots[0] = IValue(Ref<ObjectBase>(inner));
  outer->slots[1] = IValue(prong::Tensor::empty(Dims{2}, prong::DType::kFloat32));
  const std::string path = testing::TempDir() + "/prong_api_test.pt";
  std::ofstream(path, std::ios::binary) << save_archive({IValue(Ref<ObjectBase>(outer)), {}, {}});
  Module loaded = Module::load(path);
  std::remove(path.c_str());
  return loaded;
}

TEST(Api, ModulesHaveMethodsAndAttributes) {
  const Module m = counter();
  EXPECT_EQ(m({1.5}).to_double(), 3.0);
  EXPECT_EQ(m({4}).to_double(), 8.0);  // an int where a float is wanted
  m.set_attribute("part.scale", 10.0);
  EXPECT_EQ(m.attribute("part.scale").to_double(), 10.0);
  EXPECT_EQ(m({1.5}).to_double(), 15.0);
  EXPECT_EQ(m.attribute("bias").to_tensor().sizes(), std::vector<int64_t>{2});
  EXPECT_EQ(m.methods(), std::vector<std::string>{"forward"});
}

template <class F>
std::string message(F f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "no error";
}

TEST(Api, SaysWhatIsWrong) {
  const Module m = counter();
  EXPECT_NE(message([&] { m({"text"}); }).find("argument 'x' must be float, not str"),
            std::string::npos)
      << message([&] { m({"text"}); });
  EXPECT_NE(message([&] {
              m({1.0, 2.0});
            }).find("takes at most 1 arguments, got 2"),
            std::string::npos);
  EXPECT_NE(message([&] { m({}); }).find("lacks the argument 'x'"), std::string::npos);
  EXPECT_NE(message([&] { m.call({}, "backward"); }).find("no method 'backward'"),
            std::string::npos);
  EXPECT_NE(message([&] { m.attribute("part.size"); }).find("size"), std::string::npos);
  EXPECT_NE(message([&] { m.set_attribute("bias", 3); }).find("holds a Tensor"), std::string::npos);
  EXPECT_NE(message([] { Module::load("/nowhere/m.pt"); }).find("/nowhere/m.pt"),
            std::string::npos);
  EXPECT_NE(message([] { Module::from_bytes("PK nonsense"); }), "no error");
  EXPECT_NE(message([&] { Value(3).to_tensor(); }).find("expected a Tensor"), std::string::npos);
  EXPECT_NE(message([] {
              Tensor::from(std::vector<float>{1, 2}, {3});
            }).find("do not fill"),
            std::string::npos);
}

TEST(Api, TensorsShareAndConvert) {
  const Tensor t = Tensor::zeros({2, 2}, DType::kInt32);
  const Tensor same = t;
  same.data<int32_t>()[3] = 7;
  EXPECT_EQ(t.to(DType::kFloat64).data<double>()[3], 7.0);
  EXPECT_EQ(t.str(), "tensor([[0, 0],\n        [0, 7]], dtype=torch.int32)");
  EXPECT_THROW(t.data<float>(), std::exception);
}

}  // namespace
}  // namespace prong::api
