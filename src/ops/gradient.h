// How gradient rules are written: an op's vector-Jacobian product as an expression of ordinary ops.
// Included by defs/.
//   r.add("mul(input: Tensor, other: Tensor) -> Tensor")
//       .grad("input", "other", [](Gradient& g) { return g.out() * g["other"]; })
//       .grad("other", "input", [](Gradient& g) { return g.out() * g["input"]; })
// What a rule gives may still have the shape and the dtype of the result: the tape sums over
// broadcast dimensions and converts. The rules run through a Builder, so that gradients can be
// taken of gradients, recorded and batched.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ops/boxing.h"
#include "ops/builder.h"

namespace prong {

// A value of a rule, with arithmetic. Undefined (none) where there is no gradient.
class Expr {
 public:
  Expr() = default;
  Expr(Builder& builder, IValue value) : builder_(&builder), value_(std::move(value)) {}
  const IValue& value() const { return value_; }
  Builder& builder() const { return *builder_; }
  bool defined() const { return !value_.is_none(); }
  TensorMeta meta() const {
    return value_.is_number() ? meta_from(value_) : builder_->meta(value_);
  }
  Dims sizes() const { return meta().sizes; }
  int64_t rank() const { return meta().rank(); }
  DType dtype() const { return meta().dtype; }
  // The i-th of several results.
  Expr operator[](size_t i) const { return Expr(*builder_, value_.items()[i]); }

 private:
  Builder* builder_ = nullptr;
  IValue value_;
};

namespace detail {
template <size_t N>
struct OpName {
  char text[N];
  constexpr OpName(const char (&given)[N]) {
    for (size_t i = 0; i < N; ++i) text[i] = given[i];
  }
};
inline IValue operand(const Expr& e) { return e.value(); }
inline IValue operand(const Dims& d) { return IValue(DimsView(d)); }
inline IValue operand(const IValue& v) { return v; }
template <class T>
IValue operand(const T& x) {
  return to_ivalue(x);
}
inline Builder* builder_of(const Expr& e) { return e.defined() ? &e.builder() : nullptr; }
template <class T>
Builder* builder_of(const T&) {
  return nullptr;
}
}  // namespace detail

// op<"sum">(x, dims, true): an op applied to values; trailing arguments may be left out where they
// have defaults. One of the arguments is an Expr.
template <detail::OpName Name, class... A>
Expr op(const A&... args) {
  static const OpDef& def = registry().get(Name.text);
  Builder* builder = nullptr;
  ((builder = builder ? builder : detail::builder_of(args)), ...);
  PRONG_ASSERT(builder, "a gradient rule applies ", def.name(), " to no value");
  const IValue values[] = {detail::operand(args)...};
  return Expr(*builder, builder->apply(def, values));
}

inline Expr operator+(const Expr& a, const Expr& b) { return op<"add">(a, b); }
inline Expr operator-(const Expr& a, const Expr& b) { return op<"sub">(a, b); }
inline Expr operator*(const Expr& a, const Expr& b) { return op<"mul">(a, b); }
inline Expr operator/(const Expr& a, const Expr& b) { return op<"div">(a, b); }
inline Expr operator+(const Expr& a, double b) { return op<"add">(a, b); }
inline Expr operator-(const Expr& a, double b) { return op<"sub">(a, b); }
inline Expr operator*(const Expr& a, double b) { return op<"mul">(a, b); }
inline Expr operator/(const Expr& a, double b) { return op<"div">(a, b); }
inline Expr operator+(double a, const Expr& b) { return op<"add">(b, a); }
inline Expr operator-(double a, const Expr& b) { return op<"rsub">(b, a); }
inline Expr operator*(double a, const Expr& b) { return op<"mul">(b, a); }
inline Expr operator-(const Expr& a) { return op<"neg">(a); }

// The complex conjugate: gradients go back through the conjugate of what they are multiplied with.
// Nothing for real values.
inline Expr conj(const Expr& e) {
  return !e.value().is_number() && is_complex(e.dtype()) ? op<"conj">(e) : e;
}

// What a rule sees: the call as it was made, its results, and the gradients of the results.
class Gradient {
 public:
  virtual ~Gradient() = default;

