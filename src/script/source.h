// Source text of scripts, and places in it. Every token, AST node and graph node made from text
// carries a Range.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "graph/source_range.h"

namespace prong::script {

// One piece of Python text as its author sees it: file, number of its first line, columns removed
// by dedent.
class Source {
 public:
  Source(std::string text, std::string file, int first_line, int removed_columns = 0);

  const std::string& text() const { return text_; }
  const std::string& file() const { return file_; }
  int first_line() const { return first_line_; }
  int removed_columns() const { return removed_columns_; }
  int line_of(size_t offset) const;        // as numbered in the file
  size_t line_start(size_t offset) const;  // offset of the first character of its line
  std::string_view line_text(size_t offset) const;
  const Ref<SourceText>& shared() const { return shared_; }

 private:
  std::string text_, file_;
  int first_line_;
  int removed_columns_;
  std::vector<size_t> line_starts_;
  Ref<SourceText> shared_;
};
using SourcePtr = std::shared_ptr<const Source>;

struct Range {
  SourcePtr source;
  uint32_t begin = 0, end = 0;

  explicit operator bool() const { return source != nullptr; }
  int line() const { return source ? source->line_of(begin) : 0; }
  std::string_view text() const;
  // From the start of this one to the end of `last`.
  Range to(const Range& last) const;
  SourceRange for_graph() const;
};

// '  File "a.py", line 3, in run\n    y = x +\n        ^^^' ; `function` may be empty.
std::string show(const Range& range, std::string_view function = {});

// A mistake in a script (kind kRuntime) or a form that scripts do not have (kUnsupported). The text
// names the place and, where given, what to write instead.
[[noreturn]] void fail(const Range& range, std::string message, std::string hint = {});
[[noreturn]] void unsupported(const Range& range, std::string message, std::string hint);

// The function whose text is being compiled, for the "in run" of messages.
class FunctionScope {
 public:
  explicit FunctionScope(std::string name);
  ~FunctionScope();
  FunctionScope(const FunctionScope&) = delete;
  FunctionScope& operator=(const FunctionScope&) = delete;

 private:
  std::string previous_;
};

}  // namespace prong::script
