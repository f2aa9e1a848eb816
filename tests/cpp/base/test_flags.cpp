// Environment flags and log topics.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/flags.h"
#include "base/log.h"

namespace prong {
namespace {

TEST(Flags, SplitsLists) {
  EXPECT_EQ(split_list("fuse, cse,,dce "), (std::vector<std::string>{"fuse", "cse", "dce"}));
  EXPECT_TRUE(split_list("").empty());
}

TEST(Flags, ReadsTheEnvironment) {
  setenv("PRONG_TEST_FLAG", "12", 1);
  EXPECT_EQ(env_number("PRONG_TEST_FLAG", 3), 12);
  EXPECT_FALSE(env_is_on("PRONG_TEST_FLAG"));
  setenv("PRONG_TEST_FLAG", "12x", 1);
  EXPECT_EQ(env_number("PRONG_TEST_FLAG", 3), 3);
  setenv("PRONG_TEST_FLAG", "on", 1);
  EXPECT_TRUE(env_is_on("PRONG_TEST_FLAG"));
  setenv("PRONG_TEST_FLAG", "fuse,cse", 1);
  EXPECT_TRUE(env_has("PRONG_TEST_FLAG", "cse"));
  EXPECT_FALSE(env_has("PRONG_TEST_FLAG", "cs"));
  unsetenv("PRONG_TEST_FLAG");
  EXPECT_EQ(env_text("PRONG_TEST_FLAG"), "");
}

TEST(Log, TopicsComeFromTheEnvironment) {
  setenv("PRONG_LOG", "passes,codegen", 1);
  uint32_t bits = detail::read_log_topics();
  EXPECT_EQ(bits, (1u << static_cast<int>(LogTopic::kPasses)) |
                      (1u << static_cast<int>(LogTopic::kCodegen)));
  setenv("PRONG_LOG", "passess", 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(detail::read_log_topics(), 0u);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("\"passess\""), std::string::npos);
  unsetenv("PRONG_LOG");
}

TEST(Log, EachLineNamesItsTopic) {
  testing::internal::CaptureStderr();
  write_log(LogTopic::kExec, "one\ntwo");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "[exec] one\n[exec] two\n");
}

}  // namespace
}  // namespace prong
