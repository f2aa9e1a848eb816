// May two positions of one view share an element? Asked by the gradients of views (ops/defs,
// eager/record.cpp).
#pragma once

#include "base/small_vector.h"

namespace prong {

// Yes where it isn't plain that they don't.
bool may_overlap_itself(const Dims& sizes, const Dims& strides);

}  // namespace prong
