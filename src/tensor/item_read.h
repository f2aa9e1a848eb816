// Who wants to know that a program took the value of a one-element tensor as a number (capture/).
// Called by tensor.cpp.
#pragma once

namespace prong {

// Null: nobody. Set once.
void set_item_read_hook(void (*hook)());

}  // namespace prong
