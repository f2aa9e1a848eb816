// Ops that read or write elements and slices by number: index, index_put, index_select, index_add,
// take, embedding.
#include <algorithm>

#include "ops/data_check.h"
#include "ops/gradient.h"
#include "ops/kernels/fill.h"
#include "ops/kernels/geometry.h"
#include "ops/kernels/indexing.h"
#include "runtime/parallel.h"

namespace prong {

namespace {

constexpr const char* kVmapLater = "vmap is not built yet";
constexpr Spelling kFunctionOnly{.method = false};
constexpr Spelling kMethodOnly{.function = false};
constexpr Spelling kInternal{.function = false, .method = false};

size_t at(int64_t i) { return static_cast<size_t>(i); }

OpDef& index_op(Registry& r, std::string_view schema, std::string doc) {
  return r.add(schema).doc(std::move(doc)).family(Family::kCopy).no_vmap(kVmapLater);
}
TensorMeta like(const TensorMeta& x) { return {x.sizes, x.dtype}; }

bool is_index(DType d) { return d == DType::kInt64 || d == DType::kInt32; }

// Numbers of slices along the argument `dim`.
void check_slices(DataCheck& c) { c.within(c["index"], {0, c.size(c[0], c["dim"].to_int()) - 1}); }
void check_rows(DataCheck& c) { c.within(c["indices"], {0, c.size(c["weight"], 0) - 1}); }

// ── x[indices], x[indices] = values ──

// Places may count from the end. How many a mask names is known by its data alone.
void check_places(DataCheck& c) {
  const std::vector<IValue>& indices = c["indices"].items();
  const auto rank = static_cast<size_t>(c[0].tensor_impl()->sizes.size());
  if (indices.size() > rank) return;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].is_tensor()) continue;
    const DType dtype = indices[d].tensor_impl()->dtype;
    if (dtype == DType::kBool || dtype == DType::kUInt8) return c.may_fail();
    const int64_t size = c[0].tensor_impl()->sizes[d];
    c.within(indices[d], {-size, size - 1});
  }
}

void check_same_dtype(const TensorMeta& x, const TensorMeta& given) {
  PRONG_CHECK(given.dtype == x.dtype || given.is_wrapped_number, kRuntime,
              "Index put requires the source and destination dtypes match, got ",
              type_name(x.dtype), " for the destination and ", type_name(given.dtype),
              " for the source.");
}
// Leading dimensions of size 1 that the target lacks do no harm.
void check_spreads(DimsView values, DimsView sizes) {
  bool fits = true;
  for (size_t i = 0; i < values.size(); ++i) {  // from the last dimension
    const int64_t size = values[values.size() - 1 - i];
    fits &= size == 1 || (i < sizes.size() && size == sizes[sizes.size() - 1 - i]);
  }
  PRONG_CHECK(fits, kRuntime, "shape mismatch: value tensor of shape ", values,
              " cannot be broadcast to indexing result of shape ", sizes);
}

void index_put(const Tensor& x, const IndexList& indices, const Tensor& given, bool accumulate) {
  check_same_dtype(x.meta(), given.meta());
  const Selection selection = select_elements(x, indices);
  Tensor values = given.to(x.dtype());
  const Dims sizes = selection.sizes();
  check_spreads(values.sizes(), sizes);
  while (values.rank() > static_cast<int64_t>(sizes.size()) && values.sizes()[0] == 1)
    values = apply(values, selected(geometry_of(values), 0, 0));
  write(x, selection, values, accumulate ? Write::kAdd : Write::kPut);
}

Tensor index(const Tensor& x, const IndexList& indices) {
  const bool is_whole_mask = indices.size() == 1 && indices[0] &&
                             indices[0]->dtype() == DType::kBool &&
                             indices[0]->sizes() == x.sizes() && x.rank() > 0;
  return is_whole_mask ? compress(x, *indices[0]) : read(x, select_elements(x, indices));
}

