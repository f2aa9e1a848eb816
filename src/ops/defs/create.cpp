// Ops that make a tensor from no tensor's elements: empty, zeros, full, arange, eye, ... and their
// _like and new_ forms.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/data_check.h"
#include "ops/gradient.h"
#include "ops/kernels/fill.h"
#include "ops/kernels/geometry.h"
#include "ops/like.h"
#include "ops/op_def.h"
#include "tensor/convert.h"

namespace prong {

namespace {

constexpr const char* kNoInputs = "no input carries a gradient";
constexpr const char* kVmapLater = "vmap is not built yet";
constexpr Spelling kFunctionOnly{.method = false};
constexpr Spelling kMethodOnly{.function = false};

using OptionalDType = std::optional<DType>;

OpDef& factory(Registry& r, std::string_view schema, std::string doc) {
  return r.add(schema)
      .doc(std::move(doc))
      .family(Family::kFactory)
      .where(kFunctionOnly)
      .not_differentiable(kNoInputs)
      .no_grad(kNoInputs)
      .no_vmap(kVmapLater);
}

Tensor filled(DimsView sizes, DType dtype, int64_t value) {
  for (int64_t size : sizes)
    PRONG_CHECK(size >= 0 || value != 0, kRuntime, "zeros: Dimension size must be non-negative.");
  Tensor t = Tensor::empty(sizes, dtype);
  fill(t, value);
  return t;
}

// ── one value ──

template <int64_t kValue>
void register_constant(Registry& r, const std::string& name) {
  const std::string value = std::to_string(kValue);
  factory(r, cat(name, "(size: int[], *, dtype: dtype? = None) -> Tensor"),
          cat("A tensor of ", value, "s."))
      .kernel([](const Dims& size, const OptionalDType& dtype) {
        return filled(size, dtype.value_or(default_dtype()), kValue);
      })
      .shape([](const Dims& size, const OptionalDType& dtype) {
        return TensorMeta{size, dtype.value_or(default_dtype())};
      })
      .samples(
          {{"[2, 3]"}, {"[0, 2]"}, {"[]"}, {"[3], dtype=torch.int64"}, {"[2], dtype=torch.bool"}})
      .reference(cat("np.full(size, ", value, ", np.float32 if dtype is None else dtype)"));
  factory(r, cat(name, "_like(input: Tensor, *, dtype: dtype? = None) -> Tensor"),
          cat("A tensor of ", value, "s with the shape and, unless given, the dtype of input."))
      .kernel([](const Tensor& x, const OptionalDType& dtype) {
        return filled(x.sizes(), dtype.value_or(x.dtype()), kValue);
      })
      .shape([](const TensorMeta& x, const OptionalDType& dtype) {
        return TensorMeta{x.sizes, dtype.value_or(x.dtype)};
      })
      .samples({{"t(2, 3)"}, {"t(2, dtype=int64)"}, {"strided(4, 6)"}})
      .reference(cat("np.full(input.shape, ", value, ", input.dtype if dtype is None else dtype)"));
  factory(r, cat("new_", name, "(input: Tensor, size: int[], *, dtype: dtype? = None) -> Tensor"),
          cat("A tensor of ", value, "s with, unless given, the dtype of input."))
      .where(kMethodOnly)
      .kernel([](const Tensor& x, const Dims& size, const OptionalDType& dtype) {
        return filled(size, dtype.value_or(x.dtype()), kValue);
      })
      .shape([](const TensorMeta& x, const Dims& size, const OptionalDType& dtype) {
        return TensorMeta{size, dtype.value_or(x.dtype)};
      })
      .samples({{"t(2, dtype=int64), [3]"}})
      .reference(cat("np.full(size, ", value, ", input.dtype if dtype is None else dtype)"));
}

void register_empty(Registry& r) {
  factory(r, "empty(size: int[], *, dtype: dtype? = None) -> Tensor",
          "A tensor whose elements are not set.")
      .kernel([](const Dims& size, const OptionalDType& dtype) {
        return Tensor::empty(size, dtype.value_or(default_dtype()));
      })
      .shape([](const Dims& size, const OptionalDType& dtype) {
        return TensorMeta{size, dtype.value_or(default_dtype())};
      })
      .samples({{"[2, 3]"}, {"[0]"}, {"[2], dtype=torch.int64"}});
  factory(r, "empty_like(input: Tensor, *, dtype: dtype? = None) -> Tensor",
          "A tensor whose elements are not set, with the shape of input.")
      .kernel([](const Tensor& x, const OptionalDType& dtype) {
        return empty_like(x, dtype.value_or(x.dtype()));
      })
      .shape([](const TensorMeta& x, const OptionalDType& dtype) {
        return TensorMeta{x.sizes, dtype.value_or(x.dtype)};
      })
      .samples({{"t(2, 3)"}, {"t(0, 3), dtype=torch.int64"}});
  factory(r, "new_empty(input: Tensor, size: int[], *, dtype: dtype? = None) -> Tensor",
          "A tensor whose elements are not set, with the dtype of input.")
      .where(kMethodOnly)
      .kernel([](const Tensor& x, const Dims& size, const OptionalDType& dtype) {
        return Tensor::empty(size, dtype.value_or(x.dtype()));
      })
      .shape([](const TensorMeta& x, const Dims& size, const OptionalDType& dtype) {
        return TensorMeta{size, dtype.value_or(x.dtype)};
      })
      .samples({{"t(2, dtype=int64), [3, 0]"}});
  factory(r, "empty_strided(size: int[], stride: int[], *, dtype: dtype? = None) -> Tensor",
          "A tensor whose elements are not set, with the given strides.")
      .kernel([](const Dims& size, const Dims& stride, const OptionalDType& given) {
        const DType dtype = given.value_or(default_dtype());
        PRONG_CHECK(size.size() == stride.size(), kRuntime,
                    "mismatch in length of strides and shape");
        int64_t reach = 1;
        for (size_t i = 0; i < size.size(); ++i)
          reach = size[i] == 0 ? 0 : reach + (reach ? (size[i] - 1) * stride[i] : 0);
        return Tensor::empty(Dims{std::max<int64_t>(reach, 0)}, dtype).as_strided(size, stride, 0);
      })
      .dynamic_shape("laid out as its strides say, which no shape tells")
      .shape([](const Dims& size, const Dims&, const OptionalDType& dtype) {
        return TensorMeta{size, dtype.value_or(default_dtype())};
      })
      .samples({{"[2, 3], [1, 2]"}, {"[0, 3], [3, 1]"}});
}

Tensor full(DimsView size, const Number& value, DType dtype) {
  Tensor t = Tensor::empty(size, dtype);
  fill_number(t, value);
  return t;
}

void register_full(Registry& r) {
  factory(r, "full(size: int[], fill_value: Scalar, *, dtype: dtype? = None) -> Tensor",
          "A tensor of one value.")
      .kernel([](const Dims& size, const Number& value, const OptionalDType& dtype) {
        return full(size, value, dtype.value_or(dtype_of(value)));
      })
      .shape([](const Dims& size, const Number& value, const OptionalDType& dtype) {
        return TensorMeta{size, dtype.value_or(dtype_of(value))};
      })
      .samples({{"[2, 3], 1.5"}, {"[2], 3"}, {"[2], True"}, {"[], 7, dtype=torch.float32"}})
      .reference(
          "np.full(size, fill_value, dtype or (np.float32 if isinstance(fill_value, float) else "
          "None))");
  factory(r, "full_like(input: Tensor, fill_value: Scalar, *, dtype: dtype? = None) -> Tensor",
          "A tensor of one value with the shape of input.")
      .kernel([](const Tensor& x, const Number& value, const OptionalDType& dtype) {
        return full(x.sizes(), value, dtype.value_or(x.dtype()));
      })
      .shape([](const TensorMeta& x, const Number&, const OptionalDType& dtype) {
        return TensorMeta{x.sizes, dtype.value_or(x.dtype)};
      })
      .samples({{"t(2, 3), 1.5"}, {"t(2, dtype=int64), 3"}})
      .reference("np.full(input.shape, fill_value, dtype or input.dtype)");
  factory(
      r,
      "new_full(input: Tensor, size: int[], fill_value: Scalar, *, dtype: dtype? = None) -> Tensor",
      "A tensor of one value with the dtype of input.")
      .where(kMethodOnly)
      .kernel(
          [](const Tensor& x, const Dims& size, const Number& value, const OptionalDType& dtype) {
            return full(size, value, dtype.value_or(x.dtype()));
          })
      .shape([](const TensorMeta& x, const Dims& size, const Number&, const OptionalDType& dtype) {
        return TensorMeta{size, dtype.value_or(x.dtype)};
      })
      .samples({{"t(2), [3], 1.5"}})
      .reference("np.full(size, fill_value, dtype or input.dtype)");
  factory(r, "scalar_tensor(s: Scalar, *, dtype: dtype? = None) -> Tensor",
          "A zero-dim tensor of one value.")
      .kernel([](const Number& value, const OptionalDType& dtype) {
        return full({}, value, dtype.value_or(default_dtype()));
      })
      .shape([](const Number&, const OptionalDType& dtype) {
        return TensorMeta{{}, dtype.value_or(default_dtype())};
      })
      .samples({{"1.5"}, {"2, dtype=torch.int64"}})
      .reference("np.array(s, dtype or np.float32)");
}

// ── sequences ──

DType arange_dtype(std::initializer_list<const Number*> numbers, const OptionalDType& dtype) {
  if (dtype) return *dtype;
  for (const Number* n : numbers)
    if (!n->is_int()) return default_dtype();
  return DType::kInt64;
}

int64_t arange_length(const Number& start, const Number& end, const Number& step, DType dtype) {
  PRONG_CHECK(dtype != DType::kBool, kNotImplemented, "\"arange_cpu\" not implemented for 'Bool'");
  const double s = start.as_double(), e = end.as_double(), d = step.as_double();
  PRONG_CHECK(d != 0, kRuntime, "step must be nonzero");
  PRONG_CHECK(std::isfinite(s) && std::isfinite(e), kRuntime,
              "unsupported range: ", repr(start.value), " -> ", repr(end.value));
  PRONG_CHECK(d > 0 ? e >= s : e <= s, kRuntime,
              "upper bound and lower bound inconsistent with step sign");
  const double length = dtype == DType::kInt64
                            ? std::ceil(static_cast<double>(end.as_int() - start.as_int()) /
                                        static_cast<double>(step.as_int()))
                            : std::ceil((e - s) / d);
  PRONG_CHECK(length <= 9.2e18, kRuntime, "invalid size, possible overflow?");
  return static_cast<int64_t>(length);
}

Tensor arange(const Number& start, const Number& end, const Number& step, DType dtype) {
  Tensor out = Tensor::empty(Dims{arange_length(start, end, step, dtype)}, dtype);
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>) {
      const int64_t first = start.as_int(), by = step.as_int();
      generate<T>(out, [=](int64_t i) { return first + by * i; });
    } else {
      const double first = start.as_double(), by = step.as_double();
      generate<T>(out, [=](int64_t i) { return first + by * static_cast<double>(i); });
    }
  });
  return out;
}

