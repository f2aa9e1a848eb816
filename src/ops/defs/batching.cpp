// The batching rules of ops, by family where one serves many; see ops/batching.h. An op that stands
// nowhere here is run sample by sample, and says why in its no_vmap().
#include "ops/batching.h"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace prong {

const char* name_of(BatchingRule::Kind kind) {
  constexpr std::array names{"loop", "pointwise", "composite", "samples",
                             "rule", "host",      "refused"};
  return names[static_cast<size_t>(kind)];
}

// ── what rules are made of ──

size_t BatchedCall::index(std::string_view name) const {
  const int i = op_->schema().find(name);
  PRONG_ASSERT(i >= 0, "the batching rule of ", op_->name(), " reads ", name,
               ", which is no argument");
  return static_cast<size_t>(i);
}

int BatchedCall::num_batched() const {
  int n = 0;
  for (const IValue& v : args_) {
    if (v.is_list() || v.is_tuple()) {
      for (const IValue& item : v.items()) n += is_batched(item);
    } else {
      n += is_batched(v);
    }
  }
  return n;
}

IValue BatchedCall::apply(const OpDef& op, std::span<const IValue> args) {
  return physical_builder_->apply(op, args);
}
IValue BatchedCall::apply(std::string_view op, std::initializer_list<IValue> args) {
  return apply(registry().get(op), std::span<const IValue>(args.begin(), args.size()));
}

namespace {

IValue list_of(const Dims& dims) { return IValue(DimsView(dims)); }

Dims with_front(int64_t first, DimsView rest) {
  Dims all{first};
  for (const int64_t d : rest) all.push_back(d);
  return all;
}

// Sizes of a physical tensor with dimensions of size 1 put in at `at`.
IValue with_ones(BatchedCall& c, const IValue& t, size_t at, int64_t count) {
  if (count <= 0) return t;
  Dims sizes;
  const Dims old = meta_from(t).sizes;
  for (size_t i = 0; i < at; ++i) sizes.push_back(old[i]);
  for (int64_t i = 0; i < count; ++i) sizes.push_back(1);
  for (size_t i = at; i < old.size(); ++i) sizes.push_back(old[i]);
  IValue out = t;
  for (int64_t i = 0; i < count; ++i)
    out = c.apply("unsqueeze", {out, IValue(static_cast<int64_t>(at))});
  return out;
}

}  // namespace

IValue BatchedCall::whole(const IValue& v) {
  const IValue p = physical(v);
  if (!v.is_tensor() || is_batched(v)) return p;
  const Dims sizes = with_front(batch_size_, meta_from(p).sizes);
  return apply("expand", {p, list_of(sizes)});
}

IValue BatchedCall::aligned(const IValue& v, int64_t rank) {
  const IValue p = physical(v);
  return is_batched(v) ? with_ones(*this, p, 1, rank - BatchedCall::rank(v)) : p;
}

