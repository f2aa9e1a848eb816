// Matrix products on tensors of any dtype and layout: picks the BLAS form, or the generic loop.
// Used by defs/matmul, conv, rnn.
#pragma once

#include "tensor/tensor.h"

namespace prong {

// out[m,n] = alpha * a[m,k] @ b[k,n] + beta * out; all of one dtype, out contiguous in its last
// dimension. bool is refused in the name of `op`.
void product_into(const char* op, const Tensor& a, const Tensor& b, const Tensor& out, double alpha,
                  double beta);
// The same for [.., ., .] operands with the same leading dimensions, which may lie in any way: a
// zero stride shares a matrix.
void batched_product_into(const char* op, const Tensor& a, const Tensor& b, const Tensor& out,
                          double alpha, double beta);
// Same elements in another shape: a view when contiguous, else of a contiguous copy.
Tensor reshaped(const Tensor& t, DimsView sizes);

}  // namespace prong
