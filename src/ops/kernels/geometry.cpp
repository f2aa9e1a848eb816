// The arithmetic of views; see geometry.h.
#include "ops/kernels/geometry.h"

#include <algorithm>

namespace prong {

namespace {

size_t at(int64_t i) { return static_cast<size_t>(i); }

// Each dim wrapped; kRuntime with `message` when one comes twice.
Dims wrapped_dims(DimsView dims, int64_t rank, const char* op) {
  Dims out;
  for (int64_t dim : dims) {
    const int64_t d = wrap_dim(dim, rank);
    PRONG_CHECK(std::find(out.begin(), out.end(), d) == out.end(), kRuntime, op, ": dim ", d,
                " appears multiple times in the list of dims");
    out.push_back(d);
  }
  return out;
}

}  // namespace

Geometry geometry_of(const Tensor& t) { return {t.sizes(), t.strides(), t.offset()}; }
Geometry geometry_of(const TensorMeta& m) { return {m.sizes, contiguous_strides(m.sizes), 0}; }
Tensor apply(const Tensor& t, const Geometry& g) {
  return t.as_strided(g.sizes, g.strides, g.offset);
}
TensorMeta apply(const TensorMeta& m, const Geometry& g) { return {g.sizes, m.dtype}; }

Dims infer_size(DimsView sizes, int64_t numel) {
  int64_t known = 1, unknown = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1) {
      PRONG_CHECK(unknown < 0, kRuntime, "only one dimension can be inferred");
      unknown = static_cast<int64_t>(i);
      continue;
    }
    PRONG_CHECK(sizes[i] >= 0, kRuntime, "invalid shape dimension ", sizes[i], " at index ", i,
                " of shape ", sizes);
    known *= sizes[i];
  }
  Dims out(sizes);
  if (unknown >= 0 && (known != 0 || numel == 0)) {
    PRONG_CHECK(known != 0, kRuntime, "cannot reshape tensor of 0 elements into shape ", sizes,
                " because the unspecified dimension size -1 can be any value and is ambiguous");
    if (numel % known == 0) {
      out[at(unknown)] = numel / known;
      return out;
    }
  } else if (unknown < 0 && known == numel) {
    return out;
  }
  throw_error(ErrorKind::kRuntime, cat("shape '", sizes, "' is invalid for input of size ", numel));
}

std::optional<Dims> strides_for_view(const Geometry& g, DimsView sizes) {
  const int64_t numel = product(g.sizes);
  if (numel == 0) {
    if (g.sizes == Dims(sizes)) return g.strides;
    return contiguous_strides(sizes);
  }
  Dims strides(sizes.size(), 1);
  int64_t next =
      static_cast<int64_t>(sizes.size()) - 1;  // dimension of the view to place next, from the last
  int64_t old_dim = g.rank() - 1;
  while (old_dim >= 0) {
    // A run of old dimensions that lies in memory as one.
    const int64_t base = g.strides[at(old_dim)];
    int64_t run = g.sizes[at(old_dim)];
    while (old_dim > 0 &&
           (g.sizes[at(old_dim - 1)] == 1 || g.strides[at(old_dim - 1)] == run * base))
      run *= g.sizes[at(--old_dim)];
    int64_t placed = 1;
    while (next >= 0 && (placed < run || sizes[at(next)] == 1)) {
      strides[at(next)] = base * placed;
      placed *= sizes[at(next--)];
    }
    if (placed != run) return std::nullopt;
    --old_dim;
  }
  // Only sizes of 1 can be left.
  for (; next >= 0; --next)
    strides[at(next)] = next + 1 < static_cast<int64_t>(sizes.size())
                            ? strides[at(next + 1)] * sizes[at(next + 1)]
                            : 1;
  return strides;
}

Geometry viewed(const Geometry& g, DimsView sizes) {
  Geometry out{infer_size(sizes, product(g.sizes)), {}, g.offset};
  std::optional<Dims> strides = strides_for_view(g, out.sizes);
  PRONG_CHECK(strides.has_value(), kRuntime,
              "view size is not compatible with input tensor's size and stride (at least one "
              "dimension spans across two "
              "contiguous subspaces). Use .reshape(...) instead.");
  out.strides = *strides;
  return out;
}