// Masks make the shape depend on the data; index tensors do not.
IValue index_shape(const OpDef&, std::span<const IValue> args) {
  std::vector<std::optional<TensorMeta>> indices;
  for (const IValue& item : args[1].items()) {
    if (item.is_none()) {
      indices.push_back(std::nullopt);
      continue;
    }
    indices.push_back(meta_from(item));
    PRONG_CHECK(indices.back()->dtype != DType::kBool && indices.back()->dtype != DType::kUInt8,
                kUnsupported, "index: the shape of a result indexed by a mask depends on the data");
  }
  const TensorMeta x = meta_from(args[0]);
  return TensorMeta{selection_sizes(x, indices), x.dtype};
}

IValue index_put_shape(const OpDef&, std::span<const IValue> args) {
  const TensorMeta x = meta_from(args[0]), values = meta_from(args[2]);
  check_same_dtype(x, values);
  std::vector<std::optional<TensorMeta>> indices;
  for (const IValue& item : args[1].items()) {
    indices.push_back(item.is_none() ? std::nullopt : std::optional(meta_from(item)));
    // How many a mask names is known by its data alone.
    if (indices.back() &&
        (indices.back()->dtype == DType::kBool || indices.back()->dtype == DType::kUInt8))
      return like(x);
  }
  check_spreads(values.sizes, selection_sizes(x, indices));
  return like(x);
}

// What was overwritten gets nothing; what was added to passes its gradient on.
Expr put_grad_of_input(Gradient& g) {
  if (g.flag("accumulate")) return g.out();
  return op<"index_put">(g.out(), g.value("indices"), g.zeros({{}, g.out().dtype()}), false);
}
Expr put_grad_of_values(Gradient& g) {
  Expr dy = op<"index">(g.out(), g.value("indices"));
  // Values may have leading dimensions of 1 that the target lacks.
  Dims sizes = dy.sizes();
  const size_t rank = g.sizes("values").size();
  if (sizes.size() >= rank) return dy;
  while (sizes.size() < rank) sizes.insert(0, 1);
  return op<"reshape">(dy, sizes);
}

void register_advanced(Registry& r) {
  index_op(r, "index(input: Tensor, indices: Tensor?[]) -> Tensor",
           "The elements at the index tensors, which broadcast together; None keeps a dimension; "
           "masks count as the "
           "indices of their true elements.")
      .where(kInternal)
      .checks(&check_places)
      .kernel([](const Tensor& x, const IndexList& indices) { return index(x, indices); })
      .boxed_shape(&index_shape)
      .grad("input", "indices",
            [](Gradient& g) {
              return op<"index_put">(g.zeros({g.sizes("input"), g.out().dtype()}),
                                     g.value("indices"), g.out(), true);
            })
      .samples({{"t(4, 3), [torch.tensor([0, 2, -1])]"},
                {"t(4, 3), [None, torch.tensor([[0, 2]])]"},
                {"t(4, 3, 2), [torch.tensor([0, 2]), None, torch.tensor([1, 0])]"}})
      .reference("input[tuple(slice(None) if i is None else i for i in indices)]");
  for (const char* name : {"index_put", "index_put_"}) {
    const bool in_place = std::string_view(name).ends_with('_');
    OpDef& op =
        index_op(r,
                 cat(name,
                     "(input: Tensor, indices: Tensor?[], values: Tensor, accumulate: bool = "
                     "False) -> Tensor"),
                 "input[indices] = values, or += with accumulate, where equal indices add up.")
            .boxed_shape(&index_put_shape)
            .checks(&check_places)
            .grad("input", "indices", [](Gradient& g) { return put_grad_of_input(g); })
            .grad("values", "indices", [](Gradient& g) { return put_grad_of_values(g); })
            .samples({{"t(4, 3), [torch.tensor([0, 2])], t(3)"},
                      {"t(4, 3), [torch.tensor([0, 0])], t(3), True"}});
    if (in_place)
      op.mutates(0)
          .where(kMethodOnly)
          .kernel(
              [](const Tensor& x, const IndexList& indices, const Tensor& values, bool accumulate) {
                index_put(x, indices, values, accumulate);
                x.bump_version();
                return x;
              });
    else
      op.kernel(
          [](const Tensor& x, const IndexList& indices, const Tensor& values, bool accumulate) {
            const Tensor out = x.clone();
            index_put(out, indices, values, accumulate);
            return out;
          });
  }
}

