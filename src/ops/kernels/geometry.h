// Where the elements of a view lie: the arithmetic of view ops, written once for tensors and for
// shape rules. Called by defs/view.cpp and by indexing.
#pragma once

#include <optional>

#include "tensor/tensor.h"

namespace prong {

struct Geometry {
  Dims sizes, strides;
  int64_t offset = 0;
  int64_t rank() const { return static_cast<int64_t>(sizes.size()); }
};

Geometry geometry_of(const Tensor& t);
Geometry geometry_of(const TensorMeta& m);  // of a contiguous tensor
Tensor apply(const Tensor& t, const Geometry& g);
TensorMeta apply(const TensorMeta& m, const Geometry& g);

// `sizes` with its -1, if any, computed from numel; kRuntime with PyTorch's texts.
Dims infer_size(DimsView sizes, int64_t numel);
// Strides under which the same elements read as `sizes`, if there are any (numel must agree).
std::optional<Dims> strides_for_view(const Geometry& g, DimsView sizes);

Geometry viewed(const Geometry& g,
                DimsView sizes);  // with -1; kRuntime when a copy would be needed
Geometry transposed(Geometry g, int64_t dim0, int64_t dim1);
Geometry permuted(const Geometry& g, DimsView dims);
Geometry expanded(const Geometry& g, DimsView sizes);  // -1 keeps a size
Geometry unsqueezed(Geometry g, int64_t dim);
Geometry squeezed(const Geometry& g, DimsView dims);  // sizes other than 1 stay
Geometry selected(Geometry g, int64_t dim, int64_t index);
// Python's slice: ends are clamped; step > 0.
Geometry sliced(Geometry g, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                int64_t step);
Geometry narrowed(Geometry g, int64_t dim, int64_t start, int64_t length);
Geometry diagonal_of(const Geometry& g, int64_t offset, int64_t dim1, int64_t dim2);
Geometry unfolded(Geometry g, int64_t dim, int64_t size, int64_t step);
Geometry moved(const Geometry& g, DimsView source, DimsView destination);

Dims flattened_sizes(DimsView sizes, int64_t start_dim, int64_t end_dim);
Dims unflattened_sizes(DimsView sizes, int64_t dim, DimsView into);
// Sizes of the pieces of split and chunk.
Dims split_lengths(int64_t size, int64_t split_size);
Dims chunk_lengths(int64_t size, int64_t chunks);

// A view where possible, else a copy.
Tensor reshape(const Tensor& t, DimsView sizes);

}  // namespace prong