namespace {

std::vector<IValue> physical_args(BatchedCall& c) {
  std::vector<IValue> args;
  for (size_t i = 0; i < c.num_arguments(); ++i) args.push_back(c.physical(i));
  return args;
}

std::vector<IValue> whole_args(BatchedCall& c) {
  std::vector<IValue> args;
  for (size_t i = 0; i < c.num_arguments(); ++i)
    args.push_back(c.is_tensor(i) ? c.whole(c.given(i)) : c.physical(i));
  return args;
}

bool only_first_batched(const BatchedCall& c) { return c.is_batched(0) && c.num_batched() == 1; }

// ── pointwise: ranks aligned ──

// A sample of rank 0 counts less in type promotion than a batch of them would: it is converted
// first. Conditions don't take part.
IValue aligned_pointwise(BatchedCall& c) {
  int64_t rank = 0;
  ResultType common;
  bool any_zero_dim = false;
  for (size_t i = 0; i < c.num_arguments(); ++i) {
    if (c.given(i).is_number()) common.add(meta_from(c.given(i)));
    if (!c.is_tensor(i)) continue;
    rank = std::max(rank, c.rank(i));
    const TensorMeta m = meta_from(c.given(i));
    if (m.dtype == DType::kBool && c.num_arguments() > 2) continue;
    common.add(m);
    any_zero_dim |= m.rank() == 0 && c.is_batched(i);
  }
  const int written = c.op().mutated_argument();
  if (written >= 0 && c.rank(static_cast<size_t>(written)) < rank) return c.loop();
  std::vector<IValue> args;
  for (size_t i = 0; i < c.num_arguments(); ++i) {
    if (!c.is_tensor(i)) {
      args.push_back(c.physical(i));
      continue;
    }
    IValue a = c.aligned(c.given(i), rank);
    const TensorMeta m = meta_from(c.given(i));
    const bool converts = any_zero_dim && m.rank() == 0 && c.is_batched(i) &&
                          static_cast<int>(i) != written && m.dtype != DType::kBool;
    if (converts && m.dtype != common.get()) a = c.apply("to", {a, IValue(common.get())});
    args.push_back(std::move(a));
  }
  return c.apply(args);
}

// ── the same op on the whole batch ──

// Elementwise in its one tensor, or about trailing dimensions of it.
IValue direct(BatchedCall& c) {
  if (!only_first_batched(c)) return c.loop();
  return c.apply(physical_args(c));
}

// About the last dimensions, of which there must be N.
template <int64_t N>
IValue trailing(BatchedCall& c) {
  if (!only_first_batched(c) || c.rank(0) < N) return c.loop();
  return c.apply(physical_args(c));
}

// Several tensors of equal rank with leading batch dimensions.
template <int64_t N>
IValue trailing_all(BatchedCall& c) {
  for (size_t i = 0; i < c.num_arguments(); ++i)
    if (c.is_tensor(i) && (c.rank(i) < N || c.rank(i) != c.rank(0))) return c.loop();
  return c.apply(whole_args(c));
}

// ── dims ──

bool names_dims(std::string_view name) {
  for (const std::string_view one : {"dim", "dims", "dim0", "dim1", "dim2", "start_dim", "end_dim",
                                     "source", "destination", "dimension"})
    if (name == one) return true;
  return false;
}

enum class NoDims { kNone, kAll };

// Shifts every dim argument by the batch's dimension; `rank` is what negative ones count from.
// False where a dim is left out and that doesn't mean all of them.
bool shift_dims(BatchedCall& c, int64_t rank, NoDims none, std::vector<IValue>& args) {
  for (size_t i = 0; i < c.num_arguments(); ++i) {
    if (!names_dims(c.op().schema().arguments[i].name)) continue;
    IValue& v = args[i];
    if (v.is_int()) {
      v = IValue(wrap_dim(v.to_int(), rank) + 1);
      continue;
    }
    const bool is_missing = v.is_none() || (v.is_list() && v.items().empty());
    Dims dims;
    if (is_missing) {
      const TypePtr& type = c.op().schema().arguments[i].type;
      if (none == NoDims::kNone || type->str_().find("List") == std::string::npos) return false;
      for (int64_t d = 0; d < rank; ++d) dims.push_back(d + 1);
    } else {
      for (const int64_t d : v.to_dims()) dims.push_back(wrap_dim(d, rank) + 1);
    }
    v = list_of(dims);
  }
  return true;
}

template <NoDims kNone = NoDims::kNone>
IValue shifted(BatchedCall& c) {
  if (!only_first_batched(c) || c.rank(0) == 0) return c.loop();
  std::vector<IValue> args = physical_args(c);
  return shift_dims(c, c.rank(0), kNone, args) ? c.apply(args) : c.loop();
}
IValue reduced(BatchedCall& c) { return shifted<NoDims::kAll>(c); }

// Dims of the result, which has one more.
IValue shifted_new(BatchedCall& c) {
  if (!only_first_batched(c)) return c.loop();
  std::vector<IValue> args = physical_args(c);
  return shift_dims(c, c.rank(0) + 1, NoDims::kNone, args) ? c.apply(args) : c.loop();
}

// Tensors that go side by side: gather, scatter.
IValue shifted_all(BatchedCall& c) {
  for (size_t i = 0; i < c.num_arguments(); ++i)
    if (c.is_tensor(i) && (c.rank(i) == 0 || c.rank(i) != c.rank(0))) return c.loop();
  std::vector<IValue> args = whole_args(c);
  return shift_dims(c, c.rank(0), NoDims::kNone, args) ? c.apply(args) : c.loop();
}

// all(x) as all.dim over what is left of a sample in one dimension.
template <detail::OpName Name, bool kList>
IValue flattened(BatchedCall& c) {
  const IValue p = c.physical(0);
  const TensorMeta m = meta_from(c.given(0));
  const Dims flat{c.batch_size(), m.numel()};
  std::vector<IValue> args{c.apply("reshape", {p, list_of(flat)}),
                           kList ? list_of(Dims{1}) : IValue(1)};
  const OpDef& over_dim = registry().get(Name.text);
  for (size_t i = 1; i < c.num_arguments(); ++i) {
    const int at = over_dim.schema().find(c.op().schema().arguments[i].name);
    if (at < 0) continue;
    while (args.size() < static_cast<size_t>(at))
      args.push_back(over_dim.schema().arguments[args.size()].default_value);
    if (args.size() == static_cast<size_t>(at)) args.push_back(c.given(i));
  }
  const IValue result = c.apply(over_dim, args);
  return result.is_tensor() ? result : result.items()[0];  // values without their places
}

IValue arg_extreme(BatchedCall& c) {
  if (!c.given("dim").is_none()) return shifted(c);
  if (c.given("keepdim").to_bool()) return c.loop();
  const Dims flat{c.batch_size(), meta_from(c.given(0)).numel()};
  return c.apply(c.op(), std::array{c.apply("reshape", {c.physical(0), list_of(flat)}), IValue(1),
                                    IValue(false)});
}

// ── shapes ──

// size=[...] with the batch in front.
IValue sized(BatchedCall& c) {
  if (!only_first_batched(c)) return c.loop();
  std::vector<IValue> args = physical_args(c);
  args[1] = list_of(with_front(c.batch_size(), args[1].to_dims()));
  return c.apply(args);
}

IValue expand(BatchedCall& c) {
  const Dims size = c.given(1).to_dims();
  const auto rank = static_cast<int64_t>(size.size());
  const int64_t added = rank - c.rank(0);
  for (int64_t i = 0; i < added; ++i)
    if (size[static_cast<size_t>(i)] < 0) return c.loop();  // which refuses it
  if (added < 0) return c.loop();
  const IValue raised = c.aligned(c.given(0), rank);
  return c.apply("expand", {raised, list_of(with_front(c.batch_size(), size))});
}

IValue repeat(BatchedCall& c) {
  Dims times = c.given(1).to_dims();
  const bool is_tile = c.op().schema().arguments[1].name == "dims";
  if (is_tile)
    while (static_cast<int64_t>(times.size()) < c.rank(0)) times = with_front(1, times);
  const auto rank = static_cast<int64_t>(times.size());
  if (rank < c.rank(0)) return c.loop();
  return c.apply("repeat", {c.aligned(c.given(0), rank), list_of(with_front(1, times))});
}

IValue as_strided(BatchedCall& c) {
  const IValue p = c.physical(0);
  const Tensor t = p.to_tensor();
  const IValue offset = c.given(3).is_none() ? IValue(t.offset()) : c.given(3);
  return c.apply("as_strided", {p, list_of(with_front(c.batch_size(), c.given(1).to_dims())),
                                list_of(with_front(t.strides()[0], c.given(2).to_dims())), offset});
}

IValue permute(BatchedCall& c) {
  Dims dims{0};
  for (const int64_t d : c.given(1).to_dims()) dims.push_back(wrap_dim(d, c.rank(0)) + 1);
  return c.apply("permute", {c.physical(0), list_of(dims)});
}

IValue same(BatchedCall& c) { return op<"alias">(c.sample(0)).value(); }

IValue squeeze(BatchedCall& c) {
  const Expr x = c.sample(0);
  Dims dims;
  const Dims sizes = x.sizes();
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] == 1) dims.push_back(static_cast<int64_t>(i));
  return dims.empty() ? same(c) : op<"squeeze.dims">(x, dims).value();
}

