// See classes.h. Rows are worked on by any thread; sums over rows are taken in their order.
#include "ops/kernels/classes.h"

#include "ops/kernels/folds.h"
#include "ops/kernels/reduce.h"
#include "ops/scalar_math.h"

namespace prong {

namespace {

constexpr int64_t kWork = 16 * 1024;  // elements worth another thread

template <class T>
struct TopFold {
  using Acc = T;
  PRONG_INLINE T identity() const { return -std::numeric_limits<T>::infinity(); }
  PRONG_INLINE T lift(T x) const { return x; }
  PRONG_INLINE T combine(T a, T b) const { return math::larger(a, b); }
};
template <class T>
struct ExpFold : SumFold<T> {
  T top;
  explicit ExpFold(T t) : top(t) {}
  PRONG_INLINE T lift(T x) const { return math::exp(x - top); }
};

// Rows [begin, end): log(sum(exp(x))) - x[target].
template <class T>
struct EntropyRows {
  static PRONG_INLINE void run(const T* x, const int64_t* target, const double* scale, double* loss,
                               int64_t classes, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* in = x + r * classes;
      if (scale[r] == 0) {
        loss[r] = 0;
        continue;
      }
      const T top = detail::fold_row(TopFold<T>{}, in, classes);
      const T sum = detail::fold_row(ExpFold<T>(top), in, classes);
      loss[r] = scale[r] * static_cast<double>(math::log(sum) + top - in[target[r]]);
    }
  }
};

// Rows of (softmax(x) - one at the target) * factor.
template <class T>
struct EntropySlopeRows {
  static PRONG_INLINE void run(const T* x, const int64_t* target, const T* factor, T* dx,
                               int64_t classes, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* in = x + r * classes;
      T* out = dx + r * classes;
      if (factor[r] == 0) {
        for (int64_t i = 0; i < classes; ++i) out[i] = 0;
        continue;
      }
      const T top = detail::fold_row(TopFold<T>{}, in, classes);
      for (int64_t i = 0; i < classes; ++i) out[i] = math::exp(in[i] - top);
      const T share = factor[r] / detail::fold_row(SumFold<T>{}, out, classes);
      for (int64_t i = 0; i < classes; ++i) out[i] = out[i] * share;
      out[target[r]] -= factor[r];
    }
  }
};

// A batch as [rows, classes, inner] with its targets, ready to be walked.
struct Batch {
  Tensor target, scale;
  int64_t rows = 1, classes, inner = 1;
  const int64_t* of;
  const double* counts;

  Batch(DimsView sizes, const Tensor& target_, const Tensor& weight, int64_t ignored,
        Reduction reduction)
      : target(target_.to(DType::kInt64).contiguous()) {
    classes = sizes[sizes.size() == 1 ? 0 : 1];
    if (sizes.size() > 1) {
      rows = sizes[0];
      for (size_t i = 2; i < sizes.size(); ++i) inner *= sizes[i];
    }
    scale = class_scale(target, weight, classes, ignored, reduction);
    of = target.data<int64_t>();
    counts = scale.data<double>();
  }
  int64_t places() const { return rows * inner; }
};

DType compute_type(DType d) { return d == DType::kFloat64 ? d : DType::kFloat32; }

template <class F>
void visit_compute(DType d, F&& f) {
  if (d == DType::kFloat64)
    f(TypeTag<double>{});
  else
    f(TypeTag<float>{});
}

// The losses of all places, or their sum (the scale of a mean is in them already).
Tensor reduced(const Tensor& losses, const Batch& batch, DType dtype, Reduction reduction) {
  const double* values = losses.data<double>();
  if (reduction == Reduction::kNone) {
    const Tensor out = losses.to(dtype);
    const Dims sizes = batch.target.sizes();
    return out.as_strided(sizes, contiguous_strides(sizes), out.offset());
  }
  double sum = 0;
  bool is_any = reduction == Reduction::kSum;
  for (int64_t i = 0; i < losses.numel(); ++i) {
    sum += values[i];
    is_any |= batch.counts[i] != 0;
  }
  if (!is_any) sum = std::numeric_limits<double>::quiet_NaN();  // a mean of nothing
  const Tensor out = Tensor::empty({}, dtype);
  fill(out, sum);
  return out;
}

// What a place's gradient is multiplied with: scale * grad.
template <class T>
std::vector<T> factors(const Tensor& grad, const Batch& batch) {
  const Tensor g = grad.to(DType::kFloat64).contiguous();
  const double* values = g.data<double>();
  std::vector<T> out(static_cast<size_t>(batch.places()));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] =
        static_cast<T>(batch.counts[i] == 0 ? 0 : batch.counts[i] * values[g.rank() == 0 ? 0 : i]);
  return out;
}

}  // namespace