Tensor reshape(const Tensor& t, DimsView sizes) {
  Geometry g = geometry_of(t);
  const Dims wanted = infer_size(sizes, t.numel());
  const std::optional<Dims> strides = strides_for_view(g, wanted);
  if (!strides) return reshape(t.clone(), wanted);
  return apply(t, {wanted, *strides, g.offset});
}

Geometry transposed(Geometry g, int64_t dim0, int64_t dim1) {
  const int64_t a = wrap_dim(dim0, g.rank()), b = wrap_dim(dim1, g.rank());
  if (g.rank() == 0) return g;
  std::swap(g.sizes[at(a)], g.sizes[at(b)]);
  std::swap(g.strides[at(a)], g.strides[at(b)]);
  return g;
}

Geometry permuted(const Geometry& g, DimsView dims) {
  PRONG_CHECK(static_cast<int64_t>(dims.size()) == g.rank(), kRuntime,
              "permute(sparse_coo): number of dimensions in the tensor input does not match the "
              "length of the desired "
              "ordering of dimensions i.e. input.dim() = ",
              g.rank(), " is not equal to len(dims) = ", dims.size());
  Geometry out{{}, {}, g.offset};
  SmallVector<bool, 8> seen(dims.size(), false);
  for (int64_t dim : dims) {
    const size_t d = at(wrap_dim(dim, g.rank()));
    PRONG_CHECK(!seen[d], kRuntime, "permute(): duplicate dims are not allowed.");
    seen[d] = true;
    out.sizes.push_back(g.sizes[d]);
    out.strides.push_back(g.strides[d]);
  }
  return out;
}

Geometry expanded(const Geometry& g, DimsView sizes) {
  PRONG_CHECK(static_cast<int64_t>(sizes.size()) >= g.rank(), kRuntime, "expand(", g.sizes,
              ", size=", sizes, "): the number of sizes provided (", sizes.size(),
              ") must be greater or equal to the number of dimensions in the tensor (", g.rank(),
              ")");
  const size_t added = sizes.size() - g.sizes.size();
  Geometry out{Dims(sizes), Dims(sizes.size(), 0), g.offset};
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i < added) {
      PRONG_CHECK(sizes[i] >= 0, kRuntime, "The expanded size of the tensor (", sizes[i],
                  ") isn't allowed in a leading, non-existing dimension ", i);
      continue;
    }
    const int64_t own = g.sizes[i - added];
    if (sizes[i] == -1) out.sizes[i] = own;
    PRONG_CHECK(out.sizes[i] == own || (own == 1 && sizes[i] >= 0), kRuntime,
                "The expanded size of the tensor (", sizes[i], ") must match the existing size (",
                own, ") at non-singleton dimension ", i, ".  Target sizes: ", sizes,
                ".  Tensor sizes: ", g.sizes);
    if (out.sizes[i] == own) out.strides[i] = g.strides[i - added];
  }
  return out;
}

Geometry unsqueezed(Geometry g, int64_t dim) {
  const size_t d = at(wrap_dim(dim, g.rank() + 1));
  const int64_t stride = d < g.sizes.size() ? g.sizes[d] * g.strides[d] : 1;
  g.sizes.insert(d, 1);
  g.strides.insert(d, stride);
  return g;
}

Geometry squeezed(const Geometry& g, DimsView dims) {
  const Dims chosen = wrapped_dims(dims, g.rank(), "squeeze");
  Geometry out{{}, {}, g.offset};
  for (int64_t i = 0; i < g.rank(); ++i) {
    if (g.sizes[at(i)] == 1 && std::find(chosen.begin(), chosen.end(), i) != chosen.end()) continue;
    out.sizes.push_back(g.sizes[at(i)]);
    out.strides.push_back(g.strides[at(i)]);
  }
  return out;
}

