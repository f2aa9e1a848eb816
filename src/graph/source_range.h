// Where a node came from: file, line, columns and the text itself, for tracebacks and messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/ref.h"

namespace prong {

// A piece of source text, shared by all ranges in it.
struct SourceText final : RefCounted {
  SourceText(std::string f, std::string t, int first = 1)
      : file(std::move(f)), text(std::move(t)), first_line(first) {}
  std::string file;
  std::string text;
  int first_line;                           // number in the file of the first line of `text`
  std::string_view line(int number) const;  // without the newline; empty when outside
};

struct SourceRange {
  Ref<SourceText> source;  // null: unknown
  int line = 0;            // as editors count, in the file
  int column = 0;          // of the first character, from 0
  int end_line = 0;
  int end_column = 0;  // past the last character
  explicit operator bool() const { return static_cast<bool>(source); }
  std::string str() const;  // "x.py:3"
  //   File "x.py", line 3, in f
  //     return x.t() + x
  //            ~~~~~~~ <--- HERE
  std::string highlight(std::string_view function) const;
};

}  // namespace prong
