// Advanced indexing; see indexing.h.
#include "ops/kernels/indexing.h"

#include <algorithm>
#include <cstring>

#include "ops/kernels/geometry.h"
#include "tensor/convert.h"
#include "tensor/strided.h"

namespace prong {

namespace {

constexpr int64_t kGrain = 16 * 1024;

size_t at(int64_t i) { return static_cast<size_t>(i); }
bool is_mask(DType d) { return d == DType::kBool || d == DType::kUInt8; }

// Masks taken apart into one index tensor a dimension.
IndexList without_masks(const Tensor& x, const IndexList& given) {
  IndexList out;
  for (const std::optional<Tensor>& index : given) {
    if (!index || !is_mask(index->dtype())) {
      if (index)
        PRONG_CHECK(index->dtype() == DType::kInt64 || index->dtype() == DType::kInt32, kIndex,
                    "tensors used as indices must be long, int, byte or bool tensors");
      out.push_back(index);
      continue;
    }
    for (int64_t d = 0; d < index->rank(); ++d) {
      const size_t own = out.size() + at(d);
      PRONG_CHECK(own < x.sizes().size(), kIndex, "too many indices for tensor of dimension ",
                  x.rank());
      PRONG_CHECK(index->sizes()[at(d)] == x.sizes()[own], kIndex, "The shape of the mask ",
                  index->sizes(), " at index ", d,
                  " does not match the shape of the indexed tensor ", x.sizes(), " at index ", own);
    }
    const Tensor places = nonzero(*index);
    for (int64_t d = 0; d < index->rank(); ++d)
      out.push_back(apply(places, selected(geometry_of(places), 1, d)));
  }
  return out;
}

// Are the dimensions with an index next to each other?
template <class T>
bool are_adjacent(std::span<const std::optional<T>> indices) {
  int runs = 0;
  bool inside = false;
  for (const auto& index : indices) {
    runs += index.has_value() && !inside;
    inside = index.has_value();
  }
  return runs <= 1;
}

template <class Shapes>
Dims broadcast_indices(const Shapes& shapes) {
  Dims out;
  for (const Dims& shape : shapes) {
    for (size_t i = 0; i < std::min(out.size(), shape.size()); ++i) {
      const int64_t a = out[out.size() - 1 - i], b = shape[shape.size() - 1 - i];
      if (a == b || a == 1 || b == 1) continue;
      std::string all;
      for (const Dims& s : shapes) all += cat(all.empty() ? "" : ", ", s);
      throw_error(
          ErrorKind::kIndex,
          cat("shape mismatch: indexing tensors could not be broadcast together with shapes ",
              all));
    }
    out = broadcast_shapes(out, shape);
  }
  return out;
}

// offsets[i] += wrapped(index[i]) * stride
void add_offsets(std::vector<int64_t>& offsets, const Tensor& index, DimsView sizes, int64_t size,
                 int64_t stride, int64_t dim) {
  const Tensor wide = broadcast_to(index.to(DType::kInt64), sizes).contiguous();
  const int64_t* values = wide.data<int64_t>();
  parallel_for(0, static_cast<int64_t>(offsets.size()), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t value = values[i];
      PRONG_CHECK(value >= -size && value < size, kIndex, "index ", value,
                  " is out of bounds for dimension ", dim, " with size ", size);
      offsets[at(i)] += (value < 0 ? value + size : value) * stride;
    }
  });
}

// Calls f(block, x_offset) for every pair of a `before` element and an index position, in [begin,
// end).
template <class F>
void for_blocks(const Selection& s, int64_t begin, int64_t end, F&& f) {
  const int64_t positions = static_cast<int64_t>(s.offsets.size());
  for (int64_t block = begin; block < end;) {
    int64_t rest = block / positions, before = 0;
    for (size_t i = s.before_sizes.size(); i-- > 0; rest /= s.before_sizes[i])
      before += rest % s.before_sizes[i] * s.before_strides[i];
    const int64_t stop = std::min(end, (block / positions + 1) * positions);
    for (int64_t p = block % positions; block < stop; ++block, ++p)
      f(block, before + s.offsets[at(p)]);
  }
}