Geometry selected(Geometry g, int64_t dim, int64_t index) {
  PRONG_CHECK(g.rank() > 0, kIndex, "select() cannot be applied to a 0-dim tensor.");
  const size_t d = at(wrap_dim(dim, g.rank()));
  const int64_t size = g.sizes[d];
  PRONG_CHECK(index >= -size && index < size, kIndex, "select(): index ", index,
              " out of range for tensor of size ", g.sizes, " at dimension ", d);
  g.offset += (index < 0 ? index + size : index) * g.strides[d];
  g.sizes.erase(d);
  g.strides.erase(d);
  return g;
}

Geometry sliced(Geometry g, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                int64_t step) {
  PRONG_CHECK(g.rank() > 0, kRuntime, "slice() cannot be applied to a 0-dim tensor.");
  PRONG_CHECK(step > 0, kRuntime, "slice step must be positive");
  const size_t d = at(wrap_dim(dim, g.rank()));
  const int64_t size = g.sizes[d];
  const auto clamp_end = [&](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size);
  };
  const int64_t from = clamp_end(start.value_or(0)),
                to = std::max(from, clamp_end(end.value_or(size)));
  g.offset += from * g.strides[d];
  g.sizes[d] = (to - from) / step + ((to - from) % step != 0);
  g.strides[d] *= step;
  return g;
}

Geometry narrowed(Geometry g, int64_t dim, int64_t start, int64_t length) {
  PRONG_CHECK(g.rank() > 0, kRuntime, "narrow() cannot be applied to a 0-dim tensor.");
  PRONG_CHECK(length >= 0, kRuntime, "narrow(): length must be non-negative.");
  const size_t d = at(wrap_dim(dim, g.rank()));
  const int64_t size = g.sizes[d];
  PRONG_CHECK(start >= -size && start <= size, kIndex,
              "start out of range (expected to be in range of [", -size, ", ", size, "], but got ",
              start, ")");
  if (start < 0) start += size;
  PRONG_CHECK(start + length <= size, kRuntime, "start (", start, ") + length (", length,
              ") exceeds dimension size (", size, ").");
  g.offset += start * g.strides[d];
  g.sizes[d] = length;
  return g;
}

