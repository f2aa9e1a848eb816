// The parts of the table of host ops, one for each file here; called by registry.cpp in the order
// of its list.
#pragma once

#include "graph/host_op.h"

namespace prong {

void register_numbers(HostRegistry& r);  // arithmetic, comparison and bits of int, float, bool
void register_math(HostRegistry& r);     // module math, abs, min, max, pow, round, divmod
void register_conversions(
    HostRegistry& r);  // int(), float(), bool(), str(), ord, chr, hex, ...; to and from tensors
void register_strings(HostRegistry& r);  // str methods, format, f-strings
void register_lists(HostRegistry& r);    // list and tuple operations, range, sum, sorted, zip
void register_dicts(HostRegistry& r);
void register_tensors(HostRegistry& r);  // indexing of tensors, questions about them
void register_objects(HostRegistry& r);  // is, print, futures, context managers

}  // namespace prong