template <class T>
void read_blocks(const T* src, T* dst, const Selection& s) {
  const int64_t inner = product(s.after_sizes);
  const int64_t blocks = product(s.before_sizes) * static_cast<int64_t>(s.offsets.size());
  const Dims dense = contiguous_strides(s.after_sizes);
  const StridedLoop<2> loop(s.after_sizes, {&dense, &s.after_strides});
  const bool flat = loop.sizes.size() == 1, is_dense = flat && loop.strides[1][0] == 1;
  parallel_for(0, blocks, std::max<int64_t>(1, kGrain / inner), [&](int64_t begin, int64_t end) {
    if (inner == 1)
      return for_blocks(s, begin, end,
                        [&](int64_t block, int64_t from) { dst[block] = src[from]; });
    if (is_dense)
      return for_blocks(s, begin, end, [&](int64_t block, int64_t from) {
        std::memcpy(dst + block * inner, src + from, at(inner) * sizeof(T));
      });
    for_blocks(s, begin, end, [&](int64_t block, int64_t from) {
      loop.for_rows(0, loop.rows(), [&](const std::array<int64_t, 2>& o) {
        T* to = dst + block * inner + o[0];
        const T* row = src + from + o[1];
        for (int64_t i = 0; i < loop.row_length(); ++i) to[i] = row[i * loop.strides[1].back()];
      });
    });
  });
}

// op(x element, value) for each, in the order of the selection.
template <class T, class Op>
void write_blocks(T* dst, const T* src, const Selection& s, Op op) {
  const int64_t inner = product(s.after_sizes);
  const int64_t blocks = product(s.before_sizes) * static_cast<int64_t>(s.offsets.size());
  const Dims dense = contiguous_strides(s.after_sizes);
  const StridedLoop<2> loop(s.after_sizes, {&dense, &s.after_strides});
  for_blocks(s, 0, blocks, [&](int64_t block, int64_t to) {
    if (inner == 1) return op(dst[to], src[block]);
    loop.for_rows(0, loop.rows(), [&](const std::array<int64_t, 2>& o) {
      const T* from = src + block * inner + o[0];
      T* row = dst + to + o[1];
      const int64_t stride = loop.strides[1].back(), n = loop.row_length();
      if (stride == 1)
        for (int64_t i = 0; i < n; ++i) op(row[i], from[i]);
      else
        for (int64_t i = 0; i < n; ++i) op(row[i * stride], from[i]);
    });
  });
}

}  // namespace

Dims Selection::sizes() const {
  Dims out = before_sizes;
  for (int64_t size : index_sizes) out.push_back(size);
  for (int64_t size : after_sizes) out.push_back(size);
  return out;
}

Tensor index_numbers(const Tensor& index) { return index.to(DType::kInt64).contiguous(); }

Selection select_elements(const Tensor& x, const IndexList& given) {
  const IndexList indices = without_masks(x, given);
  PRONG_CHECK(static_cast<int64_t>(indices.size()) <= x.rank(), kIndex,
              "too many indices for tensor of dimension ", x.rank());
  std::vector<Dims> shapes;
  for (const auto& index : indices)
    if (index) shapes.push_back(index->sizes());
  Selection s;
  s.index_sizes = broadcast_indices(shapes);
  s.offsets.assign(at(product(s.index_sizes)), 0);
  const bool adjacent = are_adjacent(std::span<const std::optional<Tensor>>(indices));
  bool seen = false;
  for (size_t d = 0; d < x.sizes().size(); ++d) {
    if (d < indices.size() && indices[d]) {
      PRONG_CHECK(x.sizes()[d] > 0 || s.offsets.empty(), kIndex,
                  "index is out of bounds for dimension with size 0");
      add_offsets(s.offsets, *indices[d], s.index_sizes, x.sizes()[d], x.strides()[d],
                  static_cast<int64_t>(d));
      seen = true;
    } else if (adjacent && !seen) {
      s.before_sizes.push_back(x.sizes()[d]);
      s.before_strides.push_back(x.strides()[d]);
    } else {
      s.after_sizes.push_back(x.sizes()[d]);
      s.after_strides.push_back(x.strides()[d]);
    }
  }
  return s;
}

Dims selection_sizes(const TensorMeta& x, std::span<const std::optional<TensorMeta>> indices) {
  PRONG_CHECK(static_cast<int64_t>(indices.size()) <= x.rank(), kIndex,
              "too many indices for tensor of dimension ", x.rank());
  std::vector<Dims> shapes;
  for (const auto& index : indices)
    if (index) shapes.push_back(index->sizes);
  Selection s;
  s.index_sizes = broadcast_indices(shapes);
  bool seen = false;
  const bool adjacent = are_adjacent(indices);
  for (size_t d = 0; d < x.sizes.size(); ++d) {
    if (d < indices.size() && indices[d])
      seen = true;
    else
      (adjacent && !seen ? s.before_sizes : s.after_sizes).push_back(x.sizes[d]);
  }
  return s.sizes();
}

