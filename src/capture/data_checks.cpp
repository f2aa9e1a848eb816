// Ranges of integers, by what ops say of what they check and of what they give. See data_checks.h.
#include "capture/data_checks.h"

#include <limits>

#include "capture/stand_ins.h"

namespace prong::capture {

namespace {

constexpr int kDepth = 16;

std::optional<IntRange> range_of_memory(const Tensor& t, std::optional<int64_t> ignored = {}) {
  RecordingOff off;  // a look at an input of the segment does not change it
  return range_of(t, ignored);
}

bool has_integers(DType d) { return !is_floating(d) && !is_complex(d); }

// Would numbers of that range have come through an element of this type unchanged?
bool fits_dtype(const std::optional<IntRange>& r, DType dtype) {
  if (!r) return false;
  return dtype == DType::kInt64 ||
         (dtype == DType::kInt32 &&
          IntRange{std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()}
              .contains(*r));
}

// Of the values of a segment.
class Ranges {
 public:
  explicit Ranges(const Segment& segment) : segment_(segment), trace_(segment.trace()) {}

  std::optional<IntRange> of(const IValue& tensor, std::optional<int64_t> ignored = {}) {
    const TensorImpl& i = *tensor.tensor_impl();
    if (!has_integers(i.dtype)) return std::nullopt;
    if (i.numel == 0) return IntRange{0, -1};
    if (!i.storage->deferred()) return range_of_memory(tensor.to_tensor(), ignored);
    const ValueId v = segment_.find_value(tensor);
    return v < 0 || segment_.is_written(*i.storage) ? std::nullopt : of_value(v, kDepth);
  }
  // Was the memory of inputs read on the way? What follows from it is not worked out for others.
  bool has_read() const { return has_read_; }

 private:
  class Call;

  // Of what an op gives, by what it says of that: the range of its integers, not their values.
  std::optional<IntRange> of_value(ValueId v, int depth);

  std::optional<IntRange> of_operand(const Operand& o, int depth) {
    if (o.kind == Operand::Kind::kValue) return of_value(o.index, depth);
    if (o.kind != Operand::Kind::kNumber) return std::nullopt;
    const IValue& n = trace_.numbers[static_cast<size_t>(o.index)];
    const bool is_wrapped = n.is_tensor() && has_integers(n.tensor_impl()->dtype);
    if (!n.is_int() && !is_wrapped) return std::nullopt;
    const int64_t number = n.is_int() ? n.to_int() : n.to_tensor().item_int();
    return IntRange{number, number};
  }

  const Segment& segment_;
  const Trace& trace_;
  bool has_read_ = false;
};

class Ranges::Call final : public BoundsCall {
 public:
  Call(Ranges& ranges, const TraceNode& node, int output, int depth)
      : ranges_(ranges), node_(node), output_(output), depth_(depth) {}

  int output() const override { return output_; }
  const Schema& schema() const override { return node_.op->schema(); }
  std::optional<IntRange> range(size_t argument) const override {
    return ranges_.of_operand(node_.args[argument], depth_ - 1);
  }
  const TensorMeta* tensor(size_t argument) const override {
    const Operand& o = node_.args[argument];
    if (o.kind != Operand::Kind::kValue) return nullptr;
    return &ranges_.trace_.values[static_cast<size_t>(o.index)].meta;
  }

 private:
  Ranges& ranges_;
  const TraceNode& node_;
  int output_, depth_;
};

std::optional<IntRange> Ranges::of_value(ValueId v, int depth) {
  const TraceValue& value = trace_.values[static_cast<size_t>(v)];
  if (!has_integers(value.meta.dtype) || depth == 0) return std::nullopt;
  if (value.producer < 0) {
    const Tensor t = segment_.tensor(v);
    if (t.storage()->deferred()) return std::nullopt;
    has_read_ = true;
    return range_of_memory(t);
  }
  const TraceNode& n = trace_.nodes[static_cast<size_t>(value.producer)];
  if (!n.op->bounds()) return std::nullopt;
  const auto r = n.op->bounds()(Call(*this, n, value.output, depth));
  return fits_dtype(r, value.meta.dtype) ? r : std::nullopt;
}

// Asks the ranges what the op asks of its data.
class Prover final : public DataCheck {
 public:
  Prover(const Segment& segment, const OpDef& op, std::span<const IValue> args, Proof& proof)
      : DataCheck(op, args), ranges_(segment), proof_(proof) {}

  void within(const IValue& tensor, IntRange range, std::optional<int64_t> ignored) override {
    const TensorImpl& i = *tensor.tensor_impl();
    if (i.numel > 0 && i.storage->deferred().get() == no_data().get()) {  // looked at later
      proof_.checks.push_back(
          {Ref<TensorImpl>(tensor.tensor_impl()), range.low, range.high, ignored});
      return;
    }
    const std::optional<IntRange> known = ranges_.of(tensor, ignored);
    proof_.holds &= known && range.contains(*known);
    proof_.is_for_all &= !ranges_.has_read();
    if (proof_.holds && i.numel > 0 && !i.storage->deferred())
      proof_.checks.push_back(
          {Ref<TensorImpl>(tensor.tensor_impl()), range.low, range.high, ignored});
  }
  void not_zero(const IValue& divisor) override {
    if (!divisor.is_tensor()) {
      proof_.holds &= divisor.is_int() && divisor.to_int() != 0;
      return;
    }
    const std::optional<IntRange> known = ranges_.of(divisor);
    proof_.holds &= known && !known->contains({0, 0});
    proof_.is_for_all = false;
  }
  void may_fail() override { proof_.holds = false; }

 private:
  Ranges ranges_;
  Proof& proof_;
};

// Random numbers from the default generator, with parameters that are numbers: the same call on
// empty tensors draws nothing and refuses what it must refuse.
bool draws_safely(const OpDef& op, std::span<const IValue> args) {
  std::vector<IValue> empty(args.begin(), args.end());
  bool is_empty = false;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].is_tensor()) {
      if (i > 0 && !args[i].tensor_impl()->is_wrapped_number) return false;
      if (i == 0) empty[i] = IValue(Tensor::empty(Dims{0}, args[i].tensor_impl()->dtype));
      is_empty |= i == 0;
    }
    if (op.family() == Family::kFactory && args[i].is_list()) {  // the sizes
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
  if (op.checks()) {
    Prover prover(segment, op, args, proof);
    op.checks()(prover);
  } else if (op.is_random()) {
    proof.holds = draws_safely(op, args);
  }
  return proof;
}

bool lies_between(const Tensor& indices, int64_t low, int64_t high,
                  std::optional<int64_t> ignored) {
  return indices.numel() == 0 || IntRange{low, high}.contains(*range_of_memory(indices, ignored));
}

}  // namespace prong::capture
