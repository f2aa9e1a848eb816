// Filling tensors with numbers: one value (range-checked as PyTorch does) or a function of the
// index. Called by defs/create.cpp, copy.cpp and index.cpp.
#pragma once

#include "ops/boxing.h"
#include "runtime/parallel.h"
#include "tensor/convert.h"
#include "tensor/tensor.h"

namespace prong {

// dst[...] = value; kRuntime when an integral type cannot hold it.
void fill_number(const Tensor& dst, const Number& value);
// The dtype of a tensor made from a number: bool, int64 or the default floating type.
DType dtype_of(const Number& value);
// The C++ name of a dtype as PyTorch's messages have it ("uint8_t", "float"), and its tensor type's
// ("Byte", "Float").
const char* ctype_name(DType dtype);
const char* type_name(DType dtype);

// dst (contiguous)[i] = f(i), in parallel.
template <class T, class F>
void generate(const Tensor& dst, F&& f) {
  T* out = dst.data<T>();
  parallel_for(0, dst.numel(), 16 * 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = convert<T>(f(i));
  });
}

}  // namespace prong
