// Functions from one piece of text, for C++ programs without Python: names mean functions of the
// text, builtins, torch.* and math.*.
#pragma once

#include <map>
#include <string>

#include "script/compiler.h"

namespace prong::script {

class TextUnit {
 public:
  // Parses; functions are compiled when asked for. kRuntime with the place on a syntax error.
  explicit TextUnit(const std::string& text, const std::string& file = "<script>");
  Ref<Function> function(const std::string& name) const;  // kAttribute when there is none

 private:
  std::map<std::string, Ref<FunctionEntry>> entries_;
};

}  // namespace prong::script
