// Complex numbers: their parts, their conjugates, and making them of parts.
#include <cmath>

#include "ops/gradient.h"
#include "ops/kernels/pointwise.h"
#include "ops/scalar_math.h"
#include "ops/shape_of.h"

namespace prong {
namespace {

using namespace math;

constexpr const char* kVmapLater = "vmap is not built yet";

Cost linear_cost(const OpDef&, std::span<const IValue> args) {
  const TensorMeta x = meta_from(args[0]);
  const auto n = static_cast<double>(x.numel());
  return {2 * n, 2 * n * static_cast<double>(size_of(x.dtype))};
}

OpDef& add_op(Registry& r, std::string_view schema) {
  return r.add(schema).takes_complex().cost(linear_cost).no_vmap(kVmapLater);
}

std::vector<Sample> complex_samples() {
  return {{"t(3, 4, dtype=complex64)"},
          {"t(dtype=complex128)"},
          {"t(0, 5, dtype=complex64)"},
          {"strided(4, 6, dtype=complex64)"}};
}

// ── parts ──

DType complex_of_parts(DType part) {
  PRONG_CHECK(part == DType::kFloat32 || part == DType::kFloat64, kRuntime,
              "view_as_complex is only supported for half, float and double tensors, but got a "
              "tensor of scalar type: ",
              scalar_type_name(part));
  return complex_dtype(part);
}

Tensor view_as_complex(const Tensor& x) {
  const DType dtype = complex_of_parts(x.dtype());
  PRONG_CHECK(x.rank() > 0, kRuntime, "Input tensor must have one or more dimensions");
  PRONG_CHECK(x.sizes().back() == 2, kRuntime, "Tensor must have a last dimension of size 2");
  PRONG_CHECK(x.strides().back() == 1, kRuntime, "Tensor must have a last dimension with stride 1");
  PRONG_CHECK(x.offset() % 2 == 0, kRuntime, "Tensor must have a storage_offset divisible by 2");
  Dims sizes(DimsView(x.sizes()).first(x.sizes().size() - 1)), strides;
  for (size_t i = 0; i < sizes.size(); ++i) {
    PRONG_CHECK(x.strides()[i] % 2 == 0, kRuntime,
                "Tensor must have a stride divisible by 2 for all but last dimension");
    strides.push_back(x.strides()[i] / 2);
  }
  return x.as_strided(sizes, strides, x.offset() / 2, dtype);
}

Tensor view_as_real(const Tensor& x) {
  PRONG_CHECK(is_complex(x.dtype()), kRuntime,
              "view_as_real is only supported for complex tensors");
  Dims sizes = x.sizes(), strides = x.strides();
  for (int64_t& s : strides) s *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  return x.as_strided(sizes, strides, 2 * x.offset(), real_dtype(x.dtype()));
}

void check_has_imag(DType dtype) {
  PRONG_CHECK(is_complex(dtype), kRuntime,
              "imag is not implemented for tensors with non-complex dtypes.");
}

void register_parts(Registry& r) {
  const Spelling kFunctionAndProperty{.method = false, .property = true};
  const auto view = [&](std::string_view schema) -> OpDef& {
    return add_op(r, schema).family(Family::kView).view_of(0);
  };
  view("real(input: Tensor) -> Tensor")
      .doc("The real parts, as a view; a real tensor itself.")
      .where(kFunctionAndProperty)
      .shape([](const TensorMeta& x) {
        return TensorMeta{x.sizes, real_dtype(x.dtype)};
      })
      .kernel([](const Tensor& x) { return is_complex(x.dtype()) ? part_of(x, 0) : x; })
      .samples(complex_samples())
      .reference("np.real(input)");
  view("imag(input: Tensor) -> Tensor")
      .doc("The imaginary parts, as a view.")
      .where(kFunctionAndProperty)
      .shape([](const TensorMeta& x) {
        check_has_imag(x.dtype);
        return TensorMeta{x.sizes, real_dtype(x.dtype)};
      })
      .kernel([](const Tensor& x) {
        check_has_imag(x.dtype());
        return part_of(x, 1);
      })
      .samples(complex_samples())
      .reference("np.imag(input)");
  view("view_as_real(input: Tensor) -> Tensor")
      .doc("A view with a last dimension of two: real and imaginary part.")
      .where({.method = false})
      .shape([](const TensorMeta& x) {
        PRONG_CHECK(is_complex(x.dtype), kRuntime,
                    "view_as_real is only supported for complex tensors");
        Dims sizes = x.sizes;
        sizes.push_back(2);
        return TensorMeta{sizes, real_dtype(x.dtype)};
      })
      .kernel([](const Tensor& x) { return view_as_real(x); })
      .samples(complex_samples())
      .reference("np.stack([input.real, input.imag], -1)");
  view("view_as_complex(input: Tensor) -> Tensor")
      .doc("A view that reads the last dimension, of size two, as complex numbers.")
      .where({.method = false})
      .shape([](const TensorMeta& x) {
        PRONG_CHECK(x.rank() > 0 && x.sizes.back() == 2, kRuntime,
                    "Tensor must have a last dimension of size 2");
        return TensorMeta{Dims(DimsView(x.sizes).first(x.sizes.size() - 1)),
                          complex_of_parts(x.dtype)};
      })
      .kernel([](const Tensor& x) { return view_as_complex(x); })
      .samples({{"t(3, 2)"}, {"t(2, dtype=float64)"}})
      .reference("input[..., 0] + 1j * input[..., 1]");
}

// ── conjugates ──

Tensor conjugate(const Tensor& x) {
  return is_complex(x.dtype()) ? call_tensor("conj_physical", x) : x;
}

Dims transposed_sizes(const TensorMeta& x) {
  Dims sizes = x.sizes;
  std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
  return sizes;
}

void register_conjugates(Registry& r) {
  r.add("conj_physical(input: Tensor) -> Tensor")
      .doc("The complex conjugate, as a new tensor.")
      .pointwise<Numbers>([](auto x) { return x; })
      .complex([](auto x) { return std::conj(x); })
      .where({.inplace = true})
      .no_vmap(kVmapLater)
      .grad("input", "", [](Gradient& g) { return conj(g.out()); })
      .samples({{"t(3, 4, dtype=complex64)"}, {"t(3, 4)"}})
      .reference("np.conj(input)");
  // PyTorch's conj is a view that conjugates when it is read; here it is done at once.
  for (const char* name : {"conj", "resolve_conj"})
    add_op(r, cat(name, "(input: Tensor) -> Tensor"))
        .doc(name[0] == 'c' ? "The complex conjugate; a real tensor itself."
                            : "The tensor itself: conj() is done at once here.")
        .shape([](const TensorMeta& x) {
          return TensorMeta{x.sizes, x.dtype};
        })
        .kernel([](const OpDef& op, const Tensor& x) {
          return op.base_name() == "conj" ? conjugate(x) : x;
        })
        .grad("input", "",
              [](Gradient& g) { return g.op().base_name() == "conj" ? conj(g.out()) : g.out(); })
        .samples({{"t(3, 4, dtype=complex64)"}, {"t(3, 4)"}})
        .reference(name[0] == 'c' ? "np.conj(input)" : "input");
  const auto adjoint = [&](const char* name, const char* doc, Spelling where) -> OpDef& {
    return add_op(r, cat(name, "(input: Tensor) -> Tensor"))
        .doc(doc)
        .where(where)
        .shape([](const OpDef& op, const TensorMeta& x) {
          PRONG_CHECK(x.rank() >= 2 && (op.base_name() != "H" || x.rank() == 2), kRuntime,
                      "tensor.", op.base_name(),
                      "() is only supported on matrices or batches of "
                      "matrices. Got ",
                      x.rank(), "-D tensor.");
          return TensorMeta{transposed_sizes(x), x.dtype};
        })
        .kernel([](const OpDef& op, const Tensor& x) {
          op.shape()(op, std::vector<IValue>{IValue(x.meta())});
          return conjugate(call_tensor("transpose", x, -2, -1));
        })
        .composite()
        .samples({{"t(2, 3, dtype=complex64)"}, {"t(2, 3)"}})
        .reference("np.conj(np.swapaxes(input, -1, -2))");
  };
  const Spelling kProperty{.function = false, .method = false, .property = true};
  adjoint("adjoint", "Each matrix of a batch transposed and conjugated.", {});
  adjoint("mH", "Each matrix of a batch transposed and conjugated.", kProperty);
  adjoint("H", "The matrix transposed and conjugated.", kProperty);
}

// ── angles, and numbers made of parts ──

DType parts_dtype(const TensorMeta& a, const TensorMeta& b) {
  const auto fits = [](DType d) { return d == DType::kFloat32 || d == DType::kFloat64; };
  PRONG_CHECK(fits(a.dtype) && fits(b.dtype), kRuntime,
              "Expected both inputs to be Half, Float or Double tensors but got ",
              scalar_type_name(a.dtype), " and ", scalar_type_name(b.dtype));
  PRONG_CHECK(a.dtype == b.dtype, kRuntime, "Expected object of scalar type ",
              scalar_type_name(a.dtype), " but got scalar type ", scalar_type_name(b.dtype),
              " for second argument");
  return complex_dtype(a.dtype);
}

Tensor from_parts(const Tensor& real, const Tensor& imaginary) {
  const Tensor out =
      Tensor::empty(broadcast_shapes(real.sizes(), imaginary.sizes()), complex_dtype(real.dtype()));
  copy_into(part_of(out, 0), real);
  copy_into(part_of(out, 1), imaginary);
  return out;
}

void register_vdot(Registry& r) {
  add_op(r, "vdot(input: Tensor, other: Tensor) -> Tensor")
      .doc("The inner product of two vectors, the first one conjugated.")
      .shape([](const TensorMeta& a, const TensorMeta& b) { return shape_of("dot", a, b); })
      .kernel([](const Tensor& a, const Tensor& b) { return call_tensor("dot", conjugate(a), b); })
      .composite()
      .samples({{"t(4, dtype=complex64), t(4, dtype=complex64)"}, {"t(4), t(4)"}, {"t(0), t(0)"}})
      .reference("np.vdot(input, other)");
}

void register_making(Registry& r) {
  r.add("angle(input: Tensor) -> Tensor")
      .doc("The angle of a complex number, in radians; of a real one 0, or pi below 0.")
      .pointwise<Floats>(
          [](auto x) {
            return select(x != x, x, select(x < 0, lit(x, 3.14159265358979324), lit(x, 0.0)));
          },
          {.int_to_float = kEveryVariant})
      .complex([](auto x) { return std::arg(x); })
      .no_vmap(kVmapLater)
      .grad("input", "input",
            [](Gradient& g) {
              const Expr z = g["input"];
              if (!is_complex(z.dtype())) return g.zeros(z.meta());
              const Expr squares = op<"square">(op<"abs">(z));
              const Expr turned = op<"complex">(-op<"imag">(z), op<"real">(z));  // i z
              return op<"where">(op<"eq">(squares, 0), 0.0, turned * (g.out() / squares));
            })
      .samples({{"t(3, 4, dtype=complex64)"}, {"t(3, 4)"}, {"t(3, dtype=int64)"}})
      .reference("np.angle(input)");
  add_op(r, "complex(real: Tensor, imag: Tensor) -> Tensor")
      .doc("The complex numbers real + i imag.")
      .where({.method = false})
      .shape([](const TensorMeta& a, const TensorMeta& b) {
        return TensorMeta{broadcast_shapes(a.sizes, b.sizes), parts_dtype(a, b)};
      })
      .kernel([](const Tensor& real, const Tensor& imaginary) {
        parts_dtype(real.meta(), imaginary.meta());
        return from_parts(real, imaginary);
      })
      .grad("real", "", [](Gradient& g) { return op<"real">(g.out()); })
      .grad("imag", "", [](Gradient& g) { return op<"imag">(g.out()); })
      .samples(
          {{"t(3, 4), t(3, 4)"}, {"t(3, 1), t(4)"}, {"t(0, dtype=float64), t(0, dtype=float64)"}})
      .reference("real + 1j * imag");
  add_op(r, "polar(abs: Tensor, angle: Tensor) -> Tensor")
      .doc("The complex numbers of given size and angle.")
      .where({.method = false})
      .shape([](const TensorMeta& a, const TensorMeta& b) {
        return TensorMeta{broadcast_shapes(a.sizes, b.sizes), parts_dtype(a, b)};
      })
      .kernel([](const Tensor& size, const Tensor& angle) {
        parts_dtype(size.meta(), angle.meta());
        return call_tensor("complex", call_tensor("mul", size, call_tensor("cos", angle)),
                           call_tensor("mul", size, call_tensor("sin", angle)));
      })
      .composite()
      .samples({{"pos(3, 4), t(3, 4)"}, {"pos(3, 1), t(4)"}})
      .reference("abs * np.exp(1j * angle)");
}

}  // namespace

void register_complex(Registry& r) {
  register_parts(r);
  register_conjugates(r);
  register_making(r);
  register_vdot(r);
}

}  // namespace prong
