// The table of breaks. See breaks.h.
#include "capture/breaks.h"

namespace prong::capture {

namespace {
constexpr BreakKind kKinds[] = {
#define PRONG_BREAK(id, reason, hint) {id, reason, hint},
#include "capture/breaks.def"
#undef PRONG_BREAK
};
}  // namespace

const BreakKind* break_kind(std::string_view reason) {
  for (const BreakKind& kind : kKinds)
    if (reason.starts_with(kind.reason)) return &kind;
  return nullptr;
}

}  // namespace prong::capture
