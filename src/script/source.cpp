// Places in scripts and the messages that show them.
#include "script/source.h"

#include <algorithm>

namespace prong::script {

namespace {
thread_local std::string current_function;
}

Source::Source(std::string text, std::string file, int first_line, int removed_columns)
    : text_(std::move(text)), file_(std::move(file)), first_line_(first_line),
      removed_columns_(removed_columns) {
  line_starts_.push_back(0);
  for (size_t i = 0; i < text_.size(); ++i)
    if (text_[i] == '\n') line_starts_.push_back(i + 1);
  shared_ = make_ref<SourceText>(file_, text_, first_line_);
}

int Source::line_of(size_t offset) const {
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  return first_line_ + static_cast<int>(after - line_starts_.begin()) - 1;
}

size_t Source::line_start(size_t offset) const {
  return *(std::upper_bound(line_starts_.begin(), line_starts_.end(), offset) - 1);
}

std::string_view Source::line_text(size_t offset) const {
  const size_t begin = line_start(offset);
  const size_t end = text_.find('\n', begin);
  return std::string_view(text_).substr(begin, end == std::string::npos ? end : end - begin);
}

std::string_view Range::text() const {
  if (!source) return {};
  return std::string_view(source->text()).substr(begin, end - begin);
}

SourceRange Range::for_graph() const {
  SourceRange r;
  if (!source) return r;
  r.source = source->shared();
  r.line = source->line_of(begin);
  r.column = static_cast<int>(begin - source->line_start(begin));
  r.end_line = source->line_of(end);
  r.end_column = static_cast<int>(end - source->line_start(end));
  return r;
}

Range Range::to(const Range& last) const {
  Range r = *this;
  r.end = std::max(r.end, last.end);
  return r;
}

std::string show(const Range& range, std::string_view function) {
  if (!range) return {};
  std::string out = cat("  File \"", range.source->file(), "\", line ", range.line());
  if (!function.empty()) out += cat(", in ", function);
  const std::string_view line = range.source->line_text(range.begin);
  const size_t start = range.source->line_start(range.begin);
  const size_t indent = std::min(line.find_first_not_of(" \t"), line.size());
  out += cat("\n    ", line.substr(indent));
  const size_t column = range.begin - start;
  const size_t width =
      std::max<size_t>(1, std::min<size_t>(range.end - range.begin, line.size() - column));
  out += cat("\n    ", std::string(column > indent ? column - indent : 0, ' '),
             std::string(width, '^'));
  return out;
}

namespace {
[[noreturn]] void raise(ErrorKind kind, const Range& range, std::string message,
                        const std::string& hint) {
  const std::string place = show(range, current_function);
  if (!place.empty()) message += cat("\n", place);
  if (!hint.empty()) message += cat("\nhint: ", hint);
  throw Error(kind, std::move(message));
}
}  // namespace

void fail(const Range& range, std::string message, std::string hint) {
  raise(ErrorKind::kRuntime, range, std::move(message), hint);
}

void unsupported(const Range& range, std::string message, std::string hint) {
  raise(ErrorKind::kUnsupported, range, std::move(message), hint);
}

FunctionScope::FunctionScope(std::string name) : previous_(std::move(current_function)) {
  current_function = std::move(name);
}

FunctionScope::~FunctionScope() { current_function = std::move(previous_); }

}  // namespace prong::script
