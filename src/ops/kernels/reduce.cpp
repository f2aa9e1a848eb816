// Dims of reductions, and the view of a tensor that the folding loops take. Called through
// reduce.h.
#include "ops/kernels/reduce.h"

namespace prong {

ReducedDims reduced_dims(const IValue& dim, int64_t rank) {
  ReducedDims r;
  r.is_reduced.resize(static_cast<size_t>(rank), false);
  Dims given;
  if (dim.is_int())
    given.push_back(dim.to_int());
  else if (!dim.is_none())
    given = dim.to_dims();
  if (given.empty()) {
    for (bool& flag : r.is_reduced) flag = true;
    r.all = true;
    return r;
  }
  for (int64_t d : given) {
    const auto i = static_cast<size_t>(wrap_dim(d, rank));
    if (rank == 0) continue;
    PRONG_CHECK(!r.is_reduced[i], kRuntime, "dim ", i,
                " appears multiple times in the list of dims");
    r.is_reduced[i] = true;
  }
  r.all = std::all_of(r.is_reduced.begin(), r.is_reduced.end(), [](bool b) { return b; });
  return r;
}

Dims reduced_sizes(DimsView sizes, const ReducedDims& dims, bool keepdim) {
  Dims out;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!dims.is_reduced[i])
      out.push_back(sizes[i]);
    else if (keepdim)
      out.push_back(1);
  }
  return out;
}

ReduceView reduce_view(const Tensor& x, const ReducedDims& dims, DType dtype) {
  // Dims of size 1 are neither here nor there.
  SmallVector<int, 8> kept, reduced, order;
  for (size_t i = 0; i < x.sizes().size(); ++i) {
    if (x.sizes()[i] == 1) continue;
    order.push_back(static_cast<int>(i));
    (dims.is_reduced[i] ? reduced : kept).push_back(static_cast<int>(i));
  }
  ReduceView v;
  // In place where the reduced dims stand together in a contiguous tensor: [kept..., reduced...,
  // kept...].
  bool is_together = true;
  for (size_t i = 1; i < reduced.size(); ++i) {
    for (int between = reduced[i - 1] + 1; between < reduced[i]; ++between)
      if (x.sizes()[static_cast<size_t>(between)] != 1) is_together = false;
  }
  if (x.is_contiguous() && is_together) {
    const int first = reduced.empty() ? static_cast<int>(x.rank()) : reduced.front();
    for (int d : order) {
      const int64_t size = x.sizes()[static_cast<size_t>(d)];
      if (dims.is_reduced[static_cast<size_t>(d)])
        v.length *= size;
      else
        (d < first ? v.outer : v.inner) *= size;
    }
  }
  // A few long columns are better turned into rows.
  const bool is_thin = v.inner > 1 && v.inner < 8 && v.length > 64;
  if (x.is_contiguous() && is_together && !is_thin) {
    v.data = x.to(dtype);
    if (!v.data.is_contiguous()) v.data = v.data.contiguous();
    return v;
  }
  // Else the reduced dims go last, by a copy.
  v = ReduceView();
  Dims sizes, strides;
  for (int d : kept) {
    sizes.push_back(x.sizes()[static_cast<size_t>(d)]);
    strides.push_back(x.strides()[static_cast<size_t>(d)]);
    v.outer *= sizes.back();
  }
  for (int d : reduced) {
    sizes.push_back(x.sizes()[static_cast<size_t>(d)]);
    strides.push_back(x.strides()[static_cast<size_t>(d)]);
    v.length *= sizes.back();
  }
  v.data = Tensor::empty(sizes, dtype);
  copy_into(v.data, x.as_strided(sizes, strides, x.offset()));
  return v;
}

}  // namespace prong
