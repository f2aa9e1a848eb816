// Advanced indexing: which elements a list of index tensors names, reading them and writing them.
// Called by defs/index.cpp.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace prong {

using IndexList =
    std::vector<std::optional<Tensor>>;  // one entry a dimension; none: the whole dimension

// The elements of a tensor that indices name: for each element of `before`, each index position and
// each element of `after`. The result of reading has those dimensions, in that order.
struct Selection {
  Dims before_sizes, before_strides;
  Dims index_sizes;              // the broadcast shape of the index tensors
  std::vector<int64_t> offsets;  // of each index position, in elements
  Dims after_sizes, after_strides;
  Dims sizes() const;
};

// Bool and uint8 masks count as the indices of their true elements. Negative indices count from the
// end. kIndex with PyTorch's texts for bad types, shapes, values.
Selection select_elements(const Tensor& x, const IndexList& indices);
// The shape alone, when there are no masks.
Dims selection_sizes(const TensorMeta& x, std::span<const std::optional<TensorMeta>> indices);
// Slices of one dimension by a vector of int64 or int32 numbers; no negative ones.
Selection select_slices(const Tensor& x, int64_t dim, const Tensor& index, const char* op,
                        ErrorKind kind = ErrorKind::kIndex);

Tensor read(const Tensor& x, const Selection& selection);
enum class Write : uint8_t { kPut, kAdd };
// Sequentially in the order of the indices, so that of equal ones the last wins. `values`
// broadcasts to the selection and has x's dtype.
void write(const Tensor& x, const Selection& selection, const Tensor& values, Write mode);

// The elements where a bool mask of x's sizes is true, in order.
Tensor compress(const Tensor& x, const Tensor& mask);

// Row-major coordinates of the elements that are not zero: int64 (count, rank).
Tensor nonzero(const Tensor& x);
int64_t count_nonzero(const Tensor& x);
// int64, contiguous; kIndex (or what the op says) is thrown by the caller for other types.
Tensor index_numbers(const Tensor& index);

}  // namespace prong
