// OpDef: everything that Prong knows of one op, written in one block in defs/. Bindings, stubs,
// script builtins, docs, tests and passes are derived from it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/schema.h"
#include "tensor/ivalue.h"

namespace prong {

class OpDef;
class Builder;
class Gradient;
struct GradientDef;  // gradient.h: how gradients flow back through the op
class Scalar;
struct PointwiseDef;  // kernels/pointwise.h: loops by dtype and the scalar expression of the body
struct PointwiseOptions;
class DataCheck;   // data_check.h: what an op asks of the numbers in its tensors,
class BoundsCall;  // and what it promises of the integers that it gives
struct IntRange;

// A boxed call: args match the schema one to one, defaults filled in. Several results come as a
// tuple.
using KernelFn = IValue (*)(const OpDef& op, std::span<const IValue> args);
// The same call on abstract tensors (IValue::meta in place of tensors).
using ShapeFn = KernelFn;
using ScalarBody = Scalar (*)(std::span<const Scalar> inputs);
using DataCheckFn = void (*)(DataCheck& call);
using BoundsFn = std::optional<IntRange> (*)(const BoundsCall& call);

// How an op's result relates to its inputs; what fusion, memory planning and capture ask for (never
// its name).
enum class Family : uint8_t {
  kPointwise,  // out[i] = body(in[i]...), broadcasting
  kReduce,     // over some dims
  kView,       // shares the storage of argument 0
  kMatmul,     // a product or a convolution
  kFactory,    // makes a tensor from no tensor
  kCopy,       // moves elements: cat, gather, index, pad
  kOpaque,     // anything else with a kernel of its own
  kHost,       // answers about a tensor without arithmetic: dim, size, is_contiguous, item
};

struct Cost {
  double flops = 0;
  double bytes = 0;  // read and written
};
using CostFn = Cost (*)(const OpDef& op, std::span<const IValue> args);

// A call that tests make: positional then keyword arguments, written in Python ("t(3, 4), dim=-1");
// see samples.h. The mini language: t(2,3) float32 randn, t(2,3,dtype=int64) ints in [-5,5],
// pos(...) positive, unit(...) in (-1,1), b(...) bool, strided(4,6) non-contiguous, scalar Python
// literals, lists.
struct Sample {
  std::string arguments;
};

// Where Python finds the op.
struct Spelling {
  bool function = true;        // prong.name
  bool method = true;          // Tensor.name
  bool nn_functional = false;  // prong.nn.functional.name
  bool inplace = false;        // Tensor.name_ and prong.name_ , derived
  bool property = false;       // Tensor.name without a call (T, mT, ...)
  // Ops called linalg_x, fft_x and special_x are prong.linalg.x and so on as well, whatever is said
  // here.
  std::vector<std::string> aliases = {};  // other public names of the same op: "clip" for clamp
};

class OpDef {
 public:
  explicit OpDef(std::string_view schema_text);

  // ── facets, fluent; see docs/add_an_op.md ──
  OpDef& doc(std::string text);
  OpDef& family(Family f);
  OpDef& where(Spelling s);
  template <class F>
  OpDef&
  kernel(F f);  // typed lambda, boxed by ops/boxing.h; argument types checked against the schema
  template <class F>
  OpDef& shape(F f);  // typed lambda with TensorMeta for Tensor
  // A body over single values, generic in their type (kernels/pointwise.h): gives kernel, shape
  // rule, cost and family. Types lists what it is compiled for. Its parameters are the op's first
  // arguments; a variant names its own.
  template <class Types, class F>
  OpDef& pointwise(F body);
  template <class Types, class F>
  OpDef& pointwise(F body, const PointwiseOptions& options);
  template <class Types, class F>
  OpDef& conditional(
      F body,
      const PointwiseOptions& options);  // the first parameter is a bool, whatever the others are
  // The same for complex numbers, of the body given last: over std::complex<float> and <double>,
  // and may give a bool or
  // the real type. Without it the op refuses complex tensors.
  template <bool kConditional = false, class F>
  OpDef& complex(F body);
  OpDef& inputs(std::initializer_list<int>
                    arguments);  // of the body given last, where they aren't the first ones
  template <class Types, class F>
  OpDef& variant(std::initializer_list<int> arguments, F body);
  OpDef& dynamic_shape(std::string why);  // the shape depends on the data
  OpDef& boxed_kernel(KernelFn f);
  OpDef& boxed_shape(ShapeFn f);
  OpDef& cost(CostFn f);
  // The gradient to one or several arguments, see gradient.h (which a file that calls this
  // includes).
  template <class F>
  OpDef& grad(std::string_view arguments, std::string_view uses, F rule);
  OpDef& add_grad(std::string_view arguments, std::string_view uses, IValue (*rule)(Gradient&));
  // The kernel is made of other ops, applied by call(): gradients and batching go through those.
  OpDef& composite();
  OpDef& no_grad(std::string why);  // the gradient facet is absent, with its reason
  OpDef& no_vmap(std::string why);
  OpDef&
  not_differentiable(std::string why);  // results never require grad (comparisons, argmax, ...)
  OpDef& mutates(int argument);         // writes that argument in place and returns it
  // Writes the tensors of these arguments too, lists or not, and does not return them; with
  // `only_if`, just in calls where that bool argument is true.
  OpDef& writes(std::initializer_list<int> arguments, int only_if = -1);
  OpDef& view_of(int argument);  // result shares its storage (may return the argument itself)
  OpDef& random();               // draws from the generator
  // For what numbers in its tensors the kernel fails; without it, for none.
  OpDef& checks(DataCheckFn f);
  // Between which numbers the integers of its results lie; nothing is known without it, but that
  // views hold what their tensor holds.
  OpDef& bounds(BoundsFn f);
  OpDef& takes_complex();  // its kernel knows complex tensors; views, copies, factories and host
                           // ops do anyway
  OpDef& samples(std::vector<Sample> s);
  OpDef& reference(
      std::string numpy_expression);  // over the argument names, `np` and the outputs' numpy arrays