IValue reversed(BatchedCall& c) {
  Dims dims;
  for (int64_t d = c.rank(0); d-- > 0;) dims.push_back(d);
  return op<"permute">(c.sample(0), dims).value();
}

IValue matrix_transposed(BatchedCall& c) {
  if (c.rank(0) < 2) return same(c);
  return op<"transpose">(c.sample(0), int64_t{0}, int64_t{1}).value();
}

IValue raveled(BatchedCall& c) { return op<"reshape">(c.sample(0), Dims{-1}).value(); }
IValue at_least_1d(BatchedCall& c) {
  return c.rank(0) ? same(c) : op<"view">(c.sample(0), Dims{1}).value();
}
IValue at_least_2d(BatchedCall& c) {
  if (c.rank(0) > 1) return same(c);
  return op<"view">(c.sample(0), Dims{1, meta_from(c.given(0)).numel()}).value();
}
IValue viewed_as(BatchedCall& c) {
  return op<"view">(c.sample(0), meta_from(c.given(1)).sizes).value();
}
IValue reshaped_as(BatchedCall& c) {
  return op<"reshape">(c.sample(0), meta_from(c.given(1)).sizes).value();
}
IValue expanded_as(BatchedCall& c) {
  return op<"expand">(c.sample(0), meta_from(c.given(1)).sizes).value();
}
IValue converted_as(BatchedCall& c) {
  return op<"to">(c.sample(0), meta_from(c.given(1)).dtype).value();
}

// cat and stack.
IValue joined(BatchedCall& c) {
  const std::vector<IValue>& tensors = c.given(0).items();
  const bool is_stack = c.op().name() == "stack";
  std::vector<IValue> all;
  int64_t rank = -1;
  for (const IValue& t : tensors) {
    if (rank >= 0 && BatchedCall::rank(t) != rank) return c.loop();
    rank = BatchedCall::rank(t);
    all.push_back(c.whole(t));
  }
  if (rank + is_stack == 0) return c.loop();
  const int64_t dim = wrap_dim(c.given(1).to_int(), rank + is_stack) + 1;
  return c.apply(c.op(), std::array{IValue::list(std::move(all)), IValue(dim)});
}

