// Runs pointwise ops: promotion, shapes, the choice of loop, results new or in place. Kernel of
// every op that has a body.
#include "ops/kernels/pointwise.h"

#include <algorithm>

#include "ops/kernels/pointwise_walk.h"
#include "runtime/parallel.h"

namespace prong {

DType dtype_of(ComputeType type) {
  static constexpr DType dtypes[] = {DType::kFloat32, DType::kFloat64,   DType::kInt64,
                                     DType::kBool,    DType::kComplex64, DType::kComplex128};
  return dtypes[static_cast<size_t>(type)];
}

int simd_level() {
#if defined(__x86_64__)
  static const int level = __builtin_cpu_supports("x86-64-v4") ? 1 : 0;
  return level;
#else
  return 0;
#endif
}

namespace {

[[noreturn]] void throw_not_implemented(const OpDef& op, const PointwiseOptions& options,
                                        DType dtype) {
  const std::string name = options.error_name ? options.error_name : op.base_name() + "_cpu";
  throw_error(ErrorKind::kNotImplemented,
              cat('"', name, "\" not implemented for '", scalar_type_name(dtype), "'"));
}

// What promotion and shapes need to know of an argument, without copying it.
struct Peek {
  DType dtype;
  const Dims* sizes = nullptr;  // null: a number
  bool is_wrapped = false;
  int64_t rank() const { return sizes ? static_cast<int64_t>(sizes->size()) : 0; }
};

Peek peek(const IValue& v) {
  if (v.is_tensor()) {
    const TensorImpl* t = v.tensor_impl();
    return {t->dtype, &t->sizes, t->is_wrapped_number};
  }
  if (v.is_meta()) return {v.meta().dtype, &v.meta().sizes, v.meta().is_wrapped_number};
  if (v.is_bool()) return {DType::kBool, nullptr, true};
  if (v.is_int()) return {DType::kInt64, nullptr, true};
  if (v.is_complex()) return {DType::kComplex128, nullptr, true};
  PRONG_ASSERT(v.is_float(), "a pointwise operand that is neither tensor nor number");
  return {DType::kFloat64, nullptr, true};
}

bool takes_tensor(const Argument& argument) {
  const Type& t = *argument.type;
  return t.is(TypeKind::kTensor) ||
         (t.is(TypeKind::kOptional) && t.element()->is(TypeKind::kTensor));
}

DType promoted(const PointwiseDef& def, std::span<const IValue> args) {
  ResultType type;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!(def.options.promotes >> i & 1) || args[i].is_none()) continue;
    const Peek p = peek(args[i]);
    type.add(p.dtype, p.rank(), p.is_wrapped);
  }
  return type.get();
}

ComputeType compute_type_of(DType common, const PointwiseVariant& variant) {
  if (is_complex(common))
    return common == DType::kComplex64 ? ComputeType::kComplexFloat : ComputeType::kComplexDouble;
  if (common == DType::kFloat64) return ComputeType::kDouble;
  if (is_floating(common)) return ComputeType::kFloat;
  if (common == DType::kBool && variant.loops[0][static_cast<size_t>(ComputeType::kBool)])
    return ComputeType::kBool;
  return ComputeType::kInt;
}

Dims broadcast_shape(const PointwiseVariant& variant, std::span<const IValue> args) {
  Dims shape;
  bool is_first = true;
  for (int8_t a : variant.inputs) {
    const Peek p = peek(args[static_cast<size_t>(a)]);
    if (!p.sizes) continue;
    if (is_first)
      shape = *p.sizes;
    else if (!(shape == *p.sizes))
      shape = broadcast_shapes(shape, *p.sizes);
    is_first = false;
  }
  return shape;
}

// A Python number in memory, for a loop to read.
union NumberInMemory {
  double d;
  int64_t i;
  bool b;
  double z[2];
};

