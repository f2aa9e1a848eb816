// What a call's kernel says to it ahead of time. See trial_runs.h.
#include "capture/trial_runs.h"

#include <cstring>

#include "base/error.h"
#include "capture/recorder.h"
#include "capture/stand_ins.h"
#include "eager/modes.h"
#include "profile/profile.h"

namespace prong::capture {

namespace {

constexpr int64_t kMaxElements = 1 << 14;  // so few that to compute with them costs next to nothing

// All that a kernel can go by without reading memory, as bytes.
void add_facts(const IValue& v, std::string* facts) {
  const auto add = [&](uint64_t word) {
    facts->append(reinterpret_cast<const char*>(&word), sizeof word);
  };
  add(static_cast<uint64_t>(v.tag()));
  if (v.is_tensor()) {
    const TensorImpl& t = *v.tensor_impl();
    add(static_cast<uint64_t>(t.dtype) << 8 | static_cast<uint64_t>(t.is_wrapped_number) << 1 |
        static_cast<uint64_t>(t.is_apart));
    add(static_cast<uint64_t>(t.offset));
    add(t.storage->bytes());
    add(t.sizes.size());
    for (const int64_t n : t.sizes) add(static_cast<uint64_t>(n));
    for (const int64_t n : t.strides) add(static_cast<uint64_t>(n));
  } else if (v.is_int()) {
    add(static_cast<uint64_t>(v.to_int()));
  } else if (v.is_bool()) {
    add(v.to_bool() ? 1 : 0);
  } else if (v.is_float()) {
    const double d = v.to_double();
    uint64_t bits;
    std::memcpy(&bits, &d, sizeof bits);
    add(bits);
  } else if (v.is_dtype()) {
    add(static_cast<uint64_t>(v.to_dtype()));
  } else if (v.is_string()) {
    add(v.to_string().size());
    *facts += v.to_string();
  } else if (v.is_list() || v.is_tuple()) {
    add(v.items().size());
    for (const IValue& item : v.items()) add_facts(item, facts);
  }
}

IValue zeros_like(const IValue& v) {
  const TensorImpl& t = *v.tensor_impl();
  if (t.is_wrapped_number) return v;
  Tensor zeros = Tensor::empty(t.sizes, t.dtype);
  if (t.numel != 0)  // without elements there is no memory
    std::memset(zeros.raw(), 0, static_cast<size_t>(t.numel) * size_of(t.dtype));
  return IValue(std::move(zeros));
}

bool is_as_promised(const IValue& result, const IValue& meta) {
  if (meta.is_meta())
    return !result.is_tensor() || (result.tensor_impl()->dtype == meta.meta().dtype &&
                                   result.tensor_impl()->sizes == meta.meta().sizes);
  if (!(meta.is_list() || meta.is_tuple()) || !(result.is_list() || result.is_tuple())) return true;
  if (result.items().size() != meta.items().size()) return false;
  for (size_t i = 0; i < meta.items().size(); ++i)
    if (!is_as_promised(result.items()[i], meta.items()[i])) return false;
  return true;
}

int64_t count_of(const IValue& v) {
  if (v.is_tensor()) return v.tensor_impl()->numel;
  if (v.is_meta()) return v.meta().numel();
  int64_t all = 0;
  if (v.is_list() || v.is_tuple())
    for (const IValue& item : v.items()) all += count_of(item);
  return all;
}

}  // namespace

std::string facts_of(const OpDef& op, std::span<const IValue> args) {
  std::string facts;
  for (const uint64_t word : {context()[ContextWord::kModes], context()[ContextWord::kAutocast],
                              static_cast<uint64_t>(default_dtype())}) {
    facts.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  const OpDef* address = &op;
  facts.append(reinterpret_cast<const char*>(&address), sizeof address);
  for (const IValue& a : args) {
    if (a.is_tensor() && a.tensor_impl()->is_wrapped_number) return {};
    add_facts(a, &facts);
  }
  return facts;
}

bool TrialRuns::refuse(const OpDef& op, std::span<const IValue> args) {
  if (op.pointwise() || op.family() == Family::kView || op.is_random() || !op.shape() ||
      profile::is_on())
    return false;
  std::string facts = facts_of(op, args);
  if (facts.empty()) return false;
  if (const auto known = known_.find(facts); known != known_.end())
    return known->second != Outcome::kFine;
  const IValue meta = result_metas(op, args);
  if (meta.is_none()) return false;  // whoever records the call sees that too
  int64_t count = count_of(meta);
  for (const IValue& a : args) count += count_of(a);
  const bool is_small = count <= kMaxElements;
  Outcome outcome = Outcome::kFine;
  try {
    const ContextGuard saved;
    context()[ContextWord::kKernels] = 0;
    context()[ContextWord::kInterceptor] = 0;
    eager::set_grad_enabled(false);
    const auto other = [&](const IValue& v) {
      return is_small || v.tensor_impl()->is_wrapped_number
                 ? zeros_like(v)
                 : IValue(stand_in_for(*v.tensor_impl()));
    };
    if (is_small || op.family() != Family::kFactory) {
      const IValue result = op.kernel()(op, with_tensors(args, other));
      if (op.mutated_argument() < 0 && !is_as_promised(result, meta)) outcome = Outcome::kOther;
    }
  } catch (const DataNeeded&) {
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kLinAlg) outcome = Outcome::kRefused;  // zeros say little there
  }
  if (known_.size() >= kMaxFacts) known_.clear();
  known_.emplace(std::move(facts), outcome);
  return outcome != Outcome::kFine;
}

void TrialRuns::went_well(const OpDef& op, std::span<const IValue> args) {
  const auto known = known_.find(facts_of(op, args));
  if (known != known_.end() && known->second == Outcome::kRefused) known->second = Outcome::kFine;
}

}  // namespace prong::capture