// ── products ──

struct Operand {
  IValue value;  // physical
  int64_t rank;  // of a sample
  bool is_batched;
};

Operand operand(BatchedCall& c, const IValue& v) {
  return {c.physical(v), BatchedCall::rank(v), c.is_batched(v)};
}

Operand swapped(BatchedCall& c, Operand o) {
  if (o.rank >= 2) o.value = c.apply("transpose", {o.value, IValue(-2), IValue(-1)});
  return o;
}

IValue product(BatchedCall& c, Operand a, Operand b) {
  const bool from_row = a.rank == 1, from_column = b.rank == 1;
  // One product with a matrix that all samples share.
  if (a.is_batched && !b.is_batched && b.rank <= 2) return c.apply("matmul", {a.value, b.value});
  if (!a.is_batched && from_column && a.rank == 2)
    return c.apply("matmul", {b.value, c.apply("transpose", {a.value, IValue(0), IValue(1)})});
  const auto insert = [&](Operand& o, bool at_end) {
    const int64_t at = at_end ? meta_from(o.value).rank() : meta_from(o.value).rank() - 1;
    o.value = c.apply("unsqueeze", {o.value, IValue(at)});
    o.rank = 2;
  };
  if (from_row) insert(a, false);
  if (from_column) insert(b, true);
  const int64_t rank = std::max(a.rank, b.rank);
  if (a.is_batched) a.value = with_ones(c, a.value, 1, rank - a.rank);
  if (b.is_batched) b.value = with_ones(c, b.value, 1, rank - b.rank);
  IValue out = c.apply("matmul", {a.value, b.value});
  if (from_column) out = c.apply("squeeze.dim", {out, IValue(-1)});
  if (from_row) out = c.apply("squeeze.dim", {out, IValue(from_column ? -1 : -2)});
  return out;
}

template <int64_t A, int64_t B>  // ranks that the op asks for; 0: any
IValue matrix_product(BatchedCall& c) {
  const Operand a = operand(c, c.given(0)), b = operand(c, c.given(1));
  if ((A ? a.rank != A : a.rank == 0) || (B ? b.rank != B : b.rank == 0)) return c.loop();
  if (meta_from(a.value).dtype != meta_from(b.value).dtype) return c.loop();
  return product(c, a, b);
}

IValue linear(BatchedCall& c) {
  if (only_first_batched(c) && c.rank(0) > 0) return c.apply(physical_args(c));
  if (c.rank(0) == 0 || c.rank(1) != 2) return c.loop();
  const IValue out = product(c, operand(c, c.given(0)), swapped(c, operand(c, c.given(1))));
  if (c.given(2).is_none()) return out;
  return c.apply("add", {out, c.aligned(c.given(2), c.rank(0))});
}

// addmm, baddbmm: beta * input + alpha * (a @ b).
template <int64_t N>
IValue added_product(BatchedCall& c) {
  if (c.rank(1) != N || c.rank(2) != N || c.rank(0) > N) return c.loop();
  const IValue out = product(c, operand(c, c.given(1)), operand(c, c.given(2)));
  const IValue alpha = c.given("alpha"), beta = c.given("beta");
  const IValue scaled = c.apply("mul", {out, alpha});
  if (beta.to_double() == 0) return scaled;  // a NaN in input doesn't count then
  return c.apply("add", {scaled, c.aligned(c.given(0), N), beta});
}

IValue outer(BatchedCall& c) {
  if (c.rank(0) != 1 || c.rank(1) != 1) return c.loop();
  return (op<"unsqueeze">(c.sample(0), int64_t{1}) * c.sample(1)).value();
}

// A letter of its own for the batch.
IValue einsum(BatchedCall& c) {
  std::string text;
  for (const char ch : c.given(0).to_string())
    if (ch != ' ') text += ch;
  if (text.find('.') != text.npos) return c.loop();
  char batch = 'a';
  while (batch <= 'z' && text.find(batch) != text.npos) ++batch;
  if (batch > 'z') return c.loop();
  std::string output;
  const size_t arrow = text.find("->");
  const std::string inputs = text.substr(0, arrow);
  if (arrow == text.npos) {
    for (int letter = 'A'; letter <= 'z'; ++letter)
      if (std::count(inputs.begin(), inputs.end(), letter) == 1 && letter != ',')
        output += static_cast<char>(letter);
  } else {
    output = text.substr(arrow + 2);
  }
  std::string equation;
  std::vector<IValue> operands;
  size_t at = 0;
  for (const IValue& v : c.given(1).items()) {
    const size_t comma = std::min(inputs.find(',', at), inputs.size());
    if (!operands.empty()) equation += ',';
    if (c.is_batched(v)) equation += batch;
    equation += inputs.substr(at, comma - at);
    operands.push_back(c.physical(v));
    at = comma + 1;
  }
  equation += cat("->", batch, output);
  return c.apply("einsum", {IValue(equation), IValue::list(std::move(operands))});
}

