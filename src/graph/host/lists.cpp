// Lists and tuples: operators, methods, and the building blocks of range, zip, sorted, sum.
#include <algorithm>

#include "graph/host/tables.h"
#include "graph/host/text.h"

namespace prong {
namespace {

using Args = std::span<IValue>;
using Items = std::vector<IValue>;

Items& items(Args a, size_t n = 0) { return a[n].list()->items; }

int64_t position(int64_t i, size_t size, const char* complaint) {
  const auto n = static_cast<int64_t>(size);
  const int64_t at = i < 0 ? i + n : i;
  PRONG_CHECK(at >= 0 && at < n, kIndex, complaint);
  return at;
}
Items::iterator at(Items& list, int64_t i, const char* complaint) {
  return list.begin() + position(i, list.size(), complaint);
}

IValue sliced(const Items& list, const IValue& start, const IValue& stop, const IValue& step) {
  const SliceRange range = slice_range(start, stop, step, static_cast<int64_t>(list.size()));
  Items out;
  out.reserve(static_cast<size_t>(range.count));
  for (int64_t k = 0; k < range.count; ++k)
    out.push_back(list[static_cast<size_t>(range.start + k * range.step)]);
  return IValue::list(std::move(out));
}

void assign_slice(Items& list, Args a) {
  const SliceRange range = slice_range(a[1], a[2], a[3], static_cast<int64_t>(list.size()));
  Items values = items(a, 4);  // a copy: it may be the list itself
  if (range.step == 1) {
    const auto first = list.begin() + range.start;
    list.insert(list.erase(first, first + range.count), values.begin(), values.end());
    return;
  }
  PRONG_CHECK(static_cast<int64_t>(values.size()) == range.count, kValue,
              "attempt to assign sequence of size ", values.size(), " to extended slice of size ",
              range.count);
  for (int64_t k = 0; k < range.count; ++k)
    list[static_cast<size_t>(range.start + k * range.step)] =
        std::move(values[static_cast<size_t>(k)]);
}

void delete_slice(Items& list, Args a) {
  SliceRange range = slice_range(a[1], a[2], a[3], static_cast<int64_t>(list.size()));
  if (range.step < 0 && range.count)
    range = {range.start + (range.count - 1) * range.step, -range.step, range.count};
  Items out;
  int64_t next = range.start, left = range.count;
  for (size_t i = 0; i < list.size(); ++i) {
    if (left && static_cast<int64_t>(i) == next) {
      next += range.step;
      --left;
    } else {
      out.push_back(std::move(list[i]));
    }
  }
  list.swap(out);
}

// a < b for what Python can order; kType otherwise.
bool is_less(const IValue& a, const IValue& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_float() || b.is_float()) return a.to_double() < b.to_double();
    return a.to_int() < b.to_int();
  }
  if (a.is_string() && b.is_string()) return a.to_string() < b.to_string();
  if ((a.is_tuple() && b.is_tuple()) || (a.is_list() && b.is_list())) {
    const Items &x = a.items(), &y = b.items();
    for (size_t i = 0; i < x.size() && i < y.size(); ++i)
      if (!equal(x[i], y[i])) return is_less(x[i], y[i]);
    return x.size() < y.size();
  }
  if (a.is_tensor() && b.is_tensor() && a.tensor_impl()->numel == 1 && b.tensor_impl()->numel == 1)
    return a.to_tensor().item_double() < b.to_tensor().item_double();
  throw_error(ErrorKind::kType, cat("'<' not supported between instances of '", name_of(a.tag()),
                                    "' and '", name_of(b.tag()), "'"));
}

// Python's sort is stable in both directions, and leaves the list as it was when a comparison
// raises.
Items sorted(Items list, bool reverse) {
  if (reverse) std::reverse(list.begin(), list.end());
  std::stable_sort(list.begin(), list.end(), is_less);
  if (reverse) std::reverse(list.begin(), list.end());
  return list;
}

const IValue& extreme(const Items& list, bool want_max) {
  PRONG_CHECK(!list.empty(), kValue, want_max ? "max()" : "min()", " arg is an empty sequence");
  const IValue* best = &list[0];
  for (const IValue& v : list)
    if (want_max ? is_less(*best, v) : is_less(v, *best)) best = &v;
  return *best;
}