WalkOperand read_operand(const PointwiseCall& call, size_t k, const IValue& v,
                         NumberInMemory& number) {
  WalkOperand o;
  if (v.is_tensor()) {
    const TensorImpl* t = v.tensor_impl();
    o.data = static_cast<char*>(t->storage->data()) +
             t->offset * static_cast<int64_t>(size_of(t->dtype));
    o.stored = t->dtype;
    o.sizes = &t->sizes;
    o.strides = &t->strides;
  } else {
    o.stored = peek(v).dtype;
    if (v.is_complex()) {
      number.z[0] = v.to_complex().real();
      number.z[1] = v.to_complex().imag();
    } else if (v.is_float())
      number.d = v.to_double();
    else if (v.is_int())
      number.i = v.to_int();
    else
      number.b = v.to_bool();
    o.data = reinterpret_cast<char*>(&number);
  }
  const bool is_condition = call.is_conditional && k == 0;
  o.loop = is_condition ? DType::kBool : dtype_of(call.compute);
  o.middle = is_condition || (call.direct >> k & 1) ? o.loop : call.common;
  return o;
}

bool has_zero(const IValue& v) {
  if (v.is_number()) return v.to_double() == 0;
  if (v.is_complex()) return false;
  const Tensor t = v.to_tensor().contiguous();
  return visit(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* data = static_cast<const T*>(t.raw());
    return std::any_of(data, data + t.numel(), [](T x) { return x == T(0); });
  });
}

// Elements that are worth another thread: a loop of one simple operation runs at the speed of
// memory.
constexpr int64_t kGrain = 32 * 1024;

void execute(const OpDef& op, const PointwiseCall& call, std::span<const IValue> args,
             const Tensor& out) {
  const PointwiseVariant& variant = *call.variant;
  const PointwiseDef& def = *op.pointwise();
  if (def.checks_data(call))
    PRONG_CHECK(!has_zero(args[static_cast<size_t>(def.options.divisor)]), kRuntime,
                "ZeroDivisionError");
  const auto c = static_cast<size_t>(call.compute);
  const BlockFn loop = variant.loops[simd_level()][c];
  WalkOperand in[kMaxPointwiseInputs];
  NumberInMemory numbers[kMaxPointwiseInputs];
  const size_t count = variant.inputs.size();
  // Same shape, same type, dense: nothing to walk.
  const DType loop_out = variant.gives_bool[c] ? DType::kBool
                         : variant.gives_real  ? real_dtype(dtype_of(call.compute))
                                               : dtype_of(call.compute);
  bool is_plain = out.is_contiguous() && out.dtype() == loop_out && call.result == loop_out;
  const void* pointers[kMaxPointwiseInputs];
  for (size_t k = 0; k < count; ++k) {
    const IValue& v = args[static_cast<size_t>(variant.inputs[k])];
    in[k] = read_operand(call, k, v, numbers[k]);
    pointers[k] = in[k].data;
    is_plain = is_plain && in[k].sizes && in[k].stored == in[k].loop &&
               in[k].middle == in[k].loop && v.tensor_impl()->is_contiguous &&
               *in[k].sizes == out.sizes();
  }
  if (is_plain && out.numel() <= kGrain) return loop(out.numel(), out.raw(), pointers);
  WalkOperand result;
  result.data = static_cast<char*>(out.raw());
  result.stored = out.dtype();
  result.middle = call.result;
  result.loop = loop_out;
  result.sizes = &out.sizes();
  result.strides = &out.impl()->strides;
  walk(loop, result, std::span<const WalkOperand>(in, count), kGrain);
}

}  // namespace

PointwiseDef& PointwiseDef::of(OpDef& op) {
  if (!op.pointwise_) {
    op.pointwise_ = new PointwiseDef;  // lives as long as the registry, which is never destroyed
    op.family(Family::kPointwise)
        .boxed_kernel(&run_pointwise)
        .boxed_shape(&pointwise_shape)
        .cost(&pointwise_cost);
  }
  return *op.pointwise_;
}

OpDef& OpDef::inputs(std::initializer_list<int> arguments) {
  PointwiseVariant& v = PointwiseDef::of(*this).variants.back();
  PRONG_ASSERT(v.inputs.size() == arguments.size(), name(), ": its body takes ", v.inputs.size(),
               " inputs");
  v.inputs.clear();
  for (int a : arguments) v.inputs.push_back(static_cast<int8_t>(a));
  return *this;
}

