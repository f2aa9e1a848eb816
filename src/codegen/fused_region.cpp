// Runs a fused region: finds or makes the kernel for the inputs at hand, lays the inputs out in
// rows, runs it in parallel.
#include "codegen/fused_region.h"

#include <algorithm>
#include <array>
#include <deque>
#include <exception>
#include <mutex>
#include <unordered_map>

#include "base/log.h"
#include "codegen/pointwise.h"
#include "eager/modes.h"
#include "graph/region_limits.h"
#include "ops/kernels/pointwise.h"
#include "profile/profile.h"
#include "runtime/background.h"
#include "runtime/parallel.h"

namespace prong::codegen {
namespace {

constexpr size_t kMaxInputs = kMaxRegionInputs;
// Elements that are worth another thread; a fused body does more work an element than one op.
constexpr int64_t kGrain = 8 * 1024;

// What the expressions depend on, of one input.
struct InputKind {
  DType dtype;
  bool is_zero_dim, is_number;  // both take part in promotion in their own ways
  friend bool operator==(const InputKind&, const InputKind&) = default;
};

struct Signature {
  SmallVector<InputKind, kMaxInputs> inputs;
  DType default_dtype;
  friend bool operator==(const Signature&, const Signature&) = default;
};

struct Kernel {
  uint32_t singles;  // bits of the inputs that are one value along a row
  bool is_ready = false;
  PointwiseKernel code;
  std::exception_ptr error;
};

// The expressions for one signature, and its kernels by layout. Empty results: not for native code.
struct Expressions {
  Signature signature;
  std::vector<Scalar> results;
  std::vector<uint32_t> reads;  // of each result: bit i says that it depends on input i
  std::deque<Kernel> kernels;   // addresses stay
};

InputKind kind_of(const IValue& v) {
  if (v.is_tensor()) {
    const TensorImpl* t = v.tensor_impl();
    return {t->dtype, t->sizes.empty(), t->is_wrapped_number};
  }
  return {v.is_float() ? DType::kFloat64 : v.is_int() ? DType::kInt64 : DType::kBool, true, true};
}

// The index space of one call: dimensions merged where all inputs allow it, the last one is a row.
struct Rows {
  Dims sizes;                            // outer dimensions, then the row
  std::array<Dims, kMaxInputs> strides;  // of each input, in elements
  uint32_t singles = 0;                  // bit i: input i is one value along a row
  int64_t row() const { return sizes.back(); }
};

class FusedRegion final : public exec::FusedKernel {
 public:
  FusedRegion(std::shared_ptr<const Graph> region, std::string name, Compile compile)
      : region_(std::move(region)), name_(profile::intern(name)), compile_(compile) {}

  bool run(std::span<const IValue> inputs, std::span<IValue> results) override {
    if (inputs.size() > kMaxInputs || wants_tape(inputs)) return false;
    Dims shape;
    if (!common_shape(inputs, ~0u, shape)) return false;
    Expressions* e = expressions(inputs);
    if (e->results.empty() || !has_one_shape(*e, inputs, shape)) return false;
    std::vector<Tensor> tensors = tensors_of(inputs);
    const Rows rows = lay_out(tensors, shape);
    const PointwiseKernel* kernel = kernel_for(*e, rows.singles);
    if (!kernel) return false;
    std::vector<Tensor> outs;
    for (const Scalar& r : e->results) outs.push_back(Tensor::empty(shape, r.dtype()));
    {
      profile::Scope scope(name_, profile::Category::kKernel);
      execute(*kernel, rows, tensors, outs);
    }
    for (size_t i = 0; i < outs.size(); ++i) results[i] = IValue(std::move(outs[i]));
    return true;
  }

 private:
  // The tape and whoever looks at each op (tracing) want the ops.
  static bool wants_tape(std::span<const IValue> inputs) {
    if (context()[ContextWord::kInterceptor]) return true;
    if (!eager::is_grad_enabled()) return false;
    return std::any_of(inputs.begin(), inputs.end(), [](const IValue& v) {
      return v.is_tensor() && v.tensor_impl()->requires_grad;
    });
  }

