// The public Tensor and Value.
#include "prong/value.h"

#include <algorithm>

#include "api/access.h"
#include "tensor/format.h"

namespace prong::api {

namespace {

template <class T>
Tensor copy_of(const std::vector<T>& numbers, const std::vector<int64_t>& sizes,
               prong::DType dtype) {
  const prong::Tensor t = prong::Tensor::empty(Dims(sizes.begin(), sizes.end()), dtype);
  PRONG_CHECK(t.numel() == static_cast<int64_t>(numbers.size()), kValue,
              "Tensor::from: ", numbers.size(), " numbers do not fill ", t.numel(), " places");
  std::copy(numbers.begin(), numbers.end(), t.data<T>());
  return Access::outer(t);
}

}  // namespace

Tensor::Tensor()
    : impl_(std::make_shared<Impl>(Impl{prong::Tensor::empty(Dims{0}, prong::DType::kFloat32)})) {}

Tensor Tensor::zeros(const std::vector<int64_t>& sizes, DType dtype) {
  const prong::Tensor t =
      prong::Tensor::empty(Dims(sizes.begin(), sizes.end()), static_cast<prong::DType>(dtype));
  std::fill_n(static_cast<char*>(t.raw()), t.numel() * static_cast<int64_t>(t.item_bytes()), 0);
  return Access::outer(t);
}

Tensor Tensor::from(const std::vector<float>& numbers, const std::vector<int64_t>& sizes) {
  return copy_of(numbers, sizes, prong::DType::kFloat32);
}
Tensor Tensor::from(const std::vector<double>& numbers, const std::vector<int64_t>& sizes) {
  return copy_of(numbers, sizes, prong::DType::kFloat64);
}
Tensor Tensor::from(const std::vector<int64_t>& numbers, const std::vector<int64_t>& sizes) {
  return copy_of(numbers, sizes, prong::DType::kInt64);
}

DType Tensor::dtype() const { return static_cast<DType>(impl_->tensor.dtype()); }
std::vector<int64_t> Tensor::sizes() const {
  return {impl_->tensor.sizes().begin(), impl_->tensor.sizes().end()};
}
int64_t Tensor::numel() const { return impl_->tensor.numel(); }
bool Tensor::is_contiguous() const { return impl_->tensor.is_contiguous(); }
Tensor Tensor::contiguous() const { return Access::outer(impl_->tensor.contiguous()); }
Tensor Tensor::to(DType dtype) const {
  return Access::outer(impl_->tensor.to(static_cast<prong::DType>(dtype)));
}
std::string Tensor::str() const { return repr(IValue(impl_->tensor)); }

template <class T>
T* Tensor::data() const {
  const prong::Tensor& t = impl_->tensor;
  PRONG_CHECK(t.dtype() == DTypeOf<T>::value, kType, "Tensor::data: the numbers are ", t.dtype(),
              ", not ", DTypeOf<T>::value);
  return t.data<T>();
}
template bool* Tensor::data() const;
template uint8_t* Tensor::data() const;
template int8_t* Tensor::data() const;
template int16_t* Tensor::data() const;
template int32_t* Tensor::data() const;
template int64_t* Tensor::data() const;
template float* Tensor::data() const;
template double* Tensor::data() const;

// ── values ──

namespace {

std::vector<IValue> inner_of(const std::vector<Value>& items) {
  std::vector<IValue> out;
  out.reserve(items.size());
  for (const Value& item : items) out.push_back(Access::inner(item));
  return out;
}

void expect(bool fits, const IValue& v, const char* wanted) {
  PRONG_CHECK(fits, kType, "expected ", wanted, ", got a value of type ", name_of(v.tag()));
}

}  // namespace

Value::Value() : impl_(std::make_shared<Impl>()) {}
Value::Value(bool b) : impl_(std::make_shared<Impl>(Impl{IValue(b)})) {}
Value::Value(int i) : impl_(std::make_shared<Impl>(Impl{IValue(i)})) {}
Value::Value(int64_t i) : impl_(std::make_shared<Impl>(Impl{IValue(i)})) {}
Value::Value(double d) : impl_(std::make_shared<Impl>(Impl{IValue(d)})) {}
Value::Value(const char* s) : impl_(std::make_shared<Impl>(Impl{IValue(s)})) {}
Value::Value(const std::string& s) : impl_(std::make_shared<Impl>(Impl{IValue(s)})) {}
Value::Value(const Tensor& t) : impl_(std::make_shared<Impl>(Impl{IValue(Access::inner(t))})) {}

Value Value::list(const std::vector<Value>& items) {
  return Access::outer(IValue::list(inner_of(items)));
}
Value Value::tuple(const std::vector<Value>& items) {
  return Access::outer(IValue::tuple(inner_of(items)));
}
Value Value::dict(const std::vector<std::pair<Value, Value>>& items) {
  auto out = make_ref<DictBox>();
  for (const auto& [key, value] : items) out->set(Access::inner(key), Access::inner(value));
  return Access::outer(IValue(std::move(out)));
}

bool Value::is_none() const { return impl_->value.is_none(); }
bool Value::is_tensor() const { return impl_->value.is_tensor(); }
bool Value::to_bool() const {
  expect(impl_->value.is_bool(), impl_->value, "a bool");
  return impl_->value.to_bool();
}
int64_t Value::to_int() const {
  expect(impl_->value.is_int() || impl_->value.is_bool(), impl_->value, "an int");
  return impl_->value.to_int();
}
double Value::to_double() const {
  expect(impl_->value.is_number(), impl_->value, "a number");
  return impl_->value.to_double();
}
std::string Value::to_string() const {
  expect(impl_->value.is_string(), impl_->value, "a string");
  return impl_->value.to_string();
}
Tensor Value::to_tensor() const {
  expect(impl_->value.is_tensor(), impl_->value, "a Tensor");
  return Access::outer(impl_->value.to_tensor());
}
std::vector<Value> Value::items() const {
  expect(impl_->value.is_list() || impl_->value.is_tuple(), impl_->value, "a list or tuple");
  std::vector<Value> out;
  for (const IValue& item : impl_->value.items()) out.push_back(Access::outer(item));
  return out;
}
std::vector<std::pair<Value, Value>> Value::entries() const {
  expect(impl_->value.is_dict(), impl_->value, "a dict");
  std::vector<std::pair<Value, Value>> out;
  const DictBox& dict = *impl_->value.dict();
  for (size_t k = 0; k < dict.size(); ++k)
    out.emplace_back(Access::outer(dict.entry(k).first), Access::outer(dict.entry(k).second));
  return out;
}
std::string Value::type_name() const { return std::string(name_of(impl_->value.tag())); }
std::string Value::str() const { return repr(impl_->value); }

}  // namespace prong::api
