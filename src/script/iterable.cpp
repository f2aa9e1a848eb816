// What for loops and comprehensions can go over: lists, tensors, ranges, dicts, tuples, module
// lists, and enumerate, zip and reversed of them.
#include "script/iterable.h"

namespace prong::script {

namespace {

struct ListItems final : Iterable {
  Value* list;
  explicit ListItems(Value* l) : list(l) {}
  Value* length(Emitter& e) const override { return e.host("len", {list}, {}); }
  Term item(Emitter& e, Value* i) const override { return Term(e.host("getitem", {list, i}, {})); }
};

struct TensorItems final : Iterable {
  Value* tensor;
  explicit TensorItems(Value* t) : tensor(t) {}
  Value* length(Emitter& e) const override { return e.host("len", {tensor}, {}); }
  Term item(Emitter& e, Value* i) const override {
    return Term(e.op("select", {tensor, e.integer(0), i}, {}));
  }
};

// Known item by item while compiling.
struct FixedItems final : Iterable {
  std::vector<Term> items;
  std::optional<int64_t> known_length() const override {
    return static_cast<int64_t>(items.size());
  }
  Value* length(Emitter& e) const override { return e.integer(static_cast<int64_t>(items.size())); }
  Term item(Emitter& e, Value* i) const override {
    const auto n = e.known_int(Term(i));
    PRONG_ASSERT(n, "a fixed sequence needs a known index");
    return items[static_cast<size_t>(*n)];
  }
  bool must_unroll() const override { return true; }
};

}  // namespace

Value* RangeItems::length(Emitter& e) const {
  if (const auto n = known_length()) return e.integer(*n);
  if (start_known == 0 && step_known == 1) return stop;  // a negative count runs no turn
  return e.host("range_length", {start, stop, step}, {});
}

std::optional<int64_t> RangeItems::known_length() const {
  if (!start_known || !stop_known || !step_known || *step_known == 0) return std::nullopt;
  const int64_t distance = *stop_known - *start_known, s = *step_known;
  if (s > 0 ? distance <= 0 : distance >= 0) return 0;
  return s > 0 ? (distance + s - 1) / s : (-distance - s - 1) / -s;
}

Term RangeItems::item(Emitter& e, Value* i) const {
  if (const auto n = e.known_int(Term(i)); n && start_known && step_known)
    return Term(e.integer(*start_known + *n * *step_known));
  Value* scaled = step_known == 1 ? i : e.host("mul", {i, step}, {});
  return Term(start_known == 0 ? scaled : e.host("add", {start, scaled}, {}));
}

namespace {

struct Enumerated final : Iterable {
  IterablePtr inner;
  Value* start = nullptr;  // null: 0
  std::optional<int64_t> known_length() const override { return inner->known_length(); }
  Value* length(Emitter& e) const override { return inner->length(e); }
  Term item(Emitter& e, Value* i) const override {
    return Term::tuple({Term(start ? e.host("add", {start, i}, {}) : i), inner->item(e, i)});
  }
  bool must_unroll() const override { return inner->must_unroll(); }
};

struct Zipped final : Iterable {
  std::vector<IterablePtr> inner;
  std::optional<int64_t> known_length() const override {
    std::optional<int64_t> least;
    for (const IterablePtr& i : inner) {
      const auto n = i->known_length();
      // A written-out sequence bounds the turns; the others must be as long, see length().
      if (n && (!least || *n < *least)) least = n;
      if (!n && !must_unroll()) return std::nullopt;
    }
    return least;
  }
  Value* length(Emitter& e) const override {
    Value* least = nullptr;
    for (const IterablePtr& i : inner) {
      Value* n = i->length(e);
      least = least ? e.host("min", {least, n}, {}) : n;
    }
    return least ? least : e.integer(0);
  }
  Term item(Emitter& e, Value* index) const override {
    std::vector<Term> items;
    for (const IterablePtr& i : inner) items.push_back(i->item(e, index));
    return Term::tuple(std::move(items));
  }
  bool must_unroll() const override {
    for (const IterablePtr& i : inner)
      if (i->must_unroll()) return true;
    return false;
  }
};

struct Reversed final : Iterable {
  IterablePtr inner;
  mutable Value* count = nullptr;  // taken once, before the loop
  std::optional<int64_t> known_length() const override { return inner->known_length(); }
  Value* length(Emitter& e) const override { return count = inner->length(e); }
  Term item(Emitter& e, Value* i) const override {
    const auto n = inner->known_length();
    const auto at = e.known_int(Term(i));
    if (n && at) return inner->item(e, e.integer(*n - 1 - *at));
    Value* last = e.host("sub", {count, e.integer(1)}, {});
    return inner->item(e, e.host("sub", {last, i}, {}));
  }
  bool must_unroll() const override { return inner->must_unroll(); }
};

}  // namespace

IterablePtr make_enumerate(IterablePtr inner, Value* start) {
  auto out = std::make_shared<Enumerated>();
  out->inner = std::move(inner);
  out->start = start;
  return out;
}
IterablePtr make_zip(std::vector<IterablePtr> inner) {
  auto out = std::make_shared<Zipped>();
  out->inner = std::move(inner);
  return out;
}
IterablePtr make_reversed(IterablePtr inner) {
  auto out = std::make_shared<Reversed>();
  out->inner = std::move(inner);
  return out;
}

IterablePtr Emitter::iterable(const Term& t, const Range& where) {
  if (t.kind == Term::Kind::kIterable) return t.iterable;
  const auto fixed = [](std::vector<Term> items) {
    auto out = std::make_shared<FixedItems>();
    out->items = std::move(items);
    return IterablePtr(out);
  };
  if (t.kind == Term::Kind::kTuple) return fixed(t.items);
  Value* v = value(t, where);
  const TypePtr ty = type(v);
  switch (ty->kind()) {
  case TypeKind::kList:
    return std::make_shared<ListItems>(v);
  case TypeKind::kStr:
    return std::make_shared<ListItems>(v);
  case TypeKind::kTensor:
    return std::make_shared<TensorItems>(v);
  case TypeKind::kDict:
    return std::make_shared<ListItems>(host("keys", {v}, where));
  case TypeKind::kTuple: {
    std::vector<Term> items;
    for (Value* item : b_.tuple_unpack(v)) items.emplace_back(item);
    return fixed(std::move(items));
  }
  case TypeKind::kClass: {
    const auto& cls = static_cast<const ClassType&>(*ty->class_info());
    const ClassEntry* entry = find_class(cls);
    if (!entry || entry->container == ContainerKind::kNone) break;
    std::vector<Term> items;
    for (const std::string& key : entry->keys) {
      if (entry->container == ContainerKind::kDict)
        items.emplace_back(text(key));
      else
        items.push_back(object_attribute(v, key, where));
    }
    return fixed(std::move(items));
  }
  case TypeKind::kOptional:
    fail(where, cat("cannot loop over a value of type '", name_of(ty), "'"),
         "test it with 'is not None' first");
  default:
    break;
  }
  fail(where, cat("cannot loop over a value of type '", name_of(ty), "'"),
       "loops go over lists, tuples, dicts, tensors, strings, ranges and module lists");
}

}  // namespace prong::script
