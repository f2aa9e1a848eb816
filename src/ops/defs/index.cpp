// Ops that read or write elements and slices by number: index, index_put, index_select, index_add,
// take, embedding.
#include <algorithm>

#include "ops/kernels/fill.h"
#include "ops/kernels/geometry.h"
#include "ops/kernels/indexing.h"
#include "ops/op_def.h"

namespace prong {

namespace {

constexpr const char* kGradLater = "the tape is not built yet";
constexpr const char* kVmapLater = "vmap is not built yet";
constexpr Spelling kFunctionOnly{.method = false};
constexpr Spelling kMethodOnly{.function = false};
constexpr Spelling kInternal{.function = false, .method = false};

size_t at(int64_t i) { return static_cast<size_t>(i); }

OpDef& index_op(Registry& r, std::string_view schema, std::string doc) {
  return r.add(schema)
      .doc(std::move(doc))
      .family(Family::kCopy)
      .no_grad(kGradLater)
      .no_vmap(kVmapLater);
}
TensorMeta like(const TensorMeta& x) { return {x.sizes, x.dtype}; }

bool is_index(DType d) { return d == DType::kInt64 || d == DType::kInt32; }

// ── x[indices], x[indices] = values ──

void index_put(const Tensor& x, const IndexList& indices, const Tensor& given, bool accumulate) {
  PRONG_CHECK(given.dtype() == x.dtype() || given.is_wrapped_number(), kRuntime,
              "Index put requires the source and destination dtypes match, got ",
              type_name(x.dtype()), " for the destination and ", type_name(given.dtype()),
              " for the source.");
  const Selection selection = select_elements(x, indices);
  Tensor values = given.to(x.dtype());
  const Dims sizes = selection.sizes();
  // Leading dimensions of size 1 that the target lacks do no harm.
  while (values.rank() > static_cast<int64_t>(sizes.size()) && values.sizes()[0] == 1)
    values = apply(values, selected(geometry_of(values), 0, 0));
  bool fits = values.sizes().size() <= sizes.size();
  for (size_t i = 0; fits && i < values.sizes().size(); ++i) {
    const int64_t size = values.sizes()[values.sizes().size() - 1 - i];
    fits = size == 1 || size == sizes[sizes.size() - 1 - i];
  }
  PRONG_CHECK(fits, kRuntime, "shape mismatch: value tensor of shape ", values.sizes(),
              " cannot be broadcast to indexing result of shape ", sizes);
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

void register_advanced(Registry& r) {
  index_op(r, "index(input: Tensor, indices: Tensor?[]) -> Tensor",
           "The elements at the index tensors, which broadcast together; None keeps a dimension; "
           "masks count as the "
           "indices of their true elements.")
      .where(kInternal)
      .kernel([](const Tensor& x, const IndexList& indices) { return index(x, indices); })
      .boxed_shape(&index_shape)
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
            .boxed_shape([](const OpDef&, std::span<const IValue> args) -> IValue {
              return like(meta_from(args[0]));
            })
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

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index) {
  const int64_t d =
      slice_dim("index_select", x.rank(), dim, index.dtype(), index.rank(), ErrorKind::kIndex);
  PRONG_CHECK(x.rank() > 0 || index.numel() == 1, kRuntime,
              "index_select(): Index to scalar can have only 1 value, got ", index.numel(),
              " value(s)");
  const Tensor out = read(x, select_slices(x, d, index, ""));
  return x.rank() ? out : reshape(out, {});
}

void index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
               const Number& alpha) {
  const int64_t d =
      slice_dim("index_add_", x.rank(), dim, index.dtype(), index.rank(), ErrorKind::kIndex);
  PRONG_CHECK(x.dtype() == source.dtype(), kRuntime, "index_add_(): self (", type_name(x.dtype()),
              ") and source (", type_name(source.dtype()), ") must have the same scalar type");
  const int64_t given = source.rank() ? source.sizes()[at(wrap_dim(d, source.rank()))] : 1;
  PRONG_CHECK(index.numel() == given, kRuntime, "index_add_(): Number of indices (", index.numel(),
              ") should be equal to source.size(dim): (", given, "), for dim: ", d);
  Dims expected = x.sizes();
  if (!expected.empty()) expected[at(d)] = given;
  PRONG_CHECK(source.sizes() == expected || x.rank() == 0, kRuntime,
              "source tensor shape must match self tensor shape, excluding the specified "
              "dimension. Got self.shape = ",
              x.sizes(), " source.shape = ", source.sizes());
  const bool is_one = alpha.as_double() == 1;
  const Tensor scaled = is_one ? source : call_tensor("mul", source, alpha).to(x.dtype());
  write(x, select_slices(x, d, index, "index_add_()"), x.rank() ? scaled : reshape(scaled, Dims{1}),
        Write::kAdd);
}

void index_copy(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  const int64_t d =
      slice_dim("index_copy_", x.rank(), dim, index.dtype(), index.rank(), ErrorKind::kIndex);
  PRONG_CHECK(x.dtype() == source.dtype(), kRuntime,
              "index_copy_(): self and source expected to have the same dtype, but got (self) ",
              type_name(x.dtype()), " and (source) ", type_name(source.dtype()));
  const int64_t given = source.rank() ? source.sizes()[at(wrap_dim(d, source.rank()))] : 1;
  PRONG_CHECK(index.numel() == given, kIndex, "index_copy_(): Number of indices (", index.numel(),
              ") should be equal to source.size(dim) (", given, ")");
  Dims expected = x.sizes();
  if (!expected.empty()) expected[at(d)] = given;
  PRONG_CHECK(source.sizes() == expected || x.rank() == 0, kIndex,
              "index_copy_(): Source/destination tensor must have same slice shapes. Destination "
              "slice shape: ",
              x.sizes(), " at dimension ", d, " and source slice shape: ", source.sizes(),
              " at dimension ", d, ".");
  write(x, select_slices(x, d, index, "index_copy_()"),
        x.rank() ? source : reshape(source, Dims{1}), Write::kPut);
}

void index_fill(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value) {
  PRONG_CHECK(value.rank() == 0, kRuntime,
              "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              value.rank(), " dimension(s).");
  const int64_t d =
      slice_dim("index_fill_", x.rank(), dim, index.dtype(), index.rank(), ErrorKind::kIndex);
  IndexList indices(at(d), std::nullopt);
  indices.push_back(reshape(index, Dims{-1}));
  const Tensor target = x.rank() ? x : reshape(x, Dims{1});
  write(target, select_elements(target, indices), value.to(x.dtype()), Write::kPut);
}

// name and name_ from one action on the tensor that is written.
template <class F, class... A>
void pair(Registry& r, const std::string& name, const std::string& rest, const std::string& doc,
          std::vector<Sample> samples, const std::string& reference,
          void (F::*)(const Tensor&, A...) const) {
  const auto base = name.substr(0, name.find('.')), overload = name.substr(base.size());
  const auto meta = [](const OpDef&, std::span<const IValue> args) -> IValue {
    return like(meta_from(args[0]));
  };
  index_op(r, cat(name, rest), doc)
      .kernel([](const Tensor& x, const std::remove_cvref_t<A>&... a) {
        const Tensor out = x.clone();
        F{}(out, a...);
        return out;
      })
      .boxed_shape(meta)
      .samples(samples)
      .reference(reference);
  index_op(r, cat(base, "_", overload, rest), cat(doc, " In place."))
      .where(kMethodOnly)
      .mutates(0)
      .kernel([](const Tensor& x, const std::remove_cvref_t<A>&... a) {
        F{}(x, a...);
        x.bump_version();
        return x;
      })
      .boxed_shape(meta)
      .samples(std::move(samples))
      .reference(reference);
}
template <class F>
void pair(Registry& r, const std::string& name, const std::string& rest, const std::string& doc,
          std::vector<Sample> samples, const std::string& reference, F) {
  pair<F>(r, name, rest, doc, std::move(samples), reference, &F::operator());
}

void register_slices(Registry& r) {
  index_op(r, "index_select(input: Tensor, dim: int, index: Tensor) -> Tensor",
           "The slices along dim with the given numbers.")
      .kernel([](const Tensor& x, int64_t dim, const Tensor& index) {
        return index_select(x, dim, index);
      })
      .shape([](const TensorMeta& x, int64_t dim, const TensorMeta& index) {
        const int64_t d =
            slice_dim("index_select", x.rank(), dim, index.dtype, index.rank(), ErrorKind::kIndex);
        TensorMeta out = like(x);
        if (x.rank()) out.sizes[at(d)] = index.numel();
        return out;
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
          const Number& alpha) { index_add(x, dim, index, source, alpha); });
  pair(r, "index_copy", "(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor",
       "Copies the slices of source into the slices with the given numbers.",
       {{"t(4, 3), 0, torch.tensor([2, 0]), t(2, 3)"}}, "",
       [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
         index_copy(x, dim, index, source);
       });
  pair(r, "index_fill", "(input: Tensor, dim: int, index: Tensor, value: Tensor) -> Tensor",
       "Sets the slices with the given numbers to a value.",
       {{"t(4, 3), 0, torch.tensor([2, 0]), 1.5"}}, "",
       [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value) {
         index_fill(x, dim, index, value);
       });
  index_op(r,
           "embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: "
           "bool = False, sparse: bool = False) -> Tensor",
           "The rows of weight with the given numbers, as a last dimension.")
      .where(kFunctionOnly)
      .kernel([](const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
        PRONG_CHECK(weight.rank() == 2, kRuntime, "'weight' must be 2-D");
        PRONG_CHECK(is_index(indices.dtype()), kRuntime,
                    "Expected tensor for argument #1 'indices' to have one of the following scalar "
                    "types: Long, Int; "
                    "but got torch.",
                    type_name(indices.dtype()),
                    "Tensor instead (while checking arguments for embedding)");
        Dims sizes = indices.sizes();
        sizes.push_back(weight.sizes()[1]);
        return reshape(read(weight, select_slices(weight, 0, reshape(indices, Dims{-1}), "")),
                       sizes);
      })
      .shape([](const TensorMeta& weight, const TensorMeta& indices, int64_t, bool, bool) {
        PRONG_CHECK(weight.rank() == 2, kRuntime, "'weight' must be 2-D");
        TensorMeta out{indices.sizes, weight.dtype};
        out.sizes.push_back(weight.sizes[1]);
        return out;
      })
      .samples({{"t(5, 3), torch.tensor([[0, 4], [2, 2]])"}, {"t(5, 3), torch.tensor(1)"}})
      .reference("weight[indices]");
}

// ── by flat number ──

Tensor take(const Tensor& x, const Tensor& index) {
  PRONG_CHECK(index.dtype() == DType::kInt64, kRuntime,
              "take(): Expected a long tensor for index, but got ", type_name(index.dtype()));
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
      .kernel([](const Tensor& x, const Tensor& index) { return take(x, index); })
      .shape([](const TensorMeta& x, const TensorMeta& index) {
        return TensorMeta{index.sizes, x.dtype};
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
