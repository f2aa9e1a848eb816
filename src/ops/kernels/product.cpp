// Matrix products on tensors: layout analysis, then BLAS for float and double, the generic loop for
// the rest.
#include "ops/kernels/product.h"

#include <vector>

#include "ops/blas/gemm.h"
#include "runtime/parallel.h"

namespace prong {
namespace {

// One matrix as a BLAS operand: rows `ld` apart, possibly stored transposed.
struct Operand {
  Tensor holder;  // keeps a contiguous copy alive
  bool is_transposed = false;
  int64_t ld = 1;
};

bool is_row_major(int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride) {
  return (col_stride == 1 || cols == 1) && (row_stride >= std::max<int64_t>(1, cols) || rows == 1);
}

// The last two dimensions of t as an operand; copies only a layout that BLAS cannot read.
Operand operand(const Tensor& t) {
  const int64_t rows = t.size(-2), cols = t.size(-1), rs = t.stride(-2), cs = t.stride(-1);
  if (is_row_major(rows, cols, rs, cs))
    return {t, false, rows == 1 ? std::max<int64_t>(1, cols) : rs};
  if (is_row_major(cols, rows, cs, rs))
    return {t, true, cols == 1 ? std::max<int64_t>(1, rows) : cs};
  return {t.contiguous(), false, std::max<int64_t>(1, cols)};
}

template <class T, class Acc>
void generic_product(const Tensor& a, const Tensor& b, const Tensor& out, double alpha,
                     double beta) {
  blas::gemm_generic<T, Acc>(
      a.size(0), b.size(1), a.size(1), static_cast<Acc>(alpha), static_cast<const T*>(a.raw()),
      a.stride(0), a.stride(1), static_cast<const T*>(b.raw()), b.stride(0), b.stride(1),
      static_cast<Acc>(beta), static_cast<T*>(out.raw()), out.stride(0), out.stride(1));
}

template <class T>
void blas_product(const Tensor& a, const Tensor& b, const Tensor& out, double alpha, double beta) {
  const Operand x = operand(a), y = operand(b);
  blas::gemm(x.is_transposed, y.is_transposed, a.size(0), b.size(1), a.size(1),
             static_cast<T>(alpha), static_cast<const T*>(x.holder.raw()), x.ld,
             static_cast<const T*>(y.holder.raw()), y.ld, static_cast<T>(beta),
             static_cast<T*>(out.raw()),
             std::max<int64_t>(1, out.size(0) == 1 ? out.size(1) : out.stride(0)));
}

// Where each matrix of a batch begins, counted from the first.
std::vector<int64_t> offsets(const Tensor& t) {
  std::vector<int64_t> at{0};
  for (size_t d = 0; d + 2 < t.sizes().size(); ++d) {
    std::vector<int64_t> more;
    more.reserve(at.size() * static_cast<size_t>(t.sizes()[d]));
    for (const int64_t start : at)
      for (int64_t i = 0; i < t.sizes()[d]; ++i) more.push_back(start + i * t.strides()[d]);
    at = std::move(more);
  }
  return at;
}

template <class T>
void blas_batched(const Tensor& a, const Tensor& b, const Tensor& out, double alpha, double beta) {
  const Operand x = operand(a), y = operand(b);
  const std::vector<int64_t> at_a = offsets(x.holder), at_b = offsets(y.holder),
                             at_out = offsets(out);
  blas::gemm_batched(x.is_transposed, y.is_transposed, static_cast<int64_t>(at_out.size()),
                     a.size(-2), b.size(-1), a.size(-1), static_cast<T>(alpha),
                     static_cast<const T*>(x.holder.raw()), at_a.data(), x.ld,
                     static_cast<const T*>(y.holder.raw()), at_b.data(), y.ld, static_cast<T>(beta),
                     static_cast<T*>(out.raw()), at_out.data(),
                     std::max<int64_t>(1, out.size(-2) == 1 ? out.size(-1) : out.stride(-2)));
}

// Four real products: (ar + i ai)(br + i bi).
void complex_product(const char* op, const Tensor& a, const Tensor& b, const Tensor& out,
                     double alpha, double beta) {
  const Tensor ar = part_of(a, 0).contiguous(), ai = part_of(a, 1).contiguous();
  const Tensor br = part_of(b, 0).contiguous(), bi = part_of(b, 1).contiguous();
  const Tensor real = part_of(out, 0).clone(), imaginary = part_of(out, 1).clone();
  product_into(op, ar, br, real, alpha, beta);
  product_into(op, ai, bi, real, -alpha, 1);
  product_into(op, ar, bi, imaginary, alpha, beta);
  product_into(op, ai, br, imaginary, alpha, 1);
  copy_into(part_of(out, 0), real);
  copy_into(part_of(out, 1), imaginary);
}

}  // namespace

void product_into(const char* op, const Tensor& a, const Tensor& b, const Tensor& out, double alpha,
                  double beta) {
  // Integers wrap as PyTorch's do: unsigned arithmetic of the same width.
  switch (out.dtype()) {
  case DType::kFloat32:
    return blas_product<float>(a, b, out, alpha, beta);
  case DType::kFloat64:
    return blas_product<double>(a, b, out, alpha, beta);
  case DType::kFloat16:
    return generic_product<Half, float>(a, b, out, alpha, beta);
  case DType::kBFloat16:
    return generic_product<BFloat16, float>(a, b, out, alpha, beta);
  case DType::kInt64:
    return generic_product<uint64_t, uint64_t>(a, b, out, alpha, beta);
  case DType::kInt32:
    return generic_product<uint32_t, uint32_t>(a, b, out, alpha, beta);
  case DType::kInt16:
    return generic_product<uint16_t, uint32_t>(a, b, out, alpha, beta);
  case DType::kInt8:
  case DType::kUInt8:
    return generic_product<uint8_t, uint32_t>(a, b, out, alpha, beta);
  case DType::kComplex64:
  case DType::kComplex128:
    return complex_product(op, a, b, out, alpha, beta);
  case DType::kBool:
    throw_error(ErrorKind::kRuntime, cat("\"", op, "\" not implemented for 'Bool'"));
  }
}

void batched_product_into(const char* op, const Tensor& a, const Tensor& b, const Tensor& out,
                          double alpha, double beta) {
  if (out.dtype() == DType::kFloat32) return blas_batched<float>(a, b, out, alpha, beta);
  if (out.dtype() == DType::kFloat64) return blas_batched<double>(a, b, out, alpha, beta);
  const auto matrix = [](const Tensor& t, int64_t offset) {
    return t.as_strided(Dims{t.size(-2), t.size(-1)}, Dims{t.stride(-2), t.stride(-1)},
                        t.offset() + offset);
  };
  const std::vector<int64_t> at_a = offsets(a), at_b = offsets(b), at_out = offsets(out);
  for (size_t i = 0; i < at_out.size(); ++i)
    product_into(op, matrix(a, at_a[i]), matrix(b, at_b[i]), matrix(out, at_out[i]), alpha, beta);
}

Tensor reshaped(const Tensor& t, DimsView sizes) {
  const Tensor c = t.contiguous();
  return c.as_strided(sizes, contiguous_strides(sizes), c.offset());
}

}  // namespace prong
