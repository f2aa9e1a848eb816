// Placing the arguments of a call on a signature; shared by calls of functions, ops and host ops.
#pragma once

#include "script/emitter.h"

namespace prong::script {

// One term for each argument of a schema; kNothing where the default stands.
struct Placed {
  std::vector<Term> terms;
  std::vector<Range> ranges;
};
// What is wrong, or an empty text. The first `skip` arguments (self) are left empty.
std::string place_arguments(const Schema& s, size_t skip, const GivenList& given, bool varargs_ints,
                            Placed& out);
// Whether an op's argument can be made of the term. Level 0: as PyTorch's types ask; 1: numbers for
// tensors; 2: zero-dim tensors for numbers.
bool fits_argument(Emitter& e, const Term& t, const Argument& formal, int level);
Value* make_argument(Emitter& e, const Term& t, const Argument& formal, const Range& at);

}  // namespace prong::script
