// What was saved and loaded is the same program over the same values.
#include <gtest/gtest.h>

#include "graph/archive.h"
#include "graph/printer.h"
#include "tensor/zip.h"

namespace prong {
namespace {

TEST(Zip, ReadsWhatItWrote) {
  const std::string bytes =
      write_zip({{"a.txt", "hello"}, {"empty", ""}, {"dir/b", std::string(1000, 'x')}});
  const auto files = read_zip(bytes);
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].first, "a.txt");
  EXPECT_EQ(files[0].second, "hello");
  EXPECT_EQ(files[2].second.size(), 1000u);
  std::string damaged = bytes;
  damaged[36] ^= 1;  // in "hello"
  EXPECT_THROW(read_zip(damaged), Error);
  EXPECT_THROW(read_zip("no archive at all, but long enough to look"), Error);
  EXPECT_THROW(read_zip(""), Error);
}

TEST(Archive, FunctionsKeepNamesDefaultsAndText) {
  const char* text =
      "def helper(x: int, by: int = 3) -> int:\n  y: int = host.mul.int(x, by)\n  return y\n"
      "def main(n: int = 2, *, label: str = \"a\\nb\") -> int:\n  r: int = call[helper](n, 3)\n  "
      "return r\n";
  const auto functions = parse_functions(text);
  const Archive loaded = load_archive(save_archive({{}, functions[1], {{"note", "kept"}}}));
  ASSERT_TRUE(loaded.function);
  EXPECT_TRUE(loaded.root.is_none());
  EXPECT_EQ(print(*loaded.function), print(*functions[1]));
  EXPECT_EQ(loaded.function->schema().arguments[1].default_value.to_string(), "a\nb");
  EXPECT_EQ(loaded.extra_files,
            (std::vector<std::pair<std::string, std::string>>{{"note", "kept"}}));
}

TEST(Archive, ModulesKeepSharing) {
  // Two classes of one name, a module in a module, a tensor and a view of it in three places.
  auto inner = make_ref<ClassType>("M", ClassType::Kind::kModule),
       outer = make_ref<ClassType>("M", ClassType::Kind::kModule);
  const auto home = make_ref<Definitions>();
  home->add(inner);
  home->add(outer);
  inner->add_attribute({"weight", Type::tensor(), true});
  outer->add_attribute({"child", Type::class_(inner)});
  outer->add_attribute({"again", Type::tensor(), false, true});
  outer->add_attribute({"extra", Type::dict(Type::str(), Type::list(Type::tensor()))});
  outer->constants.emplace_back("scale", IValue(2.5));
  ParseScope scope;
  scope.types = {Type::class_(inner)};
  inner->add_method(
      "forward",
      parse_functions("def forward(self: M, x: int) -> int:\n  w: Tensor = "
                      "get_attr[weight](self)\n  y: int = host.add.int(x, 1)\n  return y\n",
                      scope)[0]);
  scope.types = {Type::class_(outer)};
  outer->add_method(
      "forward",
      parse_functions(
          "def forward(self: M, x: int) -> int:\n  y: int = host.mul.int(x, 2)\n  return y\n",
          scope)[0]);
  const Tensor w = Tensor::empty(Dims{2, 3}, DType::kFloat32);
  for (int i = 0; i < 6; ++i) w.data<float>()[i] = static_cast<float>(i);
  w.impl()->requires_grad = true;
  const Tensor view = w.as_strided(Dims{3}, Dims{1}, 3);
  const auto child = make_ref<Object>(inner);
  child->slots[0] = IValue(w);
  const auto root = make_ref<Object>(outer);
  root->slots[0] = IValue(Ref<ObjectBase>(child));
  root->slots[1] = IValue(view);
  auto dict = make_ref<DictBox>();
  dict->set(IValue("k"), IValue::list({IValue(w), IValue(w)}));
  root->slots[2] = IValue(dict);

  const Archive loaded = load_archive(save_archive({IValue(Ref<ObjectBase>(root)), {}, {}}));
  const auto* o = dynamic_cast<const Object*>(loaded.root.object());
  ASSERT_TRUE(o);
  EXPECT_EQ(o->cls->qualified_name, "M");
  EXPECT_EQ(o->cls->constants[0].second.to_double(), 2.5);
  const auto* c = dynamic_cast<const Object*>(o->slots[0].object());
  ASSERT_TRUE(c);
  EXPECT_NE(c->cls.get(), o->cls.get());
  EXPECT_TRUE(c->cls->attributes()[0].is_parameter);
  const Tensor w2 = c->slots[0].to_tensor(), view2 = o->slots[1].to_tensor();
  EXPECT_TRUE(w2.requires_grad());
  EXPECT_EQ(w2.data<float>()[5], 5.0f);
  EXPECT_EQ(view2.storage().get(), w2.storage().get());
  EXPECT_EQ(view2.data<float>()[0], 3.0f);
  const auto& list = o->slots[2].dict()->find(IValue("k"))->items();
  EXPECT_EQ(list[0].identity(), list[1].identity());
  EXPECT_EQ(list[0].identity(), c->slots[0].identity());
  EXPECT_NE(print(*c->cls->find_method("forward")), print(*o->cls->find_method("forward")));
}

struct SomePython final : PyCallable {
  std::string describe() const override { return "the Python function 'plot'"; }
  IValue call(std::span<IValue>) override { return {}; }
};

TEST(Archive, SaysWhatCannotBeSaved) {
  ParseScope scope;
  scope.pool.push_back(IValue(Ref<ObjectBase>(make_ref<SomePython>())));
  const auto f =
      parse_functions("def f(x: int) -> int:\n  r: int = call_python[$0](x)\n  return r\n", scope);
  try {
    save_archive({{}, f[0], {}});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kRuntime);
    EXPECT_NE(e.message().find("function f: it calls the Python function 'plot'"),
              std::string::npos)
        << e.message();
  }
  EXPECT_THROW(load_archive(write_zip({{"manifest.txt", "prong archive 99\n"}})), Error);
  EXPECT_THROW(load_archive(write_zip({{"other", ""}})), Error);
}

}  // namespace
}  // namespace prong