// ── whole slices along one dimension ──

int64_t slice_dim(const char* op, int64_t rank, int64_t dim, DType index_dtype, int64_t index_rank,
                  ErrorKind kind) {
  if (index_rank > 1) throw_error(kind, cat(op, "(): Index is supposed to be a vector"));
  PRONG_CHECK(is_index(index_dtype), kRuntime, op, "(): Expected dtype int32 or int64 for index");
  return wrap_dim(dim, rank);
}

int64_t check_index_select(const TensorMeta& x, int64_t dim, const TensorMeta& index) {
  PRONG_CHECK(x.rank() > 0 || index.numel() == 1, kRuntime,
              "index_select(): Index to scalar can have only 1 value, got ", index.numel(),
              " value(s)");
  return slice_dim("index_select", x.rank(), dim, index.dtype, index.rank(), ErrorKind::kIndex);
}

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index) {
  const int64_t d = check_index_select(x.meta(), dim, index.meta());
  const Tensor out = read(x, select_slices(x, d, index, ""));
  return x.rank() ? out : reshape(out, {});
}

int64_t check_index_add(const TensorMeta& x, int64_t dim, const TensorMeta& index,
                        const TensorMeta& source) {
  const int64_t d =
      slice_dim("index_add_", x.rank(), dim, index.dtype, index.rank(), ErrorKind::kIndex);
  PRONG_CHECK(x.dtype == source.dtype, kRuntime, "index_add_(): self (", type_name(x.dtype),
              ") and source (", type_name(source.dtype), ") must have the same scalar type");
  const int64_t given = source.rank() ? source.sizes[at(wrap_dim(d, source.rank()))] : 1;
  PRONG_CHECK(index.numel() == given, kRuntime, "index_add_(): Number of indices (", index.numel(),
              ") should be equal to source.size(dim): (", given, "), for dim: ", d);
  Dims expected = x.sizes;
  if (!expected.empty()) expected[at(d)] = given;
  PRONG_CHECK(source.sizes == expected || x.rank() == 0, kRuntime,
              "source tensor shape must match self tensor shape, excluding the specified "
              "dimension. Got self.shape = ",
              x.sizes, " source.shape = ", source.sizes);
  return d;
}

void index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
               const Number& alpha) {
  const int64_t d = check_index_add(x.meta(), dim, index.meta(), source.meta());
  const bool is_one = !alpha.is_complex() && alpha.as_double() == 1;
  const Tensor scaled = is_one ? source : call_tensor("mul", source, alpha).to(x.dtype());
  const Selection slices =
      select_slices(x, d, index, "", x.rank() > 1 ? ErrorKind::kRuntime : ErrorKind::kIndex);
  write(x, slices, x.rank() ? scaled : reshape(scaled, Dims{1}), Write::kAdd);
}

int64_t check_index_copy(const TensorMeta& x, int64_t dim, const TensorMeta& index,
                         const TensorMeta& source) {
  const int64_t d =
      slice_dim("index_copy_", x.rank(), dim, index.dtype, index.rank(), ErrorKind::kIndex);
  PRONG_CHECK(x.dtype == source.dtype, kRuntime,
              "index_copy_(): self and source expected to have the same dtype, but got (self) ",
              type_name(x.dtype), " and (source) ", type_name(source.dtype));
  const int64_t given = source.rank() ? source.sizes[at(wrap_dim(d, source.rank()))] : 1;
  PRONG_CHECK(index.numel() == given, kIndex, "index_copy_(): Number of indices (", index.numel(),
              ") should be equal to source.size(dim) (", given, ")");
  Dims expected = x.sizes;
  if (!expected.empty()) expected[at(d)] = given;
  PRONG_CHECK(source.sizes == expected || x.rank() == 0, kIndex,
              "index_copy_(): Source/destination tensor must have same slice shapes. Destination "
              "slice shape: ",
              x.sizes, " at dimension ", d, " and source slice shape: ", source.sizes,
              " at dimension ", d, ".");
  return d;
}

