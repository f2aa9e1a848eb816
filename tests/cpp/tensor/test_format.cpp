// Printed tensors against PyTorch's text (format_golden.txt, made by make_format_golden.py).
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <sstream>

#include "tensor/format.h"

namespace prong {
namespace {

std::vector<std::string> split(const std::string& text, const std::string& at) {
  std::vector<std::string> parts;
  size_t from = 0;
  for (size_t to; (to = text.find(at, from)) != std::string::npos; from = to + at.size())
    parts.push_back(text.substr(from, to - from));
  parts.push_back(text.substr(from));
  return parts;
}

PrintOptions options_from(const std::string& text) {
  PrintOptions options;
  for (const std::string& item : split(text, ",")) {
    const std::vector<std::string> pair = split(item, "=");
    if (pair.size() != 2) continue;
    if (pair[0] == "precision")
      options.precision = std::stoi(pair[1]);
    else if (pair[0] == "edgeitems")
      options.edgeitems = std::stoi(pair[1]);
    else if (pair[0] == "linewidth")
      options.linewidth = std::stoi(pair[1]);
    else if (pair[0] == "threshold")
      options.threshold = std::stod(pair[1]);
    else if (pair[0] == "sci_mode")
      options.sci_mode = pair[1] == "True";
    else
      ADD_FAILURE() << "unknown option " << pair[0];
  }
  return options;
}

Tensor tensor_from(const std::string& shape, const std::string& values, DType dtype) {
  Dims sizes;
  std::istringstream in(shape);
  for (int64_t size; in >> size;) sizes.push_back(size);
  Tensor wide = Tensor::empty(sizes, dtype == DType::kInt64 ? dtype : DType::kFloat64);
  std::istringstream items(values);
  const bool iota = values.starts_with("iota:");
  const double step = iota ? std::stod(values.substr(5)) : 0;
  for (int64_t i = 0; i < wide.numel(); ++i) {
    std::string item;
    if (!iota) items >> item;
    const double x = iota ? static_cast<double>(i) * step : std::strtod(item.c_str(), nullptr);
    fill(Tensor::view_of(wide.storage(), i, {}, {}, wide.dtype()), x);
  }
  return wide.to(dtype);
}

TEST(Format, EqualsPyTorch) {
  const std::string path = PRONG_TEST_DIR "/format_golden.txt";
  std::ifstream in(path);
  ASSERT_TRUE(in) << path;
  int records = 0;
  for (std::string header; std::getline(in, header);) {
    std::string expected, line;
    while (std::getline(in, line) && line != "---")
      expected += (expected.empty() ? "" : "\n") + line;
    const std::vector<std::string> parts = split(header, " | ");
    ASSERT_EQ(parts.size(), 4u) << header;
    Tensor t = tensor_from(parts[1], parts[3], *dtype_from_name(parts[0]));
    EXPECT_EQ(format_tensor(t, "tensor(", {}, options_from(parts[2])), expected) << header;
    ++records;
  }
  EXPECT_GT(records, 90);
}

TEST(Format, SuffixesBreakLongLines) {
  Tensor t = Tensor::empty(Dims{2}, DType::kFloat64);
  fill(t, 1.5);
  const std::string grad[] = {"grad_fn=<AddBackward0>"};
  EXPECT_EQ(format_tensor(t, "tensor(", grad, {}),
            "tensor([1.5000, 1.5000], dtype=torch.float64, grad_fn=<AddBackward0>)");
  PrintOptions narrow;
  narrow.linewidth = 50;
  EXPECT_EQ(format_tensor(t, "tensor(", grad, narrow),
            "tensor([1.5000, 1.5000], dtype=torch.float64,\n       grad_fn=<AddBackward0>)");
}

TEST(Format, OptionsAndProfiles) {
  EXPECT_EQ(PrintOptions::profile("short", {}).edgeitems, 2);
  EXPECT_EQ(PrintOptions::profile("full", {}).threshold, std::numeric_limits<double>::infinity());
  EXPECT_THROW(PrintOptions::profile("long", {}), Error);
  PrintOptions options = print_options();
  options.precision = 1;
  set_print_options(options);
  EXPECT_EQ(to_string(Tensor::wrapped(2.25).to(DType::kFloat32)), "tensor(2.2)");
  set_print_options({});
  Tensor leaf = Tensor::wrapped(2.0).to(DType::kFloat32);
  leaf.impl()->requires_grad = true;
  EXPECT_EQ(to_string(leaf), "tensor(2., requires_grad=True)");
}

}  // namespace
}  // namespace prong
