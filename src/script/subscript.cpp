// base[item]: lists, dicts, tuples, strings, tensors with all their index forms, module lists.
#include <algorithm>

#include "script/emitter.h"

namespace prong::script {

namespace {

bool is_slice(const Term& t) { return t.kind == Term::Kind::kTuple && t.name == "slice"; }
bool is_ellipsis(const Term& t) {
  return t.kind == Term::Kind::kNamed && t.named.kind == Named::Kind::kBuiltin &&
         t.named.name == "...";
}

}  // namespace

// A slice becomes the tuple (start, stop, step) with the name "slice".
Term Emitter::index_expression(const Expr& e) {
  if (e.kind == ExprKind::kSlice) {
    std::vector<Term> parts;
    for (const ExprPtr& p : e.items) {
      Value* v = p ? expr_value(*p) : b_.none();
      if (type(v)->is(TypeKind::kTensor)) v = convert(v, Type::int_(), true);
      if (type(v)->is(TypeKind::kNumber)) v = host("int", {v}, p->range);
      if (!type(v)->is(TypeKind::kNone) && !unknowns_.fits(type(v), Type::optional(Type::int_())))
        fail(p->range, cat("slices take ints, not '", name_of(type(v)), "'"));
      parts.emplace_back(v);
    }
    Term t = Term::tuple(std::move(parts));
    t.name = "slice";
    return t;
  }
  if (e.kind == ExprKind::kTuple) {
    std::vector<Term> items;
    for (const ExprPtr& item : e.items) items.push_back(index_expression(*item));
    return Term::tuple(std::move(items));
  }
  return expr(e);
}

Term Emitter::subscript(const Expr& e) {
  const Term base = expr(*e.items[0]);
  const Term item = index_expression(*e.items[1]);
  return index(base, item, e.range);
}

Term Emitter::index(const Term& base, const Term& item, const Range& where) {
  at(where);
  const auto position = [&](int64_t n) -> int64_t {
    const auto i = known_int(item);
    if (!i) return -1;
    const int64_t wrapped = *i < 0 ? *i + n : *i;
    if (wrapped < 0 || wrapped >= n)
      fail(where, cat("index ", *i, " is out of range for a tuple of ", n, " items"));
    return wrapped;
  };
  // A tuple that was written out, or is a value: items by known index.
  if (base.kind == Term::Kind::kTuple && !is_slice(item)) {
    const int64_t i = position(static_cast<int64_t>(base.items.size()));
    if (i >= 0) return base.items[static_cast<size_t>(i)];
  }
  if (base.kind == Term::Kind::kNamed && base.named.kind != Named::Kind::kConstant &&
      base.named.kind != Named::Kind::kObject)
    fail(where, cat(describe(base), " cannot be indexed in a script"),
         "types with [ ] stand only in annotations");
  Value* v = value(base, where);
  const TypePtr ty = type(v);
  switch (ty->kind()) {
  case TypeKind::kTensor:
    return Term(tensor_index(v, item, where));
  case TypeKind::kTuple: {
    const auto n = static_cast<int64_t>(ty->elements().size());
    if (is_slice(item)) {
      std::optional<int64_t> parts[3];
      for (int i = 0; i < 3; ++i) {
        const IValue* c = item.items[static_cast<size_t>(i)].value->constant();
        if (!c) fail(where, "the slice of a tuple needs known numbers", "use a list");
        if (c->is_int()) parts[i] = c->to_int();
      }
      const int64_t step = parts[2].value_or(1);
      if (step == 0) fail(where, "slice step cannot be zero");
      const auto clamp = [&](std::optional<int64_t> x, int64_t absent, int64_t low, int64_t high) {
        if (!x) return absent;
        return std::clamp(*x < 0 ? *x + n : *x, low, high);
      };
      const int64_t start = step > 0 ? clamp(parts[0], 0, 0, n) : clamp(parts[0], n - 1, -1, n - 1);
      const int64_t stop = step > 0 ? clamp(parts[1], n, 0, n) : clamp(parts[1], -1, -1, n - 1);
      std::vector<Term> items;
      for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step)
        items.emplace_back(b_.tuple_get(v, i));
      return Term::tuple(std::move(items));
    }
    const int64_t i = position(n);
    if (i >= 0) {
      if (v->producer() && v->producer()->is(NodeKind::kTupleConstruct))
        return Term(v->producer()->input(static_cast<size_t>(i)));
      return Term(b_.tuple_get(v, i));
    }
    for (const TypePtr& t : ty->elements())
      if (!same(t, ty->elements()[0]))
        fail(where, "a tuple of different types needs a known index", "use a list of one type");
    return Term(host("getitem", {to_list(Term(v), where), value(item, where)}, where));
  }
  case TypeKind::kClass: {
    const auto& cls = static_cast<const ClassType&>(*ty->class_info());
    const ClassEntry* entry = find_class(cls);
    if (entry && entry->container != ContainerKind::kNone)
      return module_index(v, *entry, item, where);
    return apply(attribute(Term(v), "__getitem__", where), {{{}, item, where}}, where);
  }
  case TypeKind::kOptional:
    fail(where, cat("a value of type '", name_of(ty), "' may be None and cannot be indexed"),
         "test it with 'is not None' first");
  default:
    break;
  }
  if (is_slice(item))
    return Term(host("getslice", {v, item.items[0].value, item.items[1].value, item.items[2].value},
                     where));
  Value* i = value(item, where);
  if (type(i)->is(TypeKind::kTensor) && (ty->is(TypeKind::kList) || ty->is(TypeKind::kStr)))
    i = convert(i, Type::int_(), true);
  if (type(i)->is(TypeKind::kNumber)) i = host("int", {i}, where);
  return Term(host("getitem", {v, i}, where));
}