void index_copy(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  const int64_t d = check_index_copy(x.meta(), dim, index.meta(), source.meta());
  write(x, select_slices(x, d, index, "index_copy_()"),
        x.rank() ? source : reshape(source, Dims{1}), Write::kPut);
}

int64_t check_index_fill(const TensorMeta& x, int64_t dim, const TensorMeta& index,
                         const TensorMeta& value) {
  PRONG_CHECK(value.rank() == 0, kRuntime,
              "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              value.rank(), " dimension(s).");
  return slice_dim("index_fill_", x.rank(), dim, index.dtype, index.rank(), ErrorKind::kIndex);
}

void index_fill(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value) {
  const int64_t d = check_index_fill(x.meta(), dim, index.meta(), value.meta());
  IndexList indices(at(d), std::nullopt);
  indices.push_back(reshape(index, Dims{-1}));
  const Tensor target = x.rank() ? x : reshape(x, Dims{1});
  write(target, select_elements(target, indices), value.to(x.dtype()), Write::kPut);
}

// name and name_ from one action on the tensor that is written.
struct Pair {
  OpDef &plain, &in_place;
  template <class F>
  Pair& grad(std::string_view arguments, std::string_view uses, F rule) {
    plain.grad(arguments, uses, rule);
    in_place.grad(arguments, uses, rule);
    return *this;
  }
  template <class F>
  Pair& shape(F f) {
    plain.shape(f);
    in_place.shape(f);
    return *this;
  }
  Pair& checks(DataCheckFn f) {
    plain.checks(f);
    in_place.checks(f);
    return *this;
  }
};
template <class F, class... A>
Pair pair(Registry& r, const std::string& name, const std::string& rest, const std::string& doc,
          std::vector<Sample> samples, const std::string& reference,
          void (F::*)(const Tensor&, A...) const) {
  const auto base = name.substr(0, name.find('.')), overload = name.substr(base.size());
  const auto meta = [](const OpDef&, std::span<const IValue> args) -> IValue {
    return like(meta_from(args[0]));
  };
  OpDef& plain = index_op(r, cat(name, rest), doc);
  plain
      .kernel([](const Tensor& x, const std::remove_cvref_t<A>&... a) {
        const Tensor out = x.clone();
        F{}(out, a...);
        return out;
      })
      .checks(&check_slices)
      .boxed_shape(meta)
      .samples(samples)
      .reference(reference);
  OpDef& in_place = index_op(r, cat(base, "_", overload, rest), cat(doc, " In place."));
  in_place.where(kMethodOnly)
      .mutates(0)
      .kernel([](const Tensor& x, const std::remove_cvref_t<A>&... a) {
        F{}(x, a...);
        x.bump_version();
        return x;
      })
      .checks(&check_slices)
      .boxed_shape(meta)
      .samples(std::move(samples))
      .reference(reference);
  return {plain, in_place};
}
template <class F>
Pair pair(Registry& r, const std::string& name, const std::string& rest, const std::string& doc,
          std::vector<Sample> samples, const std::string& reference, F) {
  return pair<F>(r, name, rest, doc, std::move(samples), reference, &F::operator());
}

Expr slices_of(Gradient& g) { return op<"index_select">(g.out(), g.integer("dim"), g["index"]); }
Expr slices_for_source(Gradient& g) {
  const Expr dy = slices_of(g);
  const Dims sizes = g.sizes("source");
  return dy.sizes() == sizes ? dy : op<"reshape">(dy, sizes);  // a zero-dim target
}
Expr without_slices(Gradient& g) {
  return op<"index_fill">(g.out(), g.integer("dim"), g["index"], 0.0);
}

// Each filled element once, however often its slice is named.
Expr sum_of_filled(Gradient& g) {
  TensorMeta mask = g.out().meta();
  mask.dtype = DType::kBool;
  const Expr filled = op<"index_fill">(g.zeros(mask), g.integer("dim"), g["index"], true);
  return op<"sum">(op<"where">(filled, g.out(), 0.0));
}

// ── embedding ──

// Columns are dealt out to threads, so that every row is summed up in the order of the indices.
template <class T>
void add_rows(const Tensor& grad, const int64_t* rows, int64_t count, const std::vector<T>& scale,
              const Tensor& out) {
  const int64_t width = out.size(1);
  const T* from = grad.data<T>();
  T* to = out.data<T>();
  const int64_t grain =
      std::max<int64_t>(32, (int64_t{1} << 15) / std::max<int64_t>(1, count) / 32 * 32);
  parallel_for(0, width, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < count; ++i) {
      if (rows[i] < 0) continue;
      T* row = to + rows[i] * width;
      const T* dy = from + i * width;
      const T s = scale.empty() ? T(1) : scale[at(i)];
      if (scale.empty())
        for (int64_t c = begin; c < end; ++c) row[c] += dy[c];
      else
        for (int64_t c = begin; c < end; ++c) row[c] += dy[c] * s;
    }
  });
}

