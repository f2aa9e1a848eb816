// Writes LLVM IR for Scalar expressions: one vector loop and one scalar loop over the same
// expressions.
#include "codegen/pointwise.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "ops/kernels/pointwise.h"

namespace prong::codegen {
namespace {

// bfloat16 is kept as its bits and converted by integer arithmetic: machines with conversion
// instructions flush denormals.
std::string_view element_type(DType d) {
  switch (d) {
  case DType::kBool:
    return "i1";
  case DType::kUInt8:
  case DType::kInt8:
    return "i8";
  case DType::kInt16:
  case DType::kBFloat16:
    return "i16";
  case DType::kInt32:
    return "i32";
  case DType::kInt64:
    return "i64";
  case DType::kFloat16:
    return "half";
  case DType::kFloat32:
    return "float";
  case DType::kFloat64:
    return "double";
  case DType::kComplex64:
  case DType::kComplex128:
    break;  // left to the op: fused_region.cpp
  }
  return "?";
}
std::string_view memory_type(DType d) { return d == DType::kBool ? "i8" : element_type(d); }

bool is_unsigned(DType d) { return d == DType::kUInt8 || d == DType::kBool; }

// Emits the expressions once, for one lane count; 1 is scalar code.
class Emitter {
 public:
  Emitter(std::string& out, int lanes, std::string prefix)
      : out_(out), lanes_(lanes), prefix_(std::move(prefix)) {}

  std::string type(std::string_view element) const {
    return lanes_ == 1 ? std::string(element) : cat("<", lanes_, " x ", element, ">");
  }
  std::string type(DType d) const { return type(element_type(d)); }
  std::string splat(std::string_view element, std::string_view value) const {
    return lanes_ == 1 ? std::string(value) : cat("splat (", element, " ", value, ")");
  }
  std::string fresh() { return cat("%", prefix_, next_++); }
  template <class... A>
  std::string let(const A&... text) {
    const std::string name = fresh();
    out_ += cat("  ", name, " = ", text..., "\n");
    return name;
  }

  // The value of memory at `address`, for all lanes.
  std::string load(DType d, std::string_view address) {
    const std::string_view memory = memory_type(d);
    const std::string raw = let("load ", type(memory), ", ptr ", address, ", align ", size_of(d));
    return d == DType::kBool ? let("icmp ne ", type(memory), " ", raw, ", ", splat("i8", "0"))
                             : raw;
  }
  void store(DType d, const std::string& value, std::string_view address) {
    const std::string raw =
        d == DType::kBool ? let("zext ", type("i1"), " ", value, " to ", type("i8")) : value;
    out_ += cat("  store ", type(memory_type(d)), " ", raw, ", ptr ", address, ", align ",
                size_of(d), "\n");
  }

  // A scalar in all lanes.
  std::string broadcast(DType d, const std::string& one) {
    if (lanes_ == 1) return one;
    const std::string first =
        let("insertelement ", type(d), " poison, ", element_type(d), " ", one, ", i64 0");
    return let("shufflevector ", type(d), " ", first, ", ", type(d), " poison, <", lanes_,
               " x i32> zeroinitializer");
  }

  std::string emit(const ScalarNode& n, std::span<const std::string> inputs);
  bool has(const ScalarNode& n) const { return values_.count(&n) != 0; }
  std::string value_of(const ScalarNode& n) const { return values_.at(&n); }
  std::string value_of(const Scalar& s) const { return values_.at(s.node()); }
  void bind(const ScalarNode& n, std::string value) { values_[&n] = std::move(value); }

 private:
  std::string operand(const ScalarNode& n, int i) const { return values_.at(n.operands[i].get()); }
  std::string constant(const ScalarNode& n) const;
  std::string binary(const ScalarNode& n, std::string_view float_op, std::string_view int_op) {
    const DType d = n.operands[0]->dtype;
    return let(is_floating(d) ? float_op : int_op, " ", type(d), " ", operand(n, 0), ", ",
               operand(n, 1));
  }
  std::string compare(const ScalarNode& n, std::string_view float_op, std::string_view signed_op,
                      std::string_view unsigned_op) {
    const DType d = n.operands[0]->dtype;
    return let(is_floating(d) ? "fcmp " : "icmp ",
               is_floating(d)   ? float_op
               : is_unsigned(d) ? unsigned_op
                                : signed_op,
               " ", type(d), " ", operand(n, 0), ", ", operand(n, 1));
  }
  std::string intrinsic(const ScalarNode& n, std::string_view name, int arity,
                        std::string_view extra = "");
  std::string external(const ScalarNode& n);
  std::string convert(DType from, DType to, std::string x);
  std::string float_to_int(DType from, DType to, const std::string& x);
  std::string to_bfloat(const std::string& x);

