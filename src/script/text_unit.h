// The home of functions from one piece of text, for C++ programs without Python: names mean
// functions of the text, builtins, torch.* and math.*.
#pragma once

#include <map>
#include <string>

#include "script/compiler.h"

namespace prong::script {

class TextUnit {
 public:
  // Parses; functions are compiled when asked for. kRuntime with the place on a syntax error.
  explicit TextUnit(const std::string& text, const std::string& file = "<script>");
  // kAttribute when there is none. It can be run for as long as the unit lives.
  Ref<Function> function(const std::string& name) const;

 private:
  std::map<std::string, Ref<FunctionEntry>> entries_;
};

}  // namespace prong::script
