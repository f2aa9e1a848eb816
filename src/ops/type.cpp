// Construction, comparison, subtyping, unification and text of static types.
#include "ops/type.h"

#include <array>

#include "base/error.h"

namespace prong {

Type::Type(TypeKind kind, std::vector<TypePtr> elements, std::string name,
           std::vector<std::string> fields)
    : kind_(kind), elements_(std::move(elements)), name_(std::move(name)),
      fields_(std::move(fields)) {}

#define PRONG_SIMPLE_TYPE(function, kind)                \
  const TypePtr& Type::function() {                      \
    static const TypePtr type(new Type(TypeKind::kind)); \
    return type;                                         \
  }
PRONG_SIMPLE_TYPE(any, kAny)
PRONG_SIMPLE_TYPE(none, kNone)
PRONG_SIMPLE_TYPE(tensor, kTensor)
PRONG_SIMPLE_TYPE(int_, kInt)
PRONG_SIMPLE_TYPE(float_, kFloat)
PRONG_SIMPLE_TYPE(bool_, kBool)
PRONG_SIMPLE_TYPE(str, kStr)
PRONG_SIMPLE_TYPE(number, kNumber)
PRONG_SIMPLE_TYPE(dtype, kDType)
PRONG_SIMPLE_TYPE(device, kDevice)
PRONG_SIMPLE_TYPE(layout, kLayout)
PRONG_SIMPLE_TYPE(generator, kGenerator)
PRONG_SIMPLE_TYPE(py_object, kPyObject)
#undef PRONG_SIMPLE_TYPE

TypePtr Type::optional(TypePtr element) {
  if (element->is(TypeKind::kOptional) || element->is(TypeKind::kAny) ||
      element->is(TypeKind::kNone))
    return element;
  return TypePtr(new Type(TypeKind::kOptional, {std::move(element)}));
}
TypePtr Type::list(TypePtr element) {
  return TypePtr(new Type(TypeKind::kList, {std::move(element)}));
}
TypePtr Type::dict(TypePtr key, TypePtr value) {
  return TypePtr(new Type(TypeKind::kDict, {std::move(key), std::move(value)}));
}
TypePtr Type::tuple(std::vector<TypePtr> elements) {
  return TypePtr(new Type(TypeKind::kTuple, std::move(elements)));
}
TypePtr Type::named_tuple(std::string name, std::vector<std::string> fields,
                          std::vector<TypePtr> elements) {
  return TypePtr(
      new Type(TypeKind::kTuple, std::move(elements), std::move(name), std::move(fields)));
}
TypePtr Type::future(TypePtr element) {
  return TypePtr(new Type(TypeKind::kFuture, {std::move(element)}));
}
TypePtr Type::class_(Ref<ClassInfo> info) {
  Type* type = new Type(TypeKind::kClass, {}, info->qualified_name);
  type->info_ = std::move(info);
  return TypePtr(type);
}
TypePtr Type::function(std::string name) {
  return TypePtr(new Type(TypeKind::kFunction, {}, std::move(name)));
}
TypePtr Type::var(std::string name) {
  return TypePtr(new Type(TypeKind::kVar, {}, std::move(name)));
}

bool operator==(const Type& a, const Type& b) {
  if (&a == &b) return true;
  if (a.kind() != b.kind() || a.name() != b.name() || a.class_info() != b.class_info() ||
      a.elements().size() != b.elements().size())
    return false;
  for (size_t i = 0; i < a.elements().size(); ++i)
    if (!same(a.elements()[i], b.elements()[i])) return false;
  return true;
}

namespace {

bool all_subtypes(const TypePtr& a, const TypePtr& b) {
  if (a->elements().size() != b->elements().size()) return false;
  for (size_t i = 0; i < a->elements().size(); ++i)
    if (!is_subtype(a->elements()[i], b->elements()[i])) return false;
  return true;
}

}  // namespace

bool is_subtype(const TypePtr& a, const TypePtr& b) {
  if (same(a, b) || b->is(TypeKind::kAny)) return true;
  switch (b->kind()) {
  case TypeKind::kOptional:
    if (a->is(TypeKind::kNone)) return true;
    return is_subtype(a->is(TypeKind::kOptional) ? a->element() : a, b->element());
  case TypeKind::kNumber:
    return a->is(TypeKind::kInt) || a->is(TypeKind::kFloat) || a->is(TypeKind::kBool);
  case TypeKind::kFuture:
    return a->is(TypeKind::kFuture) && is_subtype(a->element(), b->element());
  case TypeKind::kTuple:
    // A named tuple may stand for the plain one, not the other way round.
    return a->is(TypeKind::kTuple) && (b->name().empty() || a->name() == b->name()) &&
           all_subtypes(a, b);
  case TypeKind::kClass:
    return a->is(TypeKind::kClass) && a->class_info()->is_subclass_of(*b->class_info());
  default:
    return false;
  }
}

TypePtr unify(const TypePtr& a, const TypePtr& b) {
  if (is_subtype(a, b)) return b;
  if (is_subtype(b, a)) return a;
  if (a->is(TypeKind::kNone)) return Type::optional(b);
  if (b->is(TypeKind::kNone)) return Type::optional(a);
  if (a->is(TypeKind::kOptional) || b->is(TypeKind::kOptional)) {
    const TypePtr inner = unify(a->is(TypeKind::kOptional) ? a->element() : a,
                                b->is(TypeKind::kOptional) ? b->element() : b);
    return inner ? Type::optional(inner) : inner;
  }
  if (a->kind() == b->kind() && (a->is(TypeKind::kTuple) || a->is(TypeKind::kFuture)) &&
      a->elements().size() == b->elements().size()) {
    std::vector<TypePtr> items;
    for (size_t i = 0; i < a->elements().size(); ++i) {
      items.push_back(unify(a->elements()[i], b->elements()[i]));
      if (!items.back()) return {};
    }
    return a->is(TypeKind::kTuple) ? Type::tuple(std::move(items)) : Type::future(items[0]);
  }
  return {};
}

// ── text ──

std::string Type::str_() const {
  const auto join = [&] {
    std::string out;
    for (size_t i = 0; i < elements_.size(); ++i) out += cat(i ? ", " : "", elements_[i]->str_());
    return out;
  };
  switch (kind_) {
  case TypeKind::kAny:
    return "Any";
  case TypeKind::kNone:
    return "None";
  case TypeKind::kTensor:
    return "Tensor";
  case TypeKind::kInt:
    return "int";
  case TypeKind::kFloat:
    return "float";
  case TypeKind::kBool:
    return "bool";
  case TypeKind::kStr:
    return "str";
  case TypeKind::kNumber:
    return "Scalar";
  case TypeKind::kDType:
    return "dtype";
  case TypeKind::kDevice:
    return "device";
  case TypeKind::kLayout:
    return "layout";
  case TypeKind::kGenerator:
    return "Generator";
  case TypeKind::kPyObject:
    return "PyObject";
  case TypeKind::kOptional:
    return cat("Optional[", join(), "]");
  case TypeKind::kList:
    return cat("List[", join(), "]");
  case TypeKind::kDict:
    return cat("Dict[", join(), "]");
  case TypeKind::kFuture:
    return cat("Future[", join(), "]");
  case TypeKind::kTuple:
    return !name_.empty() ? name_ : cat("Tuple[", elements_.empty() ? "()" : join(), "]");
  case TypeKind::kClass:
  case TypeKind::kVar:
    return name_;
  case TypeKind::kFunction:
    return cat("function ", name_);
  }
  return "?";
}

void append_to(std::string& out, const Type& t) { out += t.str_(); }

namespace {

class TypeParser {
 public:
  explicit TypeParser(std::string_view text) : text_(text) {}
  TypePtr parse_all() {
    TypePtr t = parse();
    skip();
    PRONG_CHECK(at_ == text_.size(), kValue, "type '", text_, "': unexpected text at column ",
                at_ + 1);
    return t;
  }