Geometry diagonal_of(const Geometry& g, int64_t offset, int64_t dim1, int64_t dim2) {
  const size_t a = at(wrap_dim(dim1, g.rank())), b = at(wrap_dim(dim2, g.rank()));
  PRONG_CHECK(a != b, kRuntime, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  Geometry out{{}, {}, g.offset};
  for (size_t i = 0; i < g.sizes.size(); ++i) {
    if (i == a || i == b) continue;
    out.sizes.push_back(g.sizes[i]);
    out.strides.push_back(g.strides[i]);
  }
  const int64_t rows = g.sizes[a] - std::max<int64_t>(-offset, 0),
                columns = g.sizes[b] - std::max<int64_t>(offset, 0);
  const int64_t length = std::max<int64_t>(std::min(rows, columns), 0);
  if (length > 0) out.offset += offset >= 0 ? offset * g.strides[b] : -offset * g.strides[a];
  out.sizes.push_back(length);
  out.strides.push_back(g.strides[a] + g.strides[b]);
  return out;
}

Geometry unfolded(Geometry g, int64_t dim, int64_t size, int64_t step) {
  const int64_t d = wrap_dim(dim, g.rank());
  const int64_t extent = g.rank() == 0 ? 1 : g.sizes[at(d)];
  PRONG_CHECK(size >= 0, kRuntime, "size is ", size, " but must be >= 0");
  PRONG_CHECK(size <= extent, kRuntime, "maximum size for tensor at dimension ", d, " is ", extent,
              " but size is ", size);
  PRONG_CHECK(step > 0, kRuntime, "step is ", step, " but must be > 0");
  const int64_t stride = g.rank() == 0 ? 1 : g.strides[at(d)];
  if (g.rank() > 0) {
    g.sizes[at(d)] = (extent - size) / step + 1;
    g.strides[at(d)] = stride * step;
  }
  g.sizes.push_back(size);
  g.strides.push_back(stride);
  return g;
}

Geometry moved(const Geometry& g, DimsView source, DimsView destination) {
  PRONG_CHECK(source.size() == destination.size(), kRuntime,
              "movedim: Invalid source or destination dims: source (", source,
              " dims) should contain the same number of dims as destination (", destination,
              " dims)");
  Dims order(at(g.rank()), -1);
  SmallVector<bool, 8> taken(at(g.rank()), false);
  for (size_t i = 0; i < source.size(); ++i) {
    const size_t from = at(wrap_dim(source[i], g.rank())),
                 to = at(wrap_dim(destination[i], g.rank()));
    if (g.rank() == 0) return g;
    PRONG_CHECK(!taken[from], kRuntime, "movedim: repeated dim in `source` (", source, ")");
    PRONG_CHECK(order[to] < 0, kRuntime, "movedim: repeated dim in `destination` (", destination,
                ")");
    taken[from] = true;
    order[to] = static_cast<int64_t>(from);
  }
  size_t next = 0;
  for (int64_t& slot : order) {
    if (slot >= 0) continue;
    while (taken[next]) ++next;
    slot = static_cast<int64_t>(next++);
  }
  return permuted(g, order);
}

Dims flattened_sizes(DimsView sizes, int64_t start_dim, int64_t end_dim) {
  const int64_t rank = static_cast<int64_t>(sizes.size());
  const int64_t start = wrap_dim(start_dim, rank), end = wrap_dim(end_dim, rank);
  PRONG_CHECK(start <= end, kRuntime,
              "flatten() has invalid args: start_dim cannot come after end_dim");
  if (rank == 0) return {1};
  Dims out(sizes.subspan(0, at(start)));
  out.push_back(product(sizes.subspan(at(start), at(end - start + 1))));
  for (size_t i = at(end) + 1; i < sizes.size(); ++i) out.push_back(sizes[i]);
  return out;
}

Dims unflattened_sizes(DimsView sizes, int64_t dim, DimsView into) {
  const size_t d = at(wrap_dim(dim, static_cast<int64_t>(sizes.size())));
  PRONG_CHECK(!into.empty(), kRuntime, "unflatten: sizes must be non-empty");
  PRONG_CHECK(!sizes.empty(), kIndex, "Dimension specified as ", dim,
              " but tensor has no dimensions");
  int64_t known = 1, unknown = 0;
  for (int64_t size : into) size == -1 ? unknown += 1 : known *= size;
  PRONG_CHECK(unknown <= 1, kRuntime, "only one dimension can be inferred");
  const bool fits = unknown ? known != 0 && sizes[d] % known == 0 : known == sizes[d];
  PRONG_CHECK(fits, kRuntime, "unflatten: Provided sizes ", into,
              " don't multiply up to the size of dim ", d, " (", sizes[d], ") in the input tensor");
  Dims out(sizes.subspan(0, d));
  for (int64_t size : into) out.push_back(size == -1 ? sizes[d] / known : size);
  for (size_t i = d + 1; i < sizes.size(); ++i) out.push_back(sizes[i]);
  return out;
}

Dims split_lengths(int64_t size, int64_t split_size) {
  PRONG_CHECK(split_size >= 0, kRuntime,
              "split expects split_size be non-negative, but got split_size=", split_size);
  PRONG_CHECK(split_size > 0 || size == 0, kRuntime,
              "split_size can only be 0 if dimension size is 0, but got dimension size of ", size);
  Dims out;
  for (int64_t start = 0; start < size; start += split_size)
    out.push_back(std::min(split_size, size - start));
  if (out.empty()) out.push_back(0);
  return out;
}

Dims chunk_lengths(int64_t size, int64_t chunks) {
  PRONG_CHECK(chunks > 0, kRuntime, "chunk expects `chunks` to be greater than 0, got: ", chunks);
  if (size == 0) return Dims(at(chunks), 0);
  return split_lengths(size, (size + chunks - 1) / chunks);
}

}  // namespace prong
