// isinstance on run-time values.
#include "exec/isinstance.h"

#include <algorithm>

#include "graph/function.h"

namespace prong::exec {

namespace {

bool is_object_of(const IValue& value, const Type& type) {
  if (!value.is_object()) return false;
  const auto* o = dynamic_cast<const Object*>(value.object());
  return o && type.class_info() && o->cls->is_subclass_of(*type.class_info());
}

bool is_tuple_of(const IValue& value, const Type& type) {
  if (!value.is_tuple() || value.items().size() != type.elements().size()) return false;
  const TupleNames* names = value.tuple()->names.get();
  if (!type.name().empty() && (!names || names->type_name != type.name())) return false;
  for (size_t k = 0; k < value.items().size(); ++k)
    if (!is_instance(value.items()[k], *type.elements()[k])) return false;
  return true;
}

}  // namespace

bool is_instance(const IValue& value, const Type& type) {
  switch (type.kind()) {
  case TypeKind::kAny:
  case TypeKind::kVar:
    return true;
  case TypeKind::kNone:
    return value.is_none();
  case TypeKind::kTensor:
    return value.is_tensor();
  case TypeKind::kInt:
    return value.is_int();
  case TypeKind::kFloat:
    return value.is_float();
  case TypeKind::kBool:
    return value.is_bool();
  case TypeKind::kNumber:
    return value.is_number();
  case TypeKind::kDType:
    return value.is_dtype();
  case TypeKind::kStr:
  case TypeKind::kDevice:
  case TypeKind::kLayout:
    return value.is_string();
  case TypeKind::kGenerator:
  case TypeKind::kPyObject:
    return value.is_object();
  case TypeKind::kOptional:
    return value.is_none() || is_instance(value, *type.element());
  case TypeKind::kList:
    return value.is_list() &&
           std::all_of(value.items().begin(), value.items().end(),
                       [&](const IValue& v) { return is_instance(v, *type.element()); });
  case TypeKind::kDict: {
    if (!value.is_dict()) return false;
    for (size_t k = 0; k < value.dict()->size(); ++k) {
      const auto& [key, item] = value.dict()->entry(k);
      if (!is_instance(key, *type.elements()[0]) || !is_instance(item, *type.elements()[1]))
        return false;
    }
    return true;
  }
  case TypeKind::kTuple:
    return is_tuple_of(value, type);
  case TypeKind::kFuture:
    return value.is_future();
  case TypeKind::kClass:
    return is_object_of(value, type);
  case TypeKind::kFunction:
    return false;
  }
  return false;
}

}  // namespace prong::exec
