// codegen/jit: IR text becomes functions that run, errors that name the place, and memory that
// goes.
#include "codegen/jit.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"

namespace prong::codegen {
namespace {

constexpr const char* kAdd = R"(
define float @add(float %a, float %b) {
  %sum = fadd float %a, %b
  ret float %sum
})";

std::string message_of(Jit& jit, const char* ir) {
  try {
    jit.compile(ir, "wrong");
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST(Jit, RunsAFunction) {
  Jit jit;
  auto code = jit.compile(kAdd, "add");
  auto* add = code->function<float(float, float)>("add");
  EXPECT_EQ(add(1.5f, 2.25f), 3.75f);
}

TEST(Jit, MakesCodeForThisCpu) {
  Jit jit;
  EXPECT_FALSE(jit.cpu().empty());
  EXPECT_NE(jit.features().find('+'), std::string::npos);
}

TEST(Jit, ModulesMayUseTheSameNames) {
  Jit jit;
  auto one = jit.compile("define i32 @f() { ret i32 1 }", "m");
  auto two = jit.compile("define i32 @f() { ret i32 2 }", "m");
  EXPECT_EQ(one->function<int()>("f")(), 1);
  EXPECT_EQ(two->function<int()>("f")(), 2);
}

TEST(Jit, CodeOutlivesTheJit) {
  std::shared_ptr<const Code> code;
  {
    Jit jit;
    code = jit.compile(kAdd, "add");
  }
  EXPECT_EQ(code->function<float(float, float)>("add")(1, 2), 3);
}

// Bytes of executable memory that belong to no file: the code of jitted modules.
size_t anonymous_code() {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  size_t bytes = 0;
  while (std::getline(maps, line)) {
    size_t begin = 0, end = 0, inode = 0;
    char mode[5] = "";
    if (sscanf(line.c_str(), "%zx-%zx %4s %*s %*s %zu", &begin, &end, mode, &inode) == 4 &&
        mode[2] == 'x' && inode == 0)
      bytes += end - begin;
  }
  return bytes;
}

TEST(Jit, FreesCode) {
  Jit jit;
  size_t before = anonymous_code();
  {
    auto code = jit.compile(kAdd, "add");
    EXPECT_GT(anonymous_code(), before);
  }
  for (int i = 0; i < 50; ++i) jit.compile(kAdd, "add");
  EXPECT_EQ(anonymous_code(), before);
}

TEST(Jit, VectorisesLoops) {
  Jit jit;
  std::string text = jit.optimized(R"(
define void @scale(ptr noalias %out, ptr noalias %in, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr float, ptr %in, i64 %i
  %x = load float, ptr %p
  %y = fmul float %x, 2.0
  %q = getelementptr float, ptr %out, i64 %i
  store float %y, ptr %q
  %next = add nuw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
})",
                                   "scale");
  EXPECT_NE(text.find("x float>"), std::string::npos) << text;
}

TEST(Jit, DoesNotContractOrFold) {
  Jit jit;
  auto code = jit.compile(R"(
define float @f(float %a, float %b, float %c) {
  %p = fmul float %a, %b
  %s = fadd float %p, %c
  ret float %s
})",
                          "muladd");
  // 1 - 2^-24 squared is rounded before the sum: a fused form would give 2^-48 - 2^-23.
  float a = 1.0f - 0x1p-24f;
  EXPECT_EQ((code->function<float(float, float, float)>("f")(a, a, -1.0f)), -0x1p-23f);
  std::string text = jit.optimized(
      "declare float @tanhf(float)\n"
      "define float @g() { %y = call float @tanhf(float 1.0) ret float %y }",
      "tanh");
  EXPECT_NE(text.find("@tanhf(float 1"), std::string::npos) << text;
}

TEST(Jit, CallsWhatWasDefined) {
  Jit jit;
  jit.define("twice", reinterpret_cast<void*>(+[](int x) { return 2 * x; }));
  auto code = jit.compile(
      "declare i32 @twice(i32)\n"
      "define i32 @f(i32 %x) { %y = call i32 @twice(i32 %x) ret i32 %y }",
      "calls");
  EXPECT_EQ(code->function<int(int)>("f")(21), 42);
}

TEST(Jit, ErrorsNameThePlace) {
  Jit jit;
  std::string syntax = message_of(jit, "define i32 @f() {\n  ret i33 %x\n}");
  EXPECT_NE(syntax.find("module 'wrong' is not valid IR: line 2, column "), std::string::npos)
      << syntax;
  std::string rule = message_of(jit, R"(
define i32 @f(i1 %c) {
entry:
  br i1 %c, label %a, label %b
a:
  %x = add i32 1, 2
  br label %b
b:
  ret i32 %x
})");
  EXPECT_NE(rule.find("breaks a rule of the IR"), std::string::npos) << rule;
  std::string missing = message_of(
      jit, "declare i32 @nowhere()\ndefine i32 @f() { %y = call i32 @nowhere() ret i32 %y }");
  EXPECT_NE(missing.find("nowhere"), std::string::npos) << missing;
  EXPECT_THROW(jit.compile(kAdd, "add")->find("sub"), Error);
}

TEST(Jit, ManyThreadsCompileAtOnce) {
  Jit jit;
  std::vector<int> results(8);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      std::string ir = "define i32 @f() { ret i32 " + std::to_string(i) + " }";
      for (int round = 0; round < 5; ++round)
        results[i] = jit.compile(ir, "thread")->function<int()>("f")();
    });
  }
  for (auto& thread : threads) thread.join();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(results[i], i);
}

}  // namespace
}  // namespace prong::codegen
