// Zip archives without compression: what jit.save and jit.load keep graphs and tensors in; any
// unzip reads them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace prong {

// The bytes of an archive with these files (name, content), in order. kValue if it grows past 4
// GiB.
std::string write_zip(const std::vector<std::pair<std::string, std::string>>& files);

// The files of an archive; contents point into `bytes`. kRuntime if it is no zip archive, is
// damaged, or is compressed.
std::vector<std::pair<std::string, std::string_view>> read_zip(std::string_view bytes);

}  // namespace prong
