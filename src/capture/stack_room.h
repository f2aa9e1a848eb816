// How much of the thread's C stack is left: frames that are evaluated nest on it. Asked by the
// hook.
#pragma once

#include <cstddef>

namespace prong::capture {

enum class StackRoom {
  kEnough,
  kLittle,  // enough for the interpreter, whose frames take less
  kNone,
};
StackRoom stack_room();

}  // namespace prong::capture
