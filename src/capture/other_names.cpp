// Tensors that the tape hands out under other names than those by which a call knows them. See
// tracker.h.
#include <tuple>

#include "capture/stand_ins.h"
#include "capture/tracker.h"

namespace prong::capture {

// The tensor that was made first of those that are the same view of the same memory; itself if it
// is known, or nothing is known of it. Whether that holds for other sizes, `Retrace` looks at.
const TensorImpl* Tracker::known_as(const TensorImpl* impl) const {
  if (knows(impl)) return impl;
  const TensorImpl* best = impl;
  std::tuple<int32_t, int32_t> first{std::numeric_limits<int32_t>::max(), 0};
  for (const auto& [other, source] : computed_)
    if (const std::tuple at(source.index, source.output);
        at < first && is_same_view(*other, *impl)) {
      best = other;
      first = at;
    }
  if (best != impl) return best;
  for (const auto& [other, root] : roots_)
    if (is_same_view(*other, *impl)) return other;
  return impl;
}

}  // namespace prong::capture
