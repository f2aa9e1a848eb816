// Matrix products: mm, bmm, addmm, baddbmm, matmul, linear, mv, dot, outer. Their kernels are
// kernels/product.h.
#include "ops/gradient.h"
#include "ops/kernels/product.h"

namespace prong {
namespace {

constexpr const char* kVmapLater = "vmap is not built yet";

// PyTorch's names of dtypes in messages about products: "float != double".
std::string_view c_name(DType d) {
  switch (d) {
  case DType::kFloat32:
    return "float";
  case DType::kFloat64:
    return "double";
  case DType::kFloat16:
    return "c10::Half";
  case DType::kBFloat16:
    return "c10::BFloat16";
  case DType::kInt64:
    return "long";
  case DType::kInt32:
    return "int";
  case DType::kInt16:
    return "short";
  case DType::kInt8:
    return "signed char";
  case DType::kUInt8:
    return "unsigned char";
  case DType::kBool:
    return "bool";
  case DType::kComplex64:
    return "c10::complex<float>";
  case DType::kComplex128:
    return "c10::complex<double>";
  }
  return "?";
}

void check_dtypes(const char* a_name, const char* b_name, DType a, DType b) {
  PRONG_CHECK(a == b, kRuntime, "expected ", a_name, " and ", b_name,
              " to have the same dtype, but got: ", c_name(a), " != ", c_name(b));
}

TensorMeta mm_shape(const TensorMeta& a, const TensorMeta& b) {
  PRONG_CHECK(a.rank() == 2, kRuntime, "mm: self must be a matrix, but it has ", a.rank(),
              " dimensions");
  PRONG_CHECK(b.rank() == 2, kRuntime, "mm: mat2 must be a matrix, but it has ", b.rank(),
              " dimensions");
  PRONG_CHECK(a.sizes[1] == b.sizes[0], kRuntime, "mat1 and mat2 shapes cannot be multiplied (",
              a.sizes[0], "x", a.sizes[1], " and ", b.sizes[0], "x", b.sizes[1], ")");
  check_dtypes("m1", "m2", a.dtype, b.dtype);
  return {{a.sizes[0], b.sizes[1]}, a.dtype};
}

TensorMeta bmm_shape(const TensorMeta& a, const TensorMeta& b) {
  PRONG_CHECK(a.rank() == 3, kRuntime, "batch1 must be a 3D tensor");
  PRONG_CHECK(b.rank() == 3, kRuntime, "batch2 must be a 3D tensor");
  PRONG_CHECK(a.sizes[0] == b.sizes[0] && a.sizes[2] == b.sizes[1], kRuntime,
              "Expected size for first two dimensions of batch2 tensor to be: [", a.sizes[0], ", ",
              a.sizes[2], "] but got: [", b.sizes[0], ", ", b.sizes[1], "].");
  PRONG_CHECK(a.dtype == b.dtype, kRuntime, "expected scalar type ", c_name(a.dtype), " but found ",
              c_name(b.dtype));
  return {{a.sizes[0], a.sizes[1], b.sizes[2]}, a.dtype};
}

Dims with_last(DimsView batch, std::initializer_list<int64_t> last) {
  Dims d(batch);
  for (const int64_t n : last) d.push_back(n);
  return d;
}

TensorMeta matmul_shape(const TensorMeta& a, const TensorMeta& b) {
  PRONG_CHECK(a.rank() > 0 && b.rank() > 0, kRuntime,
              "both arguments to matmul need to be at least 1D, but they are ", a.rank(), "D and ",
              b.rank(), "D");
  check_dtypes("m1", "m2", a.dtype, b.dtype);
  const int64_t k = a.sizes.back();
  const int64_t n = b.sizes.back();
  const int64_t kb = b.rank() == 1 ? n : b.sizes[b.sizes.size() - 2];
  if (a.rank() == 1 && b.rank() == 1) {
    PRONG_CHECK(k == kb, kRuntime, "inconsistent tensor size, expected tensor [", k, "] and src [",
                kb, "] to have the same number of elements, but got ", k, " and ", kb,
                " elements respectively");
    return {{}, a.dtype};
  }
  const DimsView batch_a = DimsView(a.sizes).first(a.sizes.size() - (a.rank() == 1 ? 1 : 2));
  const DimsView batch_b = DimsView(b.sizes).first(b.sizes.size() - (b.rank() == 1 ? 1 : 2));
  if (k != kb) {
    if (b.rank() == 1 && a.rank() == 2)
      throw_error(ErrorKind::kRuntime, cat("size mismatch, got input (", a.sizes[0], "), mat (",
                                           a.sizes[0], "x", k, "), vec (", kb, ")"));
    if (a.rank() > 2 && b.rank() > 2)
      throw_error(ErrorKind::kRuntime,
                  cat("Expected size for first two dimensions of batch2 tensor to be: [",
                      product(broadcast_shapes(batch_a, batch_b)), ", ", k, "] but got: [",
                      product(broadcast_shapes(batch_a, batch_b)), ", ", kb, "]."));
    const int64_t m = a.rank() == 1 ? 1 : product(DimsView(a.sizes).first(a.sizes.size() - 1));
    throw_error(ErrorKind::kRuntime, cat("mat1 and mat2 shapes cannot be multiplied (", m, "x", k,
                                         " and ", kb, "x", b.rank() == 1 ? 1 : n, ")"));
  }
  const Dims batch = broadcast_shapes(batch_a, batch_b);
  if (a.rank() == 1) return {with_last(batch, {n}), a.dtype};
  const int64_t m = a.sizes[a.sizes.size() - 2];
  if (b.rank() == 1) return {with_last(batch, {m}), a.dtype};
  return {with_last(batch, {m, n}), a.dtype};
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  const TensorMeta result = matmul_shape(a.meta(), b.meta());
  const Tensor out = Tensor::empty(result.sizes, result.dtype);
  if (out.numel() == 0) return out;
  // Vectors become matrices of one row or column.
  const Tensor x =
      a.rank() == 1 ? a.as_strided(Dims{1, a.size(0)}, Dims{0, a.stride(0)}, a.offset()) : a;
  const Tensor y =
      b.rank() == 1 ? b.as_strided(Dims{b.size(0), 1}, Dims{b.stride(0), 1}, b.offset()) : b;
  const int64_t k = x.size(-1), n = y.size(-1);
  if (y.rank() == 2) {  // all leading dimensions of x are rows of one product
    const int64_t m =
        x.numel() == 0 ? product(DimsView(x.sizes()).first(x.sizes().size() - 1)) : x.numel() / k;
    const Tensor rows = x.rank() == 2 ? x : reshaped(x, Dims{m, k});
    product_into("addmm_impl_cpu_", rows, y, reshaped(out, Dims{m, n}), 1, 0);
    return out;
  }
  const Dims batch = broadcast_shapes(DimsView(x.sizes()).first(x.sizes().size() - 2),
                                      DimsView(y.sizes()).first(y.sizes().size() - 2));
  const auto wide = [&](const Tensor& t) {
    return broadcast_to(t, with_last(batch, {t.size(-2), t.size(-1)}));
  };
  batched_product_into("baddbmm_impl_cpu_", wide(x), wide(y),
                       reshaped(out, with_last(batch, {x.size(-2), n})), 1, 0);
  return out;
}

TensorMeta linear_shape(const TensorMeta& x, const TensorMeta& w,
                        const std::optional<TensorMeta>& bias) {
  PRONG_CHECK(w.rank() == 1 || w.rank() == 2, kRuntime,
              "linear: weight must be 1D or 2D, but it has shape ", w.sizes);
  PRONG_CHECK(x.rank() > 0, kRuntime, "linear: input must have at least one dimension");
  check_dtypes("m1", "m2", x.dtype, w.dtype);
  const int64_t k = x.sizes.back(), rows = product(DimsView(x.sizes).first(x.sizes.size() - 1));
  PRONG_CHECK(k == w.sizes.back(), kRuntime, "mat1 and mat2 shapes cannot be multiplied (", rows,
              "x", k, " and ", w.sizes.back(), "x", w.rank() == 1 ? 1 : w.sizes[0], ")");
  Dims sizes(DimsView(x.sizes).first(x.sizes.size() - 1));
  if (w.rank() == 2) sizes.push_back(w.sizes[0]);
  if (bias) {
    check_dtypes("input", "bias", x.dtype, bias->dtype);
    check_expands(bias->sizes, sizes);
  }
  return {sizes, x.dtype};
}

// alpha * (a @ b) + beta * input, for mm and bmm alike.
template <class Product>
Tensor add_product(const Tensor& input, const TensorMeta& result, const Number& alpha,
                   const Number& beta, Product&& multiply) {
  const Tensor out = Tensor::empty(result.sizes, result.dtype);
  if (alpha.is_complex() || beta.is_complex()) {
    PRONG_CHECK(is_complex(result.dtype), kRuntime,
                "alpha and beta of products of real tensors must not be complex numbers");
    multiply(out, 1.0, 0.0);
    const Tensor scaled = call_tensor("mul", out, alpha);
    if (beta.as_complex() == Complex128(0)) return scaled;
    return call_tensor("add", scaled, call_tensor("mul", input, beta));
  }
  // beta == 0: input is not read, so its NaN do not spread.
  if (beta.as_double() != 0) copy_into(out, broadcast_to(input, result.sizes));
  multiply(out, alpha.as_double(), beta.as_double());
  return out;
}

Cost product_cost(const OpDef&, std::span<const IValue> args) {
  const TensorMeta a = meta_from(args[args.size() > 4 ? 1 : 0]),
                   b = meta_from(args[args.size() > 4 ? 2 : 1]);
  const double n = b.rank() > 1 ? static_cast<double>(b.sizes.back()) : 1;
  return {2.0 * static_cast<double>(a.numel()) * n,
          static_cast<double>(size_of(a.dtype)) * static_cast<double>(a.numel() + b.numel())};
}

// ── gradients ──

Expr scaled(const Expr& x, const IValue& factor) {
  if (factor.is_complex()) return conj(op<"mul">(conj(x), factor));
  return factor.to_double() == 1 ? x : op<"mul">(x, factor);
}

// [.., n] as a matrix of all its rows.
Expr as_rows(const Expr& x) {
  const Dims sizes = x.sizes();
  if (sizes.size() == 2) return x;
  return op<"reshape">(
      x, Dims{product(DimsView(sizes).first(sizes.size() - 1)), sizes.empty() ? 1 : sizes.back()});
}

// For out = a @ b by matmul's rules; the tape sums over batches that were broadcast.
Expr matmul_grad_a(const Expr& dy, const Expr& b, int64_t rank_a) {
  if (b.rank() == 1) return rank_a == 1 ? dy * b : op<"mul">(op<"unsqueeze">(dy, int64_t{-1}), b);
  if (rank_a > 1) return op<"matmul">(dy, op<"mT">(b));
  return op<"squeeze.dim">(op<"matmul">(op<"unsqueeze">(dy, int64_t{-2}), op<"mT">(b)),
                           int64_t{-2});
}
Expr matmul_grad_b(const Expr& dy, const Expr& a, int64_t rank_b) {
  const int64_t rank_a = a.rank();
  if (rank_a == 1 && rank_b == 1) return dy * a;
  if (rank_a == 1)
    return op<"mul">(op<"unsqueeze">(a, int64_t{-1}), op<"unsqueeze">(dy, int64_t{-2}));
  if (rank_b == 1) return op<"mv">(op<"t">(as_rows(a)), op<"reshape">(dy, Dims{-1}));
  // One matrix for all rows of a: one product over all of them instead of a sum of products.
  if (rank_b == 2) return op<"mm">(op<"t">(as_rows(a)), as_rows(dy));
  return op<"matmul">(op<"mT">(a), dy);
}

void register_plain(Registry& r) {
  r.add("mm(input: Tensor, mat2: Tensor) -> Tensor")
      .doc("Matrix product of two matrices; no broadcasting.")
      .family(Family::kMatmul)
      .takes_complex()
      .shape([](const TensorMeta& a, const TensorMeta& b) { return mm_shape(a, b); })
      .kernel([](const Tensor& a, const Tensor& b) {
        const TensorMeta result = mm_shape(a.meta(), b.meta());
        const Tensor out = Tensor::empty(result.sizes, result.dtype);
        product_into("addmm_impl_cpu_", a, b, out, 1, 0);
        return out;
      })
      .cost(product_cost)
      .grad("input", "mat2",
            [](Gradient& g) { return op<"mm">(g.out(), op<"mT">(conj(g["mat2"]))); })
      .grad("mat2", "input",
            [](Gradient& g) { return op<"mm">(op<"mT">(conj(g["input"])), g.out()); })
      .no_vmap(kVmapLater)
      .samples({{"t(3, 4), t(4, 5)"},
                {"t(0, 4), t(4, 5)"},
                {"t(3, 0), t(0, 5)"},
                {"t(4, 3).t(), t(4, 5)"},
                {"t(3, 4, dtype=float64), t(4, 5, dtype=float64)"},
                {"t(3, 4, dtype=int64), t(4, 5, dtype=int64)"}})
      .reference("np.matmul(input, mat2)");

  r.add("bmm(input: Tensor, mat2: Tensor) -> Tensor")
      .doc("Matrix products of two batches of matrices, [b, n, m] and [b, m, p].")
      .family(Family::kMatmul)
      .takes_complex()
      .shape([](const TensorMeta& a, const TensorMeta& b) { return bmm_shape(a, b); })
      .kernel([](const Tensor& a, const Tensor& b) {
        const TensorMeta result = bmm_shape(a.meta(), b.meta());
        const Tensor out = Tensor::empty(result.sizes, result.dtype);
        batched_product_into("baddbmm_impl_cpu_", a, b, out, 1, 0);
        return out;
      })
      .cost(product_cost)
      .grad("input", "mat2",
            [](Gradient& g) { return op<"bmm">(g.out(), op<"mT">(conj(g["mat2"]))); })
      .grad("mat2", "input",
            [](Gradient& g) { return op<"bmm">(op<"mT">(conj(g["input"])), g.out()); })
      .no_vmap(kVmapLater)
      .samples({{"t(2, 3, 4), t(2, 4, 5)"},
                {"t(0, 3, 4), t(0, 4, 5)"},
                {"t(2, 3, 0), t(2, 0, 5)"},
                {"t(2, 4, 3).transpose(1, 2), t(2, 4, 5)"}})
      .reference("np.matmul(input, mat2)");

  r.add("matmul(input: Tensor, other: Tensor) -> Tensor")
      .doc("Matrix product with NumPy's rules for vectors and batches.")
      .family(Family::kMatmul)
      .takes_complex()
      .shape([](const TensorMeta& a, const TensorMeta& b) { return matmul_shape(a, b); })
      .kernel([](const Tensor& a, const Tensor& b) { return matmul(a, b); })
      .cost(product_cost)
      .grad("input", "other",
            [](Gradient& g) {
              return matmul_grad_a(g.out(), conj(g["other"]), g.meta("input").rank());
            })
      .grad("other", "input",
            [](Gradient& g) {
              return matmul_grad_b(g.out(), conj(g["input"]), g.meta("other").rank());
            })
      .no_vmap(kVmapLater)
      .samples({{"t(4), t(4)"},
                {"t(3, 4), t(4)"},
                {"t(4), t(4, 5)"},
                {"t(2, 3, 4), t(4, 5)"},
                {"t(2, 1, 3, 4), t(5, 4, 2)"},
                {"t(5, 3, 4), t(4)"},
                {"t(4), t(5, 4, 3)"},
                {"t(0, 4), t(4, 3)"},
                {"t(2, 3, 0), t(0, 4)"}})
      .reference("np.matmul(input, other)");

  r.add("mv(input: Tensor, vec: Tensor) -> Tensor")
      .doc("Product of a matrix and a vector.")
      .family(Family::kMatmul)
      .takes_complex()
      .shape([](const TensorMeta& a, const TensorMeta& b) {
        PRONG_CHECK(a.rank() == 2 && b.rank() == 1, kRuntime,
                    "vector + matrix @ vector expected, got 1, ", a.rank(), ", ", b.rank());
        return matmul_shape(a, b);
      })
      .kernel([](const Tensor& a, const Tensor& b) {
        PRONG_CHECK(a.rank() == 2 && b.rank() == 1, kRuntime,
                    "vector + matrix @ vector expected, got 1, ", a.rank(), ", ", b.rank());
        return matmul(a, b);
      })
      .cost(product_cost)
      .grad("input", "vec", [](Gradient& g) { return matmul_grad_a(g.out(), conj(g["vec"]), 2); })
      .grad("vec", "input", [](Gradient& g) { return matmul_grad_b(g.out(), conj(g["input"]), 1); })
      .no_vmap(kVmapLater)
      .samples({{"t(3, 4), t(4)"}, {"t(0, 4), t(4)"}})
      .reference("np.matmul(input, vec)");

  r.add("dot(input: Tensor, tensor: Tensor) -> Tensor")
      .doc("Inner product of two vectors.")

      .family(Family::kMatmul)
      .takes_complex()
      .shape([](const TensorMeta& a, const TensorMeta& b) {
        PRONG_CHECK(a.rank() == 1 && b.rank() == 1, kRuntime, "1D tensors expected, but got ",
                    a.rank(), "D and ", b.rank(), "D tensors");
        return matmul_shape(a, b);
      })
      .kernel([](const Tensor& a, const Tensor& b) {
        PRONG_CHECK(a.rank() == 1 && b.rank() == 1, kRuntime, "1D tensors expected, but got ",
                    a.rank(), "D and ", b.rank(), "D tensors");
        return matmul(a, b);
      })
      .cost(product_cost)
      .grad("input", "tensor", [](Gradient& g) { return g.out() * conj(g["tensor"]); })
      .grad("tensor", "input", [](Gradient& g) { return g.out() * conj(g["input"]); })
      .no_vmap(kVmapLater)
      .samples({{"t(4), t(4)"}, {"t(0), t(0)"}, {"t(3, dtype=int64), t(3, dtype=int64)"}})
      .reference("np.dot(input, tensor)");

  r.add("outer(input: Tensor, vec2: Tensor) -> Tensor")
      .doc("Outer product of two vectors.")
      .where({.aliases = {"ger"}})
      .family(Family::kMatmul)
      .takes_complex()
      .shape([](const TensorMeta& a, const TensorMeta& b) {
        PRONG_CHECK(a.rank() == 1 && b.rank() == 1, kRuntime,
                    "outer: Expected 1-D argument self, but got ", a.rank(), "-D and ", b.rank(),
                    "-D");
        ResultType t;
        t.add(a);
        t.add(b);
        return TensorMeta{{a.sizes[0], b.sizes[0]}, t.get()};
      })
      .kernel([](const Tensor& a, const Tensor& b) {
        PRONG_CHECK(a.rank() == 1 && b.rank() == 1, kRuntime,
                    "outer: Expected 1-D argument self, but got ", a.rank(), "-D and ", b.rank(),
                    "-D");
        return call_tensor("mul", call_tensor("unsqueeze", a, int64_t{1}), b);
      })
      .cost([](const OpDef&, std::span<const IValue> args) {
        const double n =
            static_cast<double>(meta_from(args[0]).numel() * meta_from(args[1]).numel());
        return Cost{n, 4 * n};
      })
      .composite()
      .no_vmap(kVmapLater)
      .samples({{"t(3), t(4)"}, {"t(0), t(4)"}})
      .reference("np.outer(input, vec2)");
}

// Of a tensor that is broadcast and a product, to which it is added.
TensorMeta sum_shape(const char* name, const TensorMeta& x, const TensorMeta& product,
                     DType dtype) {
  check_dtypes("self", name, x.dtype, dtype);
  check_expands(x.sizes, product.sizes);
  return product;
}

void register_fused_add(Registry& r) {
  r.add(
       "addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) "
       "-> Tensor")
      .doc("beta * input + alpha * (mat1 @ mat2); input is broadcast.")
      .family(Family::kMatmul)
      .takes_complex()
      .shape([](const TensorMeta& x, const TensorMeta& a, const TensorMeta& b, Number, Number) {
        return sum_shape("mat2", x, mm_shape(a, b), b.dtype);
      })
      .kernel([](const Tensor& input, const Tensor& a, const Tensor& b, Number beta, Number alpha) {
        return add_product(input,
                           sum_shape("mat2", input.meta(), mm_shape(a.meta(), b.meta()), b.dtype()),
                           alpha, beta, [&](const Tensor& out, double al, double be) {
                             product_into("addmm_impl_cpu_", a, b, out, al, be);
                           });
      })
      .cost(product_cost)
      .grad("input", "", [](Gradient& g) { return scaled(g.out(), g.value("beta")); })
      .grad("mat1", "mat2",
            [](Gradient& g) {
              return scaled(op<"mm">(g.out(), op<"mT">(conj(g["mat2"]))), g.value("alpha"));
            })
      .grad("mat2", "mat1",
            [](Gradient& g) {
              return scaled(op<"mm">(op<"mT">(conj(g["mat1"])), g.out()), g.value("alpha"));
            })
      .no_vmap(kVmapLater)
      .samples({{"t(5), t(3, 4), t(4, 5)"},
                {"t(3, 5), t(3, 4), t(4, 5), beta=0.5, alpha=2"},
                {"t(5), t(3, 0), t(0, 5)"}})
      .reference("beta * input + alpha * np.matmul(mat1, mat2)");

  r.add(
       "baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar "
       "= 1) -> Tensor")
      .doc("beta * input + alpha * (batch1 @ batch2) for batches of matrices; input is broadcast.")
      .family(Family::kMatmul)
      .takes_complex()
      .shape([](const TensorMeta& x, const TensorMeta& a, const TensorMeta& b, Number, Number) {
        return sum_shape("batch2", x, bmm_shape(a, b), b.dtype);
      })
      .kernel([](const Tensor& input, const Tensor& a, const Tensor& b, Number beta, Number alpha) {
        return add_product(
            input, sum_shape("batch2", input.meta(), bmm_shape(a.meta(), b.meta()), b.dtype()),
            alpha, beta, [&](const Tensor& out, double al, double be) {
              batched_product_into("baddbmm_impl_cpu_", a, b, out, al, be);
            });
      })
      .cost(product_cost)
      .grad("input", "", [](Gradient& g) { return scaled(g.out(), g.value("beta")); })
      .grad("batch1", "batch2",
            [](Gradient& g) {
              return scaled(op<"bmm">(g.out(), op<"mT">(conj(g["batch2"]))), g.value("alpha"));
            })
      .grad("batch2", "batch1",
            [](Gradient& g) {
              return scaled(op<"bmm">(op<"mT">(conj(g["batch1"])), g.out()), g.value("alpha"));
            })
      .no_vmap(kVmapLater)
      .samples({{"t(2, 3, 5), t(2, 3, 4), t(2, 4, 5)"},
                {"t(5), t(2, 3, 4), t(2, 4, 5), beta=0.5, alpha=2"}})
      .reference("beta * input + alpha * np.matmul(batch1, batch2)");

  r.add("linear(input: Tensor, weight: Tensor, bias: Tensor? = None) -> Tensor")
      .doc("input @ weight.T + bias over the last dimension.")
      .where({.function = false, .method = false, .nn_functional = true})
      .family(Family::kMatmul)
      .takes_complex()
      .shape([](const TensorMeta& x, const TensorMeta& w, std::optional<TensorMeta> bias) {
        return linear_shape(x, w, bias);
      })
      .kernel([](const Tensor& x, const Tensor& w, std::optional<Tensor> bias) {
        const TensorMeta result =
            linear_shape(x.meta(), w.meta(), bias ? std::optional(bias->meta()) : std::nullopt);
        const Tensor out = Tensor::empty(result.sizes, result.dtype);
        if (out.numel() == 0) return out;
        const int64_t k = x.size(-1), n = w.rank() == 2 ? w.size(0) : 1, m = out.numel() / n;
        if (bias) copy_into(out, broadcast_to(*bias, result.sizes));
        const Tensor w_t =
            w.rank() == 2 ? w.as_strided(Dims{k, n}, Dims{w.stride(1), w.stride(0)}, w.offset())
                          : w.as_strided(Dims{k, 1}, Dims{w.stride(0), 1}, w.offset());
        product_into("addmm_impl_cpu_", x.rank() == 2 ? x : reshaped(x, Dims{m, k}), w_t,
                     reshaped(out, Dims{m, n}), 1, bias ? 1 : 0);
        return out;
      })
      .cost([](const OpDef&, std::span<const IValue> args) {
        const TensorMeta x = meta_from(args[0]), w = meta_from(args[1]);
        const double rows = static_cast<double>(x.numel()) /
                            static_cast<double>(std::max<int64_t>(1, x.sizes.back()));
        return Cost{2 * rows * static_cast<double>(w.numel()),
                    static_cast<double>(size_of(x.dtype)) *
                        static_cast<double>(x.numel() + w.numel())};
      })
      .grad("input", "weight",
            [](Gradient& g) {
              const Expr w = conj(g["weight"]);
              if (w.rank() == 1) return op<"mul">(op<"unsqueeze">(g.out(), int64_t{-1}), w);
              return op<"matmul">(g.out(), w);
            })
      .grad("weight", "input",
            [](Gradient& g) {
              const Expr x = conj(g["input"]);
              if (g.meta("weight").rank() == 1) return matmul_grad_b(g.out(), x, 1);
              return op<"mm">(op<"t">(as_rows(g.out())), as_rows(x));
            })
      .grad("bias", "", [](Gradient& g) { return g.out(); })
      .no_vmap(kVmapLater)
      .samples({{"t(3, 4), t(5, 4)"},
                {"t(2, 3, 4), t(5, 4), t(5)"},
                {"t(4), t(5, 4), t(5)"},
                {"t(0, 4), t(5, 4), t(5)"},
                {"t(3, 4), t(4)"},
                {"t(2, 0), t(3, 0), t(3)"}})
      .reference("np.matmul(input, weight.T) + (0 if bias is None else bias)");
}

}  // namespace

void register_matmul(Registry& r) {
  register_plain(r);
  register_fused_add(r);
}

}  // namespace prong