Term Emitter::module_index(Value* container, const ClassEntry& entry, const Term& item,
                           const Range& where) {
  const auto n = static_cast<int64_t>(entry.keys.size());
  if (entry.container == ContainerKind::kDict) {
    const auto key = known_text(item);
    if (!key)
      unsupported(where, "a ModuleDict needs a key that is known when the function is compiled",
                  "loop over .items()");
    if (std::find(entry.keys.begin(), entry.keys.end(), *key) == entry.keys.end())
      fail(where, cat("the ModuleDict has no '", *key, "'"));
    return object_attribute(container, *key, where);
  }
  if (is_slice(item)) {
    std::vector<Term> all;
    for (const std::string& key : entry.keys)
      all.push_back(object_attribute(container, key, where));
    std::optional<int64_t> parts[3];
    for (int i = 0; i < 3; ++i) {
      const auto c = known_int(item.items[static_cast<size_t>(i)]);
      const IValue* k = item.items[static_cast<size_t>(i)].value->constant();
      if (!k) fail(where, "the slice of a ModuleList needs known numbers");
      parts[i] = c;
    }
    const int64_t step = parts[2].value_or(1);
    const auto clamp = [&](std::optional<int64_t> x, int64_t absent, int64_t low, int64_t high) {
      return x ? std::clamp(*x < 0 ? *x + n : *x, low, high) : absent;
    };
    const int64_t start = step > 0 ? clamp(parts[0], 0, 0, n) : clamp(parts[0], n - 1, -1, n - 1);
    const int64_t stop = step > 0 ? clamp(parts[1], n, 0, n) : clamp(parts[1], -1, -1, n - 1);
    std::vector<Term> out;
    for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step)
      out.push_back(all[static_cast<size_t>(i)]);
    return Term::tuple(std::move(out));
  }
  if (const auto i = known_int(item)) {
    const int64_t wrapped = *i < 0 ? *i + n : *i;
    if (wrapped < 0 || wrapped >= n)
      fail(where, cat("index ", *i, " is out of range for a ModuleList of ", n, " modules"));
    return object_attribute(container, entry.keys[static_cast<size_t>(wrapped)], where);
  }
  // The index is not known: fine where all modules are of one class.
  std::vector<Value*> modules;
  for (const std::string& key : entry.keys) {
    modules.push_back(value(object_attribute(container, key, where), where));
    if (!same(type(modules.back()), type(modules[0]))) throw NeedsUnrolling{where};
  }
  if (modules.empty()) throw NeedsUnrolling{where};
  at(where);
  Value* list = b_.list(type(modules[0]), modules);
  Value* i = value(item, where);
  if (type(i)->is(TypeKind::kTensor)) i = convert(i, Type::int_(), true);
  return Term(host("getitem", {list, i}, where));
}

namespace {

// How one item of a tensor's index is written in the tuple that the general form takes.
struct IndexItems {
  bool is_basic = true;  // ints, slices, None and ... only
  std::vector<Term> items;
};

}  // namespace

static IndexItems index_items(Emitter& e, const Term& item, const Range& where) {
  IndexItems out;
  if (item.kind == Term::Kind::kTuple && !is_slice(item))
    out.items = item.items;
  else
    out.items = {item};
  // A tuple value spreads too.
  if (out.items.size() == 1 && out.items[0].is_value() &&
      e.type(out.items[0].value)->is(TypeKind::kTuple)) {
    Value* tuple = out.items[0].value;
    out.items.clear();
    for (Value* v : e.build().tuple_unpack(tuple)) out.items.emplace_back(v);
  }
  for (Term& t : out.items) {
    if (is_slice(t) || is_ellipsis(t)) continue;
    Value* v = e.value(t, where);
    TypePtr ty = e.type(v);
    if (ty->is(TypeKind::kNumber)) {
      v = e.host("int", {v}, where);
      ty = Type::int_();
    }
    t = Term(v);
    if (ty->is(TypeKind::kInt) || ty->is(TypeKind::kNone)) continue;
    out.is_basic = false;
    const bool fine = ty->is(TypeKind::kTensor) || ty->is(TypeKind::kBool) ||
                      (ty->is(TypeKind::kList) &&
                       (is_number(ty->element()) || ty->element()->is(TypeKind::kList)));
    if (!fine)
      fail(where, cat("a tensor cannot be indexed with a value of type '", e.name_of(ty), "'"),
           ty->is(TypeKind::kOptional) ? "test it with 'is not None' first" : "");
  }
  return out;
}

