// Autocast: which arguments are converted, and to what.
#include "eager/autocast.h"

#include <vector>

#include "eager/dispatch.h"
#include "ops/autocast.h"

namespace prong::eager {
namespace {

// The word of a new thread is zero: off, bfloat16, casts kept.
constexpr uint64_t kEnabled = 1, kForgets = 2;
constexpr int kDTypeShift = 8;
constexpr uint64_t kDefault = static_cast<uint64_t>(DType::kBFloat16);

// float64 is never converted, nor are integers.
bool is_eligible(const IValue& value) {
  if (!value.is_tensor()) return false;
  const DType dtype = value.tensor_impl()->dtype;
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32;
}

IValue converted(const IValue& value, DType dtype) {
  if (is_eligible(value)) {
    if (value.tensor_impl()->dtype == dtype) return value;
    static const OpDef& to = registry().get("to");
    const IValue args[] = {value, dtype, false, false};
    return run(to, args);
  }
  if (!value.is_list()) return value;
  std::vector<IValue> items;
  bool changed = false;
  for (const IValue& item : value.items()) {
    items.push_back(converted(item, dtype));
    changed |= item.is_tensor() && items.back().tensor_impl() != item.tensor_impl();
  }
  return changed ? IValue::list(std::move(items)) : value;
}

// The lower one, unless a tensor is wider.
void widen(DType& dtype, const IValue& value) {
  if (value.is_list()) {
    for (const IValue& item : value.items()) widen(dtype, item);
  } else if (value.is_tensor() && is_floating(value.tensor_impl()->dtype)) {
    dtype = promote(dtype, value.tensor_impl()->dtype);
  }
}

}  // namespace

Autocast autocast() {
  const uint64_t word = context()[ContextWord::kAutocast];
  return {.enabled = (word & kEnabled) != 0,
          .dtype = static_cast<DType>((word >> kDTypeShift) ^ kDefault),
          .keeps_casts = (word & kForgets) == 0};
}

void set_autocast(const Autocast& state) {
  const uint64_t dtype = static_cast<uint64_t>(state.dtype) ^ kDefault;
  context()[ContextWord::kAutocast] =
      (dtype << kDTypeShift) | (state.enabled ? kEnabled : 0) | (state.keeps_casts ? 0 : kForgets);
}

IValue run_autocast(const OpDef& op, std::span<const IValue> args) {
  const ContextGuard restored;
  DType dtype = autocast().dtype;
  context()[ContextWord::kAutocast] = 0;
  const AutocastRule rule = autocast_rule(op);
  if (rule == AutocastRule::kNone) return run(op, args);
  if (rule == AutocastRule::kFloat32) dtype = DType::kFloat32;
  if (rule == AutocastRule::kWidest)
    for (const IValue& arg : args) widen(dtype, arg);
  std::vector<IValue> cast;
  cast.reserve(args.size());
  for (const IValue& arg : args) cast.push_back(converted(arg, dtype));
  return run(op, cast);
}

}  // namespace prong::eager