// f(i) of an evenly spaced sequence, counted from both ends, so that the last element is exact.
template <class C>
auto spaced(C start, C end, int64_t steps) {
  const C step = steps > 1 ? (end - start) / static_cast<C>(steps - 1) : C(0);
  return [=](int64_t i) {
    if (i < steps / 2 || steps == 1) return std::fma(step, static_cast<C>(i), start);
    return std::fma(-step, static_cast<C>(steps - i - 1), end);
  };
}

void check_steps(int64_t steps) {
  PRONG_CHECK(steps >= 0, kRuntime, "number of steps must be non-negative");
}

// Whole in an integer type T.
template <class T, class C>
C end_point(const Number& x) {
  return std::is_integral_v<T> ? static_cast<C>(convert<T>(x.as_double()))
                               : static_cast<C>(x.as_double());
}

Tensor linspace(const Number& start, const Number& end, int64_t steps, DType dtype) {
  check_steps(steps);
  if (is_complex(dtype)) {
    const Complex128 a = start.as_complex(), b = end.as_complex();
    const auto part = [&](double x, double y) {
      return linspace({IValue(x)}, {IValue(y)}, steps, real_dtype(dtype));
    };
    return call_tensor("complex", part(a.real(), b.real()), part(a.imag(), b.imag()));
  }
  Tensor out = Tensor::empty(Dims{steps}, dtype);
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = std::conditional_t<std::is_same_v<T, float>, float, double>;
    generate<T>(out, spaced<C>(end_point<T, C>(start), end_point<T, C>(end), steps));
  });
  return out;
}

