// Turns a typed lambda into the boxed KernelFn of an OpDef: each parameter type says how to read
// its argument. Included by op_def.h; used by every block in defs/.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "ops/op_def.h"

namespace prong {

// A Python number: int, float, bool or complex, as given.
struct Number {
  IValue value;
  bool is_int() const { return value.is_int() || value.is_bool(); }
  bool is_bool() const { return value.is_bool(); }
  bool is_complex() const { return value.is_complex(); }
  Complex128 as_complex() const { return value.to_complex(); }
  double as_double() const { return value.to_double(); }
  int64_t as_int() const {
    return value.is_float() ? static_cast<int64_t>(value.to_double()) : value.to_int();
  }
};

TensorMeta meta_from(const IValue& v);  // of a tensor, an abstract tensor or a number
Tensor tensor_from(const IValue& v);    // a tensor, or a number as a wrapped zero-dim one

template <class T>
struct Unbox;  // static T from(const IValue&)
template <>
struct Unbox<Tensor> {
  static Tensor from(const IValue& v) { return tensor_from(v); }
};
template <>
struct Unbox<TensorMeta> {
  static TensorMeta from(const IValue& v) { return meta_from(v); }
};
template <>
struct Unbox<int64_t> {
  static int64_t from(const IValue& v) { return v.to_int(); }
};
template <>
struct Unbox<double> {
  static double from(const IValue& v) { return v.to_double(); }
};
template <>
struct Unbox<Complex128> {
  static Complex128 from(const IValue& v) { return v.to_complex(); }
};
template <>
struct Unbox<bool> {
  static bool from(const IValue& v) { return v.to_bool(); }
};
template <>
struct Unbox<DType> {
  static DType from(const IValue& v) { return v.to_dtype(); }
};
template <>
struct Unbox<std::string> {
  static std::string from(const IValue& v) { return v.to_string(); }
};
template <>
struct Unbox<Number> {
  static Number from(const IValue& v) { return Number{v}; }
};
template <>
struct Unbox<Dims> {
  static Dims from(const IValue& v) { return v.to_dims(); }
};
template <>
struct Unbox<IValue> {
  static IValue from(const IValue& v) { return v; }
};
template <>
struct Unbox<std::vector<Tensor>> {
  static std::vector<Tensor> from(const IValue& v) { return v.to_tensors(); }
};
std::vector<TensorMeta> metas_from(const IValue& list);
std::vector<std::optional<Tensor>> optional_tensors_from(const IValue& list);
template <>
struct Unbox<std::vector<TensorMeta>> {
  static std::vector<TensorMeta> from(const IValue& v) { return metas_from(v); }
};
template <>
struct Unbox<std::vector<std::optional<Tensor>>> {
  static std::vector<std::optional<Tensor>> from(const IValue& v) {
    return optional_tensors_from(v);
  }
};
template <class T>
struct Unbox<std::optional<T>> {
  static std::optional<T> from(const IValue& v) {
    if (v.is_none()) return std::nullopt;
    return Unbox<T>::from(v);
  }
};

inline IValue box(IValue v) { return v; }
inline IValue box(Tensor t) { return IValue(std::move(t)); }
inline IValue box(TensorMeta m) { return IValue(std::move(m)); }
inline IValue box(Number n) { return n.value; }
inline IValue box(int64_t x) { return IValue(x); }
inline IValue box(bool x) { return IValue(x); }
inline IValue box(double x) { return IValue(x); }
inline IValue box(Complex128 x) { return IValue(x); }
inline IValue box(DType x) { return IValue(x); }
inline IValue box(std::string x) { return IValue(std::move(x)); }
inline IValue box(const std::vector<Tensor>& ts) { return IValue(ts); }
inline IValue box(const Dims& d) { return IValue(DimsView(d)); }
inline IValue box(const std::vector<TensorMeta>& ms) {
  std::vector<IValue> items(ms.begin(), ms.end());
  return IValue::list(std::move(items));
}
template <class... T>
IValue box(std::tuple<T...> results) {
  return std::apply([](auto&&... r) { return IValue::tuple({box(std::move(r))...}); },
                    std::move(results));
}

// Optional first parameter `const OpDef&` for kernels shared by several ops.
template <class F, class R, class... P>
IValue call_boxed(R (F::*)(P...) const, const OpDef&, std::span<const IValue> args) {
  return [&]<size_t... I>(std::index_sequence<I...>) {
    if constexpr (std::is_void_v<R>) {
      F{}(Unbox<std::remove_cvref_t<P>>::from(args[I])...);
      return IValue();
    } else {
      return box(F{}(Unbox<std::remove_cvref_t<P>>::from(args[I])...));
    }
  }
  (std::index_sequence_for<P...>{});
}
template <class F, class R, class... P>
IValue call_boxed(R (F::*)(const OpDef&, P...) const, const OpDef& op,
                  std::span<const IValue> args) {
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return box(F{}(op, Unbox<std::remove_cvref_t<P>>::from(args[I])...));
  }
  (std::index_sequence_for<P...>{});
}
template <class F, class R, class... P>
constexpr int arity_of(R (F::*)(P...) const) {
  return sizeof...(P);
}
template <class F, class R, class... P>
constexpr int arity_of(R (F::*)(const OpDef&, P...) const) {
  return sizeof...(P);
}

template <class F>
IValue boxed(const OpDef& op, std::span<const IValue> args) {
  static_assert(std::is_empty_v<F>, "a kernel lambda captures nothing");
  return call_boxed(&F::operator(), op, args);
}
[[noreturn]] void throw_arity(const OpDef& op, const char* facet, int got);

template <class F>
OpDef& OpDef::kernel(F) {
  if (arity_of(&F::operator()) != static_cast<int>(schema_.arguments.size()))
    throw_arity(*this, "kernel", arity_of(&F::operator()));
  return boxed_kernel(&boxed<F>);
}
template <class F>
OpDef& OpDef::shape(F) {
  if (arity_of(&F::operator()) != static_cast<int>(schema_.arguments.size()))
    throw_arity(*this, "shape rule", arity_of(&F::operator()));
  return boxed_shape(&boxed<F>);
}

// Calls another op by name with C++ values: call("softmax", x, int64_t(-1), std::nullopt). Trailing
// arguments may be left out where the schema has defaults. Runs eagerly, below dispatch (no tape,
// no trace event): for kernels of composite ops.
IValue call_op(const OpDef& op, std::span<const IValue> given);
// While the kernel of a composite op runs for its gradient: what call_op runs ops through instead
// of their kernels. Set by dispatch alone.
extern thread_local constinit KernelFn composing;
template <class T>
IValue to_ivalue(const T& x) {
  return box(x);
}
inline IValue to_ivalue(std::nullopt_t) { return IValue(); }
inline IValue to_ivalue(std::nullptr_t) { return IValue(); }
inline IValue to_ivalue(int x) { return IValue(x); }
inline IValue to_ivalue(const char* x) { return IValue(x); }
template <class T>
IValue to_ivalue(const std::optional<T>& x) {
  return x ? to_ivalue(*x) : IValue();
}
template <class... A>
IValue call(std::string_view name, const A&... args) {
  const IValue given[] = {to_ivalue(args)..., IValue()};
  return call_op(registry().get(name), std::span<const IValue>(given, sizeof...(A)));
}
template <class... A>
Tensor call_tensor(std::string_view name, const A&... args) {
  return call(name, args...).to_tensor();
}

}  // namespace prong