Selection select_slices(const Tensor& x, int64_t dim, const Tensor& index, const char* op,
                        ErrorKind kind) {
  const Tensor numbers = index_numbers(index);
  const int64_t* values = numbers.data<int64_t>();
  Selection s;
  s.index_sizes = Dims{numbers.numel()};
  const int64_t size = x.rank() ? x.sizes()[at(dim)] : 1,
                stride = x.rank() ? x.strides()[at(dim)] : 0;
  s.offsets.resize(at(numbers.numel()));
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    if (values[i] < 0 || values[i] >= size) {
      PRONG_CHECK(*op || kind != ErrorKind::kIndex, kIndex, "index out of range in self");
      throw_error(kind, cat(op, *op ? ": " : "", "index ", values[i],
                            " is out of bounds for dimension ", dim, " with size ", size));
    }
    s.offsets[at(i)] = values[i] * stride;
  }
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (d == dim) continue;
    (d < dim ? s.before_sizes : s.after_sizes).push_back(x.sizes()[at(d)]);
    (d < dim ? s.before_strides : s.after_strides).push_back(x.strides()[at(d)]);
  }
  return s;
}

Tensor read(const Tensor& x, const Selection& s) {
  Tensor out = Tensor::empty(s.sizes(), x.dtype());
  if (out.numel() == 0) return out;
  visit_width(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    read_blocks(static_cast<const T*>(x.raw()), static_cast<T*>(out.raw()), s);
  });
  return out;
}

void write(const Tensor& x, const Selection& s, const Tensor& given, Write mode) {
  const Dims sizes = s.sizes();
  if (product(sizes) == 0) return;
  const Tensor values = broadcast_to(given, sizes).contiguous();
  if (mode == Write::kPut) {
    visit_width(x.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      write_blocks(static_cast<T*>(x.raw()), static_cast<const T*>(values.raw()), s,
                   [](T& to, T value) { to = value; });
    });
    return;
  }
  visit_any(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    write_blocks(x.template data<T>(), values.template data<T>(), s, [](T& to, T value) {
      if constexpr (std::is_same_v<T, bool>)
        to = to || value;
      else
        to = static_cast<T>(to + value);
    });
  });
}

Tensor compress(const Tensor& x, const Tensor& given_mask) {
  const Tensor flat = x.contiguous(), mask = given_mask.contiguous();
  Tensor out = Tensor::empty(Dims{count_nonzero(mask)}, x.dtype());
  const bool* flags = mask.data<bool>();
  visit_width(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(flat.raw());
    T* to = static_cast<T*>(out.raw());
    // Each element is written, and counts or is written over: no branch to predict wrongly.
    for (int64_t i = 0, n = 0; n < out.numel(); ++i) {
      to[n] = from[i];
      n += flags[i];
    }
  });
  return out;
}

int64_t count_nonzero(const Tensor& x) {
  const Tensor flags = x.to(DType::kBool).contiguous();
  const bool* values = flags.data<bool>();
  int64_t n = 0;
  for (int64_t i = 0; i < flags.numel(); ++i) n += values[i];
  return n;
}

Tensor nonzero(const Tensor& x) {
  const Tensor flags = x.to(DType::kBool).contiguous();
  Tensor out = Tensor::empty(Dims{count_nonzero(flags), x.rank()}, DType::kInt64);
  if (out.numel() == 0) return out;
  const bool* values = flags.data<bool>();
  int64_t* to = out.data<int64_t>();
  const int64_t columns = x.sizes().back();
  Dims row(x.sizes().size(), 0);  // coordinates but for the last
  for (int64_t i = 0; i < flags.numel(); i += columns) {
    for (int64_t j = 0; j < columns; ++j) {
      if (!values[i + j]) continue;
      for (size_t d = 0; d + 1 < row.size(); ++d) *to++ = row[d];
      *to++ = j;
    }
    for (size_t d = row.size() - 1; d-- > 0;) {
      if (++row[d] < x.sizes()[d]) break;
      row[d] = 0;
    }
  }
  return out;
}

}  // namespace prong
