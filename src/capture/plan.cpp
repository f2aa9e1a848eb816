// Checking and running plans. See plan.h.
#include "capture/plan.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "capture/data_checks.h"
#include "capture/frame_311.h"
#include "capture/python_steps.h"
#include "eager/modes.h"
#include "eager/record.h"
#include "ops/kernels/pointwise.h"
#include "ops/random.h"
#include "profile/profile.h"

namespace prong::capture {

PythonDoor& door() {
  static PythonDoor d;
  return d;
}

bool is_plain_value(PyObject* o) {
  if (o == Py_None || o == Py_Ellipsis || PyBool_Check(o) || PyLong_CheckExact(o) ||
      PyFloat_CheckExact(o) || PyUnicode_CheckExact(o) || PyBytes_CheckExact(o) ||
      PyComplex_CheckExact(o))
    return true;
  if (!PyTuple_CheckExact(o)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
    if (!is_plain_value(PyTuple_GET_ITEM(o, i))) return false;
  return true;
}

bool same_value(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) {  // -0.0 is not 0.0, and a nan is itself
    const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  if (PyLong_CheckExact(a) || PyUnicode_CheckExact(a) || PyBytes_CheckExact(a)) {
    const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
    if (equal < 0) PyErr_Clear();
    return equal == 1;
  }
  if (!PyTuple_CheckExact(a) || PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i)
    if (!same_value(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
  return true;
}

namespace {

bool is_unchanged_dict(const Guard& g) {
  return g.kind == Guard::Kind::kDict && version_of(g.object.get()) == g.number && !g.is_written;
}

// The same keys with the same objects, in one order.
bool holds_the_same(PyObject* dict, PyObject* expected) {
  PyObject *key, *value, *other_key, *other;
  Py_ssize_t position = 0, other_position = 0;
  while (PyDict_Next(expected, &other_position, &other_key, &other))
    if (!PyDict_Next(dict, &position, &key, &value) || key != other_key || value != other)
      return false;
  return PyDict_GET_SIZE(dict) == PyDict_GET_SIZE(expected);
}

}  // namespace

unsigned version_of_tensor_type() {
  PyTypeObject* type = door().tensor_type;
  if (type->tp_version_tag == 0) [[unlikely]] {  // it changed; a look gives it the next one
    static PyObject* const name = PyUnicode_InternFromString("__class__");
    _PyType_Lookup(type, name);
  }
  return type->tp_version_tag;
}

bool read_holds(PyObject* dict, const Guard::Read& r) {
  if (!r.key.get() && PyLong_Check(r.value.get()))
    return PyDict_GET_SIZE(dict) == PyLong_AsSsize_t(r.value.get());
  if (!r.key.get()) {
    PyObject *key, *value;
    Py_ssize_t position = 0, k = 0;
    while (PyDict_Next(dict, &position, &key, &value)) {
      if (k >= PyTuple_GET_SIZE(r.value.get())) return false;
      PyObject* expected = PyTuple_GET_ITEM(r.value.get(), k++);
      if (key != expected && !(is_plain_value(expected) && same_value(key, expected))) return false;
    }
    return k == PyTuple_GET_SIZE(r.value.get());
  }
  PyObject* now = PyDict_GetItemWithError(dict, r.key.get());
  if (now == r.value.get()) return true;
  if (!now) {
    PyErr_Clear();
    return false;
  }
  return r.value.get() && is_plain_value(r.value.get()) && same_value(now, r.value.get());
}

bool Plan::holds(Guard& g, PyObject* const* args) {
  PyObject* o = g.object.get();
  switch (g.kind) {
  case Guard::Kind::kArgumentIs:
    return args[g.index] == o;
  case Guard::Kind::kArgumentEqual:
    return same_value(args[g.index], o);
  case Guard::Kind::kSameTensor:
    return args[g.index] == args[g.number];
  case Guard::Kind::kTypeOf:
    if (g.number) {  // and its attributes are still in the same dict
      PyObject** dict = _PyObject_GetDictPtr(o);
      if (!dict || reinterpret_cast<uint64_t>(*dict) != g.number) return false;
    }
    return reinterpret_cast<PyObject*>(Py_TYPE(o)) == g.other.get();
  case Guard::Kind::kTypeVersion: {
    const auto* type = reinterpret_cast<PyTypeObject*>(o);
    return type->tp_version_tag == g.number &&
           PyType_HasFeature(const_cast<PyTypeObject*>(type), Py_TPFLAGS_VALID_VERSION_TAG);
  }
  case Guard::Kind::kDict:
    if (is_unchanged_dict(g)) return true;
    for (const Guard::Read& r : g.reads)
      if (!read_holds(o, r)) return false;
    g.number = version_of(o);
    return true;
  case Guard::Kind::kOrder: {  // its order changes without a new version (move_to_end)
    PyObject* iterator = PyObject_GetIter(o);
    Py_ssize_t k = 0;
    bool same = iterator != nullptr;
    while (same) {
      PyObject* key = PyIter_Next(iterator);
      if (!key) break;
      same = k < PyTuple_GET_SIZE(g.other.get()) && key == PyTuple_GET_ITEM(g.other.get(), k);
      ++k;
      Py_DECREF(key);
    }
    Py_XDECREF(iterator);
    PyErr_Clear();
    return same && k == PyTuple_GET_SIZE(g.other.get());
  }
  case Guard::Kind::kList: {
    PyObject* items = g.other.get();
    if (PyList_GET_SIZE(o) != PyTuple_GET_SIZE(items)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); ++i) {
      PyObject *now = PyList_GET_ITEM(o, i), *was = PyTuple_GET_ITEM(items, i);
      if (now != was && !(is_plain_value(was) && same_value(now, was))) return false;
    }
    return true;
  }
  case Guard::Kind::kSet: {
    if (PySet_GET_SIZE(o) != PyTuple_GET_SIZE(g.other.get())) return false;
    PyObject* item;
    Py_hash_t hash;
    Py_ssize_t position = 0;
    for (Py_ssize_t i = 0; _PySet_NextEntry(o, &position, &item, &hash); ++i) {
      PyObject* was = PyTuple_GET_ITEM(g.other.get(), i);
      if (item != was && !(is_plain_value(was) && same_value(item, was))) return false;
    }
    return true;
  }
  case Guard::Kind::kCell:
    return PyCell_GET(o) == g.other.get() ||
           (PyCell_GET(o) && g.other.get() && is_plain_value(g.other.get()) &&
            same_value(PyCell_GET(o), g.other.get()));
  case Guard::Kind::kMember: {
    PyObject* now = PyObject_GetAttr(o, g.owner.get());
    PyErr_Clear();
    const bool same = now == g.other.get() ||
                      (now && is_plain_value(g.other.get()) && same_value(now, g.other.get()));
    Py_XDECREF(now);
    return same;
  }
  case Guard::Kind::kContextVariable: {
    PyObject* now = nullptr;
    if (PyContextVar_Get(o, nullptr, &now) < 0) PyErr_Clear();
    const bool same =
        now == g.other.get() ||
        (now && g.other.get() && is_plain_value(g.other.get()) && same_value(now, g.other.get()));
    Py_XDECREF(now);
    return same;
  }
  case Guard::Kind::kFunction: {
    const auto* f = reinterpret_cast<PyFunctionObject*>(o);
    const auto same = [&](PyObject* now, Py_ssize_t i) {
      return (now ? now : Py_None) == PyTuple_GET_ITEM(g.other.get(), i);
    };
    return same(f->func_code, 0) && same(f->func_defaults, 1) && same(f->func_kwdefaults, 2) &&
           (!f->func_kwdefaults ||
            holds_the_same(f->func_kwdefaults, PyTuple_GET_ITEM(g.other.get(), 3)));
  }
  }
  return false;
}

TensorImpl* Plan::fetch(const TensorSource& s, PyObject* const* args) const {
  if (s.kind == TensorSource::Kind::kGradient) {
    const TensorImpl* leaf = fetch(leaves[static_cast<size_t>(s.index)].tensor, args);
    return leaf && leaf->autograd ? eager::meta_of(leaf)->grad.impl() : nullptr;
  }
  PyObject* o = s.kind == TensorSource::Kind::kArgument
                    ? args[s.index]
                    : objects[static_cast<size_t>(s.object)].get();
  return door().is_tensor(o) ? door().impl_of(o) : nullptr;
}

bool Plan::fits(PyObject* const* args, size_t count, PyObject* names) {
  if (fits_now(args, count, names)) return true;
  opened_.clear();  // nothing of a call that is run otherwise is kept
  found_ = {};
  return false;
}

bool Plan::fits_now(PyObject* const* args, size_t count, PyObject* names) {
  const size_t by_name = names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0;
  if (count + by_name != num_arguments) return false;
  if (names != kwnames.get() && !(names && kwnames.get() && same_value(names, kwnames.get())))
    return false;
  for (const ContextWord w :
       {ContextWord::kModes, ContextWord::kAutocast, ContextWord::kInterceptor})
    if (context[w] != prong::context()[w]) return false;
  if (default_dtype != prong::default_dtype()) return false;
  if (tensor_type_version != version_of_tensor_type()) return false;
  // Asks Python, so it comes before what is kept in members until run().
  if (has_steps && (prong_is_traced() || !are_steps_plain())) return false;
  if (is_opened()) {
    if (!open(args)) return false;
    args = pointers(opened_);
  }
  for (const TensorGuard& t : tensors) {
    if (t.source.kind == TensorSource::Kind::kArgument && t.is_exact_type &&
        !door().is_exact_tensor(args[t.source.index]))
      return false;
    const TensorImpl* i = fetch(t.source, args);
    if (!i || i->dtype != t.dtype || i->requires_grad != t.requires_grad ||
        static_cast<int64_t>(i->sizes.size()) != t.rank || i->is_inference != t.is_inference)
      return false;
    if (t.sizes && !(i->sizes == *t.sizes && i->strides == *t.strides)) return false;
    if (t.is_leaf && !is_plain_leaf(i)) return false;
    if (has_writes && is_view_of_leaf(i) != t.is_view_of_leaf) return false;
  }
  for (const Leaf& l : leaves)
    if (!leaf_fits(l, args)) return false;
  if (is_unprofiled && profile::is_on()) return false;
  if (has_backward &&
      (context[ContextWord::kSavingHooks] != prong::context()[ContextWord::kSavingHooks] ||
       eager::is_anomaly_enabled()))
    return false;
  if (is_dead) return false;
  for (Guard& g : guards) {
    if (is_unchanged_dict(g)) continue;  // most are: a module has many
    // Others may run code of the program's, which may drop what the plan borrows.
    if (!holds(g, args) || is_dead) return false;
  }
  if (numbers.empty()) return true;
  found_ = {};
  return find_numbers(args, {}, 0, found_);
}

IValue Plan::value(const TensorSource& s, PyObject* const* args,
                   const std::vector<std::vector<IValue>>& results) const {
  if (s.kind == TensorSource::Kind::kProgram)
    return results[static_cast<size_t>(s.index)][static_cast<size_t>(s.output)];
  return IValue(Tensor(Ref<TensorImpl>(fetch(s, args))));
}

PyObject* Plan::build(const Template& t, PyObject* const* args,
                      const std::vector<std::vector<IValue>>& results, const Found& found) const {
  switch (t.kind) {
  case Template::Kind::kNumber:
    return Py_NewRef(found.values[static_cast<size_t>(t.object)].get());
  case Template::Kind::kObject:
    return Py_NewRef(objects[static_cast<size_t>(t.object)].get());
  case Template::Kind::kArgument:
    return Py_NewRef(args[t.object]);
  case Template::Kind::kTensor: {
    const Tensor made = value(t.tensor, args, results).to_tensor();
    if (t.is_inference) made.impl()->is_inference = true;
    return door().wrap(made);
  }
  case Template::Kind::kTuple:
  case Template::Kind::kSize:
  case Template::Kind::kList: {
    const bool is_list = t.kind == Template::Kind::kList;
    const auto n = static_cast<Py_ssize_t>(t.items.size());
    PyObject* made = is_list ? PyList_New(n) : PyTuple_New(n);
    for (Py_ssize_t i = 0; made && i < n; ++i) {
      PyObject* item = build(t.items[static_cast<size_t>(i)], args, results, found);
      if (!item) {
        Py_DECREF(made);
        return nullptr;
      }
      if (is_list)
        PyList_SET_ITEM(made, i, item);
      else
        PyTuple_SET_ITEM(made, i, item);
    }
    if (!made || t.kind != Template::Kind::kSize) return made;
    PyObject* size = PyObject_CallOneArg(door().size_type, made);
    Py_DECREF(made);
    return size;
  }
  case Template::Kind::kFuture: {
    PyObject* item = build(t.items[0], args, results, found);
    PyObject* future = item ? door().make_future(item) : nullptr;
    Py_XDECREF(item);
    return future;
  }
  case Template::Kind::kDict: {
    PyObject* made = PyDict_New();
    PyObject* keys = objects[static_cast<size_t>(t.object)].get();
    for (size_t i = 0; made && i < t.items.size(); ++i) {
      PyObject* item = build(t.items[i], args, results, found);
      const int done =
          item ? PyDict_SetItem(made, PyTuple_GET_ITEM(keys, static_cast<Py_ssize_t>(i)), item)
               : -1;
      Py_XDECREF(item);
      if (done < 0) Py_CLEAR(made);
    }
    return made;
  }
  default: {
    const auto part = [&](const Template& each) { return build(each, args, results, found); };
    return build_object(t, *this,
                        {[](const void* with, const Template& each) {
                           return (*static_cast<decltype(part)*>(with))(each);
                         },
                         &part});
  }
  }
  return nullptr;
}

bool Plan::takes(const Branch& b, PyObject* const* args,
                 const std::vector<std::vector<IValue>>& results) const {
  const Tensor t = value(b.tensor, args, results).to_tensor();
  if (t.numel() != 1 || is_complex(t.dtype())) return false;
  const bool truth = is_floating(t.dtype()) ? t.item_double() != 0 : t.item_int() != 0;
  return truth == b.outcome;
}

namespace {
constexpr size_t kMaxAccepted = 64;
}  // namespace

void append_geometry(std::vector<int64_t>& to, std::span<const TensorImpl* const> tensors) {
  for (const TensorImpl* t : tensors) {
    to.insert(to.end(), t->sizes.begin(), t->sizes.end());
    to.insert(to.end(), t->strides.begin(), t->strides.end());
  }
  const auto as_tensor = [](const TensorImpl* t) {
    return Tensor(Ref<TensorImpl>(const_cast<TensorImpl*>(t)));
  };
  for (size_t i = 0; i < tensors.size(); ++i) {
    size_t first = 0;
    while (tensors[first]->storage != tensors[i]->storage) ++first;
    to.push_back(static_cast<int64_t>(first));
    for (size_t o = first; o < i; ++o)  // what writes are refused for
      if (tensors[o]->storage == tensors[i]->storage)
        to.push_back(static_cast<int64_t>(overlap(as_tensor(tensors[o]), as_tensor(tensors[i]))));
  }
}

void append_number(std::vector<int64_t>& to, const IValue& n) {
  to.push_back(n.is_int() ? n.to_int() : std::bit_cast<int64_t>(n.to_double()));
}

std::vector<int64_t> Plan::sizes_of_call(PyObject* const* args, const Found& found) const {
  std::vector<int64_t> sizes;
  std::vector<const TensorImpl*> given;
  for (const TensorGuard& t : tensors)
    if (const TensorImpl* i = fetch(t.source, args)) given.push_back(i);
  append_geometry(sizes, given);
  for (const PlanProgram& p : programs)
    for (const VaryingNumber& v : p.varying)
      if (v.may_be_refused && numbers[static_cast<size_t>(v.number)].after == 0)
        append_number(sizes, like_recorded(found.values[static_cast<size_t>(v.number)].get(),
                                           p.numbers[v.at]));
  return sizes;
}

const Plan::Accepted* Plan::accepted(const std::vector<int64_t>& sizes) const {
  const auto known = std::find_if(accepted_.begin(), accepted_.end(),
                                  [&](const Accepted& a) { return a.sizes == sizes; });
  return known == accepted_.end() ? nullptr : &*known;
}

void Plan::accept(std::vector<int64_t> sizes, std::vector<PlanCheck> checks) {
  if (accepted_.size() == kMaxAccepted) accepted_.erase(accepted_.begin());
  accepted_.push_back({std::move(sizes), std::move(checks)});
}

bool Plan::apply(const Effect& e, PyObject* value, PyObject* const* args) const {
  if (e.kind == Effect::Kind::kGradient) {
    TensorImpl* leaf = fetch(leaves[static_cast<size_t>(e.leaf)].tensor, args);
    const bool is_none = value == Py_None;
    if (!is_none || leaf->autograd)
      eager::make_meta(leaf).grad =
          is_none ? Tensor() : Tensor(Ref<TensorImpl>(door().impl_of(value)));
    return true;
  }
  if (e.kind == Effect::Kind::kContents) return set_contents(args[e.leaf], value);
  const Kept held(e.kind == Effect::Kind::kArgument ? args[e.leaf] : e.owner.get());
  if (e.kind == Effect::Kind::kArgument)
    return PyObject_GenericSetAttr(held.get(), e.name.get(), value) == 0;
  if (e.kind == Effect::Kind::kCell) return PyCell_Set(held.get(), value) == 0;
  if (e.kind == Effect::Kind::kAppend) return PyList_Append(held.get(), value) >= 0;
  return (e.kind == Effect::Kind::kItem ? PyObject_SetItem(held.get(), e.name.get(), value)
                                        : PyObject_SetAttr(held.get(), e.name.get(), value)) >= 0;
}

bool Plan::indices_fit(const std::vector<PlanCheck>& checks, int32_t before, PyObject* const* args,
                       const std::vector<std::vector<IValue>>& results) const {
  return std::all_of(checks.begin(), checks.end(), [&](const PlanCheck& c) {
    if (c.before != before) return true;
    const Tensor t = value(c.tensor, args, results).to_tensor();
    return t.defined() && lies_between(t, c.low, c.high, c.ignored);
  });
}

void Plan::accept_as(const Plan& twin, std::vector<int64_t> sizes) {
  if (twin.held.size() != held.size()) return;
  std::vector<PlanCheck> checks = twin.accepted_.back().checks;
  for (PlanCheck& c : checks) {
    if (c.before >= 0) return;
    if (c.tensor.kind != TensorSource::Kind::kObject) continue;
    PyObject* wanted = twin.objects[static_cast<size_t>(c.tensor.object)].get();
    const auto here = std::find_if(objects.begin(), objects.end(),
                                   [&](const Kept& k) { return k.get() == wanted; });
    if (here == objects.end()) return;
    c.tensor.object = static_cast<int32_t>(here - objects.begin());
  }
  accept(std::move(sizes), std::move(checks));
}

std::optional<PyObject*> Plan::run(PyObject* const* args, std::vector<int64_t>* new_sizes,
                                   StepLog& log) {
  Found found = std::move(found_);
  // What the programs leave to other threads may drop them.
  std::vector<Kept> held;
  for (PyObject* o : used_late_) held.emplace_back(o);
  const std::vector<Kept> opened = std::move(opened_);
  found_ = {};
  opened_.clear();
  if (is_opened()) args = pointers(opened);
  std::vector<std::vector<IValue>> results;
  results.reserve(programs.size());
  const uint64_t effects_before = effects_done;
  const Ref<Generator> drawn_from =
      has_draws && !has_writes ? Generator::default_generator()->clone() : Ref<Generator>();
  // As if nothing had been run?
  const auto is_undone = [&] {
    if (has_writes) return effects_done == effects_before;
    if (drawn_from) Generator::default_generator()->set_state(drawn_from->state());
    return true;
  };
  log.next = 0;
  try {
    std::vector<std::vector<IValue>> varying(programs.size());
    const Accepted* known = nullptr;
    if (has_writes || drops_nodes || is_derived) {
      std::vector<int64_t> sizes = sizes_of_call(args, found);
      known = accepted(sizes);
      if (!known && is_retraced) known = go_again(sizes, args, found);
      if (!known) {
        if (!is_derived) *new_sizes = std::move(sizes);
        return std::nullopt;
      }
      if (!indices_fit(known->checks, -1, args, results)) return std::nullopt;  // evaluating raises
    }
    const auto numbers_of = [&](size_t i) -> const std::vector<IValue>& {
      return known && !known->inputs.empty() ? known->inputs[i] : programs[i].numbers;
    };
    const auto fill = [&](size_t i) {
      if (programs[i].varying.empty()) return true;
      varying[i] = numbers_of(i);
      return fill_numbers(programs[i], found, &varying[i]);
    };
    for (size_t i = 0; i < programs.size(); ++i)
      if (!programs[i].waits && !fill(i)) return std::nullopt;
    std::vector<IValue> inputs;
    std::optional<ContextGuard> restore;
    if (has_backward) {
      restore.emplace();
      eager::set_grad_enabled(false);
    }
    std::optional<BuildScope> scope;
    if (!nodes.empty()) scope.emplace(nodes.size());
    size_t effect = 0, branch = 0;
    const auto goes_as_recorded = [&](size_t programs_run) {
      for (; branch < branches.size() && branches[branch].after == programs_run; ++branch)
        if (!takes(branches[branch], args, results)) return false;
      return !has_late_numbers || programs_run == 0 ||
             find_numbers(args, results, static_cast<int32_t>(programs_run), found);
    };
    for (size_t i = 0; i < programs.size(); ++i) {
      PlanProgram& p = programs[i];
      const bool fits =
          !known || i == 0 || indices_fit(known->checks, static_cast<int32_t>(i), args, results);
      if (!fits || !goes_as_recorded(i) || (p.waits && !fill(i))) {
        PRONG_CHECK(is_undone(), kInternal,
                    "a number that a replay needs after a write cannot be had");
        return std::nullopt;
      }
      if (p.step) {
        if (!take(*p.step, i, args, results, found, log)) {
          if (is_undone()) return std::nullopt;  // evaluating goes on from here
          if (!apply_up_to(p.step->order, &effect, args, results, found)) return nullptr;
          give_histories(results);
          return outcome_of(log.entries.back(), false);
        }
        results.emplace_back();
        continue;
      }
      inputs.clear();
      for (const TensorSource& s : p.inputs) inputs.push_back(value(s, args, results));
      for (const IValue& n : p.varying.empty() ? numbers_of(i) : varying[i]) inputs.push_back(n);
      std::vector<IValue> given = p.runner->run(inputs);
      if (p.is_picked) {
        std::vector<IValue> picked;
        for (const size_t k : p.picked) picked.push_back(given[k]);
        given = std::move(picked);
      }
      results.push_back(std::move(given));
    }
    if (!goes_as_recorded(programs.size())) {
      PRONG_CHECK(is_undone(), kInternal,
                  "a number that a replay needs after a write cannot be had");
      return std::nullopt;
    }
    restore.reset();
    give_histories(results);
    if (!apply_up_to(std::numeric_limits<int32_t>::max(), &effect, args, results, found))
      return nullptr;
    return build(result, args, results, found);
  } catch (...) {
    if (is_undone()) return std::nullopt;  // evaluating raises where it should
    door().set_error();
    return nullptr;
  }
}

bool Plan::apply_up_to(int32_t order, size_t* first, PyObject* const* args,
                       const std::vector<std::vector<IValue>>& results, const Found& found) const {
  for (; *first < effects.size() && effects[*first].order <= order; ++*first) {
    PyObject* to = build(effects[*first].value, args, results, found);
    const bool done = to && apply(effects[*first], to, args);
    Py_XDECREF(to);
    if (!done) return false;
  }
  return true;
}

bool Plan::are_steps_plain() const {
  return std::all_of(programs.begin(), programs.end(),
                     [](const PlanProgram& p) { return !p.step || is_step_plain(*p.step); });
}

}  // namespace prong::capture