Tensor embedding_backward(const Tensor& given, const Tensor& indices, int64_t num_rows,
                          int64_t padding_idx, bool by_frequency) {
  const DType dtype = given.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const int64_t width = given.sizes().back();
  const Tensor grad = given.to(dtype).contiguous(), numbers = index_numbers(indices);
  Tensor out = Tensor::empty(Dims{num_rows, width}, dtype);
  fill(out, int64_t{0});
  const int64_t* given_rows = numbers.data<int64_t>();
  std::vector<int64_t> rows(given_rows, given_rows + numbers.numel());
  for (const int64_t row : rows)
    PRONG_CHECK(row >= 0 && row < num_rows, kIndex, "index out of range in self");
  std::vector<int64_t> counts;
  if (by_frequency) {
    counts.resize(at(num_rows));
    for (const int64_t row : rows) ++counts[at(row)];
  }
  if (padding_idx >= 0)
    for (int64_t& row : rows)
      if (row == padding_idx) row = -1;
  const auto run = [&]<class T>(TypeTag<T>) {
    std::vector<T> scale;
    if (by_frequency)
      for (const int64_t row : rows)
        scale.push_back(row < 0 ? T(0) : T(1) / static_cast<T>(counts[at(row)]));
    add_rows<T>(grad, rows.data(), numbers.numel(), scale, out);
  };
  if (dtype == DType::kFloat64)
    run(TypeTag<double>{});
  else
    run(TypeTag<float>{});
  return out.to(given.dtype());
}

void register_embedding_backward(Registry& r) {
  index_op(r,
           "embedding_backward(grad: Tensor, indices: Tensor, num_rows: int, padding_idx: int, "
           "scale_grad_by_freq: bool) -> Tensor",
           "Zeros to whose rows with the given numbers the rows of grad are added; not to the row "
           "padding_idx.")
      .where(kInternal)
      .checks([](DataCheck& c) {
        c.within(c["indices"], {0, c["num_rows"].to_int() - 1});
      })
      .kernel([](const Tensor& grad, const Tensor& indices, int64_t rows, int64_t padding,
                 bool by_frequency) {
        return embedding_backward(grad, indices, rows, padding, by_frequency);
      })
      .shape([](const TensorMeta& grad, const TensorMeta&, int64_t rows, int64_t, bool) {
        return TensorMeta{{rows, grad.sizes.back()}, grad.dtype};
      })
      .grad("grad", "indices",
            [](Gradient& g) {
              PRONG_CHECK(!g.flag("scale_grad_by_freq"), kNotImplemented,
                          "embedding: double backward is not supported with scale_grad_by_freq");
              const Expr dy = op<"embedding">(g.out(), g["indices"]);
              const int64_t padding = g.integer("padding_idx");
              if (padding < 0) return dy;
              const Expr is_padding = op<"unsqueeze">(op<"eq">(g["indices"], padding), int64_t{-1});
              return op<"where">(is_padding, 0.0, dy);
            })
      .samples({{"t(2, 2, 3), torch.tensor([[0, 4], [2, 2]]), 5, -1, False"},
                {"t(3, 4), torch.tensor([1, 0, 1]), 2, 0, True"}});
}