void PointwiseDef::set_options(const OpDef& op, const PointwiseOptions& given) {
  options = given;
  if (options.promotes) return;
  const auto& arguments = op.schema().arguments;
  for (size_t i = options.is_conditional ? 1 : 0; i < arguments.size(); ++i)
    if (takes_tensor(arguments[i])) options.promotes |= 1u << i;
}

PointwiseCall PointwiseDef::plan(const OpDef& op, std::span<const IValue> args) const {
  PointwiseCall call;
  call.is_conditional = options.is_conditional;
  const DType given = promoted(*this, args);
  if (options.check) options.check(op, args, given);
  const int chosen = options.choose ? options.choose(args, given) : 0;
  if (options.refuses_bool && given == DType::kBool) throw_not_implemented(op, options, given);
  call.common =
      (options.int_to_float >> chosen & 1) && !is_inexact(given) ? default_dtype() : given;
  if (options.bool_to_int && given == DType::kBool) call.common = DType::kInt64;
  call.variant = &variants[static_cast<size_t>(chosen)];
  call.compute = compute_type_of(call.common, *call.variant);
  const auto c = static_cast<size_t>(call.compute);
  if (!call.variant->loops[0][c]) throw_not_implemented(op, options, call.common);
  call.result = call.variant->gives_bool[c] ? DType::kBool
                : call.variant->gives_real  ? real_dtype(call.common)
                                            : call.common;
  const bool is_small_float = call.common == DType::kFloat16 || call.common == DType::kBFloat16;
  const bool is_small_int = is_integral(call.common) && call.common != DType::kInt64;
  for (size_t k = 0; k < call.variant->inputs.size(); ++k) {
    const auto a = static_cast<size_t>(call.variant->inputs[k]);
    // Arguments that don't take part in promotion (alpha, slopes) are used at full precision.
    const bool is_parameter = !(options.promotes >> a & 1);
    const bool is_kept = is_small_float && options.keeps_numbers && peek(args[a]).rank() == 0;
    if (!(is_small_float || is_small_int) || is_parameter || is_kept) call.direct |= 1u << k;
  }
  return call;
}

Scalar emit(const PointwiseCall& call, std::span<const Scalar> operands) {
  std::vector<Scalar> in;
  for (size_t k = 0; k < operands.size(); ++k) {
    const Scalar& x = operands[k];
    if (call.is_conditional && k == 0)
      in.push_back(x.to(DType::kBool));
    else if (call.direct >> k & 1)
      in.push_back(x.to(dtype_of(call.compute)));
    else
      in.push_back(x.to(call.common).to(dtype_of(call.compute)));
  }
  return call.variant->body(in).to(call.result);
}

IValue run_pointwise(const OpDef& op, std::span<const IValue> args) {
  const PointwiseCall call = op.pointwise()->plan(op, args);
  Tensor out = Tensor::empty(broadcast_shape(*call.variant, args), call.result);
  execute(op, call, args, out);
  return IValue(std::move(out));
}

IValue pointwise_shape(const OpDef& op, std::span<const IValue> args) {
  const PointwiseCall call = op.pointwise()->plan(op, args);
  return IValue(TensorMeta{broadcast_shape(*call.variant, args), call.result});
}

Cost pointwise_cost(const OpDef& op, std::span<const IValue> args) {
  const PointwiseCall call = op.pointwise()->plan(op, args);
  const auto n = static_cast<double>(product(broadcast_shape(*call.variant, args)));
  std::vector<Scalar> inputs;
  for (size_t k = 0; k < call.variant->inputs.size(); ++k) {
    const bool is_condition = call.is_conditional && k == 0;
    inputs.push_back(
        Scalar::input(static_cast<int>(k), is_condition ? DType::kBool : dtype_of(call.compute)));
  }
  const Scalar body = call.variant->body(inputs);
  Cost cost;
  cost.flops = n * static_cast<double>(topological(std::span(&body, 1)).size() - inputs.size());
  cost.bytes = n * static_cast<double>(size_of(call.result));
  for (int8_t a : call.variant->inputs) {
    const Peek p = peek(args[static_cast<size_t>(a)]);
    if (p.sizes)
      cost.bytes += static_cast<double>(product(*p.sizes)) * static_cast<double>(size_of(p.dtype));
  }
  return cost;
}