// The view that ints, slices, None and ... select.
static Value* basic_view(Emitter& e, Value* t, const std::vector<Term>& items, const Range& where) {
  int64_t after = 0;  // dims that the items still to come use, once ... was met
  bool from_end = false;
  int64_t dim = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const Term& item = items[i];
    if (is_ellipsis(item)) {
      if (from_end) fail(where, "an index can only have one '...'");
      from_end = true;
      for (size_t k = i + 1; k < items.size(); ++k)
        after += is_slice(items[k]) ||
                 (items[k].is_value() && e.type(items[k].value)->is(TypeKind::kInt));
      continue;
    }
    const bool is_new = item.is_value() && e.type(item.value)->is(TypeKind::kNone);
    const bool uses_dim = !is_new;
    if (from_end && uses_dim) --after;
    const int64_t at = from_end ? -(after + 1) : dim;
    if (is_new) {
      t = e.op("unsqueeze", {t, e.integer(at)}, where);
      ++dim;
    } else if (is_slice(item)) {
      const auto none = [&](size_t k) { return e.type(item.items[k].value)->is(TypeKind::kNone); };
      Value* step = none(2) ? e.integer(1) : item.items[2].value;
      if (!(none(0) && none(1) && none(2)))
        t = e.op("slice", {t, e.integer(at), item.items[0].value, item.items[1].value, step},
                 where);
      ++dim;
    } else {
      t = e.op("select", {t, e.integer(at), item.value}, where);
    }
  }
  return t;
}

// (start, stop, step) for a slice, "..." for an ellipsis, the value for anything else.
static Value* index_tuple(Emitter& e, const IndexItems& index, const Range& where) {
  std::vector<Value*> out;
  for (const Term& t : index.items) {
    if (is_ellipsis(t))
      out.push_back(e.text("..."));
    else if (is_slice(t))
      out.push_back(e.build().tuple(
          std::vector<Value*>{t.items[0].value, t.items[1].value, t.items[2].value}));
    else
      out.push_back(e.value(t, where));
  }
  return e.build().tuple(out);
}

Value* Emitter::tensor_index(Value* t, const Term& item, const Range& where) {
  const IndexItems index = index_items(*this, item, where);
  if (!index.is_basic) return host("tensor_getitem", {t, index_tuple(*this, index, where)}, where);
  Value* view = basic_view(*this, t, index.items, where);
  return view == t ? op("alias", {t}, where) : view;
}

void Emitter::tensor_set_item(Value* t, const Term& item, Value* v, const Range& where) {
  const IndexItems index = index_items(*this, item, where);
  const TypePtr ty = type(v);
  if (!ty->is(TypeKind::kTensor) && !is_number(ty))
    fail(where, cat("cannot assign a value of type '", name_of(ty), "' to an item of a tensor"),
         "make it a tensor with torch.tensor(...)");
  host("tensor_setitem", {t, index_tuple(*this, index, where), v}, where);
}

void Emitter::set_item(const Term& base, const Term& item, Value* v, const Range& where) {
  Value* container = value(base, where);
  const TypePtr ty = type(container);
  at(where);
  if (ty->is(TypeKind::kTensor)) return tensor_set_item(container, item, v, where);
  if (ty->is(TypeKind::kClass)) {
    apply(attribute(Term(container), "__setitem__", where),
          {{{}, item, where}, {{}, Term(v), where}}, where);
    return;
  }
  if (ty->is(TypeKind::kTuple)) fail(where, "items of a tuple cannot be assigned", "use a list");
  if (ty->is(TypeKind::kList) || ty->is(TypeKind::kDict)) {
    const TypePtr wanted = ty->is(TypeKind::kList) ? ty->element() : ty->elements()[1];
    if (is_slice(item)) {
      host("setslice",
           {container, item.items[0].value, item.items[1].value, item.items[2].value,
            to_list(Term(v), where, ty)},
           where);
      return;
    }
    v = expect(v, wanted, where, "the item");
    Value* i = value(item, where);
    if (ty->is(TypeKind::kList) && type(i)->is(TypeKind::kTensor))
      i = convert(i, Type::int_(), true);
    if (ty->is(TypeKind::kDict)) i = expect(i, ty->elements()[0], where, "the key");
    host("setitem", {container, i, v}, where);
    return;
  }
  fail(where, cat("items of a value of type '", name_of(ty), "' cannot be assigned"));
}

void Emitter::delete_item(const Term& base, const Term& item, const Range& where) {
  Value* container = value(base, where);
  at(where);
  if (is_slice(item))
    host("delslice", {container, item.items[0].value, item.items[1].value, item.items[2].value},
         where);
  else
    host("delitem", {container, value(item, where)}, where);
}

}  // namespace prong::script