Tensor logspace(const Number& start, const Number& end, int64_t steps, double base, DType dtype) {
  check_steps(steps);
  Tensor out = Tensor::empty(Dims{steps}, dtype);
  if (is_complex(dtype)) {
    const Complex128 a = start.as_complex(), b = end.as_complex();
    const auto real = spaced<double>(a.real(), b.real(), steps),
               imaginary = spaced<double>(a.imag(), b.imag(), steps);
    visit_complex(dtype, [&](auto tag) {
      generate<typename decltype(tag)::type>(out, [&](int64_t i) {
        return std::pow(Complex128(base), Complex128(real(i), imaginary(i)));
      });
    });
    return out;
  }
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = std::conditional_t<std::is_integral_v<T>, float, double>;
    const auto exponent = spaced<C>(end_point<T, C>(start), end_point<T, C>(end), steps);
    generate<T>(out, [&](int64_t i) { return std::pow(base, exponent(i)); });
  });
  return out;
}

void register_sequences(Registry& r) {
  factory(r, "arange(end: Scalar, *, dtype: dtype? = None) -> Tensor", "0, 1, 2, ... below end.")
      .kernel([](const Number& end, const OptionalDType& dtype) {
        return arange({IValue(0)}, end, {IValue(1)}, arange_dtype({&end}, dtype));
      })
      .shape([](const Number& end, const OptionalDType& given) {
        const DType dtype = arange_dtype({&end}, given);
        return TensorMeta{Dims{arange_length({IValue(0)}, end, {IValue(1)}, dtype)}, dtype};
      })
      .bounds([](const BoundsCall& c) -> std::optional<IntRange> {
        const auto end = c.number(0);
        return end ? std::optional(IntRange{0, std::max<int64_t>(*end - 1, 0)}) : std::nullopt;
      })
      .samples({{"5"}, {"2.5"}, {"0"}, {"4, dtype=torch.float64"}})
      .reference(
          "np.arange(end, dtype=dtype or (np.float32 if isinstance(end, float) else np.int64))");
  factory(r,
          "arange.start(start: Scalar, end: Scalar, step: Scalar = 1, *, dtype: dtype? = None) -> "
          "Tensor",
          "start, start + step, ... before end.")
      .kernel([](const Number& start, const Number& end, const Number& step,
                 const OptionalDType& dtype) {
        return arange(start, end, step, arange_dtype({&start, &end, &step}, dtype));
      })
      .shape([](const Number& start, const Number& end, const Number& step,
                const OptionalDType& given) {
        const DType dtype = arange_dtype({&start, &end, &step}, given);
        return TensorMeta{Dims{arange_length(start, end, step, dtype)}, dtype};
      })
      .bounds([](const BoundsCall& c) -> std::optional<IntRange> {
        const auto start = c.number(0), end = c.number(1);
        if (!start || !end) return std::nullopt;
        return IntRange{std::min(*start, *end), std::max(*start, *end - 1)};
      })
      .samples({{"1, 5"}, {"1, 9, 2"}, {"5, 0, -2"}, {"0, 1, 0.25"}})
      .reference(
          "np.arange(start, end, step, dtype=dtype or (np.float32 if isinstance(step, float) else "
          "np.int64))");
  factory(r, "linspace(start: Scalar, end: Scalar, steps: int, *, dtype: dtype? = None) -> Tensor",
          "steps numbers from start to end, both included.")
      .kernel(
          [](const Number& start, const Number& end, int64_t steps, const OptionalDType& dtype) {
            return linspace(start, end, steps, dtype.value_or(default_dtype()));
          })
      .shape([](const Number&, const Number&, int64_t steps, const OptionalDType& dtype) {
        check_steps(steps);
        return TensorMeta{Dims{steps}, dtype.value_or(default_dtype())};
      })
      .samples({{"0, 1, 5"}, {"-1.5, 2, 4"}, {"3, 3, 1"}, {"0, 1, 0"}})
      .reference("np.linspace(start, end, steps, dtype=dtype or np.float32)");
  factory(r,
          "logspace(start: Scalar, end: Scalar, steps: int, base: float = 10.0, *, dtype: dtype? = "
          "None) -> Tensor",
          "base to the powers from start to end.")
      .kernel([](const Number& start, const Number& end, int64_t steps, double base,
                 const OptionalDType& dtype) {
        return logspace(start, end, steps, base, dtype.value_or(default_dtype()));
      })
      .shape([](const Number&, const Number&, int64_t steps, double, const OptionalDType& dtype) {
        check_steps(steps);
        return TensorMeta{Dims{steps}, dtype.value_or(default_dtype())};
      })
      .samples({{"0, 2, 5"}, {"0, 3, 4, 2.0"}})
      .reference("np.logspace(start, end, steps, base=base, dtype=dtype or np.float32)");
}

