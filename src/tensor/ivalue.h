// IValue: the run-time value of an op argument, a register of the interpreter, an item of a list.
// 16 bytes: a tag and a number or a counted reference.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "runtime/future.h"
#include "tensor/tensor.h"

namespace prong {

class IValue;
using Future = BasicFuture<IValue>;

struct StringBox final : RefCounted {
  explicit StringBox(std::string s) : text(std::move(s)) {}
  std::string text;
};
struct ListBox;
struct TupleBox;
struct DictBox;
struct ComplexBox final : RefCounted {
  explicit ComplexBox(Complex128 z) : value(z) {}
  Complex128 value;
};

struct MetaBox final : RefCounted {  // an abstract tensor, in shape rules and in recording
  explicit MetaBox(TensorMeta m) : meta(std::move(m)) {}
  TensorMeta meta;
};
// Base of instances that scripted code can hold: modules, instances of scripted classes (exec/),
// opaque Python objects (bindings/). describe() is for messages.
struct ObjectBase : RefCounted {
  virtual std::string describe() const = 0;
};

class IValue {
 public:
  enum class Tag : uint8_t {
    kNone,
    kBool,
    kInt,
    kFloat,
    kDType,  // plain
    kTensor,
    kString,
    kList,
    kTuple,
    kDict,
    kFuture,
    kObject,
    kMeta,
    kComplex  // counted
  };

  IValue() = default;
  IValue(std::nullptr_t) {}
  IValue(bool b) : tag_(Tag::kBool) { u_.i = b; }
  IValue(int64_t i) : tag_(Tag::kInt) { u_.i = i; }
  IValue(int i) : IValue(static_cast<int64_t>(i)) {}
  IValue(double d) : tag_(Tag::kFloat) { u_.d = d; }
  IValue(DType d) : tag_(Tag::kDType) { u_.i = static_cast<int64_t>(d); }
  IValue(const Tensor& t) { set_ref(t.defined() ? Tag::kTensor : Tag::kNone, t.impl()); }
  IValue(Tensor&& t);
  IValue(std::string s) : IValue(make_ref<StringBox>(std::move(s)), Tag::kString) {}
  IValue(std::string_view s) : IValue(std::string(s)) {}
  IValue(const char* s) : IValue(std::string(s)) {}
  IValue(Ref<ListBox> l);
  IValue(Ref<TupleBox> t);
  IValue(Ref<DictBox> d);
  IValue(Ref<Future> f);
  IValue(Ref<ObjectBase> o) : IValue(std::move(o), Tag::kObject) {}
  IValue(TensorMeta m) : IValue(make_ref<MetaBox>(std::move(m)), Tag::kMeta) {}
  IValue(Complex128 z) : IValue(make_ref<ComplexBox>(z), Tag::kComplex) {}
  IValue(DimsView dims);                       // list of ints
  IValue(const std::vector<Tensor>& tensors);  // list of tensors
  static IValue tuple(std::vector<IValue> items);
  static IValue list(std::vector<IValue> items);

  IValue(const IValue& o) : u_(o.u_), tag_(o.tag_) {
    if (is_counted()) u_.p->retain();
  }
  IValue(IValue&& o) noexcept : u_(o.u_), tag_(std::exchange(o.tag_, Tag::kNone)) {}
  IValue& operator=(const IValue& o) {
    IValue(o).swap(*this);
    return *this;
  }
  IValue& operator=(IValue&& o) noexcept {
    IValue(std::move(o)).swap(*this);
    return *this;
  }
  ~IValue() {
    if (is_counted()) u_.p->release();
  }
  void swap(IValue& o) noexcept {
    std::swap(u_, o.u_);
    std::swap(tag_, o.tag_);
  }

  Tag tag() const { return tag_; }
  bool is_none() const { return tag_ == Tag::kNone; }
  bool is_tensor() const { return tag_ == Tag::kTensor; }
  bool is_int() const { return tag_ == Tag::kInt; }
  bool is_bool() const { return tag_ == Tag::kBool; }
  bool is_float() const { return tag_ == Tag::kFloat; }
  bool is_number() const { return is_int() || is_float() || is_bool(); }
  bool is_complex() const {
    return tag_ == Tag::kComplex;
  }  // a Python complex; not among is_number()
  bool is_dtype() const { return tag_ == Tag::kDType; }
  bool is_string() const { return tag_ == Tag::kString; }
  bool is_list() const { return tag_ == Tag::kList; }
  bool is_tuple() const { return tag_ == Tag::kTuple; }
  bool is_dict() const { return tag_ == Tag::kDict; }
  bool is_future() const { return tag_ == Tag::kFuture; }
  bool is_object() const { return tag_ == Tag::kObject; }
  bool is_meta() const { return tag_ == Tag::kMeta; }