// ── convolutions and the like: samples joined in dimension 0 ──

// Sizes [batch, N, ...] as [batch * N, ...], through the op, and back.
IValue folded(BatchedCall& c) {
  std::vector<IValue> args = physical_args(c);
  const Dims sizes = meta_from(args[0]).sizes;
  args[0] = c.apply("flatten", {args[0], IValue(0), IValue(1)});
  const IValue out = c.apply(args);
  const auto unfold = [&](const IValue& t) {
    const Dims two{sizes[0], sizes[1]};
    return c.apply("unflatten", {t, IValue(0), list_of(two)});
  };
  if (out.is_tensor()) return unfold(out);
  std::vector<IValue> items;
  for (const IValue& t : out.items()) items.push_back(unfold(t));
  return IValue::tuple(std::move(items));
}

template <int64_t N>  // spatial dimensions
IValue convolution(BatchedCall& c) {
  if (!only_first_batched(c)) return c.loop();
  if (c.rank(0) == N + 1) return c.apply(physical_args(c));
  return c.rank(0) == N + 2 ? folded(c) : c.loop();
}

IValue group_norm(BatchedCall& c) {
  return only_first_batched(c) && c.rank(0) >= 2 ? folded(c) : c.loop();
}

// layer_norm, rms_norm: weight and bias of each sample come after.
template <bool kBias>
IValue normalized(BatchedCall& c) {
  if (only_first_batched(c)) return c.apply(physical_args(c));
  if (!c.is_batched(0)) return c.loop();
  std::vector<IValue> args = physical_args(c);
  args[2] = IValue();
  if (kBias) args[3] = IValue();
  IValue out = c.apply(args);
  if (!c.given(2).is_none()) out = c.apply("mul", {out, c.aligned(c.given(2), c.rank(0))});
  if (kBias && !c.given(3).is_none()) out = c.apply("add", {out, c.aligned(c.given(3), c.rank(0))});
  return out;
}

// ── losses ──

// Elementwise, then reduced over each sample.
IValue elementwise_loss(BatchedCall& c) {
  const int64_t rank = c.rank(0);
  for (size_t i = 1; i < c.num_arguments(); ++i)
    if (c.is_tensor(i) && meta_from(c.given(i)).sizes != meta_from(c.given(0)).sizes)
      return c.loop();
  const size_t r = c.index("reduction");
  const std::string reduction = c.given(r).to_string();
  if (reduction == "batchmean") return c.loop();
  std::vector<IValue> args = whole_args(c);
  args[r] = IValue("none");
  const IValue each = c.apply(args);
  if (reduction == "none" || rank == 0) return each;
  Dims dims;
  for (int64_t d = 1; d <= rank; ++d) dims.push_back(d);
  return c.apply(reduction, {each, list_of(dims)});
}

IValue filled(BatchedCall& c) {
  if (!c.is_batched(1)) return c.apply(physical_args(c));
  if (c.rank(1) != 0) return c.loop();  // which refuses it
  return c.apply("copy_", {c.physical(0), c.aligned(c.given(1), c.rank(0))});
}

IValue factored(BatchedCall& c) {
  return c.given("mode").to_string() == "r" ? c.loop() : trailing<2>(c);  // Q is empty then
}

// ── indexing ──

// An index expression of one sample: which dims its tensors stand at.
struct IndexPlan {
  std::vector<IValue> indices;  // of samples; masks became places
  int64_t first = -1;           // dim of the first tensor
  int64_t rank = 0;             // of the tensors, broadcast
  bool is_adjacent = true;
  bool is_batched = false;  // a tensor differs between the samples
};

IndexPlan plan_of(BatchedCall& c, const IValue& list) {
  IndexPlan plan;
  for (const IValue& v : list.items()) {
    if (!v.is_tensor()) {
      plan.indices.push_back(v);
      continue;
    }
    const DType dtype = meta_from(v).dtype;
    if (dtype != DType::kBool && dtype != DType::kUInt8) {
      plan.indices.push_back(v);
      continue;
    }
    PRONG_CHECK(!c.is_batched(v), kRuntime,
                "vmap: We do not support batching operators that can support dynamic shape. "
                "Attempting to batch over indexing with a boolean mask.");
    for (const IValue& places : c.apply("nonzero.as_tuple", {c.physical(v), IValue(true)}).items())
      plan.indices.push_back(places);
  }
  bool is_over = false;
  for (size_t i = 0; i < plan.indices.size(); ++i) {
    const IValue& v = plan.indices[i];
    if (!v.is_tensor()) {
      is_over |= plan.first >= 0;
      continue;
    }
    if (is_over) plan.is_adjacent = false;
    if (plan.first < 0) plan.first = static_cast<int64_t>(i);
    plan.rank = std::max(plan.rank, BatchedCall::rank(v));
    plan.is_batched |= c.is_batched(v);
  }
  return plan;
}

