// Walks over lists of tensors for optimizers: checks, pieces, copies of what is not contiguous. See
// optimizer.h.
#include "ops/kernels/optimizer.h"

#include <algorithm>

#include "base/str.h"
#include "runtime/parallel.h"

namespace prong {

namespace {

constexpr int64_t kGrain = 16 * 1024;

// A tensor that the rows may walk over: itself, or a contiguous copy that is written back.
class Flat {
 public:
  explicit Flat(const Tensor& t) : given_(t), flat_(t.contiguous()) {}
  char* data() const { return static_cast<char*>(flat_.raw()); }
  void write_back() const {
    if (!flat_.is_same(given_)) copy_into(given_, flat_);
    given_.bump_version();
  }

 private:
  Tensor given_, flat_;
};

struct Parameter {
  int64_t begin;  // of its elements, counted through all parameters
  OptimizerRow row;
};

bool has_duplicates(const std::vector<Tensor>& tensors) {
  std::vector<const TensorImpl*> seen;
  for (const Tensor& t : tensors) seen.push_back(t.impl());
  std::sort(seen.begin(), seen.end());
  return std::adjacent_find(seen.begin(), seen.end()) != seen.end();
}

OptimizerRow part_of(const OptimizerRow& row, int64_t begin, int64_t end) {
  OptimizerRow part = row;
  const int64_t bytes = begin * static_cast<int64_t>(size_of(row.dtype));
  part.size = end - begin;
  part.param = static_cast<char*>(row.param) + bytes;
  part.grad = static_cast<const char*>(row.grad) + bytes;
  for (void*& state : part.states)
    if (state) state = static_cast<char*>(state) + bytes;
  return part;
}

}  // namespace

void check_lists(const OptimizerLists& lists) {
  const auto check_length = [&](const std::vector<Tensor>& list, const char* what) {
    PRONG_CHECK(list.size() == lists.params.size(), kRuntime, lists.op, ": got ",
                lists.params.size(), " parameters but ", list.size(), " ", what);
  };
  check_length(lists.grads, "gradients");
  for (const auto* state : lists.states)
    if (state) check_length(*state, "tensors of state");
  for (size_t i = 0; i < lists.params.size(); ++i) {
    const Tensor& param = lists.params[i];
    PRONG_CHECK(is_floating(param.dtype()), kRuntime, lists.op,
                ": parameters must be floating-point tensors, but parameter ", i, " is ",
                param.dtype());
    const auto check = [&](const Tensor& t, const char* what) {
      PRONG_CHECK(t.sizes() == param.sizes() && t.dtype() == param.dtype(), kRuntime, lists.op,
                  ": parameter ", i, " is ", param.dtype(), " of shape ", param.sizes(),
                  " but its ", what, " is ", t.dtype(), " of shape ", t.sizes());
    };
    check(lists.grads[i], "gradient");
    for (const auto* state : lists.states)
      if (state) check((*state)[i], "state");
  }
}

void check_numbers(const OptimizerLists& lists, const std::vector<Tensor>& numbers) {
  PRONG_CHECK(numbers.size() == lists.params.size(), kRuntime, lists.op, ": got ",
              lists.params.size(), " parameters but ", numbers.size(), " numbers");
  for (const Tensor& t : numbers)
    PRONG_CHECK(t.numel() == 1 && is_floating(t.dtype()), kRuntime, lists.op,
                ": expected one floating-point number for a parameter, got ", t.dtype(),
                " of shape ", t.sizes());
}

double read_number(const Tensor& t) { return t.item_double(); }

void write_number(const Tensor& t, double value) {
  fill(t, value);
  t.bump_version();
}

void multiply_number(const Tensor& t, double factor) {
  if (t.dtype() == DType::kFloat64)
    write_number(t, read_number(t) * factor);
  else
    write_number(t, static_cast<float>(read_number(t)) * static_cast<float>(factor));
}

std::vector<double> count_steps(const OptimizerLists& lists, const std::vector<Tensor>& steps) {
  check_numbers(lists, steps);
  std::vector<double> counts;
  counts.reserve(steps.size());
  for (const Tensor& step : steps) {
    if (step.dtype() == DType::kFloat32) {
      counts.push_back(static_cast<double>(*step.data<float>() += 1.0f));
      step.bump_version();
    } else {
      write_number(step, read_number(step) + 1);
      counts.push_back(read_number(step));
    }
  }
  return counts;
}

void update_all(const OptimizerLists& lists, OptimizerRowFn fn, const void* settings,
                size_t settings_bytes) {
  std::vector<Parameter> parameters;
  std::vector<Flat> written;
  std::vector<Tensor> grads;
  parameters.reserve(lists.params.size());
  written.reserve(lists.params.size() * 4);
  grads.reserve(lists.params.size());
  int64_t total = 0;
  for (size_t i = 0; i < lists.params.size(); ++i) {
    const Tensor& param = lists.params[i];
    grads.push_back(lists.grads[i].contiguous());
    Parameter& p = parameters.emplace_back();
    p.begin = total;
    p.row = {param.dtype(), param.numel(), nullptr, grads.back().raw(), {}};
    p.row.param = written.emplace_back(param).data();
    for (size_t k = 0; k < lists.states.size(); ++k)
      if (lists.states[k]) p.row.states[k] = written.emplace_back((*lists.states[k])[i]).data();
    total += param.numel();
  }
  const auto settings_of = [&](size_t i) {
    return static_cast<const char*>(settings) + i * settings_bytes;
  };
  const auto walk = [&](int64_t begin, int64_t end) {
    const auto after =
        std::upper_bound(parameters.begin(), parameters.end(), begin,
                         [](int64_t at, const Parameter& p) { return at < p.begin; });
    for (auto it = after - 1; it != parameters.end() && it->begin < end; ++it) {
      const int64_t from = std::max<int64_t>(begin - it->begin, 0);
      const int64_t to = std::min(end - it->begin, it->row.size);
      if (from < to)
        fn(part_of(it->row, from, to), settings_of(static_cast<size_t>(it - parameters.begin())));
    }
  };
  // A parameter that is given twice is updated twice, one after the other.
  if (total > kGrain && has_duplicates(lists.params))
    walk(0, total);
  else
    parallel_for(0, total, kGrain, walk);
  for (const Flat& flat : written) flat.write_back();
}

}  // namespace prong