// ── in place and out= ──

Overlap overlap(const Tensor& a, const Tensor& b) {
  if (a.numel() == 0 || b.numel() == 0 || a.storage().get() != b.storage().get())
    return Overlap::kNone;
  const auto extent = [](const Tensor& t) {
    int64_t reach = 1;
    for (size_t i = 0; i < t.sizes().size(); ++i) reach += (t.sizes()[i] - 1) * t.strides()[i];
    const auto bytes = static_cast<int64_t>(t.item_bytes());
    return std::pair(t.offset() * bytes, (t.offset() + reach) * bytes);
  };
  const auto [a_begin, a_end] = extent(a);
  const auto [b_begin, b_end] = extent(b);
  if (a_begin == b_begin && a.dtype() == b.dtype() && a.sizes() == b.sizes()) {
    bool same = true;
    for (size_t i = 0; i < a.sizes().size(); ++i)
      same = same && (a.sizes()[i] == 1 || a.strides()[i] == b.strides()[i]);
    if (same) return Overlap::kSame;
  }
  return a_begin < b_end && b_begin < a_end ? Overlap::kPartial : Overlap::kNone;
}

namespace {

// Every element of the view's range is an element of the view, once.
bool is_dense(const Tensor& t) {
  int64_t reach = 1;
  for (size_t i = 0; i < t.sizes().size(); ++i) {
    if (t.sizes()[i] > 1 && t.strides()[i] == 0) return false;
    reach += (t.sizes()[i] - 1) * t.strides()[i];
  }
  return reach == t.numel();
}

}  // namespace

void check_no_internal_overlap(const Tensor& written) {
  for (size_t i = 0; i < written.sizes().size(); ++i)
    PRONG_CHECK(written.sizes()[i] <= 1 || written.strides()[i] != 0, kRuntime,
                "unsupported operation: more than one element of the written-to tensor refers to a "
                "single memory "
                "location. Please clone() the tensor before performing the operation.");
}

void check_inplace_overlap(const Tensor& written, const Tensor& read) {
  if (written.is_same(read) || overlap(written, read) != Overlap::kPartial) return;
  // Views with gaps may interleave without sharing an element, so only dense ones are refused.
  PRONG_CHECK(!is_dense(written) || !is_dense(read), kRuntime,
              "unsupported operation: some elements of the input tensor and the written-to tensor "
              "refer to a single "
              "memory location. Please clone() the tensor before performing the operation.");
}

namespace {

// Writes the call's result into `out`, whose shape is right.
void write_into(const OpDef& op, const PointwiseCall& call, std::span<const IValue> args,
                const Tensor& out) {
  check_no_internal_overlap(out);
  std::vector<IValue> copied;  // arguments, where one must be read before anything is written
  for (int8_t a : call.variant->inputs) {
    const IValue& v = args[static_cast<size_t>(a)];
    if (!v.is_tensor() || v.tensor_impl() == out.impl()) continue;
    const Tensor t = v.to_tensor();
    check_inplace_overlap(out, t);
    if (overlap(out, t) == Overlap::kPartial) {
      if (copied.empty()) copied.assign(args.begin(), args.end());
      copied[static_cast<size_t>(a)] = IValue(t.clone());
    }
  }
  execute(op, call, copied.empty() ? args : std::span<const IValue>(copied), out);
  out.bump_version();
}

void check_result_type(DType result, DType destination) {
  PRONG_CHECK(can_cast(result, destination), kRuntime, "result type ", scalar_type_name(result),
              " can't be cast to the desired output type ", scalar_type_name(destination));
}

}  // namespace

namespace {

PointwiseCall plan_inplace(const OpDef& base, std::span<const IValue> args,
                           const Tensor& destination) {
  const PointwiseCall call = base.pointwise()->plan(base, args);
  check_result_type(call.result, destination.dtype());
  const Dims shape = broadcast_shape(*call.variant, args);
  PRONG_CHECK(shape == destination.sizes(), kRuntime, "output with shape ", destination.sizes(),
              " doesn't match the broadcast shape ", shape);
  return call;
}

}  // namespace