  // Broadcast shape of the inputs that `mask` names; false where that fails (the ops then raise
  // their own errors).
  static bool common_shape(std::span<const IValue> inputs, uint32_t mask, Dims& shape) {
    for (size_t input = 0; input < inputs.size(); ++input) {
      const IValue& v = inputs[input];
      if (!v.is_tensor() && !v.is_number()) return false;
      if (!v.is_tensor() || !(mask >> input & 1)) continue;
      const Dims& sizes = v.tensor_impl()->sizes;
      if (shape == sizes) continue;
      const size_t rank = std::max(shape.size(), sizes.size());
      Dims joined(rank, 1);
      for (size_t i = 0; i < rank; ++i) {
        const int64_t a = i < shape.size() ? shape[shape.size() - 1 - i] : 1,
                      b = i < sizes.size() ? sizes[sizes.size() - 1 - i] : 1;
        if (a != b && a != 1 && b != 1) return false;
        joined[rank - 1 - i] = a == 1 ? b : a;
      }
      shape = joined;
    }
    return true;
  }

  // One loop serves all results only if they have one shape.
  static bool has_one_shape(const Expressions& e, std::span<const IValue> inputs,
                            const Dims& shape) {
    for (const uint32_t mask : e.reads) {
      Dims own;
      common_shape(inputs, mask, own);
      if (!(own == shape)) return false;
    }
    return true;
  }

  static std::vector<Tensor> tensors_of(std::span<const IValue> inputs) {
    std::vector<Tensor> tensors;
    tensors.reserve(inputs.size());
    for (const IValue& v : inputs) {
      if (v.is_tensor())
        tensors.push_back(v.to_tensor());
      else if (v.is_float())
        tensors.push_back(Tensor::wrapped(v.to_double()).to(DType::kFloat64));
      else
        tensors.push_back(tensor_from(v));
    }
    return tensors;
  }

  Expressions* expressions(std::span<const IValue> inputs) {
    Signature s;
    s.default_dtype = default_dtype();
    for (const IValue& v : inputs) s.inputs.push_back(kind_of(v));
    std::lock_guard lock(mutex_);
    for (const auto& known : known_)
      if (known->signature == s) return known.get();
    auto made = std::make_unique<Expressions>();
    made->signature = s;
    made->results = build(inputs);
    for (const Scalar& r : made->results) {
      uint32_t mask = 0;
      for (const ScalarNode* n : topological(std::span(&r, 1)))
        if (n->kind == ScalarKind::kInput) mask |= 1u << n->index;
      made->reads.push_back(mask);
    }
    known_.push_back(std::move(made));
    return known_.back().get();
  }

  std::vector<Scalar> build(std::span<const IValue> inputs) const;
  class Job;
  const PointwiseKernel* kernel_for(Expressions& e, uint32_t singles);  // null: not compiled yet
  PointwiseKernel compiled(const Expressions& e, uint32_t singles) const;
  static Rows lay_out(std::vector<Tensor>& tensors, const Dims& shape);
  static void execute(const PointwiseKernel& kernel, const Rows& rows,
                      std::span<const Tensor> inputs, std::span<const Tensor> outs);

