// Copies by columns, and the checks of linalg; see matrices.h.
#include "ops/kernels/matrices.h"

namespace prong {

namespace {

Tensor swapped(const Tensor& t) {
  Dims sizes = t.sizes(), strides = t.strides();
  const size_t n = sizes.size();
  std::swap(sizes[n - 1], sizes[n - 2]);
  std::swap(strides[n - 1], strides[n - 2]);
  return t.as_strided(sizes, strides, t.offset());
}

}  // namespace

Tensor Columns::matrix() const { return swapped(stored); }

Columns empty_columns(DimsView batch, int64_t rows, int64_t columns, DType dtype) {
  Columns c;
  c.stored = Tensor::empty(joined(batch, {columns, rows}), dtype);
  c.batch = product(batch);
  c.rows = static_cast<int>(rows);
  c.columns = static_cast<int>(columns);
  return c;
}

Columns columns_of(const Tensor& a) {
  const TensorMeta meta = a.meta();
  Columns c = empty_columns(batch_of(meta), a.size(-2), a.size(-1), a.dtype());
  copy_into(c.stored, swapped(a));
  return c;
}

Dims batch_of(const TensorMeta& a) { return Dims(DimsView(a.sizes).first(a.sizes.size() - 2)); }

Dims joined(DimsView batch, std::initializer_list<int64_t> last) {
  Dims sizes(batch);
  for (const int64_t n : last) sizes.push_back(n);
  return sizes;
}

void check_matrix(const std::string& op, const TensorMeta& a, const char* name) {
  PRONG_CHECK(a.rank() >= 2, kRuntime, op, ": The input tensor ", name,
              " must have at least 2 dimensions.");
}

void check_square(const std::string& op, const TensorMeta& a, const char* name) {
  check_matrix(op, a, name);
  const int64_t rows = a.sizes[a.sizes.size() - 2], columns = a.sizes.back();
  PRONG_CHECK(rows == columns, kRuntime, op, ": ", name,
              " must be batches of square matrices, but they are ", rows, " by ", columns,
              " matrices");
}

void check_inexact(const std::string& op, const TensorMeta& a, bool allows_low_precision) {
  PRONG_CHECK(is_inexact(a.dtype), kRuntime, op,
              ": Expected a floating point or complex tensor as input. Got ",
              scalar_type_name(a.dtype));
  PRONG_CHECK(allows_low_precision || a.dtype >= DType::kFloat32, kRuntime, op,
              ": Low precision dtypes not supported. Got ", scalar_type_name(a.dtype));
}

std::string element_prefix(const std::string& op, bool has_batch, int64_t i) {
  return has_batch ? cat(op, ": (Batch element ", i, "): ") : op + ": ";
}

}  // namespace prong
