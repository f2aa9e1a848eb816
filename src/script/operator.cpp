// Operators: numbers, strings, lists through the language's table; tensors through ops; classes
// through their methods.
#include <algorithm>

#include "script/emitter.h"

namespace prong::script {

namespace {

struct OperatorNames {
  std::string_view sign, host, op, in_place, method;
};
constexpr OperatorNames kBinary[] = {
    {"+", "add", "add", "add_", "add"},
    {"-", "sub", "sub", "sub_", "sub"},
    {"*", "mul", "mul", "mul_", "mul"},
    {"/", "truediv", "div", "div_", "truediv"},
    {"//", "floordiv", "floor_divide", "floor_divide_", "floordiv"},
    {"%", "mod", "remainder", "remainder_", "mod"},
    {"**", "pow", "pow", "pow_", "pow"},
    {"@", "", "matmul", "", "matmul"},
    {"&", "and", "bitwise_and", "bitwise_and_", "and"},
    {"|", "or", "bitwise_or", "bitwise_or_", "or"},
    {"^", "xor", "bitwise_xor", "bitwise_xor_", "xor"},
    {"<<", "lshift", "bitwise_left_shift", "bitwise_left_shift_", "lshift"},
    {">>", "rshift", "bitwise_right_shift", "bitwise_right_shift_", "rshift"},
    {"==", "eq", "eq", "", "eq"},
    {"!=", "ne", "ne", "", "ne"},
    {"<", "lt", "lt", "", "lt"},
    {"<=", "le", "le", "", "le"},
    {">", "gt", "gt", "", "gt"},
    {">=", "ge", "ge", "", "ge"},
};

const OperatorNames& names_of(const std::string& sign) {
  for (const OperatorNames& n : kBinary)
    if (n.sign == sign) return n;
  throw_error(ErrorKind::kInternal, cat("no operator ", sign));
}

}  // namespace

Value* Emitter::binary(const std::string& sign, const Term& left, const Term& right,
                       const Range& where) {
  const OperatorNames& n = names_of(sign);
  Value* a = value(left, where);
  Value* b = value(right, where);
  const TypePtr ta = type(a), tb = type(b);
  if (ta->is(TypeKind::kOptional) || tb->is(TypeKind::kOptional)) {
    const TypePtr& optional = ta->is(TypeKind::kOptional) ? ta : tb;
    if (sign != "==" && sign != "!=")
      fail(where, cat("'", sign, "' is not defined for ", name_of(ta), " and ", name_of(tb)),
           cat("a value of type '", name_of(optional),
               "' may be None: test it with 'is not None' first"));
  }
  if (ta->is(TypeKind::kTensor) || tb->is(TypeKind::kTensor)) {
    const TypePtr& other = ta->is(TypeKind::kTensor) ? tb : ta;
    if (other->is(TypeKind::kTensor) || is_number(other)) {
      GivenList args{{{}, Term(a), where}, {{}, Term(b), where}};
      return call_op(std::string(n.op), nullptr, args, where);
    }
    if (Unknowns::is_unknown(other) && unknowns_.equate(other, Type::tensor()))
      return binary(sign, Term(a), Term(b), where);
  }
  for (auto [self, other, reflected] : {std::tuple{a, b, false}, std::tuple{b, a, true}}) {
    if (!type(self)->is(TypeKind::kClass)) continue;
    const std::string method = cat("__", reflected ? "r" : "", n.method, "__");
    if (has_attribute(Term(self), method, where))
      return value(apply(attribute(Term(self), method, where), {{{}, Term(other), where}}, where),
                   where);
  }
  // 2 ** -1 is a float: known here only where the exponent is.
  if (sign == "**" && ta->is(TypeKind::kInt) && tb->is(TypeKind::kInt))
    if (const auto exponent = known_int(Term(b)); exponent && *exponent < 0)
      return binary(sign, Term(convert(a, Type::float_())), Term(convert(b, Type::float_())),
                    where);
  // Tuples join and compare item by item.
  if (ta->is(TypeKind::kTuple) && tb->is(TypeKind::kTuple)) {
    std::vector<Value*> x = b_.tuple_unpack(a), y = b_.tuple_unpack(b);
    if (sign == "+") {
      x.insert(x.end(), y.begin(), y.end());
      return b_.tuple(x);
    }
    if (sign == "==" || sign == "!=") {
      Value* equal_so_far = boolean(x.size() == y.size());
      for (size_t i = 0; x.size() == y.size() && i < x.size(); ++i) {
        Value* item = truth(Term(compare("==", Term(x[i]), Term(y[i]), where)), where).value;
        equal_so_far = i == 0 ? item : host("and", {equal_so_far, item}, where);
      }
      return sign == "==" ? equal_so_far : host("not", {equal_so_far}, where);
    }
  }
  // Lists meet tuples where a shape is compared or joined: x.shape == (2, 3).
  if (ta->is(TypeKind::kList) && tb->is(TypeKind::kTuple))
    if (Value* c = convert(b, ta)) return binary(sign, Term(a), Term(c), where);
  if (tb->is(TypeKind::kList) && ta->is(TypeKind::kTuple))
    if (Value* c = convert(a, tb)) return binary(sign, Term(c), Term(b), where);
  Value* result = nullptr;
  if (!n.host.empty() && try_host(std::string(n.host), {a, b}, where, &result)) return result;
  fail(where, cat("'", sign, "' is not defined for ", name_of(ta), " and ", name_of(tb)));
}

Value* Emitter::compare(const std::string& sign, const Term& left, const Term& right,
                        const Range& where) {
  if (sign == "in" || sign == "not in") {
    Value* found = nullptr;
    if (right.kind == Term::Kind::kTuple ||
        (right.is_value() && type(right.value)->is(TypeKind::kTuple))) {
      std::vector<Term> items = right.items;
      if (right.is_value())
        for (Value* v : b_.tuple_unpack(right.value)) items.emplace_back(v);
      found = boolean(false);
      for (size_t i = 0; i < items.size(); ++i) {
        Value* same_item = truth(Term(compare("==", left, items[i], where)), where).value;
        found = i == 0 ? same_item : host("or", {found, same_item}, where);
      }
    } else {
      Value* container = value(right, where);
      Value* item = value(left, where);
      if (type(container)->is(TypeKind::kClass)) {
        const auto& cls = static_cast<const ClassType&>(*type(container)->class_info());
        const ClassEntry* entry = find_class(cls);
        const auto key = known_text(Term(item));
        if (entry && entry->container == ContainerKind::kDict && key) {
          found =
              boolean(std::find(entry->keys.begin(), entry->keys.end(), *key) != entry->keys.end());
        } else {
          found = value(apply(attribute(Term(container), "__contains__", where),
                              {{{}, Term(item), where}}, where),
                        where);
        }
      } else if (type(container)->is(TypeKind::kList) && type(item)->is(TypeKind::kTensor)) {
        // Tensors compare by their numbers, which may give more than one: as in Python, one must
        // come out.
        Value* list = container;
        Value* out = boolean(false);
        const Environment before = env_;
        at(where);
        Node* node = b_.loop(host("len", {list}, where), boolean(true), std::vector<Value*>{out});
        Block* outer = node->block();
        b_.move_to_end(node->body());
        Value* x = host("getitem", {list, node->body()->parameter(0)}, where);
        Value* hit = truth(Term(compare("==", Term(x), Term(item), where)), where).value;
        Value* missed = host("not", {hit}, where);
        b_.yield({missed, hit});
        b_.move_to_end(outer);
        env_ = before;
        found = node->output(0);
      } else {
        found = host("contains", {container, item}, where);
      }
    }
    return sign == "in" ? found : host("not", {found}, where);
  }
  if (sign == "is" || sign == "is not") {
    const auto as_value = [&](const Term& t) { return value(t, where); };
    Value *a = as_value(left), *b = as_value(right);
    if (type(a)->is(TypeKind::kNone) || type(b)->is(TypeKind::kNone)) {
      Expr none;
      none.kind = ExprKind::kNone;
      none.range = where;
      return is_none(none, Term(type(a)->is(TypeKind::kNone) ? b : a), sign == "is not", where)
          .value;
    }
    return host(sign == "is" ? "is" : "is_not", {a, b}, where);
  }
  if (sign == "==" || sign == "!=") {
    // A dtype, a device, None beside something else: by value.
    Value *a = value(left, where), *b = value(right, where);
    const TypePtr ta = type(a), tb = type(b);
    const auto loose = [](const TypePtr& t) {
      return t->is(TypeKind::kOptional) || t->is(TypeKind::kNone) || t->is(TypeKind::kDType) ||
             t->is(TypeKind::kDevice) || t->is(TypeKind::kAny) || t->is(TypeKind::kLayout);
    };
    if (loose(ta) || loose(tb))
      return b_.host(host_registry().get(sign == "==" ? "eq.any" : "ne.any"),
                     std::vector<Value*>{a, b}, Type::bool_());
    return binary(sign, Term(a), Term(b), where);
  }
  return binary(sign, left, right, where);
}

Value* Emitter::unary(const std::string& sign, Value* v, const Range& where) {
  const TypePtr t = type(v);
  if (t->is(TypeKind::kTensor)) {
    if (sign == "+") return v;
    return op(sign == "-" ? "neg" : "bitwise_not", {v}, where);
  }
  const std::string_view name = sign == "-" ? "neg" : sign == "+" ? "pos" : "invert";
  if (t->is(TypeKind::kClass)) {
    const std::string method = cat("__", name, "__");
    return value(apply(attribute(Term(v), method, where), {}, where), where);
  }
  Value* result = nullptr;
  if (try_host(std::string(name), {v}, where, &result)) return result;
  fail(where, cat("unary '", sign, "' is not defined for ", name_of(t)));
}

bool Emitter::augment_in_place(const std::string& sign, Value* left, Value* right,
                               const Range& where, Value** result) {
  const OperatorNames& n = names_of(sign);
  const TypePtr t = type(left);
  if (t->is(TypeKind::kTensor) && !n.in_place.empty() &&
      (type(right)->is(TypeKind::kTensor) || is_number(type(right))) &&
      !registry().overloads(n.in_place).empty()) {
    *result = call_op(std::string(n.in_place), nullptr,
                      {{{}, Term(left), where}, {{}, Term(right), where}}, where);
    return true;
  }
  if (t->is(TypeKind::kList) && sign == "+") {
    Value* items = right;
    if (!type(right)->is(TypeKind::kList)) items = to_list(Term(right), where, t);
    host("extend", {left, items}, where);
    *result = left;
    return true;
  }
  if (t->is(TypeKind::kClass)) {
    const std::string method = cat("__i", n.method, "__");
    if (!has_attribute(Term(left), method, where)) return false;
    *result = value(apply(attribute(Term(left), method, where), {{{}, Term(right), where}}, where),
                    where);
    return true;
  }
  return false;
}

}  // namespace prong::script
