// Ranges of index tensors and divisors. See data_checks.h.
#include "capture/data_checks.h"

#include <algorithm>
#include <limits>

#include "ops/kernels/pointwise.h"

namespace prong::capture {

namespace {

constexpr int64_t kLargest = int64_t{1} << 62;  // sums of two such numbers don't overflow
constexpr int kDepth = 16;

std::optional<IntRange> range_of_memory(const Tensor& t, std::optional<int64_t> ignored) {
  RecordingOff off;  // a look at an input of the segment does not change it
  const Tensor ints = t.to(DType::kInt64).contiguous();
  IntRange r{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
  const int64_t* values = ints.data<int64_t>();
  for (int64_t i = 0; i < ints.numel(); ++i) {
    if (ignored && values[i] == *ignored) continue;
    r.low = std::min(r.low, values[i]);
    r.high = std::max(r.high, values[i]);
  }
  return r;  // low > high: there are none
}

// `proof` learns what was looked at.
class Ranges {
 public:
  Ranges(const Segment& segment, Proof& proof)
      : segment_(segment), trace_(segment.trace()), proof_(proof) {}

  // Do all elements lie in [low, high]?
  bool lie_in(const IValue& tensor, int64_t low, int64_t high,
              std::optional<int64_t> ignored = {}) const {
    const TensorImpl& i = *tensor.tensor_impl();
    const std::optional<IntRange> r = of(tensor, ignored);
    if (!r || !(r->low > r->high || (r->low >= low && r->high <= high))) return false;
    if (i.numel > 0 && !i.storage->deferred())
      proof_.checks.push_back({Ref<TensorImpl>(tensor.tensor_impl()), low, high, ignored});
    return true;
  }

  std::optional<IntRange> of(const IValue& tensor, std::optional<int64_t> ignored = {}) const {
    const TensorImpl& i = *tensor.tensor_impl();
    if (is_floating(i.dtype) || is_complex(i.dtype)) return std::nullopt;
    if (i.numel == 0) return IntRange{0, -1};
    if (!i.storage->deferred()) return range_of_memory(tensor.to_tensor(), ignored);
    const ValueId v = segment_.find_value(tensor);
    return v < 0 || segment_.is_written(*i.storage) ? std::nullopt : of_value(v, kDepth);
  }

 private:
  std::optional<IntRange> of_operand(const Operand& o, int depth) const {
    if (o.kind == Operand::Kind::kValue) return of_value(o.index, depth);
    const auto n = number(o);
    return n ? std::optional(IntRange{*n, *n}) : std::nullopt;
  }

  std::optional<int64_t> number(const Operand& o) const {
    if (o.kind != Operand::Kind::kNumber) return std::nullopt;
    const IValue& n = trace_.numbers[static_cast<size_t>(o.index)];
    if (n.is_int()) return n.to_int();
    if (n.is_tensor() && !is_floating(n.tensor_impl()->dtype) &&
        !is_complex(n.tensor_impl()->dtype))
      return n.to_tensor().item_int();
    return std::nullopt;
  }

  // Of what an op gives, by what is known of the op: the range of its integers, not their values.
  std::optional<IntRange> of_value(ValueId v, int depth) const {
    const TraceValue& value = trace_.values[static_cast<size_t>(v)];
    if (is_floating(value.meta.dtype) || is_complex(value.meta.dtype) || depth == 0)
      return std::nullopt;
    if (value.producer < 0) {
      const Tensor t = segment_.tensor(v);
      if (t.storage()->deferred()) return std::nullopt;
      proof_.is_for_all = false;  // what follows from it is not worked out for other numbers
      return range_of_memory(t, {});
    }
    const TraceNode& n = trace_.nodes[static_cast<size_t>(value.producer)];
    const std::string& name = n.op->base_name();
    const auto whole = [&](const TensorMeta& m, int64_t size) {
      return m.sizes.empty() ? IntRange{0, 0} : IntRange{0, size - 1};
    };
    if (name == "arange") {
      const auto first = number(n.args[0]), second = number(n.args[1]);
      if (n.op->name() == "arange" && first) return IntRange{0, std::max<int64_t>(*first - 1, 0)};
      if (first && second)
        return IntRange{std::min(*first, *second), std::max(*first, *second - 1)};
      return std::nullopt;
    }
    if (n.op->family() == Family::kView || name == "to" || name == "contiguous" ||
        name == "clone" || name == "flip" || name == "roll" || name == "repeat" || name == "tril" ||
        name == "triu" || name == "reshape") {
      auto r = of_operand(n.args[0], depth - 1);
      const bool adds_zeros = name == "tril" || name == "triu";
      if (r && adds_zeros)
        r = IntRange{std::min<int64_t>(r->low, 0), std::max<int64_t>(r->high, 0)};
      return fits_dtype(r, value.meta.dtype) ? r : std::nullopt;
    }
    if ((name == "argmax" || name == "argmin" || name == "max" || name == "min" || name == "topk" ||
         name == "sort" || name == "argsort") &&
        n.args[0].kind == Operand::Kind::kValue) {
      if ((name == "max" || name == "min" || name == "topk" || name == "sort") && value.output != 1)
        return std::nullopt;
      const TensorMeta& of = trace_.values[static_cast<size_t>(n.args[0].index)].meta;
      for (size_t a = 1; a < n.args.size(); ++a)
        if (n.op->schema().arguments[a].name == "dim")
          if (const auto d = number(n.args[a]))
            return whole(of, of.sizes.empty() ? 1 : of.sizes[wrap_dim(*d, of.rank())]);
      return name[0] == 'a' ? std::optional(whole(of, of.numel())) : std::nullopt;
    }
    // Places in the pooled dimensions of the input, which are its last 1, 2 or 3.
    if (const size_t at = name.find("max_pool"); at != std::string::npos && value.output == 1 &&
                                                 name.ends_with("d_with_indices") &&
                                                 n.args[0].kind == Operand::Kind::kValue) {
      const TensorMeta& of = trace_.values[static_cast<size_t>(n.args[0].index)].meta;
      const auto pooled = static_cast<size_t>(name[at + 8] - '0');
      if (pooled < 1 || pooled > 3 || of.sizes.size() < pooled) return std::nullopt;
      int64_t places = 1;
      for (size_t d = of.sizes.size() - pooled; d < of.sizes.size(); ++d) places *= of.sizes[d];
      return IntRange{0, places - 1};
    }
    if (name == "remainder") {
      const auto divisor = of_operand(n.args[1], depth - 1);
      if (divisor && divisor->low > 0) return IntRange{0, divisor->high - 1};
      return std::nullopt;
    }
    if (name == "add" || name == "sub") {
      const auto a = of_operand(n.args[0], depth - 1), b = of_operand(n.args[1], depth - 1);
      if (!a || !b || n.args.size() > 3) return std::nullopt;
      if (n.args.size() == 3 && number(n.args[2]) != std::optional<int64_t>(1)) return std::nullopt;
      for (const int64_t x : {a->low, a->high, b->low, b->high})
        if (x > kLargest || x < -kLargest) return std::nullopt;
      const std::optional<IntRange> r = name == "add"
                                            ? IntRange{a->low + b->low, a->high + b->high}
                                            : IntRange{a->low - b->high, a->high - b->low};
      return fits_dtype(r, value.meta.dtype) ? r : std::nullopt;
    }
    return std::nullopt;
  }

  // Would numbers of that range have come through an element of this type unchanged?
  static bool fits_dtype(const std::optional<IntRange>& r, DType dtype) {
    if (!r) return false;
    return dtype == DType::kInt64 ||
           (dtype == DType::kInt32 && r->low >= std::numeric_limits<int32_t>::min() &&
            r->high <= std::numeric_limits<int32_t>::max());
  }

  const Segment& segment_;
  const Trace& trace_;
  Proof& proof_;
};

const IValue* argument(const OpDef& op, std::span<const IValue> args, std::string_view name) {
  for (size_t i = 0; i < args.size(); ++i)
    if (op.schema().arguments[i].name == name) return &args[i];
  return nullptr;
}

bool is_index(const IValue& v) {
  return v.is_tensor() && !is_floating(v.tensor_impl()->dtype) &&
         !v.tensor_impl()->is_wrapped_number;
}

// x[i, j, ...]: places from the end are counted below zero; masks are not looked at.
bool list_fits(const Ranges& ranges, const IValue& x, const IValue& indices) {
  const DimsView sizes = x.tensor_impl()->sizes;
  if (indices.items().size() > sizes.size()) return false;
  for (size_t d = 0; d < indices.items().size(); ++d) {
    const IValue& index = indices.items()[d];
    if (!index.is_tensor()) continue;
    const DType dtype = index.tensor_impl()->dtype;
    if (dtype == DType::kBool || dtype == DType::kUInt8) return false;
    if (!ranges.lie_in(index, -sizes[d], sizes[d] - 1)) return false;
  }
  return true;
}

// How many values the index may take, from how ops call their arguments: places along `dim` of the
// first one, rows of `weight` or `num_rows`, classes of `size` or the input.
std::optional<int64_t> bound_of(const OpDef& op, std::span<const IValue> args,
                                std::string_view index_name) {
  if (index_name == "target") {
    if (const IValue* size = argument(op, args, "size"); size && size->is_list()) {
      const size_t rank = size->items().size();
      return rank ? std::optional(size->items()[rank == 1 ? 0 : 1].to_int()) : std::nullopt;
    }
    const IValue* input = argument(op, args, "input");
    if (!input || !input->is_tensor() || input->tensor_impl()->sizes.empty()) return std::nullopt;
    const DimsView sizes = input->tensor_impl()->sizes;
    return sizes[sizes.size() == 1 ? 0 : 1];
  }
  if (const IValue* rows = argument(op, args, "num_rows"); rows && rows->is_int())
    return rows->to_int();
  if (!args[0].is_tensor()) return std::nullopt;
  const DimsView sizes = args[0].tensor_impl()->sizes;
  if (op.schema().arguments[0].name == "weight")
    return sizes.empty() ? std::nullopt : std::optional(sizes[0]);
  const IValue* dim = argument(op, args, "dim");
  if (!dim || !dim->is_int()) return std::nullopt;
  const auto rank = static_cast<int64_t>(sizes.size());
  if (rank == 0) return 1;
  const int64_t d = dim->to_int() < 0 ? dim->to_int() + rank : dim->to_int();
  return d < 0 || d >= rank ? std::nullopt : std::optional(sizes[d]);
}

bool indices_fit(const Ranges& ranges, const OpDef& op, std::span<const IValue> args) {
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& name = op.schema().arguments[i].name;
    if (args[i].is_list() &&
        std::any_of(args[i].items().begin(), args[i].items().end(), is_index)) {
      if (name != "indices" || !args[0].is_tensor() || !list_fits(ranges, args[0], args[i]))
        return false;
    } else if (i > 0 && is_index(args[i])) {
      const bool is_class = name == "target";
      if (!is_class && name != "index" && name != "indices") {
        // Values that are moved, which may be anything, where an index stands beside them.
        if (name == "values" || name == "src" || name == "source" || name == "value") continue;
        return false;
      }
      std::optional<int64_t> ignored;
      if (const IValue* skip = argument(op, args, "ignore_index"); is_class && skip)
        ignored = skip->to_int();
      const auto bound = bound_of(op, args, name);
      if (!bound || !ranges.lie_in(args[i], 0, *bound - 1, ignored)) return false;
    }
  }
  return true;
}

// Random numbers from the default generator, with parameters that are numbers: the same call on
// empty tensors draws nothing and refuses what it must refuse.
bool draws_safely(const OpDef& op, std::span<const IValue> args) {
  const IValue* p = argument(op, args, "p");
  const bool ignores_data = op.family() == Family::kFactory || op.mutated_argument() == 0 ||
                            (p && (p->is_float() || p->is_int()));
  if (!ignores_data) return false;
  std::vector<IValue> empty(args.begin(), args.end());
  bool is_empty = false;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].is_tensor()) {
      if (i > 0 && !args[i].tensor_impl()->is_wrapped_number) return false;
      if (i == 0) empty[i] = IValue(Tensor::empty(Dims{0}, args[i].tensor_impl()->dtype));
      is_empty |= i == 0;
    }
    if (op.schema().arguments[i].name == "size") {
      empty[i] = IValue::list({IValue(int64_t{0})});
      is_empty = true;
    }
  }
  if (!is_empty) return false;  // randperm(n)
  try {
    op.kernel()(op, empty);
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

}  // namespace

Proof prove_safe(const Segment& segment, const OpDef& op, std::span<const IValue> args) {
  Proof proof;
  if (op.is_random()) {
    proof.holds = draws_safely(op, args);
    return proof;
  }
  const Ranges ranges(segment, proof);
  if (!op.pointwise()) {
    proof.holds = indices_fit(ranges, op, args);
    return proof;
  }
  const int divisor = op.pointwise()->options.divisor;
  if (divisor < 0) return proof;
  const IValue& by = args[static_cast<size_t>(divisor)];
  if (by.is_int()) {
    proof.holds = by.to_int() != 0;
    return proof;
  }
  proof.is_for_all = false;
  const auto r = by.is_tensor() ? ranges.of(by) : std::nullopt;
  proof.holds = r && (r->low > r->high || r->low > 0 || r->high < 0);
  return proof;
}

bool lies_between(const Tensor& indices, int64_t low, int64_t high,
                  std::optional<int64_t> ignored) {
  if (indices.numel() == 0) return true;
  const IntRange r = *range_of_memory(indices, ignored);
  return r.low > r.high || (r.low >= low && r.high <= high);
}

}  // namespace prong::capture
