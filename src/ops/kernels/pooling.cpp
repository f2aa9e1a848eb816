// Windows and loops of pooling; see pooling.h.
#include "ops/kernels/pooling.h"

#include <cmath>
#include <limits>

#include "runtime/parallel.h"

namespace prong {

void check_pooled(DType dtype) {
  PRONG_CHECK(dtype != DType::kBool && !is_complex(dtype), kNotImplemented,
              "pooling is not implemented for '", scalar_type_name(dtype), "'");
}

namespace {

int64_t pooled_size(int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                    bool ceil_mode) {
  const int64_t room =
      in + 2 * padding - dilation * (kernel - 1) - 1 + (ceil_mode ? stride - 1 : 0);
  int64_t out = (room >= 0 ? room / stride : -1) + 1;
  if (ceil_mode && (out - 1) * stride >= in + padding) --out;  // a window must begin inside
  return out;
}

size_t spatial(const PoolParams& p) { return p.kernel.size(); }

// Everything as three dimensions; missing ones have one window of one element.
struct Loop {
  PoolAxis axis[3];
  int64_t planes = 1, in_plane = 1, out_plane = 1;

  Loop(DimsView sizes, const PoolAxes& axes) {
    const size_t shift = 3 - axes.size();
    for (size_t i = 0; i < shift; ++i) axis[i].windows.push_back({0, 1, 1});
    for (size_t i = 0; i < axes.size(); ++i) axis[i + shift] = axes[i];
    planes = product(sizes.first(sizes.size() - axes.size()));
    for (const PoolAxis& a : axis) {
      in_plane *= a.size;
      out_plane *= static_cast<int64_t>(a.windows.size());
    }
  }

  // f(output index, window, window, window) for each output position of a plane.
  template <class F>
  void for_outputs(F&& f) const {
    int64_t at = 0;
    for (const PoolWindow& d : axis[0].windows)
      for (const PoolWindow& h : axis[1].windows)
        for (const PoolWindow& w : axis[2].windows) f(at++, d, h, w);
  }
  // f(index in the plane) for each element that three windows see.
  template <class F>
  void for_window(const PoolWindow& d, const PoolWindow& h, const PoolWindow& w, F&& f) const {
    for (int64_t i = d.first; i < d.end; i += axis[0].step)
      for (int64_t j = h.first; j < h.end; j += axis[1].step) {
        const int64_t row = (i * axis[1].size + j) * axis[2].size;
        for (int64_t k = w.first; k < w.end; k += axis[2].step) f(row + k);
      }
  }
  // f(plane) for each plane, in parallel.
  template <class F>
  void for_planes(F&& f) const {
    const int64_t work = std::max<int64_t>(1, in_plane + out_plane);
    parallel_for(0, planes, std::max<int64_t>(1, 16 * 1024 / work),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t p = begin; p < end; ++p) f(p);
                 });
  }
};

Dims output_sizes(DimsView sizes, const PoolAxes& axes) {
  Dims out(sizes);
  for (size_t i = 0; i < axes.size(); ++i)
    out[out.size() - axes.size() + i] = static_cast<int64_t>(axes[i].windows.size());
  return out;
}

// Loops are made for float, double and int64.
DType loop_dtype(DType dtype) {
  check_pooled(dtype);
  return dtype == DType::kFloat64 ? dtype : is_floating(dtype) ? DType::kFloat32 : DType::kInt64;
}
template <class F>
decltype(auto) visit_loop(DType dtype, F&& f) {
  if (dtype == DType::kFloat64) return f(TypeTag<double>{});
  if (dtype == DType::kFloat32) return f(TypeTag<float>{});
  return f(TypeTag<int64_t>{});
}

template <class T>
bool is_larger(T x, T best) {
  if constexpr (std::is_floating_point_v<T>) return x > best || x != x;
  return x > best;
}

int64_t divisor_of(const PoolWindow& d, const PoolWindow& h, const PoolWindow& w, int64_t given) {
  return given ? given : d.divisor * h.divisor * w.divisor;
}

}  // namespace

Dims pool_sizes(const TensorMeta& input, const PoolParams& p) {
  const size_t n = spatial(p);
  PRONG_CHECK(input.rank() == static_cast<int64_t>(n) + 1 ||
                  input.rank() == static_cast<int64_t>(n) + 2,
              kRuntime, "Expected ", n + 1, "D or ", n + 2,
              "D (batch mode) tensor with optional 0 dim "
              "batch size for input, but got: ",
              input.sizes);
  Dims out;
  for (size_t i = 0; i < n; ++i) {
    PRONG_CHECK(p.kernel[i] > 0, kRuntime, "kernel size should be greater than zero, but got ",
                p.kernel);
    PRONG_CHECK(p.stride[i] > 0, kRuntime, "stride should be greater than zero, but got ",
                p.stride);
    PRONG_CHECK(p.dilation[i] > 0, kRuntime, "dilation should be greater than zero, but got ",
                p.dilation);
    const int64_t reach = p.dilation[i] * (p.kernel[i] - 1) + 1;
    PRONG_CHECK(p.padding[i] >= 0 && p.padding[i] <= reach / 2, kRuntime,
                "pad should be at most half of effective kernel size, but got pad=", p.padding[i],
                ", kernel_size=", p.kernel[i], " and dilation=", p.dilation[i]);
    const int64_t in = input.sizes[input.sizes.size() - n + i];
    const int64_t size =
        pooled_size(in, p.kernel[i], p.stride[i], p.padding[i], p.dilation[i], p.ceil_mode);
    PRONG_CHECK(size >= 1, kRuntime, "Given input size: ", input.sizes,
                ". Calculated output size: ", size, " in spatial dimension ", i,
                ". Output size is too small");
    out.push_back(size);
  }
  return out;
}

