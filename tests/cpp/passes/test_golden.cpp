// tests/ir/*.ir: "# RUN: cse dce" on top, a graph, "# EXPECT:", the graph after those passes.
// PRONG_UPDATE_GOLDEN=1 (make ir) rewrites the expected parts.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "graph/printer.h"
#include "graph/verify.h"
#include "passes/passes.h"

namespace prong {
namespace {

namespace fs = std::filesystem;

fs::path folder() { return fs::path(PRONG_TEST_DIR) / "../../ir"; }

std::string read(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void run_pass(const std::string& name, Graph& graph) {
  if (name == "fold") return fold(graph);
  if (name == "cse") return cse(graph);
  if (name == "dce") return dce(graph);
  if (name == "fuse") return fuse(graph);
  if (name != "print") FAIL() << "no pass '" << name << "'";
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, PassGivesTheExpectedGraph) {
  const fs::path path = folder() / (GetParam() + ".ir");
  const std::string text = read(path);
  const std::string mark = "# EXPECT:\n", header = "# RUN:";
  ASSERT_EQ(text.substr(0, header.size()), header);
  const size_t at = text.find(mark);
  ASSERT_NE(at, std::string::npos) << "no '# EXPECT:' line";
  const std::string input = text.substr(0, at);
  std::istringstream passes(input.substr(header.size(), input.find('\n') - header.size()));
  const auto functions = parse_functions(input, {}, GetParam() + ".ir");
  const auto home = make_ref<Definitions>(functions);
  for (std::string pass; passes >> pass;)
    for (const auto& f : functions) {
      run_pass(pass, f->graph());
      verify(f->graph());
    }
  std::string got;
  for (const auto& f : functions) got += print(*f);
  // What is printed must read back to the same.
  std::string again;
  const auto reparsed = parse_functions(got);
  const auto home_of_reparsed = make_ref<Definitions>(reparsed);
  for (const auto& f : reparsed) again += print(*f);
  EXPECT_EQ(again, got);
  if (std::getenv("PRONG_UPDATE_GOLDEN"))
    std::ofstream(path) << input << mark << got;
  else
    EXPECT_EQ(got, text.substr(at + mark.size())) << "run `make ir` to accept";
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder()))
    if (entry.path().extension() == ".ir") out.push_back(entry.path().stem().string());
  std::sort(out.begin(), out.end());
  return out;
}
INSTANTIATE_TEST_SUITE_P(Ir, Golden, ::testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace prong