// ── matrices and grids ──

Tensor eye(int64_t n, int64_t m, DType dtype) {
  PRONG_CHECK(n >= 0, kRuntime, "n must be greater or equal to 0, got ", n);
  PRONG_CHECK(m >= 0, kRuntime, "m must be greater or equal to 0, got ", m);
  Tensor out = filled(Dims{n, m}, dtype, 0);
  fill(out.as_strided(Dims{std::min(n, m)}, Dims{m + 1}, 0), int64_t{1});
  return out;
}

// Columns [first, last) of a row of the triangle.
struct RowRange {
  int64_t first, last;
};
RowRange triangle_row(bool lower, int64_t row, int64_t columns, int64_t offset) {
  const int64_t edge = row + offset;
  if (lower) return {0, std::clamp<int64_t>(edge + 1, 0, columns)};
  return {std::clamp<int64_t>(edge, 0, columns), columns};
}
int64_t triangle_count(bool lower, int64_t rows, int64_t columns, int64_t offset) {
  PRONG_CHECK(rows >= 0, kRuntime, "row must be non-negative, got", rows);
  PRONG_CHECK(columns >= 0, kRuntime, "col must be non-negative, got", columns);
  int64_t n = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const RowRange range = triangle_row(lower, i, columns, offset);
    n += range.last - range.first;
  }
  return n;
}
Tensor triangle_indices(bool lower, int64_t rows, int64_t columns, int64_t offset, DType dtype) {
  Tensor out = Tensor::empty(Dims{2, triangle_count(lower, rows, columns, offset)}, DType::kInt64);
  int64_t *row_at = out.data<int64_t>(), *column_at = row_at + out.sizes()[1];
  for (int64_t i = 0; i < rows; ++i) {
    const RowRange range = triangle_row(lower, i, columns, offset);
    for (int64_t j = range.first; j < range.last; ++j) {
      *row_at++ = i;
      *column_at++ = j;
    }
  }
  return out.to(dtype);
}