  virtual const OpDef& op() const = 0;
  // The gradient of result i; zeros where nothing flows back to it.
  Expr out(size_t i = 0) { return Expr(*builder_, out_gradient(i)); }
  virtual bool has_out(size_t i) const = 0;
  // An argument by its name: a tensor only if the rule names it among what it uses (else only
  // meta() knows it); numbers, lists of numbers, strings always. "result", "result.1": a result
  // that the rule uses.
  Expr operator[](std::string_view name) { return Expr(*builder_, value(name)); }
  virtual IValue value(std::string_view name) = 0;
  bool is_given(std::string_view name) { return !value(name).is_none(); }  // of optional arguments
  int64_t integer(std::string_view name) { return value(name).to_int(); }
  double number(std::string_view name) { return value(name).to_double(); }
  bool flag(std::string_view name) { return value(name).to_bool(); }
  Dims dims(std::string_view name) {
    const IValue v = value(name);
    return v.is_int() ? Dims{v.to_int()} : v.to_dims();
  }
  // Shape and dtype of the argument that this rule differentiates to, kept or not; of others where
  // they were kept.
  virtual TensorMeta meta(std::string_view argument) = 0;
  Dims sizes(std::string_view argument) { return meta(argument).sizes; }
  // How the argument that the op views, and the rule uses, lies in memory; written since or not.
  struct Layout {
    Dims sizes, strides;
    int64_t offset;
  };
  virtual Layout layout(std::string_view argument) = 0;
  // Whether anybody wants the gradient to this argument; rules for several arguments ask.
  virtual bool needs(std::string_view argument) = 0;
  // Item i of a list argument.
  virtual bool needs(std::string_view argument, size_t i) = 0;
  virtual TensorMeta meta(std::string_view argument, size_t i) = 0;
  virtual size_t length(std::string_view argument) = 0;

  Builder& builder() { return *builder_; }
  Expr expr(IValue v) { return Expr(*builder_, std::move(v)); }
  Expr none() { return Expr(*builder_, IValue()); }
  // A tensor of zeros (ones, a number) of an argument's or any shape and dtype.
  Expr zeros(const TensorMeta& like) { return full(like, 0.0); }
  Expr full(const TensorMeta& like, double value);

 protected:
  virtual IValue out_gradient(size_t i) = 0;
  Builder* builder_ = nullptr;
};

// Something reduced over `dim` (None: all; an int or a list) spread over the sizes that it had
// before. A reduction over all dims without keepdim is zero-dim and broadcasts by itself.
Expr unreduced(const Expr& x, const IValue& dim, bool keepdim, const Dims& sizes);

// The gradient of elements picked along `dim`, whose places are result 1, back to where they were.
Expr picked_gradient(Gradient& g, int64_t dim, bool keepdim);

// One gradient rule: which arguments it serves, what it needs of the call.
using GradFn = IValue (*)(Gradient& g);
struct GradientRule {
  std::vector<int> arguments;   // in the order of the values that fn gives; one: fn gives it alone
  uint64_t uses_arguments = 0;  // bit i: tensors of argument i
  uint64_t uses_results = 0;
  GradFn fn = nullptr;
};
struct GradientDef {
  std::vector<GradientRule> rules;
  std::vector<int> rule_of_argument;  // -1: no gradient flows to it
};

// The rule of ops that only look elsewhere; derive.cpp gives it to view ops without a rule of their
// own.
Expr view_gradient(Gradient& g);

namespace detail {
inline IValue gradient_value(Expr e) { return e.value(); }
inline IValue gradient_value(IValue v) { return v; }
inline IValue gradient_value(const std::vector<Expr>& list) {
  std::vector<IValue> items;
  for (const Expr& e : list) items.push_back(e.value());
  return IValue::list(std::move(items));
}
template <class... T>
IValue gradient_value(const std::tuple<T...>& results) {
  return std::apply([](const auto&... r) { return IValue::tuple({gradient_value(r)...}); },
                    results);
}
}  // namespace detail

// .grad("input, weight", "weight, result", rule): the gradient to one argument, or to several at
// once (the rule then gives a std::tuple in that order). `uses` names the tensors that the rule
// reads. A list argument gets a std::vector<Expr>.
template <class F>
OpDef& OpDef::grad(std::string_view arguments, std::string_view uses, F) {
  static_assert(std::is_empty_v<F>, "a gradient rule captures nothing");
  return add_grad(arguments, uses, [](Gradient& g) { return detail::gradient_value(F{}(g)); });
}

}  // namespace prong