  std::string& out_;
  int lanes_;
  std::string prefix_;
  int next_ = 0;
  std::unordered_map<const ScalarNode*, std::string> values_;
};

std::string hex(uint64_t bits, int digits) {
  char text[20];
  std::snprintf(text, sizeof text, "%0*llX", digits, static_cast<unsigned long long>(bits));
  return text;
}

std::string Emitter::constant(const ScalarNode& n) const {
  const DType d = n.dtype;
  switch (d) {
  case DType::kBool:
    return splat("i1", n.constant.i ? "true" : "false");
  case DType::kFloat16:
    return splat("half", "0xH" + hex(Half(static_cast<float>(n.constant.d)).bits, 4));
  case DType::kBFloat16:
    return splat("i16", std::to_string(
                            static_cast<int16_t>(BFloat16(static_cast<float>(n.constant.d)).bits)));
  case DType::kFloat32:  // LLVM writes floats by the bits of the equal double
    return splat("float", "0x" + hex(std::bit_cast<uint64_t>(
                                         static_cast<double>(static_cast<float>(n.constant.d))),
                                     16));
  case DType::kFloat64:
    return splat("double", "0x" + hex(std::bit_cast<uint64_t>(n.constant.d), 16));
  default:
    return splat(element_type(d), std::to_string(n.constant.i));
  }
}

std::string Emitter::intrinsic(const ScalarNode& n, std::string_view name, int arity,
                               std::string_view extra) {
  const DType d = n.dtype;
  std::string suffix = d == DType::kFloat32   ? "f32"
                       : d == DType::kFloat64 ? "f64"
                                              : std::string(element_type(d));
  if (lanes_ > 1) suffix = cat("v", lanes_, suffix);
  std::string args;
  for (int i = 0; i < arity; ++i) args += cat(i ? ", " : "", type(d), " ", operand(n, i));
  return let("call ", type(d), " @llvm.", name, ".", suffix, "(", args, extra, ")");
}

// A C function of one lane at a time.
std::string Emitter::external(const ScalarNode& n) {
  const ExternalFunction& f = *n.external;
  const auto call_one = [&](auto&& lane_of) {
    std::string args;
    for (int i = 0; i < f.arity; ++i)
      args += cat(i ? ", double " : "double ", lane_of(operand(n, i)));
    return let("call double @", f.symbol, "(", args, ")");
  };
  if (lanes_ == 1) return call_one([](const std::string& x) { return x; });
  std::string result = "poison";
  for (int lane = 0; lane < lanes_; ++lane) {
    const std::string one = call_one([&](const std::string& x) {
      return let("extractelement ", type("double"), " ", x, ", i64 ", lane);
    });
    result = let("insertelement ", type("double"), " ", result, ", double ", one, ", i64 ", lane);
  }
  return result;
}

std::string Emitter::to_bfloat(const std::string& x) {
  const std::string i32 = type("i32"), bits = let("bitcast ", type("float"), " ", x, " to ", i32);
  const std::string high = let("lshr ", i32, " ", bits, ", ", splat("i32", "16"));
  const std::string odd = let("and ", i32, " ", high, ", ", splat("i32", "1"));
  const std::string bias = let("add ", i32, " ", odd, ", ", splat("i32", "32767"));
  const std::string rounded = let("add ", i32, " ", bits, ", ", bias);
  const std::string shifted = let("lshr ", i32, " ", rounded, ", ", splat("i32", "16"));
  const std::string is_nan = let("fcmp uno ", type("float"), " ", x, ", ", x);
  const std::string chosen = let("select ", type("i1"), " ", is_nan, ", ", i32, " ",
                                 splat("i32", "32704"), ", ", i32, " ", shifted);
  return let("trunc ", i32, " ", chosen, " to ", type("i16"));
}

// Towards zero; what does not fit, and NaN, becomes the smallest integer of the wide type.
std::string Emitter::float_to_int(DType from, DType to, const std::string& x) {
  const bool narrow = to == DType::kInt32;
  const std::string_view wide = narrow ? "i32" : "i64", f = element_type(from);
  const double limit = narrow ? 2147483648.0 : 9223372036854775808.0;
  const auto literal = [&](double v) {
    return splat(f, "0x" + hex(std::bit_cast<uint64_t>(v), 16));
  };
  const std::string above = let("fcmp oge ", type(f), " ", x, ", ", literal(-limit));
  const std::string below = let("fcmp olt ", type(f), " ", x, ", ", literal(limit));
  const std::string fits = let("and ", type("i1"), " ", above, ", ", below);
  const std::string safe =
      let("select ", type("i1"), " ", fits, ", ", type(f), " ", x, ", ", type(f), " ", literal(0));
  const std::string whole = let("fptosi ", type(f), " ", safe, " to ", type(wide));
  const std::string smallest = splat(wide, narrow ? "-2147483648" : "-9223372036854775808");
  const std::string picked = let("select ", type("i1"), " ", fits, ", ", type(wide), " ", whole,
                                 ", ", type(wide), " ", smallest);
  if (element_type(to) == wide) return picked;
  return let("trunc ", type(wide), " ", picked, " to ", type(to));
}

std::string Emitter::convert(DType from, DType to, std::string x) {
  if (from == to) return x;
  // 16-bit floats go by way of float32.
  if (from == DType::kBFloat16) {
    const std::string wide = let("zext ", type("i16"), " ", x, " to ", type("i32"));
    const std::string bits = let("shl ", type("i32"), " ", wide, ", ", splat("i32", "16"));
    return convert(DType::kFloat32, to,
                   let("bitcast ", type("i32"), " ", bits, " to ", type("float")));
  }
  if (from == DType::kFloat16)
    return convert(DType::kFloat32, to, let("fpext ", type("half"), " ", x, " to ", type("float")));
  if (to == DType::kBool) {
    return is_floating(from)
               ? let("fcmp une ", type(from), " ", x, ", ",
                     splat(element_type(from), "0x0000000000000000"))
               : let("icmp ne ", type(from), " ", x, ", ", splat(element_type(from), "0"));
  }
  if (to == DType::kFloat16 || to == DType::kBFloat16) {
    const std::string f = convert(from, DType::kFloat32, x);
    return to == DType::kBFloat16 ? to_bfloat(f)
                                  : let("fptrunc ", type("float"), " ", f, " to ", type("half"));
  }
  if (is_floating(from) && is_floating(to))
    return let(from == DType::kFloat32 ? "fpext " : "fptrunc ", type(from), " ", x, " to ",
               type(to));
  if (is_floating(from)) return float_to_int(from, to, x);
  if (is_floating(to))
    return let(is_unsigned(from) ? "uitofp " : "sitofp ", type(from), " ", x, " to ", type(to));
  if (from == DType::kBool) return let("zext ", type(from), " ", x, " to ", type(to));
  if (element_type(from) == element_type(to)) return x;
  if (size_of(to) < size_of(from)) return let("trunc ", type(from), " ", x, " to ", type(to));
  return let(is_unsigned(from) ? "zext " : "sext ", type(from), " ", x, " to ", type(to));
}

std::string Emitter::emit(const ScalarNode& n, std::span<const std::string> inputs) {
  const bool floating = is_floating(n.dtype);
  switch (n.kind) {
  case ScalarKind::kInput:
    return inputs[static_cast<size_t>(n.index)];
  case ScalarKind::kConst:
    return constant(n);
  case ScalarKind::kAdd:
    return binary(n, "fadd", "add");
  case ScalarKind::kSub:
    return binary(n, "fsub", "sub");
  case ScalarKind::kMul:
    return binary(n, "fmul", "mul");
  case ScalarKind::kDiv:
    return binary(n, "fdiv", is_unsigned(n.dtype) ? "udiv" : "sdiv");
  case ScalarKind::kRem:
    return binary(n, "frem", is_unsigned(n.dtype) ? "urem" : "srem");
  case ScalarKind::kNeg:
    if (floating) return let("fneg ", type(n.dtype), " ", operand(n, 0));
    return let("sub ", type(n.dtype), " ", splat(element_type(n.dtype), "0"), ", ", operand(n, 0));
  case ScalarKind::kFma:
    return intrinsic(n, "fma", 3);
  case ScalarKind::kSqrt:
    return intrinsic(n, "sqrt", 1);
  case ScalarKind::kAbs:
    return floating ? intrinsic(n, "fabs", 1) : intrinsic(n, "abs", 1, ", i1 false");
  case ScalarKind::kFloor:
    return intrinsic(n, "floor", 1);
  case ScalarKind::kCeil:
    return intrinsic(n, "ceil", 1);
  case ScalarKind::kTrunc:
    return intrinsic(n, "trunc", 1);
  case ScalarKind::kRoundEven:
    return intrinsic(n, "roundeven", 1);
  case ScalarKind::kEq:
    return compare(n, "oeq", "eq", "eq");
  case ScalarKind::kNe:
    return compare(n, "une", "ne", "ne");
  case ScalarKind::kLt:
    return compare(n, "olt", "slt", "ult");
  case ScalarKind::kLe:
    return compare(n, "ole", "sle", "ule");
  case ScalarKind::kGt:
    return compare(n, "ogt", "sgt", "ugt");
  case ScalarKind::kGe:
    return compare(n, "oge", "sge", "uge");
  case ScalarKind::kAnd:
    return binary(n, "and", "and");
  case ScalarKind::kOr:
    return binary(n, "or", "or");
  case ScalarKind::kXor:
    return binary(n, "xor", "xor");
  case ScalarKind::kNot:
    return let("xor ", type(n.dtype), " ", operand(n, 0), ", ",
               splat(element_type(n.dtype), n.dtype == DType::kBool ? "true" : "-1"));
  case ScalarKind::kShl:
    return binary(n, "shl", "shl");
  case ScalarKind::kShr:
    return binary(n, "ashr", is_unsigned(n.dtype) ? "lshr" : "ashr");
  case ScalarKind::kSelect:
    return let("select ", type("i1"), " ", operand(n, 0), ", ", type(n.dtype), " ", operand(n, 1),
               ", ", type(n.dtype), " ", operand(n, 2));
  case ScalarKind::kBitcast:
    return let("bitcast ", type(n.operands[0]->dtype), " ", operand(n, 0), " to ", type(n.dtype));
  case ScalarKind::kConvert:
    return convert(n.operands[0]->dtype, n.dtype, operand(n, 0));
  case ScalarKind::kCall:
    return external(n);
  }
  PRONG_ASSERT(false, "codegen: unknown scalar operation");
}

// What is the same for all elements is computed once, before the loops, and as scalars: some of
// LLVM's analyses follow a vector of equal lanes through every way that leads to it, which takes
// for ever where ways part and meet again.
Emitter emit_uniform(std::string& out, const PointwiseSource& source,
                     std::span<const ScalarNode* const> nodes) {
  Emitter e(out, 1, "same.");
  std::vector<std::string> inputs(source.inputs.size());
  for (size_t i = 0; i < source.inputs.size(); ++i)
    if (source.access[i] == Access::kSingle) inputs[i] = e.load(source.inputs[i], cat("%in", i));
  for (const ScalarNode* n : nodes) {
    bool is_uniform = n->kind != ScalarKind::kInput ||
                      source.access[static_cast<size_t>(n->index)] == Access::kSingle;
    for (int i = 0; i < n->num_operands; ++i) is_uniform &= e.has(*n->operands[i]);
    if (is_uniform) e.bind(*n, e.emit(*n, inputs));
  }
  return e;
}

// One loop of `lanes` elements a turn, from %start to %stop.
void emit_loop(std::string& out, const PointwiseSource& source, const Emitter& uniform,
               std::span<const ScalarNode* const> nodes, int lanes, std::string_view name,
               std::string_view from, std::string_view start, std::string_view stop,
               std::string_view after) {
  Emitter e(out, lanes, cat(name, "."));
  out += cat("  %", name, ".any = icmp slt i64 ", start, ", ", stop, "\n  br i1 %", name,
             ".any, label %", name, ", label %", after, "\n", name, ":\n  %", name,
             ".i = phi i64 [ ", start, ", %", from, " ], [ %", name, ".next, %", name, " ]\n");
  std::vector<std::string> inputs;
  for (size_t i = 0; i < source.inputs.size(); ++i) {
    const DType d = source.inputs[i];
    inputs.emplace_back();
    if (source.access[i] == Access::kSingle) continue;
    inputs.back() =
        e.load(d, e.let("getelementptr ", memory_type(d), ", ptr %in", i, ", i64 %", name, ".i"));
  }
  const auto use = [&](const ScalarNode& n) {
    if (!e.has(n) && uniform.has(n))
      e.bind(n, n.kind == ScalarKind::kConst ? e.emit(n, inputs)
                                             : e.broadcast(n.dtype, uniform.value_of(n)));
  };
  for (const ScalarNode* n : nodes) {
    if (uniform.has(*n)) continue;
    for (int i = 0; i < n->num_operands; ++i) use(*n->operands[i]);
    e.bind(*n, e.emit(*n, inputs));
  }
  for (const Scalar& result : source.results) use(*result.node());
  for (size_t r = 0; r < source.results.size(); ++r) {
    const DType d = source.results[r].dtype();
    e.store(d, e.value_of(source.results[r]),
            e.let("getelementptr ", memory_type(d), ", ptr %out", r, ", i64 %", name, ".i"));
  }
  out += cat("  %", name, ".next = add i64 %", name, ".i, ", lanes, "\n  %", name,
             ".more = icmp slt i64 %", name, ".next, ", stop, "\n  br i1 %", name, ".more, label %",
             name, ", label %", after, "\n");
}

void load_pointers(std::string& out, std::string_view table, std::string_view name, size_t count) {
  for (size_t i = 0; i < count; ++i)
    out += cat("  %", name, i, ".at = getelementptr ptr, ptr %", table, ", i64 ", i, "\n  %", name,
               i, " = load ptr, ptr %", name, i, ".at\n");
}

}  // namespace

std::string pointwise_ir(const PointwiseSource& source, int lanes) {
  const std::vector<const ScalarNode*> nodes = topological(source.results);
  std::string out =
      "define void @kernel(i64 %n, ptr noalias %results, ptr noalias %inputs) {\nentry:\n";
  load_pointers(out, "results", "out", source.results.size());
  load_pointers(out, "inputs", "in", source.inputs.size());
  const Emitter uniform = emit_uniform(out, source, nodes);
  if (lanes > 1) {
    out += cat("  %rest = urem i64 %n, ", lanes, "\n  %whole = sub i64 %n, %rest\n");
    emit_loop(out, source, uniform, nodes, lanes, "wide", "entry", "0", "%whole", "tail");
    out += "tail:\n";
    emit_loop(out, source, uniform, nodes, 1, "one", "tail", "%whole", "%n", "done");
  } else {
    emit_loop(out, source, uniform, nodes, 1, "one", "entry", "0", "%n", "done");
  }
  out += "done:\n  ret void\n}\n";
  std::vector<std::string_view> declared;
  for (const ScalarNode* n : nodes)
    if (n->kind == ScalarKind::kCall &&
        std::find(declared.begin(), declared.end(), n->external->symbol) == declared.end()) {
      declared.push_back(n->external->symbol);
      out += cat("declare double @", n->external->symbol,
                 n->external->arity == 1 ? "(double)\n" : "(double, double)\n");
    }
  return out;
}

namespace {

// One compiler for all kernels; never destroyed, since workers may run kernels while the process
// ends.
Jit& jit() {
  static Jit* const instance = new Jit({.level = 1, .vector_bits = simd_level() > 0 ? 512 : 256});
  return *instance;
}

void define_once(const ExternalFunction& f) {
  static std::mutex mutex;
  static std::unordered_set<std::string_view>* const known =
      new std::unordered_set<std::string_view>;
  std::lock_guard lock(mutex);
  if (known->insert(f.symbol).second) jit().define(f.symbol, f.address);
}

}  // namespace

PointwiseKernel compile_pointwise(const PointwiseSource& source, std::string_view name) {
  bool has_calls = false;
  for (const ScalarNode* n : topological(source.results))
    if (n->kind == ScalarKind::kCall) {
      has_calls = true;
      define_once(*n->external);
    }
  // A register of floats an iteration; functions of the C library take one element at a time
  // anyway.
  const int lanes = has_calls ? 1 : simd_level() > 0 ? 16 : 8;
  const std::string ir = pointwise_ir(source, lanes);
  // The same region in two functions, or in a function that was scripted again, is compiled once.
  static std::mutex mutex;
  static auto* const known = new std::unordered_map<std::string, PointwiseKernel>;
  {
    const std::lock_guard lock(mutex);
    if (const auto it = known->find(ir); it != known->end()) return it->second;
  }
  PRONG_LOG(kCodegen, "kernel ", name, "\n", ir);
  PointwiseKernel kernel;
  kernel.code_ = jit().compile(ir, name);
  kernel.entry_ = kernel.code_->function<void(int64_t, void* const*, const void* const*)>("kernel");
  const std::lock_guard lock(mutex);
  known->emplace(ir, kernel);
  return kernel;
}

}  // namespace prong::codegen
