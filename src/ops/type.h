// Static types of schemas, scripts and graph values: Tensor, int, List[T], Future[T], classes, type
// variables. Immutable and shared; compared by structure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ref.h"

namespace prong {

enum class TypeKind : uint8_t {
  kAny,
  kNone,
  kTensor,
  kInt,
  kFloat,
  kBool,
  kStr,
  kNumber,  // kNumber: int | float | bool ("Scalar" in schemas)
  kDType,
  kDevice,
  kLayout,
  kGenerator,
  kOptional,
  kList,
  kDict,
  kTuple,
  kFuture,
  kClass,     // a module, a scripted class or an interface: see ClassInfo
  kFunction,  // a function known at compile time; not a first-class value
  kPyObject,  // an opaque Python object
  kVar,       // a type variable of a generic schema: "t"
};

class Type;
using TypePtr = Ref<const Type>;

// What the owner of a class (script/) tells about it. Types hold it by pointer; identity is
// equality.
struct ClassInfo : RefCounted {
  std::string qualified_name;
  virtual bool is_subclass_of(const ClassInfo& other) const { return this == &other; }
};

class Type : public RefCounted {
 public:
  static const TypePtr& any();
  static const TypePtr& none();
  static const TypePtr& tensor();
  static const TypePtr& int_();
  static const TypePtr& float_();
  static const TypePtr& bool_();
  static const TypePtr& str();
  static const TypePtr& number();
  static const TypePtr& dtype();
  static const TypePtr& device();
  static const TypePtr& layout();
  static const TypePtr& generator();
  static const TypePtr& py_object();
  static TypePtr optional(TypePtr element);  // of an optional, Any or None: that type itself
  static TypePtr list(TypePtr element);
  static TypePtr dict(TypePtr key, TypePtr value);
  static TypePtr tuple(std::vector<TypePtr> elements);
  static TypePtr named_tuple(std::string name, std::vector<std::string> fields,
                             std::vector<TypePtr> elements);
  static TypePtr future(TypePtr element);
  static TypePtr class_(Ref<ClassInfo> info);
  static TypePtr function(std::string name);
  static TypePtr var(std::string name);
  // "List[int]", "Optional[Tensor]", "Dict[str, Tensor]", "Tuple[int, int]", "Future[Tensor]", "t"
  // for variables. Throws kValue with the position on bad text. Class names are not known here.
  static TypePtr parse(std::string_view text);

  TypeKind kind() const { return kind_; }
  const std::vector<TypePtr>& elements() const {
    return elements_;
  }  // element, key and value, tuple items
  const TypePtr& element() const { return elements_[0]; }
  const std::vector<std::string>& fields() const { return fields_; }  // of a named tuple
  const std::string& name() const { return name_; }  // of a class, function, variable, named tuple
  ClassInfo* class_info() const { return info_.get(); }
  bool is(TypeKind k) const { return kind_ == k; }

  std::string str_() const;  // as in Python annotations: "Optional[Tensor]"

 private:
  Type(TypeKind kind, std::vector<TypePtr> elements = {}, std::string name = {},
       std::vector<std::string> fields = {});
  TypeKind kind_;
  std::vector<TypePtr> elements_;
  std::string name_;
  std::vector<std::string> fields_;
  Ref<ClassInfo> info_;
};

bool operator==(const Type& a, const Type& b);
inline bool same(const TypePtr& a, const TypePtr& b) { return *a == *b; }
// May a value of type a stand where b is asked? int → float is not a subtype (it converts); Future
// and Optional and Tuple are covariant, List and Dict invariant, everything fits Any.
bool is_subtype(const TypePtr& a, const TypePtr& b);
// The smallest common type (Optional, number widening of tuples, ...) or null when there is none.
TypePtr unify(const TypePtr& a, const TypePtr& b);
void append_to(std::string& out, const Type& t);
inline void append_to(std::string& out, const TypePtr& t) { append_to(out, *t); }

}  // namespace prong