// The index of the physical tensor: each sample's number, then its own indices, all of one rank.
IValue physical_indices(BatchedCall& c, const IndexPlan& plan) {
  Dims sizes{c.batch_size()};
  for (int64_t i = 0; i < plan.rank; ++i) sizes.push_back(1);
  std::vector<IValue> all{
      c.apply("view", {c.apply("arange", {IValue(c.batch_size())}), list_of(sizes)})};
  for (const IValue& v : plan.indices) all.push_back(v.is_tensor() ? c.aligned(v, plan.rank) : v);
  return IValue::list(std::move(all));
}

// `count` dims from `from` moved to `to`.
IValue moved(BatchedCall& c, const IValue& t, int64_t from, int64_t count, int64_t to) {
  if (count == 0 || from == to) return t;
  Dims source, destination;
  for (int64_t i = 0; i < count; ++i) {
    source.push_back(from + i);
    destination.push_back(to + i);
  }
  return c.apply("movedim", {t, list_of(source), list_of(destination)});
}

IValue indexed(BatchedCall& c, const IValue& input, const IndexPlan& plan) {
  if (!c.is_batched(input)) {  // each sample looks elsewhere in the same tensor
    std::vector<IValue> all;
    for (const IValue& v : plan.indices) all.push_back(v.is_tensor() ? c.aligned(v, plan.rank) : v);
    const IValue out = c.apply("index", {c.physical(input), IValue::list(std::move(all))});
    return plan.is_adjacent ? moved(c, out, plan.first, 1, 0) : out;
  }
  const IValue out = c.apply("index", {c.physical(input), physical_indices(c, plan)});
  // [batch, indices, before, after] where before is not empty and the indices are side by side.
  return plan.is_adjacent ? moved(c, out, 1, plan.rank, 1 + plan.first) : out;
}

IValue index(BatchedCall& c) {
  const IndexPlan plan = plan_of(c, c.given(1));
  return plan.first < 0 ? c.loop() : indexed(c, c.given(0), plan);
}

IValue index_put(BatchedCall& c) {
  const IndexPlan plan = plan_of(c, c.given(1));
  if (plan.first < 0) return c.loop();
  const auto num_indices = static_cast<int64_t>(plan.indices.size());
  int64_t num_tensors = 0;
  for (const IValue& v : plan.indices) num_tensors += v.is_tensor();
  if (num_indices > c.rank(0)) return c.loop();
  const int64_t rank = c.rank(0) - num_tensors + plan.rank;  // of what is written, for a sample
  if (c.rank(2) > rank) return c.loop();
  // Values go where index() would find them: [batch, indices, before, after].
  IValue values = c.aligned(c.given(2), rank);
  if (plan.is_adjacent && plan.first > 0) {
    if (!c.is_batched(2)) values = with_ones(c, values, 0, rank + 1 - meta_from(values).rank());
    values = moved(c, values, 1 + plan.first, plan.rank, 1);
  }
  return c.apply(c.op(),
                 std::array{c.op().mutated_argument() == 0 ? c.physical(0) : c.whole(c.given(0)),
                            physical_indices(c, plan), values, c.given(3)});
}

IValue index_select(BatchedCall& c) {
  if (only_first_batched(c)) return shifted(c);
  if (c.rank(0) == 0 || c.rank(2) != 1) return c.loop();
  IndexPlan plan;
  plan.first = wrap_dim(c.given(1).to_int(), c.rank(0));
  plan.indices.resize(static_cast<size_t>(plan.first));
  plan.indices.push_back(c.given(2));
  plan.rank = 1;
  plan.is_batched = true;
  return indexed(c, c.given(0), plan);
}

IValue embedding(BatchedCall& c) {
  if (!c.is_batched(0)) return c.apply(physical_args(c));
  if (c.given("padding_idx").to_int() >= 0 || c.given("scale_grad_by_freq").to_bool())
    return c.loop();
  IndexPlan plan;
  plan.first = 0;
  plan.indices.push_back(c.given(1));
  plan.rank = c.rank(1);
  plan.is_batched = c.is_batched(1);
  return indexed(c, c.given(0), plan);
}

IValue one_hot(BatchedCall& c) {
  PRONG_CHECK(
      c.given(1).to_int() > 0, kRuntime,
      "vmap: one_hot needs num_classes, since the largest number of a batched tensor is not "
      "known");
  return c.apply(physical_args(c));
}