IValue concatenated(const Items& a, const Items& b) {
  Items out;
  out.reserve(a.size() + b.size());
  out.insert(out.end(), a.begin(), a.end());
  out.insert(out.end(), b.begin(), b.end());
  return IValue::list(std::move(out));
}
IValue repeated(const Items& list, int64_t n) {
  Items out;
  for (; n > 0; --n) out.insert(out.end(), list.begin(), list.end());
  return IValue::list(std::move(out));
}

bool contains(const Items& list, const IValue& v) {
  return std::any_of(list.begin(), list.end(), [&](const IValue& item) { return equal(item, v); });
}

int64_t range_length(int64_t start, int64_t stop, int64_t step) {
  PRONG_CHECK(step != 0, kValue, "range() arg 3 must not be zero");
  if (step > 0) return start < stop ? (stop - start - 1) / step + 1 : 0;
  return start > stop ? (start - stop - 1) / -step + 1 : 0;
}

void register_operators(HostRegistry& r) {
  r.add(Effect::kReads, "len.list(self: List[t]) -> int",
        [](Args a) { return IValue(static_cast<int64_t>(items(a).size())); });
  r.add(Effect::kPure, "len.tuple(self: t) -> int", [](Args a) {
    PRONG_CHECK(a[0].is_tuple(), kType, "object of type '", name_of(a[0].tag()), "' has no len()");
    return IValue(static_cast<int64_t>(a[0].items().size()));
  });
  r.add(Effect::kReads, "getitem.list(self: List[t], i: int) -> t",
        [](Args a) { return *at(items(a), a[1].to_int(), "list index out of range"); });
  // Of a tuple whose items all have the type of the result.
  r.add(Effect::kMayRaise, "getitem.tuple(self: t, i: int) -> u", [](Args a) {
    const Items& tuple = a[0].items();
    return tuple[static_cast<size_t>(
        position(a[1].to_int(), tuple.size(), "tuple index out of range"))];
  });
  r.add(Effect::kMutates, "setitem.list(self: List[t], i: int, el: t) -> None", [](Args a) {
    *at(items(a), a[1].to_int(), "list assignment index out of range") = std::move(a[2]);
    return IValue();
  });
  r.add(Effect::kMutates, "delitem.list(self: List[t], i: int) -> None", [](Args a) {
    items(a).erase(at(items(a), a[1].to_int(), "list assignment index out of range"));
    return IValue();
  });
  r.add(Effect::kReads,
        "getslice.list(self: List[t], start: int?, stop: int?, step: int?) -> List[t]",
        [](Args a) { return sliced(items(a), a[1], a[2], a[3]); });
  r.add(Effect::kMutates,
        "setslice.list(self: List[t], start: int?, stop: int?, step: int?, items: List[t]) -> None",
        [](Args a) {
          assign_slice(items(a), a);
          return IValue();
        });
  r.add(Effect::kMutates,
        "delslice.list(self: List[t], start: int?, stop: int?, step: int?) -> None", [](Args a) {
          delete_slice(items(a), a);
          return IValue();
        });
  r.add(Effect::kReads, "add.list(a: List[t], b: List[t]) -> List[t]",
        [](Args a) { return concatenated(items(a), items(a, 1)); });
  r.add(Effect::kReads, "mul.list(a: List[t], n: int) -> List[t]",
        [](Args a) { return repeated(items(a), a[1].to_int()); });
  r.add(Effect::kReads, "mul.list_right(n: int, a: List[t]) -> List[t]",
        [](Args a) { return repeated(items(a, 1), a[0].to_int()); });
  r.add(Effect::kReads, "eq.list(a: List[t], b: List[t]) -> bool",
        [](Args a) { return IValue(equal(a[0], a[1])); });
  r.add(Effect::kReads, "ne.list(a: List[t], b: List[t]) -> bool",
        [](Args a) { return IValue(!equal(a[0], a[1])); });
  r.add(Effect::kReads, "lt.list(a: List[t], b: List[t]) -> bool",
        [](Args a) { return IValue(is_less(a[0], a[1])); });
  r.add(Effect::kReads, "gt.list(a: List[t], b: List[t]) -> bool",
        [](Args a) { return IValue(is_less(a[1], a[0])); });
  r.add(Effect::kReads, "le.list(a: List[t], b: List[t]) -> bool",
        [](Args a) { return IValue(!is_less(a[1], a[0])); });
  r.add(Effect::kReads, "ge.list(a: List[t], b: List[t]) -> bool",
        [](Args a) { return IValue(!is_less(a[0], a[1])); });
  r.add(Effect::kReads, "contains.list(self: List[t], item: t) -> bool",
        [](Args a) { return IValue(contains(items(a), a[1])); });
  r.add(Effect::kReads, "contains.tuple(self: t, item: u) -> bool", [](Args a) {
    PRONG_CHECK(a[0].is_tuple(), kType, "argument of type '", name_of(a[0].tag()),
                "' is not iterable");
    return IValue(contains(a[0].items(), a[1]));
  });
}