Tensor class_scale(const Tensor& given, const Tensor& weight, int64_t classes, int64_t ignored,
                   Reduction reduction) {
  const Tensor target = given.to(DType::kInt64).contiguous();
  const Tensor w = weight.defined() ? weight.to(DType::kFloat64).contiguous() : Tensor();
  const double* of_class = w.defined() ? w.data<double>() : nullptr;
  PRONG_CHECK(!w.defined() || (w.rank() == 1 && w.numel() == classes), kRuntime,
              "weight tensor should be defined either for all ", classes,
              " classes or no classes but got weight tensor of shape: ", w.sizes());
  const Tensor out = Tensor::empty(target.sizes(), DType::kFloat64);
  double* scale = out.data<double>();
  double total = 0;
  for (int64_t i = 0; i < target.numel(); ++i) {
    const int64_t c = target.data<int64_t>()[i];
    PRONG_CHECK(c == ignored || (c >= 0 && c < classes), kIndex, "Target ", c,
                " is out of bounds.");
    scale[i] = c == ignored ? 0 : of_class ? of_class[c] : 1;
    total += scale[i];
  }
  if (reduction == Reduction::kMean)
    for (int64_t i = 0; i < target.numel(); ++i)
      if (target.data<int64_t>()[i] != ignored) scale[i] /= total;
  return out;
}

Tensor nll(const Tensor& log_p, const Tensor& target, const Tensor& weight, int64_t ignored,
           Reduction reduction) {
  const Batch b(log_p.sizes(), target, weight, ignored, reduction);
  const Tensor losses = Tensor::empty(Dims{b.places()}, DType::kFloat64);
  double* loss = losses.data<double>();
  visit_compute(log_p.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Tensor x = log_p.to(DTypeOf<T>::value).contiguous();
    const T* p = x.data<T>();
    parallel_for(0, b.places(), kWork, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const double s = b.counts[i];
        const int64_t c = s == 0 ? 0 : b.of[i];
        const int64_t at = (i / b.inner * b.classes + c) * b.inner + i % b.inner;
        loss[i] = s == 0 ? 0 : -s * static_cast<double>(p[at]);
      }
    });
  });
  return reduced(losses, b, log_p.dtype(), reduction);
}

Tensor nll_slope(const Tensor& grad, DimsView sizes, const Tensor& target, const Tensor& weight,
                 int64_t ignored, Reduction reduction) {
  const Batch b(sizes, target, weight, ignored, reduction);
  const Tensor out = Tensor::empty(sizes, compute_type(grad.dtype()));
  visit_compute(grad.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* dx = out.data<T>();
    const std::vector<T> factor = factors<T>(grad, b);
    parallel_for(0, b.rows, std::max<int64_t>(1, kWork / std::max<int64_t>(1, b.classes * b.inner)),
                 [&](int64_t begin, int64_t end) {
                   const int64_t row = b.classes * b.inner;
                   std::fill(dx + begin * row, dx + end * row, T(0));
                   for (int64_t i = begin * b.inner; i < end * b.inner; ++i) {
                     if (factor[static_cast<size_t>(i)] == 0) continue;
                     const int64_t at = (i / b.inner * b.classes + b.of[i]) * b.inner + i % b.inner;
                     dx[at] = -factor[static_cast<size_t>(i)];
                   }
                 });
  });
  return out.to(grad.dtype());
}

Tensor cross_entropy_rows(const Tensor& x, const Tensor& target, const Tensor& weight,
                          int64_t ignored, Reduction reduction) {
  const Batch b(x.sizes(), target, weight, ignored, reduction);
  const Tensor losses = Tensor::empty(Dims{b.places()}, DType::kFloat64);
  visit_compute(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Tensor in = x.to(DTypeOf<T>::value).contiguous();
    const T* p = in.data<T>();
    double* loss = losses.data<double>();
    parallel_for(0, b.rows, std::max<int64_t>(1, kWork / std::max<int64_t>(1, b.classes)),
                 [&](int64_t begin, int64_t end) {
                   run_simd<EntropyRows<T>>(p, b.of, b.counts, loss, b.classes, begin, end);
                 });
  });
  return reduced(losses, b, x.dtype(), reduction);
}

Tensor cross_entropy_slope(const Tensor& grad, const Tensor& x, const Tensor& target,
                           const Tensor& weight, int64_t ignored, Reduction reduction) {
  const Batch b(x.sizes(), target, weight, ignored, reduction);
  const Tensor out = Tensor::empty(x.sizes(), compute_type(x.dtype()));
  visit_compute(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Tensor in = x.to(DTypeOf<T>::value).contiguous();
    const T* p = in.data<T>();
    T* dx = out.data<T>();
    const std::vector<T> factor = factors<T>(grad, b);
    const T* each = factor.data();
    parallel_for(0, b.rows, std::max<int64_t>(1, kWork / std::max<int64_t>(1, b.classes)),
                 [&](int64_t begin, int64_t end) {
                   run_simd<EntropySlopeRows<T>>(p, b.of, each, dx, b.classes, begin, end);
                 });
  });
  return out.to(x.dtype());
}

}  // namespace prong