template <bool kLower>
void register_triangle_indices(Registry& r) {
  factory(r,
          cat(kLower ? "tril" : "triu",
              "_indices(row: int, col: int, offset: int = 0, *, dtype: dtype? = None) -> Tensor"),
          cat("Row and column numbers of the ", kLower ? "lower" : "upper", " triangle."))
      .kernel([](int64_t rows, int64_t columns, int64_t offset, const OptionalDType& dtype) {
        return triangle_indices(kLower, rows, columns, offset, dtype.value_or(DType::kInt64));
      })
      .shape([](int64_t rows, int64_t columns, int64_t offset, const OptionalDType& dtype) {
        return TensorMeta{Dims{2, triangle_count(kLower, rows, columns, offset)},
                          dtype.value_or(DType::kInt64)};
      })
      .samples({{"3, 4"}, {"3, 3, -1"}, {"4, 2, 1"}})
      .reference(cat("np.stack(np.", kLower ? "tril" : "triu", "_indices(row, offset, col))"));
}

template <class T>
std::vector<T> meshgrid(const std::vector<T>& axes, const std::optional<std::string>& indexing) {
  const bool swap = indexing == "xy" && axes.size() >= 2;
  PRONG_CHECK(!indexing || *indexing == "ij" || *indexing == "xy", kRuntime,
              "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: ",
              indexing.value_or(""));
  PRONG_CHECK(!axes.empty(), kRuntime, "meshgrid expects a non-empty TensorList");
  Dims shape;
  for (const T& axis : axes) {
    const Geometry g = geometry_of(axis);
    PRONG_CHECK(g.rank() <= 1, kRuntime,
                "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got ", g.rank(),
                "D");
    shape.push_back(product(g.sizes));
  }
  std::vector<T> grids;
  for (size_t i = 0; i < axes.size(); ++i) {
    if constexpr (std::is_same_v<T, Tensor>)
      PRONG_CHECK(axes[i].dtype() == axes[0].dtype(), kRuntime,
                  "meshgrid expects all tensors to have the same dtype");
    Dims alone(axes.size(), 1);
    alone[i] = shape[i];
    const Geometry g = expanded(viewed(geometry_of(axes[i]), alone), shape);
    grids.push_back(apply(axes[i], swap ? transposed(g, 0, 1) : g));
  }
  return grids;
}