PoolAxes pool_axes(const TensorMeta& input, const PoolParams& p) {
  const Dims sizes = pool_sizes(input, p);
  PoolAxes axes(sizes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    PoolAxis& a = axes[i];
    a.size = input.sizes[input.sizes.size() - axes.size() + i];
    a.step = p.dilation[i];
    for (int64_t o = 0; o < sizes[i]; ++o) {
      const int64_t start = o * p.stride[i] - p.padding[i];
      const int64_t stop = start + p.dilation[i] * (p.kernel[i] - 1) + 1;
      int64_t first = start;
      while (first < 0) first += a.step;
      const int64_t end = std::min(stop, a.size);
      a.windows.push_back({first, end,
                           p.counts_padding ? std::min(stop, a.size + p.padding[i]) - start
                                            : std::max<int64_t>(end - first, 1)});
    }
  }
  return axes;
}

PoolAxes adaptive_axes(const TensorMeta& input, const Dims& output) {
  PoolAxes axes(output.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    PoolAxis& a = axes[i];
    a.size = input.sizes[input.sizes.size() - axes.size() + i];
    for (int64_t o = 0; o < output[i]; ++o) {
      const int64_t first = o * a.size / output[i];
      const int64_t end = ((o + 1) * a.size + output[i] - 1) / output[i];
      a.windows.push_back({first, end, end - first});
    }
  }
  return axes;
}

std::tuple<Tensor, Tensor> max_pool(const Tensor& input, const PoolAxes& axes) {
  const DType dtype = loop_dtype(input.dtype());
  const Tensor in = input.to(dtype).contiguous();
  const Dims sizes = output_sizes(in.sizes(), axes);
  const Tensor out = Tensor::empty(sizes, dtype), places = Tensor::empty(sizes, DType::kInt64);
  const Loop loop(in.sizes(), axes);
  visit_loop(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = in.template data<T>();
    loop.for_planes([&](int64_t plane) {
      const T* x = from + plane * loop.in_plane;
      T* to = out.template data<T>() + plane * loop.out_plane;
      auto* place = places.template data<int64_t>() + plane * loop.out_plane;
      loop.for_outputs(
          [&](int64_t o, const PoolWindow& d, const PoolWindow& h, const PoolWindow& w) {
            int64_t at = (d.first * loop.axis[1].size + h.first) * loop.axis[2].size + w.first;
            T best = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                          : std::numeric_limits<T>::lowest();
            loop.for_window(d, h, w, [&](int64_t i) {
              if (is_larger(x[i], best)) best = x[i], at = i;
            });
            to[o] = best;
            place[o] = at;
          });
    });
  });
  return {out.to(input.dtype()), places};
}

Tensor average_pool(const Tensor& input, const PoolAxes& axes, int64_t divisor) {
  const DType dtype = loop_dtype(input.dtype());
  const Tensor in = input.to(dtype).contiguous();
  const Tensor out = Tensor::empty(output_sizes(in.sizes(), axes), dtype);
  const Loop loop(in.sizes(), axes);
  visit_loop(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = in.template data<T>();
    loop.for_planes([&](int64_t plane) {
      const T* x = from + plane * loop.in_plane;
      T* to = out.template data<T>() + plane * loop.out_plane;
      loop.for_outputs(
          [&](int64_t o, const PoolWindow& d, const PoolWindow& h, const PoolWindow& w) {
            T sum = 0;
            loop.for_window(d, h, w, [&](int64_t i) { sum += x[i]; });
            to[o] = sum / static_cast<T>(divisor_of(d, h, w, divisor));
          });
    });
  });
  return out.to(input.dtype());
}

Tensor average_pool_backward(const Tensor& gradient, DimsView input_sizes, const PoolAxes& axes,
                             int64_t divisor) {
  const DType dtype = loop_dtype(gradient.dtype());
  const Tensor g = gradient.to(dtype).contiguous();
  const Tensor out = Tensor::empty(input_sizes, dtype);
  fill(out, int64_t{0});
  const Loop loop(input_sizes, axes);
  visit_loop(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = g.template data<T>();
    loop.for_planes([&](int64_t plane) {
      const T* y = from + plane * loop.out_plane;
      T* to = out.template data<T>() + plane * loop.in_plane;
      loop.for_outputs(
          [&](int64_t o, const PoolWindow& d, const PoolWindow& h, const PoolWindow& w) {
            const T each = y[o] / static_cast<T>(divisor_of(d, h, w, divisor));
            loop.for_window(d, h, w, [&](int64_t i) { to[i] += each; });
          });
    });
  });
  return out.to(gradient.dtype());
}

}  // namespace prong