void register_methods(HostRegistry& r) {
  r.add(Effect::kMutates, "append(self: List[t], el: t) -> None", [](Args a) {
    items(a).push_back(std::move(a[1]));
    return IValue();
  });
  r.add(Effect::kMutates, "extend(self: List[t], items: List[t]) -> None", [](Args a) {
    const Items more = items(a, 1);  // a copy: it may be the list itself
    items(a).insert(items(a).end(), more.begin(), more.end());
    return IValue();
  });
  r.add(Effect::kMutates, "insert(self: List[t], i: int, el: t) -> None", [](Args a) {
    const auto n = static_cast<int64_t>(items(a).size());
    const int64_t i = a[1].to_int();
    items(a).insert(items(a).begin() + std::clamp<int64_t>(i < 0 ? i + n : i, 0, n),
                    std::move(a[2]));
    return IValue();
  });
  r.add(Effect::kMutates, "pop.list(self: List[t], i: int = -1) -> t", [](Args a) {
    PRONG_CHECK(!items(a).empty(), kIndex, "pop from empty list");
    const auto it = at(items(a), a[1].to_int(), "pop index out of range");
    IValue out = std::move(*it);
    items(a).erase(it);
    return out;
  });
  r.add(Effect::kMutates, "remove(self: List[t], el: t) -> None", [](Args a) {
    const auto it = std::find_if(items(a).begin(), items(a).end(),
                                 [&](const IValue& v) { return equal(v, a[1]); });
    PRONG_CHECK(it != items(a).end(), kValue, "list.remove(x): x not in list");
    items(a).erase(it);
    return IValue();
  });
  r.add(Effect::kReads,
        "index.list(self: List[t], el: t, start: int? = None, end: int? = None) -> int",
        [](Args a) {
          const SliceRange range =
              slice_range(a[2], a[3], IValue(), static_cast<int64_t>(items(a).size()));
          for (int64_t i = range.start; i < range.start + range.count; ++i)
            if (equal(items(a)[static_cast<size_t>(i)], a[1])) return IValue(i);
          throw_error(ErrorKind::kValue, cat(repr(a[1]), " is not in list"));
        });
  r.add(Effect::kReads, "count.list(self: List[t], el: t) -> int", [](Args a) {
    return IValue(static_cast<int64_t>(std::count_if(
        items(a).begin(), items(a).end(), [&](const IValue& v) { return equal(v, a[1]); })));
  });
  r.add(Effect::kMutates, "reverse(self: List[t]) -> None", [](Args a) {
    std::reverse(items(a).begin(), items(a).end());
    return IValue();
  });
  r.add(Effect::kMutates, "sort(self: List[t], *, reverse: bool = False) -> None", [](Args a) {
    items(a) = sorted(items(a), a[1].to_bool());
    return IValue();
  });
  r.add(Effect::kMutates, "clear.list(self: List[t]) -> None", [](Args a) {
    Items().swap(items(a));
    return IValue();
  });
  r.add(Effect::kReads, "copy.list(self: List[t]) -> List[t]",
        [](Args a) { return IValue::list(items(a)); });
}

