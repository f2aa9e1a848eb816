// Batches of matrices as LAPACK reads them, and the checks that linalg's ops share. Used by
// defs/linalg*.cpp.
#pragma once

#include <string>

#include "ops/op_def.h"
#include "runtime/parallel.h"

namespace prong {

// A fresh copy of [..., rows, columns], each matrix stored by columns.
struct Columns {
  Tensor stored;  // contiguous [..., columns, rows]
  int64_t batch = 1;
  int rows = 0, columns = 0;

  template <class T>
  T* at(int64_t i) const {
    return static_cast<T*>(stored.raw()) + i * rows * columns;
  }
  Tensor matrix() const;  // the [..., rows, columns] view
};
Columns columns_of(const Tensor& a);                                                // a copy
Columns empty_columns(DimsView batch, int64_t rows, int64_t columns, DType dtype);  // uninitialised

Dims batch_of(const TensorMeta& a);  // the sizes without the last two
Dims joined(DimsView batch, std::initializer_list<int64_t> last);

// f(i) for each matrix of a batch, in parallel.
template <class F>
void for_matrices(int64_t batch, F&& f) {
  parallel_for(0, batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}

// f(TypeTag<T>{}) for float, double and the complex numbers of both.
template <class F>
decltype(auto) visit_matrix(DType dtype, F&& f) {
  if (dtype == DType::kFloat32) return f(TypeTag<float>{});
  if (dtype == DType::kFloat64) return f(TypeTag<double>{});
  return visit_complex(dtype, f);
}

// Raise PyTorch's errors; op is "linalg.inv".
void check_matrix(const std::string& op, const TensorMeta& a, const char* name = "A");
void check_square(const std::string& op, const TensorMeta& a, const char* name = "A");
void check_inexact(const std::string& op, const TensorMeta& a, bool allows_low_precision = false);
// "linalg.inv: (Batch element 3): " where the tensor has a batch.
std::string element_prefix(const std::string& op, bool has_batch, int64_t i);

}  // namespace prong
