// Breaks by their reason: the stable id and the hint that reports give. Called by bindings/.
#pragma once

#include <string_view>

namespace prong::capture {

struct BreakKind {
  const char* id;
  const char* reason;  // its first words
  const char* hint;
};

// The kind whose words the reason starts with; null: a reason that has no entry in breaks.def.
const BreakKind* break_kind(std::string_view reason);

}  // namespace prong::capture