IValue padded(BatchedCall& c) {
  if (c.given("mode").to_string() != "constant") return c.loop();
  return direct(c);
}

IValue rolled(BatchedCall& c) { return c.given("dims").items().empty() ? c.loop() : shifted(c); }

IValue multinomial(BatchedCall& c) { return c.rank(0) == 1 ? direct(c) : c.loop(); }

// ── who has which ──

struct Rule {
  BatchFn fn;
  BatchingRule::Kind kind;
  std::initializer_list<std::string_view> ops;
};

constexpr auto kPhysical = BatchingRule::Kind::kPhysical;
constexpr auto kSamples = BatchingRule::Kind::kSamples;

// keep-sorted within each line
const Rule kRules[] = {
    {direct, kPhysical, {"alias",        "bernoulli",
                         "bernoulli.p",  "bernoulli_.float",
                         "bfloat16",     "bool",
                         "byte",         "cauchy_",
                         "char",         "clone",
                         "conj",         "contiguous",
                         "detach",       "detach_",
                         "double",       "empty_like",
                         "exponential_", "fill_",
                         "float",        "full_like",
                         "geometric_",   "half",
                         "imag",         "int",
                         "log_normal_",  "long",
                         "nan_to_num",   "normal_",
                         "ones_like",    "positive",
                         "rand_like",    "randint_like",
                         "randn_like",   "randint_like.low",
                         "random_",      "random_.from",
                         "random_.to",   "real",
                         "resolve_conj", "short",
                         "to",           "to.device",
                         "uniform_",     "view_as_real",
                         "zero_",        "zeros_like"}},
    {aligned_pointwise,
     kPhysical,
     {"complex", "copy_", "float_power", "isclose", "ldexp", "max.other", "min.other", "normal",
      "polar"}},
    {trailing<1>, kPhysical, {"constant_pad_nd", "view.dtype", "view_as_complex"}},
    {trailing<2>,
     kPhysical,
     {"adjoint",
      "cholesky",
      "cholesky_inverse",
      "det",
      "inverse",
      "linalg_cholesky",
      "linalg_cholesky_ex",
      "linalg_det",
      "linalg_eig",
      "linalg_eigh",
      "linalg_eigvals",
      "linalg_eigvalsh",
      "linalg_inv",
      "linalg_inv_ex",
      "linalg_lu",
      "linalg_lu_factor",
      "linalg_lu_factor_ex",
      "linalg_matrix_rank",
      "linalg_matrix_rank.tol",
      "linalg_pinv",
      "linalg_pinv.rcond",
      "linalg_slogdet",
      "linalg_svd",
      "linalg_svdvals",
      "logdet",
      "mH",
      "mT",
      "pinverse",
      "qr",
      "slogdet",
      "svd",
      "tril",
      "tril_",
      "triu",
      "triu_"}},
    {trailing_all<2>, kPhysical, {"cholesky_solve", "linalg_solve_triangular", "triangular_solve"}},
    {shifted<>,
     kPhysical,
     {"_fft_c2c",    "_fft_c2r",     "_fft_r2c",     "argsort",       "chunk",
      "cummax",      "cummin",       "cumprod",      "cumsum",        "diagonal",
      "diff",        "flatten",      "flip",         "glu",           "index_fill",
      "kthvalue",    "log_softmax",  "logcumsumexp", "max.dim",       "median.dim",
      "min.dim",     "mode",         "movedim",      "nanmedian.dim", "narrow",
      "prod.dim",    "renorm",       "rot90",        "select",        "slice",
      "softmax",     "sort",         "split",        "split.sizes",   "split_with_sizes",
      "squeeze.dim", "squeeze.dims", "tensor_split", "topk",          "transpose",
      "unbind",      "unflatten",    "unfold"}},
    {shifted_new, kPhysical, {"diag_embed", "unsqueeze"}},
    {shifted_all,
     kPhysical,
     {"gather", "scatter", "scatter.value", "scatter_", "scatter_.value", "scatter_add",
      "scatter_add_", "scatter_reduce", "scatter_reduce_"}},
    {reduced,
     kPhysical,
     {"all.dim", "amax", "amin", "any.dim", "count_nonzero", "logsumexp", "mean", "nansum", "norm",
      "norm.fro", "std", "std.dim", "std_mean", "sum", "var", "var.dim", "var_mean"}},
    {flattened<"all.dim", true>, kPhysical, {"all"}},
    {flattened<"any.dim", true>, kPhysical, {"any"}},
    {flattened<"amax", true>, kPhysical, {"max"}},
    {flattened<"amin", true>, kPhysical, {"min"}},
    {flattened<"prod.dim", false>, kPhysical, {"prod"}},
    {flattened<"median.dim", false>, kPhysical, {"median"}},
    {flattened<"nanmedian.dim", false>, kPhysical, {"nanmedian"}},
    {flattened<"std.dim", true>, kPhysical, {"std.unbiased"}},
    {flattened<"var.dim", true>, kPhysical, {"var.unbiased"}},
    {arg_extreme, kPhysical, {"argmax", "argmin"}},
    {sized, kPhysical, {"new_empty", "new_full", "new_ones", "new_zeros", "reshape", "view"}},
    {expand, kPhysical, {"broadcast_to", "expand"}},
    {repeat, kPhysical, {"repeat", "tile"}},
    {as_strided, kPhysical, {"as_strided"}},
    {permute, kPhysical, {"permute"}},
    {squeeze, kSamples, {"squeeze"}},
    {reversed, kSamples, {"T"}},
    {matrix_transposed, kSamples, {"t"}},
    {raveled, kSamples, {"ravel"}},
    {at_least_1d, kSamples, {"atleast_1d"}},
    {at_least_2d, kSamples, {"atleast_2d"}},
    {viewed_as, kSamples, {"view_as"}},
    {reshaped_as, kSamples, {"reshape_as"}},
    {expanded_as, kSamples, {"expand_as"}},
    {converted_as, kSamples, {"to.other", "type_as"}},
    {joined, kPhysical, {"cat", "stack"}},
    {matrix_product<0, 0>, kPhysical, {"matmul"}},
    {matrix_product<2, 2>, kPhysical, {"mm"}},
    {matrix_product<3, 3>, kPhysical, {"bmm"}},
    {matrix_product<2, 1>, kPhysical, {"mv"}},
    {matrix_product<1, 1>, kPhysical, {"dot"}},
    {linear, kPhysical, {"linear"}},
    {added_product<2>, kPhysical, {"addmm"}},
    {added_product<3>, kPhysical, {"baddbmm"}},
    {outer, kSamples, {"outer"}},
    {filled, kPhysical, {"fill_.Tensor"}},
    {factored, kPhysical, {"linalg_qr"}},
    {einsum, kPhysical, {"einsum"}},
    {convolution<1>, kPhysical, {"conv1d", "conv1d.padding"}},
    {convolution<2>, kPhysical, {"conv2d", "conv2d.padding"}},
    {convolution<3>, kPhysical, {"conv3d", "conv3d.padding"}},
    {group_norm, kPhysical, {"group_norm"}},
    {normalized<true>, kPhysical, {"layer_norm"}},
    {normalized<false>, kPhysical, {"rms_norm"}},
    {elementwise_loss,
     kPhysical,
     {"binary_cross_entropy", "huber_loss", "kl_div", "l1_loss", "mse_loss", "smooth_l1_loss"}},
    {index, kPhysical, {"index"}},
    {index_put, kPhysical, {"index_put", "index_put_"}},
    {index_select, kPhysical, {"index_select"}},
    {embedding, kPhysical, {"embedding"}},
    {one_hot, kPhysical, {"one_hot"}},
    {padded, kPhysical, {"pad"}},
    {rolled, kPhysical, {"roll"}},
    {multinomial, kPhysical, {"multinomial"}},
    {nullptr, BatchingRule::Kind::kData, {"allclose", "data_ptr", "equal", "item"}},
};