void register_matrices(Registry& r) {
  factory(r, "eye(n: int, m: int? = None, *, dtype: dtype? = None) -> Tensor",
          "Ones on the diagonal, zeros elsewhere.")
      .kernel([](int64_t n, const std::optional<int64_t>& m, const OptionalDType& dtype) {
        return eye(n, m.value_or(n), dtype.value_or(default_dtype()));
      })
      .shape([](int64_t n, const std::optional<int64_t>& m, const OptionalDType& dtype) {
        return TensorMeta{Dims{n, m.value_or(n)}, dtype.value_or(default_dtype())};
      })
      .samples({{"3"}, {"2, 4"}, {"3, 0"}})
      .reference("np.eye(n, m, dtype=dtype or np.float32)");
  register_triangle_indices<true>(r);
  register_triangle_indices<false>(r);
  r.add("meshgrid(tensors: Tensor[], *, indexing: str? = None) -> Tensor[]")
      .doc("Each axis expanded over the grid of all axes.")
      .family(Family::kView)
      .view_of(0)
      .where(kFunctionOnly)
      .grad("tensors", "",
            [](Gradient& g) {
              const IValue indexing = g.value("indexing");
              const bool swaps =
                  !indexing.is_none() && indexing.to_string() == "xy" && g.length("tensors") >= 2;
              std::vector<Expr> parts;
              for (size_t i = 0; i < g.length("tensors"); ++i) {
                Dims others;
                const size_t own = swaps && i < 2 ? 1 - i : i;
                for (size_t d = 0; d < g.length("tensors"); ++d)
                  if (d != own) others.push_back(static_cast<int64_t>(d));
                const Expr dy = g.out(i);
                parts.push_back(op<"reshape">(others.empty() ? dy : op<"sum">(dy, others),
                                              g.meta("tensors", i).sizes));
              }
              return parts;
            })
      .no_vmap(kVmapLater)
      .kernel([](const std::vector<Tensor>& axes, const std::optional<std::string>& indexing) {
        return meshgrid(axes, indexing);
      })
      .shape([](const std::vector<TensorMeta>& axes, const std::optional<std::string>& indexing) {
        return meshgrid(axes, indexing);
      })
      .samples({{"[t(2), t(3)]"}, {"[t(2), t(3), t(4)], indexing='xy'"}})
      .reference("np.meshgrid(*tensors, indexing=indexing or 'ij')");
  r.add("one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor")
      .doc(
          "A last dimension with a 1 at the class number; classes are counted where num_classes is "
          "-1.")
      .family(Family::kFactory)
      .where({.function = false, .method = false, .nn_functional = true})
      .checks([](DataCheck& c) {
        const int64_t classes = c["num_classes"].to_int();
        c.within(c[0], {0, classes < 0 ? std::numeric_limits<int64_t>::max() : classes - 1});
      })
      .not_differentiable("class numbers are integers")
      .no_grad("class numbers are integers")
      .no_vmap(kVmapLater)
      .kernel([](const Tensor& x, int64_t classes) {
        PRONG_CHECK(x.dtype() == DType::kInt64, kRuntime,
                    "one_hot is only applicable to index tensor of type LongTensor.");
        PRONG_CHECK(x.numel() > 0 || classes > 0, kRuntime,
                    "Can not infer total number of classes from empty tensor.");
        const Tensor index = x.contiguous();
        const int64_t* values = index.data<int64_t>();
        int64_t most = -1;
        for (int64_t i = 0; i < index.numel(); ++i) {
          PRONG_CHECK(values[i] >= 0, kRuntime, "Class values must be non-negative.");
          most = std::max(most, values[i]);
        }
        if (classes == -1) classes = most + 1;
        PRONG_CHECK(classes > most, kRuntime, "Class values must be smaller than num_classes.");
        Dims sizes = x.sizes();
        sizes.push_back(classes);
        Tensor out = filled(sizes, DType::kInt64, 0);
        for (int64_t i = 0; i < index.numel(); ++i)
          out.data<int64_t>()[i * classes + values[i]] = 1;
        return out;
      })
      .dynamic_shape("the number of classes is counted unless it is given")
      .samples({{"t(4, dtype=int64, low=0, high=3), 5"}})
      .reference("np.eye(num_classes, dtype=np.int64)[tensor]");
}

}  // namespace

void register_create(Registry& r) {
  register_empty(r);
  register_constant<0>(r, "zeros");
  register_constant<1>(r, "ones");
  register_full(r);
  register_sequences(r);
  register_matrices(r);
}

}  // namespace prong