  // Accessors check the tag; a mismatch is our bug (the schema was checked before), hence internal
  // errors.
  bool to_bool() const {
    check(Tag::kBool);
    return u_.i != 0;
  }
  int64_t to_int() const {  // bool counts as int, as in Python
    if (tag_ == Tag::kBool) return u_.i;
    check(Tag::kInt);
    return u_.i;
  }
  double to_double() const {  // any number
    if (tag_ == Tag::kFloat) return u_.d;
    return static_cast<double>(to_int());
  }
  Complex128 to_complex() const {  // any number, complex ones too
    if (tag_ == Tag::kComplex) return static_cast<ComplexBox*>(u_.p)->value;
    return to_double();
  }
  DType to_dtype() const {
    check(Tag::kDType);
    return static_cast<DType>(u_.i);
  }
  // A borrowed look without touching the count; valid while this IValue lives.
  TensorImpl* tensor_impl() const {
    check(Tag::kTensor);
    return static_cast<TensorImpl*>(u_.p);
  }
  Tensor to_tensor() const& { return Tensor(Ref<TensorImpl>(tensor_impl())); }
  Tensor to_tensor() && {
    check(Tag::kTensor);
    tag_ = Tag::kNone;
    return Tensor(Ref<TensorImpl>::adopt(static_cast<TensorImpl*>(u_.p)));
  }
  const std::string& to_string() const {
    check(Tag::kString);
    return static_cast<StringBox*>(u_.p)->text;
  }
  ListBox* list() const;
  TupleBox* tuple() const;
  DictBox* dict() const;
  Future* future() const;
  ObjectBase* object() const {
    check(Tag::kObject);
    return static_cast<ObjectBase*>(u_.p);
  }
  const TensorMeta& meta() const {
    check(Tag::kMeta);
    return static_cast<MetaBox*>(u_.p)->meta;
  }
  const std::vector<IValue>& items() const;  // of a list or a tuple
  Dims to_dims() const;                      // of a list or tuple of ints
  std::vector<Tensor> to_tensors() const;
  // Identity of counted values (`is` in scripts).
  const RefCounted* identity() const { return is_counted() ? u_.p : nullptr; }

 private:
  template <class T>
  IValue(Ref<T> r, Tag tag) : tag_(r ? tag : Tag::kNone) {
    u_.p = r.detach();
  }
  bool is_counted() const { return tag_ >= Tag::kTensor; }
  void set_ref(Tag tag, RefCounted* p) {
    tag_ = tag;
    if (is_counted()) {
      u_.p = p;
      p->retain();
    }
  }
  void check(Tag tag) const {
    if (tag_ != tag) [[unlikely]]
      throw_tag(tag);
  }
  [[noreturn]] void throw_tag(Tag expected) const;

  union Payload {
    int64_t i;
    double d;
    RefCounted* p;
  } u_ = {0};
  Tag tag_ = Tag::kNone;
};
static_assert(sizeof(IValue) == 16);

struct ListBox final : RefCounted {
  std::vector<IValue> items;
  ListBox() = default;
  explicit ListBox(std::vector<IValue> v) : items(std::move(v)) {}
};

// Field names of a named tuple type, shared by its values.
struct TupleNames final : RefCounted {
  std::string type_name;  // qualified
  std::vector<std::string> fields;
};
struct TupleBox final : RefCounted {
  std::vector<IValue> items;
  Ref<TupleNames> names;  // null: a plain tuple
  TupleBox() = default;
  explicit TupleBox(std::vector<IValue> v, Ref<TupleNames> n = {})
      : items(std::move(v)), names(std::move(n)) {}
};

// Insertion-ordered, keys are str, int, float, bool or tensors (by identity), as in scripts.
struct DictBox final : RefCounted {
  DictBox();
  ~DictBox() override;
  size_t size() const;
  const IValue* find(const IValue& key) const;  // null when absent
  void set(const IValue& key, IValue value);
  bool erase(const IValue& key);
  void clear();
  // In insertion order; i < size().
  const std::pair<IValue, IValue>& entry(size_t i) const;

 private:
  struct Index;
  std::vector<std::pair<IValue, IValue>> entries_;
  std::unique_ptr<Index> index_;
};

std::string_view name_of(IValue::Tag tag);  // "Tensor", "int", "List", ... for messages
std::string repr(const IValue& value);      // as Python would print it
// Python's ==; tensors compare by identity. Used by dicts, `in`, constant folding.
bool equal(const IValue& a, const IValue& b);
size_t hash_of(const IValue& value);  // kType for unhashable values

inline IValue::IValue(Tensor&& t) : tag_(t.defined() ? Tag::kTensor : Tag::kNone) {
  u_.p = t.release();
}
inline ListBox* IValue::list() const {
  check(Tag::kList);
  return static_cast<ListBox*>(u_.p);
}
inline TupleBox* IValue::tuple() const {
  check(Tag::kTuple);
  return static_cast<TupleBox*>(u_.p);
}
inline DictBox* IValue::dict() const {
  check(Tag::kDict);
  return static_cast<DictBox*>(u_.p);
}
inline Future* IValue::future() const {
  check(Tag::kFuture);
  return static_cast<Future*>(u_.p);
}
inline IValue::IValue(Ref<Future> f) : IValue(std::move(f), Tag::kFuture) {}
inline IValue::IValue(Ref<ListBox> l) : IValue(std::move(l), Tag::kList) {}
inline IValue::IValue(Ref<TupleBox> t) : IValue(std::move(t), Tag::kTuple) {}
inline IValue::IValue(Ref<DictBox> d) : IValue(std::move(d), Tag::kDict) {}

}  // namespace prong