  std::shared_ptr<const Graph> region_;
  const char* name_;
  const Compile compile_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Expressions>> known_;
};

// ── expressions ──

// A value of the region: what promotion and shape rules see of it, and its expression.
struct Element {
  IValue abstract;  // a number, None, or an abstract tensor
  Scalar expression;
};

// Shapes do not matter to expressions, only whether there are dimensions: stand-ins of rank 0 or 1
// keep it cheap.
IValue stand_in(const IValue& v) {
  if (!v.is_tensor()) return v;
  const TensorImpl* t = v.tensor_impl();
  TensorMeta m;
  if (!t->sizes.empty()) m.sizes.push_back(2);
  m.dtype = t->dtype;
  m.is_wrapped_number = t->is_wrapped_number;
  return IValue(std::move(m));
}

Scalar literal(const IValue& v) {
  if (v.is_bool()) return Scalar::constant(v.to_bool());
  if (v.is_int()) return Scalar::constant(v.to_int(), DType::kInt64);
  return Scalar::constant(v.to_double(), DType::kFloat64);
}

std::vector<Scalar> FusedRegion::build(std::span<const IValue> inputs) const {
  std::unordered_map<const Value*, Element> elements;
  const auto parameters = region_->inputs();
  for (size_t i = 0; i < parameters.size(); ++i)
    elements[parameters[i]] = {stand_in(inputs[i]),
                               Scalar::input(static_cast<int>(i), kind_of(inputs[i]).dtype)};
  for (const Node* n : *region_->top()) {
    if (n->is(NodeKind::kConstant)) {
      const IValue& c = n->constant();
      if (c.is_tensor()) return {};
      elements[n->output()] = {c, c.is_number() ? literal(c) : Scalar()};
      continue;
    }
    PRONG_ASSERT(n->is(NodeKind::kOp) && n->op().pointwise(),
                 "a fused region holds a node that is not pointwise");
    const OpDef& op = n->op();
    std::vector<IValue> args;
    for (const Value* in : n->inputs()) args.push_back(elements.at(in).abstract);
    const PointwiseCall call = op.pointwise()->plan(op, args);
    if (is_complex(call.common)) return {};
    if (op.pointwise()->checks_data(call)) return {};  // may raise by its data
    std::vector<Scalar> operands;
    for (const int8_t a : call.variant->inputs)
      operands.push_back(elements.at(n->input(static_cast<size_t>(a))).expression);
    elements[n->output()] = {op.shape()(op, args), emit(call, operands)};
  }
  std::vector<Scalar> results;
  for (const Value* v : region_->outputs()) {
    const Element& e = elements.at(v);
    // A result of fewer dimensions than the region has, or one that is no computed tensor, is left
    // to the ops.
    if (!e.abstract.is_meta() || v->is_parameter()) return {};
    results.push_back(e.expression);
  }
  return results;
}

// Compiles one kernel, unless the region has been dropped meanwhile.
class FusedRegion::Job final : public BackgroundJob {
 public:
  Job(Ref<FusedRegion> region, Expressions& e, Kernel& kernel)
      : region_(std::move(region)), expressions_(e), kernel_(kernel) {}

  void run() noexcept override {
    if (region_->use_count() == 1) return;
    PointwiseKernel code;
    std::exception_ptr error;
    try {
      code = region_->compiled(expressions_, kernel_.singles);
    } catch (...) {
      error = std::current_exception();  // raised by the next call
    }
    const std::lock_guard lock(region_->mutex_);
    kernel_.code = std::move(code);
    kernel_.error = std::move(error);
    kernel_.is_ready = true;
  }