void register_builtins(HostRegistry& r) {
  r.add(Effect::kReads, "list.list(items: List[t]) -> List[t]",
        [](Args a) { return IValue::list(items(a)); });
  r.add(Effect::kReads, "list.str(text: str) -> List[str]", [](Args a) {
    Items out;
    for (const uint32_t point : code_points(a[0].to_string())) {
      std::string c;
      append_utf8(c, point);
      out.emplace_back(std::move(c));
    }
    return IValue::list(std::move(out));
  });
  // Of a tuple whose items all have the element type of the result.
  r.add(Effect::kReads, "list.tuple(items: t) -> List[u]",
        [](Args a) { return IValue::list(a[0].items()); });
  r.add(Effect::kReads, "sorted(items: List[t], *, reverse: bool = False) -> List[t]",
        [](Args a) { return IValue::list(sorted(items(a), a[1].to_bool())); });
  r.add(Effect::kReads, "reversed.list(items: List[t]) -> List[t]",
        [](Args a) { return IValue::list(Items(items(a).rbegin(), items(a).rend())); });
  r.add(Effect::kReads, "min.list(items: List[t]) -> t",
        [](Args a) { return extreme(items(a), false); });
  r.add(Effect::kReads, "max.list(items: List[t]) -> t",
        [](Args a) { return extreme(items(a), true); });
  r.add(Effect::kReads, "sum.int(items: List[int], start: int = 0) -> int", [](Args a) {
    int64_t total = a[1].to_int();
    for (const IValue& v : items(a))
      PRONG_CHECK(!__builtin_add_overflow(total, v.to_int(), &total), kOverflow,
                  "the sum does not fit into 64 bits");
    return IValue(total);
  });
  r.add(Effect::kReads, "sum.bool(items: List[bool]) -> int", [](Args a) {
    int64_t total = 0;
    for (const IValue& v : items(a)) total += v.to_int();
    return IValue(total);
  });
  r.add(Effect::kReads, "sum.float(items: List[float], start: float = 0.0) -> float", [](Args a) {
    double total = a[1].to_double();
    for (const IValue& v : items(a)) total += v.to_double();
    return IValue(total);
  });
  r.add(Effect::kReads, "any.bool(items: List[bool]) -> bool", [](Args a) {
    return IValue(
        std::any_of(items(a).begin(), items(a).end(), [](const IValue& v) { return v.to_bool(); }));
  });
  r.add(Effect::kReads, "all.bool(items: List[bool]) -> bool", [](Args a) {
    return IValue(
        std::all_of(items(a).begin(), items(a).end(), [](const IValue& v) { return v.to_bool(); }));
  });
  r.add(Effect::kReads, "any.number(items: List[t]) -> bool", [](Args a) {
    return IValue(std::any_of(items(a).begin(), items(a).end(),
                              [](const IValue& v) { return v.to_double() != 0; }));
  });
  r.add(Effect::kReads, "all.number(items: List[t]) -> bool", [](Args a) {
    return IValue(std::all_of(items(a).begin(), items(a).end(),
                              [](const IValue& v) { return v.to_double() != 0; }));
  });
  r.add(Effect::kMayRaise, "range_length(start: int, stop: int, step: int) -> int",
        [](Args a) { return IValue(range_length(a[0].to_int(), a[1].to_int(), a[2].to_int())); });
  r.add(Effect::kMayRaise, "range_list(start: int, stop: int, step: int) -> List[int]", [](Args a) {
    const int64_t n = range_length(a[0].to_int(), a[1].to_int(), a[2].to_int());
    Items out;
    out.reserve(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) out.emplace_back(a[0].to_int() + i * a[2].to_int());
    return IValue::list(std::move(out));
  });
  r.add(Effect::kReads, "enumerate(items: List[t], start: int = 0) -> List[Tuple[int, t]]",
        [](Args a) {
          Items out;
          int64_t i = a[1].to_int();
          for (const IValue& v : items(a)) out.push_back(IValue::tuple({IValue(i++), v}));
          return IValue::list(std::move(out));
        });
  r.add(Effect::kReads, "zip.two(a: List[t], b: List[u]) -> List[Tuple[t, u]]", [](Args a) {
    Items out;
    for (size_t i = 0; i < items(a).size() && i < items(a, 1).size(); ++i)
      out.push_back(IValue::tuple({items(a)[i], items(a, 1)[i]}));
    return IValue::list(std::move(out));
  });
  r.add(Effect::kReads, "zip.three(a: List[t], b: List[u], c: List[v]) -> List[Tuple[t, u, v]]",
        [](Args a) {
          Items out;
          for (size_t i = 0;
               i < items(a).size() && i < items(a, 1).size() && i < items(a, 2).size(); ++i)
            out.push_back(IValue::tuple({items(a)[i], items(a, 1)[i], items(a, 2)[i]}));
          return IValue::list(std::move(out));
        });
}

}  // namespace

void register_lists(HostRegistry& r) {
  register_operators(r);
  register_methods(r);
  register_builtins(r);
}

}  // namespace prong