void check_embedding(const TensorMeta& weight, const TensorMeta& indices) {
  PRONG_CHECK(weight.rank() == 2, kRuntime, "'weight' must be 2-D");
  PRONG_CHECK(is_index(indices.dtype), kRuntime,
              "Expected tensor for argument #1 'indices' to have one of the following scalar "
              "types: Long, Int; "
              "but got torch.",
              type_name(indices.dtype), "Tensor instead (while checking arguments for embedding)");
}

void register_slices(Registry& r) {
  register_embedding_backward(r);
  index_op(r, "index_select(input: Tensor, dim: int, index: Tensor) -> Tensor",
           "The slices along dim with the given numbers.")
      .checks(&check_slices)
      .kernel([](const Tensor& x, int64_t dim, const Tensor& index) {
        return index_select(x, dim, index);
      })
      .shape([](const TensorMeta& x, int64_t dim, const TensorMeta& index) {
        const int64_t d = check_index_select(x, dim, index);
        TensorMeta out = like(x);
        if (x.rank()) out.sizes[at(d)] = index.numel();
        return out;
      })
      .grad("input", "index",
            [](Gradient& g) {
              return op<"index_add">(g.zeros({g.sizes("input"), g.out().dtype()}), g.integer("dim"),
                                     g["index"], g.out());
            })
      .samples({{"t(4, 3), 0, torch.tensor([2, 0, 2])"},
                {"t(4, 3), -1, torch.tensor([1])"},
                {"strided(4, 6), 1, torch.tensor([5, 0])"}})
      .reference("np.take(input, index, axis=dim)");
  pair(r, "index_add",
       "(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Scalar = 1) -> Tensor",
       "Adds alpha times the slices of source to the slices with the given numbers; equal numbers "
       "add up.",
       {{"t(4, 3), 0, torch.tensor([2, 0, 2]), t(3, 3)"},
        {"t(4, 3), 1, torch.tensor([1]), t(4, 1), alpha=2"}},
       "",
       [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
          const Number& alpha) { index_add(x, dim, index, source, alpha); })
      .shape([](const TensorMeta& x, int64_t dim, const TensorMeta& index, const TensorMeta& source,
                const Number&) {
        check_index_add(x, dim, index, source);
        return like(x);
      })
      .grad("input", "", [](Gradient& g) { return g.out(); })
      .grad("source", "index", [](Gradient& g) {
        const Expr dy = slices_for_source(g);
        const IValue alpha = g.value("alpha");
        // dy conj(alpha)
        if (alpha.is_complex()) return conj(op<"mul">(conj(dy), alpha));
        return alpha.to_double() == 1 ? dy : op<"mul">(dy, alpha);
      });
  pair(r, "index_copy", "(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor",
       "Copies the slices of source into the slices with the given numbers.",
       {{"t(4, 3), 0, torch.tensor([2, 0]), t(2, 3)"}}, "",
       [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
         index_copy(x, dim, index, source);
       })
      .shape(
          [](const TensorMeta& x, int64_t dim, const TensorMeta& index, const TensorMeta& source) {
            check_index_copy(x, dim, index, source);
            return like(x);
          })
      .grad("input", "index", [](Gradient& g) { return without_slices(g); })
      .grad("source", "index", [](Gradient& g) { return slices_for_source(g); });
  pair(r, "index_fill", "(input: Tensor, dim: int, index: Tensor, value: Tensor) -> Tensor",
       "Sets the slices with the given numbers to a value.",
       {{"t(4, 3), 0, torch.tensor([2, 0]), 1.5"}}, "",
       [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value) {
         index_fill(x, dim, index, value);
       })
      .shape(
          [](const TensorMeta& x, int64_t dim, const TensorMeta& index, const TensorMeta& value) {
            check_index_fill(x, dim, index, value);
            return like(x);
          })
      .checks([](DataCheck& c) {  // here they may count from the end
        const int64_t size = c.size(c[0], c["dim"].to_int());
        c.within(c["index"], {-size, size - 1});
      })
      .grad("input", "index", [](Gradient& g) { return without_slices(g); })
      .grad("value", "index", [](Gradient& g) { return sum_of_filled(g); });
  index_op(r,
           "embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: "
           "bool = False, sparse: bool = False) -> Tensor",
           "The rows of weight with the given numbers, as a last dimension.")
      .where(kFunctionOnly)
      .checks(&check_rows)
      .kernel([](const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
        check_embedding(weight.meta(), indices.meta());
        Dims sizes = indices.sizes();
        sizes.push_back(weight.sizes()[1]);
        return reshape(read(weight, select_slices(weight, 0, reshape(indices, Dims{-1}), "")),
                       sizes);
      })
      .shape([](const TensorMeta& weight, const TensorMeta& indices, int64_t, bool, bool) {
        check_embedding(weight, indices);
        TensorMeta out{indices.sizes, weight.dtype};
        out.sizes.push_back(weight.sizes[1]);
        return out;
      })
      .grad("weight", "indices",
            [](Gradient& g) {
              return op<"embedding_backward">(g.out(), g["indices"], g.sizes("weight")[0],
                                              g.integer("padding_idx"),
                                              g.flag("scale_grad_by_freq"));
            })
      .samples({{"t(5, 3), torch.tensor([[0, 4], [2, 2]])"}, {"t(5, 3), torch.tensor(1)"}})
      .reference("weight[indices]");
}

