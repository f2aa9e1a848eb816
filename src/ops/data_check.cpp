// Rules that many ops share for their data, and the plain answer to them. See data_check.h.
#include "ops/data_check.h"

#include <algorithm>
#include <limits>

namespace prong {

const IValue& DataCheck::operator[](std::string_view name) const {
  const int i = op_.schema().find(name);
  PRONG_ASSERT(i >= 0, "the data check of ", op_.name(), " reads ", name, ", which is no argument");
  return args_[static_cast<size_t>(i)];
}

int64_t DataCheck::size(const IValue& tensor, int64_t dim) const {
  if (!tensor.is_tensor()) return 0;
  const DimsView sizes = tensor.tensor_impl()->sizes;
  const auto rank = static_cast<int64_t>(sizes.size());
  if (rank == 0) return 1;
  if (dim < 0) dim += rank;
  return dim < 0 || dim >= rank ? 0 : sizes[static_cast<size_t>(dim)];
}

void any_data_may_fail(DataCheck& c) { c.may_fail(); }

std::optional<IntRange> bounds_of_input(const BoundsCall& call) { return call.range(0); }

std::optional<IntRange> bounds_with_zero(const BoundsCall& call) {
  const std::optional<IntRange> r = call.range(0);
  if (!r) return r;
  return IntRange{std::min<int64_t>(r->low, 0), std::max<int64_t>(r->high, 0)};
}

std::optional<IntRange> bounds_of_places(const BoundsCall& call) {
  const TensorMeta* input = call.tensor(0);
  const Schema& schema = call.schema();
  if (!input || call.output() + 1 != static_cast<int>(schema.results.size())) return std::nullopt;
  if (input->sizes.empty()) return IntRange{0, 0};
  const int dim = schema.find("dim");
  if (const auto d = dim < 0 ? std::nullopt : call.number(static_cast<size_t>(dim)))
    return IntRange{0, input->sizes[static_cast<size_t>(wrap_dim(*d, input->rank()))] - 1};
  return IntRange{0, input->numel() - 1};  // no place along one dimension is larger
}

std::optional<IntRange> unknown_bounds(const BoundsCall&) { return std::nullopt; }

IntRange range_of(const Tensor& ints, std::optional<int64_t> ignored) {
  const Tensor wide = ints.to(DType::kInt64).contiguous();
  IntRange r{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
  const int64_t* values = wide.data<int64_t>();
  for (int64_t i = 0; i < wide.numel(); ++i) {
    if (ignored && values[i] == *ignored) continue;
    r.low = std::min(r.low, values[i]);
    r.high = std::max(r.high, values[i]);
  }
  return r;
}

namespace {

// Looks at the numbers themselves.
class PlainCheck final : public DataCheck {
 public:
  using DataCheck::DataCheck;
  void within(const IValue& tensor, IntRange range, std::optional<int64_t> ignored) override {
    fails |= !range.contains(range_of(tensor.to_tensor(), ignored));
  }
  void not_zero(const IValue& v) override {
    if (!v.is_tensor()) {
      fails |= v.to_double() == 0;
      return;
    }
    const Tensor t = v.to_tensor().to(DType::kInt64).contiguous();
    const int64_t* values = t.data<int64_t>();
    fails |= std::find(values, values + t.numel(), 0) != values + t.numel();
  }
  void may_fail() override { fails = true; }

  bool fails = false;
};

}  // namespace

bool data_may_fail(const OpDef& op, std::span<const IValue> args) {
  if (!op.checks()) return false;
  PlainCheck check(op, args);
  op.checks()(check);
  return check.fails;
}

}  // namespace prong