// Such a rule serves the in-place form too.
bool applies_the_op_itself(BatchFn fn) {
  for (const BatchFn one : {BatchFn(direct), BatchFn(aligned_pointwise), BatchFn(trailing<1>),
                            BatchFn(trailing<2>), BatchFn(shifted<>), BatchFn(shifted_all)})
    if (fn == one) return true;
  return false;
}

using Table = std::unordered_map<const OpDef*, BatchingRule>;

Table make_table() {
  Table table;
  for (const Rule& rule : kRules)
    for (const std::string_view name : rule.ops)
      if (const OpDef* op = registry().find(name)) table[op] = {rule.kind, rule.fn};
  for (const auto& op : registry().all()) {
    if (table.count(op.get())) continue;
    const OpDef* base = op->inplace_of();
    BatchingRule rule;
    if (op->is_composite())
      rule.kind = BatchingRule::Kind::kComposite;
    else if (op->family() == Family::kHost)
      rule.kind = BatchingRule::Kind::kHost;
    else if (op->pointwise() || (base && base->pointwise()))
      rule = {BatchingRule::Kind::kPointwise, aligned_pointwise};
    else if (base && table.count(base) && applies_the_op_itself(table[base].fn))
      rule = table[base];
    table[op.get()] = rule;
  }
  return table;
}

}  // namespace

BatchingRule batching_rule(const OpDef& op) {
  static const Table table = make_table();
  return table.at(&op);
}

}  // namespace prong
