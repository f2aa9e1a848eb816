// Lines of source text with the place of a node marked; for tracebacks.
#include "graph/source_range.h"

#include <algorithm>

#include "base/str.h"

namespace prong {

std::string_view SourceText::line(int number) const {
  std::string_view rest = text;
  for (int n = first_line; n < number; ++n) {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) return {};
    rest.remove_prefix(end + 1);
  }
  if (number < first_line) return {};
  return rest.substr(0, std::min(rest.find('\n'), rest.size()));
}

std::string SourceRange::str() const { return source ? cat(source->file, ":", line) : "<unknown>"; }

std::string SourceRange::highlight(std::string_view function) const {
  if (!source) return cat("  In ", function, "\n");
  std::string out = cat("  File \"", source->file, "\", line ", line, ", in ", function, "\n");
  const std::string_view text = source->line(line);
  const size_t indent = std::min(text.find_first_not_of(" \t"), text.size());
  if (indent == text.size()) return out;
  const auto first =
      std::clamp<size_t>(static_cast<size_t>(std::max(column, 0)), indent, text.size());
  const size_t past =
      end_line == line
          ? std::clamp<size_t>(static_cast<size_t>(std::max(end_column, 0)), first, text.size())
          : text.size();
  out += cat("    ", text.substr(indent), "\n");
  return out + cat("    ", std::string(first - indent, ' '),
                   std::string(std::max<size_t>(past - first, 1), '~'), " <--- HERE\n");
}

}  // namespace prong