 private:
  TypePtr parse() {
    const std::string name = word();
    for (const auto& [spelled, type] : simple())
      if (name == spelled) return type;
    if (name == "Optional") return Type::optional(arguments(1)[0]);
    if (name == "List") return Type::list(arguments(1)[0]);
    if (name == "Future") return Type::future(arguments(1)[0]);
    if (name == "Tuple") return Type::tuple(arguments(0));
    if (name == "Dict") {
      auto items = arguments(2);
      return Type::dict(items[0], items[1]);
    }
    // A lower-case name that is no type is a variable of a generic schema.
    PRONG_CHECK(!name.empty() && name[0] >= 'a' && name[0] <= 'z', kValue, "type '", text_,
                "': unknown type '", name, "' before column ", at_ + 1);
    return Type::var(name);
  }
  static const std::array<std::pair<std::string_view, TypePtr>, 13>& simple() {
    static const std::array<std::pair<std::string_view, TypePtr>, 13> table = {
        {{"Any", Type::any()},
         {"None", Type::none()},
         {"Tensor", Type::tensor()},
         {"int", Type::int_()},
         {"float", Type::float_()},
         {"bool", Type::bool_()},
         {"str", Type::str()},
         {"Scalar", Type::number()},
         {"dtype", Type::dtype()},
         {"device", Type::device()},
         {"layout", Type::layout()},
         {"Generator", Type::generator()},
         {"PyObject", Type::py_object()}}};
    return table;
  }
  std::vector<TypePtr> arguments(size_t count) {
    expect('[');
    std::vector<TypePtr> items;
    skip();
    if (text_.substr(at_, 2) == "()") {
      at_ += 2;
    } else {
      do items.push_back(parse());
      while (accept(','));
    }
    expect(']');
    PRONG_CHECK(count == 0 || items.size() == count, kValue, "type '", text_, "': expected ", count,
                " items before column ", at_ + 1);
    return items;
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  std::string word() {
    skip();
    const size_t start = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    return std::string(text_.substr(start, at_ - start));
  }
  bool accept(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    PRONG_CHECK(accept(c), kValue, "type '", text_, "': expected '", c, "' at column ", at_ + 1);
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

TypePtr Type::parse(std::string_view text) { return TypeParser(text).parse_all(); }

}  // namespace prong
