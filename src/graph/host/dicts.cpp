// Dicts: insertion order, KeyError with the key's repr.
#include "graph/host/tables.h"

namespace prong {
namespace {

using Args = std::span<IValue>;

DictBox& dict(Args a, size_t n = 0) { return *a[n].dict(); }
[[noreturn]] void missing(const IValue& key) { throw_error(ErrorKind::kKey, repr(key)); }

const IValue& get(Args a) {
  const IValue* v = dict(a).find(a[1]);
  if (!v) missing(a[1]);
  return *v;
}

template <class F>
IValue listed(Args a, F f) {
  std::vector<IValue> out;
  out.reserve(dict(a).size());
  for (size_t i = 0; i < dict(a).size(); ++i) out.push_back(f(dict(a).entry(i)));
  return IValue::list(std::move(out));
}

IValue copied(const DictBox& from) {
  auto to = make_ref<DictBox>();
  for (size_t i = 0; i < from.size(); ++i) to->set(from.entry(i).first, from.entry(i).second);
  return IValue(std::move(to));
}

using Entry = std::pair<IValue, IValue>;

}  // namespace

void register_dicts(HostRegistry& r) {
  r.add(Effect::kReads, "len.dict(self: Dict[k, v]) -> int",
        [](Args a) { return IValue(static_cast<int64_t>(dict(a).size())); });
  r.add(Effect::kReads, "getitem.dict(self: Dict[k, v], key: k) -> v",
        [](Args a) { return get(a); });
  r.add(Effect::kMutates, "setitem.dict(self: Dict[k, v], key: k, value: v) -> None", [](Args a) {
    dict(a).set(a[1], std::move(a[2]));
    return IValue();
  });
  r.add(Effect::kMutates, "delitem.dict(self: Dict[k, v], key: k) -> None", [](Args a) {
    if (!dict(a).erase(a[1])) missing(a[1]);
    return IValue();
  });
  r.add(Effect::kReads, "contains.dict(self: Dict[k, v], key: k) -> bool",
        [](Args a) { return IValue(dict(a).find(a[1]) != nullptr); });
  r.add(Effect::kReads, "eq.dict(a: Dict[k, v], b: Dict[k, v]) -> bool",
        [](Args a) { return IValue(equal(a[0], a[1])); });
  r.add(Effect::kReads, "ne.dict(a: Dict[k, v], b: Dict[k, v]) -> bool",
        [](Args a) { return IValue(!equal(a[0], a[1])); });
  r.add(Effect::kReads, "get.optional(self: Dict[k, v], key: k) -> Optional[v]", [](Args a) {
    const IValue* v = dict(a).find(a[1]);
    return v ? *v : IValue();
  });
  r.add(Effect::kReads, "get.default(self: Dict[k, v], key: k, default: v) -> v", [](Args a) {
    const IValue* v = dict(a).find(a[1]);
    return v ? *v : std::move(a[2]);
  });
  r.add(Effect::kMutates, "setdefault(self: Dict[k, v], key: k, default: v) -> v", [](Args a) {
    if (const IValue* v = dict(a).find(a[1])) return *v;
    dict(a).set(a[1], a[2]);
    return std::move(a[2]);
  });
  r.add(Effect::kMutates, "pop.dict(self: Dict[k, v], key: k) -> v", [](Args a) {
    IValue v = get(a);
    dict(a).erase(a[1]);
    return v;
  });
  r.add(Effect::kMutates, "pop.dict_default(self: Dict[k, v], key: k, default: v) -> v",
        [](Args a) {
          const IValue* found = dict(a).find(a[1]);
          if (!found) return std::move(a[2]);
          IValue v = *found;
          dict(a).erase(a[1]);
          return v;
        });
  r.add(Effect::kMutates, "popitem(self: Dict[k, v]) -> Tuple[k, v]", [](Args a) {
    PRONG_CHECK(dict(a).size() != 0, kKey, "'popitem(): dictionary is empty'");
    const Entry last = dict(a).entry(dict(a).size() - 1);
    dict(a).erase(last.first);
    return IValue::tuple({last.first, last.second});
  });
  r.add(Effect::kMutates, "update(self: Dict[k, v], other: Dict[k, v]) -> None", [](Args a) {
    for (size_t i = 0; i < dict(a, 1).size(); ++i)
      dict(a).set(dict(a, 1).entry(i).first, dict(a, 1).entry(i).second);
    return IValue();
  });
  r.add(Effect::kMutates, "clear.dict(self: Dict[k, v]) -> None", [](Args a) {
    dict(a).clear();
    return IValue();
  });
  r.add(Effect::kReads, "copy.dict(self: Dict[k, v]) -> Dict[k, v]",
        [](Args a) { return copied(dict(a)); });
  r.add(Effect::kReads, "keys(self: Dict[k, v]) -> List[k]",
        [](Args a) { return listed(a, [](const Entry& e) { return e.first; }); });
  r.add(Effect::kReads, "values(self: Dict[k, v]) -> List[v]",
        [](Args a) { return listed(a, [](const Entry& e) { return e.second; }); });
  r.add(Effect::kReads, "items(self: Dict[k, v]) -> List[Tuple[k, v]]", [](Args a) {
    return listed(a, [](const Entry& e) { return IValue::tuple({e.first, e.second}); });
  });
  r.add(Effect::kReads, "list.dict(items: Dict[k, v]) -> List[k]",
        [](Args a) { return listed(a, [](const Entry& e) { return e.first; }); });
  r.add(Effect::kReads, "dict.dict(items: Dict[k, v]) -> Dict[k, v]",
        [](Args a) { return copied(dict(a)); });
  r.add(Effect::kReads, "dict.pairs(items: List[Tuple[k, v]]) -> Dict[k, v]", [](Args a) {
    auto to = make_ref<DictBox>();
    for (const IValue& pair : a[0].items()) to->set(pair.items()[0], pair.items()[1]);
    return IValue(std::move(to));
  });
}

}  // namespace prong