IValue run_inplace(const OpDef& base, std::span<const IValue> args) {
  const Tensor destination = args[0].to_tensor();
  write_into(base, plan_inplace(base, args, destination), args, destination);
  return args[0];
}

void check_inplace_call(const OpDef& base, std::span<const IValue> args) {
  const Tensor destination = args[0].to_tensor();
  const PointwiseCall call = plan_inplace(base, args, destination);
  check_no_internal_overlap(destination);
  for (int8_t a : call.variant->inputs) {
    const IValue& v = args[static_cast<size_t>(a)];
    if (v.is_tensor() && v.tensor_impl() != destination.impl())
      check_inplace_overlap(destination, v.to_tensor());
  }
}

IValue run_out(const OpDef& op, std::span<const IValue> args, const Tensor& out) {
  const PointwiseCall call = op.pointwise()->plan(op, args);
  check_result_type(call.result, out.dtype());
  const Dims shape = broadcast_shape(*call.variant, args);
  if (!(shape == out.sizes())) {
    // As PyTorch: an out= tensor of another shape takes the result's, growing its storage where it
    // must.
    const auto bytes = static_cast<size_t>(product(shape)) * out.item_bytes();
    if (out.storage()->bytes() < bytes) out.storage()->resize(bytes);
    TensorImpl* impl = out.impl();
    impl->sizes = shape;
    impl->strides = contiguous_strides(shape);
    impl->numel = product(shape);
    impl->is_contiguous = true;
  }
  write_into(op, call, args, out);
  return IValue(out);
}

// ── typed entries ──

namespace {

// The loop that serves dense tensors of this dtype as they are; null where the general way must be
// gone.
BlockFn plain_loop(const PointwiseDef& def, DType dtype, DType& result) {
  ComputeType compute;
  switch (dtype) {
  case DType::kFloat32:
    compute = ComputeType::kFloat;
    break;
  case DType::kFloat64:
    compute = ComputeType::kDouble;
    break;
  case DType::kInt64:
    compute = ComputeType::kInt;
    break;
  default:
    return nullptr;
  }
  const PointwiseOptions& o = def.options;
  if (o.is_conditional ||
      (compute == ComputeType::kInt && ((o.int_to_float & 1) || o.divisor >= 0)))
    return nullptr;
  const PointwiseVariant& variant = def.variants[0];
  const auto c = static_cast<size_t>(compute);
  result = variant.gives_bool[c] ? DType::kBool : dtype;
  return variant.loops[simd_level()][c];
}

}  // namespace

Tensor unary(const OpDef& op, const Tensor& x) {
  const PointwiseDef& def = *op.pointwise();
  if (x.is_contiguous() && x.numel() <= kGrain && def.variants[0].inputs.size() == 1) {
    DType result;
    if (const BlockFn loop = plain_loop(def, x.dtype(), result)) {
      Tensor out = Tensor::empty(x.sizes(), result);
      const void* in[] = {x.raw()};
      loop(x.numel(), out.raw(), in);
      return out;
    }
  }
  const IValue args[] = {IValue(x)};
  return call_op(op, args).to_tensor();
}

Tensor binary(const OpDef& op, const Tensor& x, const Tensor& y) {
  const PointwiseDef& def = *op.pointwise();
  if (x.is_contiguous() && y.is_contiguous() && x.dtype() == y.dtype() && x.numel() <= kGrain &&
      x.sizes() == y.sizes() && def.variants[0].inputs.size() == 2) {
    DType result;
    if (const BlockFn loop = plain_loop(def, x.dtype(), result)) {
      Tensor out = Tensor::empty(x.sizes(), result);
      const void* in[] = {x.raw(), y.raw()};
      loop(x.numel(), out.raw(), in);
      return out;
    }
  }
  const IValue args[] = {IValue(x), IValue(y)};
  return call_op(op, args).to_tensor();
}

}  // namespace prong