  // ── what others read ──
  const std::string& name() const { return schema_.name; }  // unique: "max", "max.dim", "add_"
  const std::string& base_name() const {
    return base_name_;
  }  // before the dot: what Python calls it
  const Schema& schema() const { return schema_; }
  const std::string& doc() const { return doc_; }
  Family family() const { return family_; }
  const Spelling& spelling() const { return spelling_; }
  KernelFn kernel() const { return kernel_; }
  ShapeFn shape() const { return shape_; }
  CostFn cost() const { return cost_; }
  const PointwiseDef* pointwise() const { return pointwise_; }
  int mutated_argument() const { return mutates_; }  // -1: none
  // Bit i: tensors of argument i may be written, by mutates() or writes(). What passes, capture and
  // the like ask.
  uint64_t written_arguments() const {
    return writes_ | (mutates_ >= 0 ? uint64_t{1} << mutates_ : 0);
  }
  // The same of one call: without what is None in it, or kept from being written by its flag.
  uint64_t written_arguments(std::span<const IValue> args) const;
  int writes_only_if() const { return writes_only_if_; }  // the argument, -1: always
  int viewed_argument() const { return view_of_; }
  bool is_random() const { return random_; }
  DataCheckFn checks() const { return checks_; }
  BoundsFn bounds() const { return bounds_; }
  bool takes_complex() const { return takes_complex_; }
  bool is_composite() const { return composite_; }
  const GradientDef* gradient() const { return gradient_.get(); }  // null: none
  bool is_differentiable() const { return not_differentiable_.empty(); }
  const std::string& dynamic_shape_reason() const { return dynamic_shape_; }
  const std::string& no_grad_reason() const { return no_grad_; }
  const std::string& no_vmap_reason() const { return no_vmap_; }
  const std::string& not_differentiable_reason() const { return not_differentiable_; }
  const std::vector<Sample>& samples() const { return samples_; }
  const std::string& reference() const { return reference_; }
  const OpDef* inplace_of() const { return inplace_of_; }  // the op whose in-place form this is
  const char* trace_name() const { return trace_name_.c_str(); }  // "aten::add"

 private:
  friend class Registry;
  friend struct PointwiseDef;
  Schema schema_;
  std::string base_name_, doc_, trace_name_;
  Family family_ = Family::kOpaque;
  Spelling spelling_;
  KernelFn kernel_ = nullptr;
  ShapeFn shape_ = nullptr;
  CostFn cost_ = nullptr;
  DataCheckFn checks_ = nullptr;
  BoundsFn bounds_ = nullptr;
  PointwiseDef* pointwise_ = nullptr;
  int mutates_ = -1, view_of_ = -1, writes_only_if_ = -1;
  uint64_t writes_ = 0;
  bool random_ = false, composite_ = false, takes_complex_ = false;
  std::shared_ptr<GradientDef> gradient_;  // shared with the in-place form
  std::string dynamic_shape_, no_grad_, no_vmap_, not_differentiable_, reference_;
  std::vector<Sample> samples_;
  const OpDef* inplace_of_ = nullptr;
};

// All ops. Built once, on first use, by defs/all.cpp; read-only afterwards, so lookups need no
// lock.
class Registry {
 public:
  OpDef& add(std::string_view schema_text);        // kInternal on a duplicate name
  const OpDef* find(std::string_view name) const;  // exact name, null when absent
  const OpDef& get(std::string_view name) const;   // kAttribute: "prong has no op 'foo' yet"
  std::span<const OpDef* const>
  overloads(std::string_view base_name) const;  // in order of registration
  std::span<const std::unique_ptr<OpDef>> all() const { return ops_; }
  void derive();  // in-place forms, aliases, default facets; called once after all families are
                  // registered

 private:
  struct Index;
  std::vector<std::unique_ptr<OpDef>> ops_;
  std::shared_ptr<Index> index_;
};

// Refuses complex tensors where the op has no arithmetic for them: "sort" not implemented for
// 'ComplexFloat'.
[[noreturn]] void throw_complex(const OpDef& op, DType dtype);
inline void check_complex(const OpDef& op, std::span<const IValue> args) {
  if (op.takes_complex()) return;
  for (const IValue& v : args)
    if (v.is_tensor() && is_complex(v.tensor_impl()->dtype)) [[unlikely]]
      throw_complex(op, v.tensor_impl()->dtype);
}

const Registry& registry();
void register_all_ops(Registry& r);  // defs/all.cpp: one line a family

}  // namespace prong

#include "ops/boxing.h"