 private:
  const Ref<FusedRegion> region_;
  const Expressions& expressions_;  // the region's
  Kernel& kernel_;
};

const PointwiseKernel* FusedRegion::kernel_for(Expressions& e, uint32_t singles) {
  std::lock_guard lock(mutex_);
  for (const Kernel& known : e.kernels) {
    if (known.singles != singles) continue;
    if (known.error) std::rethrow_exception(known.error);
    if (!known.is_ready) keep_background_going();
    return known.is_ready ? &known.code : nullptr;
  }
  if (compile_ == Compile::kInPlace) {
    e.kernels.push_back({singles, true, compiled(e, singles), {}});
    return &e.kernels.back().code;
  }
  e.kernels.push_back({singles, false, {}, {}});
  run_in_background(make_ref<Job>(Ref<FusedRegion>(this), e, e.kernels.back()));
  return nullptr;
}

PointwiseKernel FusedRegion::compiled(const Expressions& e, uint32_t singles) const {
  std::vector<DType> dtypes;
  std::vector<Access> access;
  for (size_t i = 0; i < e.signature.inputs.size(); ++i) {
    dtypes.push_back(e.signature.inputs[i].dtype);
    access.push_back(singles >> i & 1 ? Access::kSingle : Access::kDense);
  }
  return compile_pointwise({e.results, dtypes, access}, name_);
}

// ── layout ──

Rows FusedRegion::lay_out(std::vector<Tensor>& tensors, const Dims& shape) {
  const auto aligned = [&](const Tensor& t) {
    Dims strides(shape.size(), 0);
    const size_t shift = shape.size() - t.sizes().size();
    for (size_t d = 0; d < t.sizes().size(); ++d)
      strides[d + shift] = t.sizes()[d] == 1 ? 0 : t.strides()[d];
    return strides;
  };
  std::array<Dims, kMaxInputs> given;
  size_t last = shape.size();
  while (last > 0 && shape[last - 1] == 1) --last;
  for (size_t i = 0; i < tensors.size(); ++i) {
    given[i] = aligned(tensors[i]);
    // A row must be dense or one value; anything else is copied first.
    if (last > 0 && given[i][last - 1] != 0 && given[i][last - 1] != 1) {
      tensors[i] = tensors[i].clone();
      given[i] = aligned(tensors[i]);
    }
  }
  Rows rows;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    bool merges = !rows.sizes.empty();
    for (size_t i = 0; merges && i < tensors.size(); ++i)
      merges = rows.strides[i].back() == given[i][d] * shape[d];
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (merges)
        rows.strides[i].back() = given[i][d];
      else
        rows.strides[i].push_back(given[i][d]);
    }
    if (merges)
      rows.sizes.back() *= shape[d];
    else
      rows.sizes.push_back(shape[d]);
  }
  if (rows.sizes.empty()) {
    rows.sizes.push_back(1);
    for (size_t i = 0; i < tensors.size(); ++i) rows.strides[i].push_back(0);
  }
  for (size_t i = 0; i < tensors.size(); ++i)
    if (rows.strides[i].back() == 0) rows.singles |= 1u << i;
  return rows;
}

void FusedRegion::execute(const PointwiseKernel& kernel, const Rows& rows,
                          std::span<const Tensor> inputs, std::span<const Tensor> outs) {
  const size_t outer_rank = rows.sizes.size() - 1;
  const int64_t row = rows.row(), outer = product(DimsView(rows.sizes).first(outer_rank));
  if (row == 0 || outer == 0) return;
  // Piece [begin, end) of row r.
  const auto run_row = [&](int64_t r, int64_t begin, int64_t end) {
    std::array<const void*, kMaxInputs> in;
    SmallVector<void*, 8> out;
    for (size_t i = 0; i < inputs.size(); ++i) {
      int64_t offset = 0, left = r;
      for (size_t d = outer_rank; d-- > 0;) {
        offset += left % rows.sizes[d] * rows.strides[i][d];
        left /= rows.sizes[d];
      }
      offset += begin * rows.strides[i].back();
      in[i] = static_cast<const char*>(inputs[i].raw()) +
              offset * static_cast<int64_t>(inputs[i].item_bytes());
    }
    for (const Tensor& t : outs)
      out.push_back(static_cast<char*>(t.raw()) +
                    (r * row + begin) * static_cast<int64_t>(t.item_bytes()));
    kernel(end - begin, out.data(), in.data());
  };
  if (outer == 1) {
    parallel_for(0, row, kGrain, [&](int64_t begin, int64_t end) { run_row(0, begin, end); });
  } else {
    parallel_for(0, outer, std::max<int64_t>(1, kGrain / row), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) run_row(r, 0, row);
    });
  }
}

}  // namespace

Ref<exec::FusedKernel> make_fused_region(std::shared_ptr<const Graph> region, std::string name,
                                         Compile compile) {
  return make_ref<FusedRegion>(std::move(region), std::move(name), compile);
}

}  // namespace prong::codegen
