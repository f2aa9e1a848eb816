// The norm of many tensors as one vector, and their clipping by it or by value, in place. Called by
// python/prong/nn/utils/clip_grad.py; not for users.
#include <cmath>
#include <limits>

#include "ops/kernels/optimizer_rules.h"
#include "runtime/parallel.h"

namespace prong {

namespace {

using Tensors = std::vector<Tensor>;

constexpr int64_t kChunk = 16 * 1024;

enum class Norm : uint8_t { kSquares, kSizes, kLargest, kSmallest, kCount, kPowers };

Norm kind_of(double ord) {
  if (ord == 2) return Norm::kSquares;
  if (ord == 1) return Norm::kSizes;
  if (ord == 0) return Norm::kCount;
  if (std::isinf(ord)) return ord > 0 ? Norm::kLargest : Norm::kSmallest;
  return Norm::kPowers;
}

// What a chunk adds to the norm. Lanes are summed apart, so that the compiler may use vectors.
template <class T>
struct ChunkNorm {
  static PRONG_INLINE void run(const T* x, int64_t n, Norm kind, double ord, double* out) {
    using C = optimizer::ComputeOf<T>;
    switch (kind) {
    case Norm::kSquares:
      *out = lanes(x, n, [](C v) { return v * v; });
      return;
    case Norm::kSizes:
      *out = lanes(x, n, [](C v) { return std::abs(v); });
      return;
    case Norm::kCount:
      *out = lanes(x, n, [](C v) { return v != C(0) ? C(1) : C(0); });
      return;
    case Norm::kPowers: {
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += std::pow(std::abs(static_cast<double>(x[i])), ord);
      *out = sum;
      return;
    }
    case Norm::kLargest:
    case Norm::kSmallest: {
      C best = std::abs(static_cast<C>(x[0]));
      for (int64_t i = 1; i < n; ++i) {
        const C v = std::abs(static_cast<C>(x[i]));
        best = kind == Norm::kLargest ? optimizer::larger(best, v) : -optimizer::larger(-best, -v);
      }
      *out = static_cast<double>(best);
    }
    }
  }
  template <class F>
  static PRONG_INLINE double lanes(const T* x, int64_t n, F f) {
    using C = optimizer::ComputeOf<T>;
    constexpr int kLanes = 32;
    C sums[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
      for (int k = 0; k < kLanes; ++k) sums[k] += f(static_cast<C>(x[i + k]));
    double total = 0;
    for (int k = 0; k < kLanes; ++k) total += static_cast<double>(sums[k]);
    for (; i < n; ++i) total += static_cast<double>(f(static_cast<C>(x[i])));
    return total;
  }
};

double chunk_norm(const Tensor& t, int64_t begin, int64_t end, Norm kind, double ord) {
  double out = 0;
  const int64_t n = end - begin;
  switch (t.dtype()) {
  case DType::kFloat32:
    run_simd<ChunkNorm<float>>(t.data<float>() + begin, n, kind, ord, &out);
    break;
  case DType::kFloat64:
    run_simd<ChunkNorm<double>>(t.data<double>() + begin, n, kind, ord, &out);
    break;
  case DType::kFloat16:
    run_simd<ChunkNorm<Half>>(t.data<Half>() + begin, n, kind, ord, &out);
    break;
  default:
    run_simd<ChunkNorm<BFloat16>>(t.data<BFloat16>() + begin, n, kind, ord, &out);
  }
  return out;
}

double joined(double a, double b, Norm kind) {
  if (kind == Norm::kLargest) return optimizer::larger(a, b);
  if (kind == Norm::kSmallest) return -optimizer::larger(-a, -b);
  return a + b;
}

double finished(double sum, Norm kind, double ord) {
  if (kind == Norm::kSquares) return std::sqrt(sum);
  return kind == Norm::kPowers ? std::pow(sum, 1 / ord) : sum;
}

// Chunks begin at fixed places: the sum is the same for any number of threads.
double norm_of(const Tensor& given, Norm kind, double ord) {
  const Tensor t = given.contiguous();
  if (t.numel() == 0) return 0;
  std::vector<double> parts(static_cast<size_t>((t.numel() + kChunk - 1) / kChunk));
  parallel_chunks(0, t.numel(), kChunk, [&](int64_t begin, int64_t end) {
    parts[static_cast<size_t>(begin / kChunk)] = chunk_norm(t, begin, end, kind, ord);
  });
  double total = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) total = joined(total, parts[i], kind);
  return total;
}

DType norm_dtype(DType a, DType b) { return a == b ? a : promote(a, b); }

template <class List>
TensorMeta total_norm_meta(const List& tensors) {
  DType dtype = tensors.empty() ? default_dtype() : tensors[0].dtype;
  for (const auto& t : tensors) {
    PRONG_CHECK(is_floating(t.dtype), kRuntime,
                "linalg.vector_norm: Expected a floating point or complex tensor as input. Got ",
                scalar_type_name(t.dtype));
    dtype = norm_dtype(dtype, t.dtype);
  }
  return {{}, dtype};
}

// The order of p norms of norms is the norm of all.
Tensor total_norm(const Tensors& tensors, double ord) {
  std::vector<TensorMeta> metas;
  for (const Tensor& t : tensors) metas.push_back(t.meta());
  const Tensor out = Tensor::empty({}, total_norm_meta(metas).dtype);
  const Norm kind = kind_of(ord);
  double total =
      kind == Norm::kSmallest && !tensors.empty() ? std::numeric_limits<double>::infinity() : 0;
  // The norm of order zero of many norms counts those that are not zero.
  for (const Tensor& t : tensors) {
    PRONG_CHECK(t.numel() > 0 || !std::isinf(ord), kRuntime,
                "the total norm cannot compute the infinity norm on an empty tensor because the "
                "operation does not have an identity");
    double part = norm_of(t, kind, ord);
    if (kind == Norm::kCount) part = part != 0;
    total = joined(total, part, kind);
  }
  fill(out, finished(total, kind, ord));
  return out;
}

struct Scale {
  double factor;
  template <class T>
  PRONG_INLINE void row(const OptimizerRow& r) const {
    const auto by = static_cast<optimizer::ComputeOf<T>>(factor);
    optimizer::each_cell<0, T>(r, 1, [&](optimizer::Cells<T>& x) { x.param *= by; });
  }
};
struct Clamp {
  double limit;
  template <class T>
  PRONG_INLINE void row(const OptimizerRow& r) const {
    using C = optimizer::ComputeOf<T>;
    const C high = static_cast<C>(limit), low = -high;
    optimizer::each_cell<0, T>(r, 1, [&](optimizer::Cells<T>& x) {
      x.param = x.param < low ? low : x.param > high ? high : x.param;
    });
  }
};

template <class Rule>
void change_all(std::string_view op, const Tensors& tensors, const Rule& rule) {
  const OptimizerLists lists{op, tensors, tensors, {}};
  check_lists(lists);
  optimizer::update(lists, std::vector<Rule>(tensors.size(), rule));
}

OpDef& clip_op(Registry& r, std::string_view schema, std::string doc) {
  return r.add(schema)
      .doc(std::move(doc))
      .family(Family::kOpaque)
      .where({.method = false})
      .not_differentiable("gradients are clipped behind the tape's back")
      .no_vmap("gradients are not batched");
}

}  // namespace

void register_clip(Registry& r) {
  clip_op(r, "_total_norm(tensors: Tensor[], ord: float) -> Tensor",
          "The norm of all tensors as if they were one vector.")
      .kernel([](const Tensors& tensors, double ord) { return total_norm(tensors, ord); })
      .shape(
          [](const std::vector<TensorMeta>& tensors, double) { return total_norm_meta(tensors); })
      .samples({{"[t(2, 3), t(4)], 2.0"}, {"[t(3), t()], 1.0"}, {"[t(3), t(2)], 3.0"}})
      .reference("np.sum([np.sum(np.abs(x) ** ord) for x in tensors]) ** (1 / ord)");
  clip_op(r, "_clip_by_norm_(tensors: Tensor[], total_norm: Tensor, max_norm: float) -> None",
          "Scales tensors by max_norm / total_norm where that is below one.")
      .mutates(0)
      .kernel([](const Tensors& tensors, const Tensor& total, double max_norm) {
        const double factor = max_norm / (total.item_double() + 1e-6);
        change_all("_clip_by_norm_", tensors, Scale{factor > 1 ? 1.0 : factor});
      })
      .boxed_shape([](const OpDef& op, std::span<const IValue> args) {
        const TensorMeta total = meta_from(args[1]);
        PRONG_CHECK(total.numel() == 1, kRuntime, op.name(), ": total_norm has ", total.numel(),
                    " elements, not one");
        return IValue();
      })
      .samples({{"[t(2, 3), t(4)], pos(), 0.5"}});
  clip_op(r, "_clip_by_value_(tensors: Tensor[], limit: float) -> None",
          "Clamps tensors to [-limit, limit].")
      .mutates(0)
      .kernel([](const Tensors& tensors, double limit) {
        change_all("_clip_by_value_", tensors, Clamp{limit});
      })
      .boxed_shape([](const OpDef&, std::span<const IValue>) { return IValue(); })
      .samples({{"[t(2, 3), t(4)], 0.5"}});
}

}  // namespace prong