// ── by flat number ──

void check_take(DType index) {
  PRONG_CHECK(index == DType::kInt64, kRuntime,
              "take(): Expected a long tensor for index, but got ", type_name(index));
}

Tensor take(const Tensor& x, const Tensor& index) {
  check_take(index.dtype());
  const Tensor flat = x.contiguous(), numbers = index_numbers(index);
  Tensor out = Tensor::empty(index.sizes(), x.dtype());
  const int64_t n = x.numel();
  const int64_t* places = numbers.data<int64_t>();
  visit_width(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(flat.raw());
    T* to = static_cast<T*>(out.raw());
    for (int64_t i = 0; i < numbers.numel(); ++i) {
      const int64_t place = places[i];
      PRONG_CHECK(place >= -n && place < n, kIndex, "out of range: tried to access index ", place,
                  " on a tensor of ", n, " elements.");
      to[i] = from[place < 0 ? place + n : place];
    }
  });
  return out;
}

void register_flat(Registry& r) {
  index_op(r, "take(input: Tensor, index: Tensor) -> Tensor",
           "The elements with the given numbers, counted in order over the whole tensor.")
      .checks([](DataCheck& c) {
        const int64_t count = c[0].tensor_impl()->numel;
        c.within(c["index"], {-count, count - 1});
      })
      .kernel([](const Tensor& x, const Tensor& index) { return take(x, index); })
      .shape([](const TensorMeta& x, const TensorMeta& index) {
        check_take(index.dtype);
        return TensorMeta{index.sizes, x.dtype};
      })
      .grad("input", "index",
            [](Gradient& g) {
              const TensorMeta x = g.meta("input");
              const Expr flat = g.zeros({{x.numel()}, g.out().dtype()});
              return op<"reshape">(
                  op<"index_put">(flat, IValue::list({g.value("index")}), g.out(), true), x.sizes);
            })
      .samples(
          {{"t(4, 3), torch.tensor([[0, 11], [-1, 5]])"}, {"strided(4, 6), torch.tensor([7])"}})
      .reference("np.take(input, index)");
}

}  // namespace

void register_index(Registry& r) {
  register_advanced(r);
  register_slices(r);
  register_flat(r);
}

}  // namespace prong
