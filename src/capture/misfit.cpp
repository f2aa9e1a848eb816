// Guards in words. See misfit.h. No code of the program runs here: only plain values are printed by
// Python, of other objects the kind is told.
#include "capture/misfit.h"

#include <algorithm>
#include <cstdio>

#include "base/str.h"
#include "capture/python_names.h"
#include "capture/python_steps.h"
#include "eager/modes.h"

namespace prong::capture {

namespace {

std::string utf8(PyObject* text) {
  const char* words = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : nullptr;
  if (!words) PyErr_Clear();
  return words ? words : "?";
}

std::string plural(Py_ssize_t n, const char* noun) { return cat(n, " ", noun, n == 1 ? "" : "s"); }

std::string tensor_text(const TensorImpl* i) {
  return cat("a ", name_of(i->dtype), " tensor of shape ", DimsView(i->sizes));
}

std::string shown(PyObject* o) {
  if (!o) return "absent";
  if (is_plain_value(o)) {
    PyObject* repr = PyObject_Repr(o);
    std::string text = utf8(repr);
    Py_XDECREF(repr);
    PyErr_Clear();
    return text.size() > 80 ? cat(text.substr(0, 77), "...") : text;
  }
  if (door().is_tensor(o)) return tensor_text(door().impl_of(o));
  if (PyFunction_Check(o))
    return cat("function ", utf8(reinterpret_cast<PyFunctionObject*>(o)->func_qualname));
  if (PyType_Check(o)) return cat("class ", reinterpret_cast<PyTypeObject*>(o)->tp_name);
  if (PyModule_Check(o)) return cat("module ", PyModule_GetName(o));
  if (PyList_CheckExact(o)) return cat("a list of ", plural(PyList_GET_SIZE(o), "item"));
  if (PyDict_CheckExact(o)) return cat("a dict of ", plural(PyDict_GET_SIZE(o), "item"));
  if (PyTuple_CheckExact(o)) return cat("a tuple of ", plural(PyTuple_GET_SIZE(o), "item"));
  return cat("a ", Py_TYPE(o)->tp_name);
}

std::string address(const PyObject* o) {
  char text[32];
  std::snprintf(text, sizeof text, "%p", static_cast<const void*>(o));
  return text;
}

// Two objects that would read alike are told apart by their addresses.
void show_both(GuardText& g, PyObject* was, PyObject* now) {
  g.was = shown(was);
  g.now = shown(now);
  if (g.was != g.now || !was || !now) return;
  g.was = cat(g.was, " at ", address(was));
  g.now = was == now ? "that one, changed" : cat("another one at ", address(now));
}

std::string key_text(const Guard& g, PyObject* key) {
  const std::string name = shown(key);
  if (g.owner.get())
    return cat("attribute ", name, " of a ",
               reinterpret_cast<PyTypeObject*>(g.owner.get())->tp_name);
  PyObject* dict = g.object.get();
  PyObject* module = PyDict_CheckExact(dict) ? PyDict_GetItemString(dict, "__name__") : nullptr;
  if (module && PyDict_GetItemString(dict, "__builtins__"))
    return cat("global ", name, " of module ", utf8(module));
  if (module && PyUnicode_Check(module)) return cat("name ", name, " of module ", utf8(module));
  return cat("key ", name, " of a dict");
}

GuardText text_of_read(const Guard& g, const Guard::Read& r) {
  GuardText t;
  if (r.key.get()) {
    t.what = key_text(g, r.key.get());
    t.was = shown(r.value.get());
  } else if (PyLong_Check(r.value.get())) {
    t.what = "the length of a dict";
    t.was = shown(r.value.get());
  } else {
    t.what = "the keys of a dict and their order";
    t.was = shown(r.value.get());
  }
  return t;
}

}  // namespace

std::string to_text(const GuardText& g) {
  std::string text = cat(g.what, g.now.empty() ? " is " : " was ", g.was);
  if (!g.now.empty()) text = cat(text, ", is ", g.now);
  if (!g.place.file.empty())
    text = cat(text, " (read at ", g.place.file, ":", g.place.line, " in ", g.place.function, ")");
  return text;
}

Place PlanReader::place(int32_t index) const {
  return index < 0 ? Place{} : plan_.places[static_cast<size_t>(index)];
}

// An item of a container that is passed: "item 'x' of argument 'batch'"; or something else that
// counts as an argument.
std::string PlanReader::item(size_t index) const {
  size_t first = plan_.num_arguments, h = 0;
  for (size_t k = 0; k <= plan_.containers.size(); ++k) {
    for (; h < plan_.held.size() && plan_.held[h].after == k; ++h)
      if (first++ == index) return held_text(plan_.held[h]);
    if (k == plan_.containers.size()) break;
    const auto size = static_cast<size_t>(plan_.containers[k].size);
    if (index < first + size)
      return item_text(plan_.containers[k], static_cast<Py_ssize_t>(index - first));
    first += size;
  }
  return "a value";
}

std::string PlanReader::item_text(const ArgumentContainer& c, Py_ssize_t k) const {
  PyObject* keys = c.keys.get();
  if (!c.is_record)
    return cat("item ", keys ? shown(PyTuple_GET_ITEM(keys, k)) : cat(k), " of ",
               argument(c.index));
  const Py_ssize_t named = PyTuple_GET_SIZE(keys);
  PyObject* descriptor = k < named ? nullptr : PyTuple_GET_ITEM(c.slots.get(), k - named);
  return cat("attribute ",
             shown(descriptor ? reinterpret_cast<PyDescrObject*>(descriptor)->d_name
                              : PyTuple_GET_ITEM(keys, k)),
             " of ", argument(c.index));
}

std::string PlanReader::held_text(const HeldTensor& h) const {
  if (!h.key.get() && !PyCell_Check(h.holder.get())) return "a list that the function reaches";
  if (!h.key.get()) return cat("variable '", utf8(h.owner.get()), "' of an enclosing function");
  return cat(h.owner.get() ? "attribute " : "key ", shown(h.key.get()),
             h.owner.get() ? cat(" of a ", reinterpret_cast<PyTypeObject*>(h.owner.get())->tp_name)
                           : std::string(" of a dict"));
}

std::string PlanReader::argument(int32_t index) const {
  PyObject* names = plan_.kwnames.get();
  const auto by_name = names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0;
  const size_t positional = plan_.num_arguments - by_name;
  const auto i = static_cast<size_t>(index);
  if (i >= plan_.num_arguments) return item(i);
  if (i >= positional)
    return cat("argument '", utf8(PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i - positional))),
               "'");
  PyObject* function = callable_;
  size_t shift = 0;
  if (PyMethod_Check(function)) {
    function = PyMethod_GET_FUNCTION(function);
    shift = 1;
  } else if (!PyFunction_Check(function)) {
    function = PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(function)), "__call__");
    Py_XDECREF(function);  // its class keeps it
    PyErr_Clear();
    shift = 1;
  }
  if (function && PyFunction_Check(function)) {
    auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
    if (i + shift < static_cast<size_t>(code->co_argcount))
      return cat(
          "argument '",
          utf8(PyTuple_GET_ITEM(code->co_localsplusnames, static_cast<Py_ssize_t>(i + shift))),
          "'");
  }
  return cat("argument ", i + 1);
}

std::string PlanReader::source(const TensorSource& s) const {
  if (s.kind == TensorSource::Kind::kArgument) return argument(s.index);
  return "a tensor that the function reaches";
}

GuardText PlanReader::text_of(const Guard& g) const {
  GuardText t;
  PyObject* o = g.object.get();
  t.place = place(g.place);
  t.was = shown(g.other.get());
  switch (g.kind) {
  case Guard::Kind::kArgumentIs:
  case Guard::Kind::kArgumentEqual:
    t.what = argument(g.index);
    t.was = shown(o);
    break;
  case Guard::Kind::kSameTensor:
    t.what = argument(g.index);
    t.was = cat("the same tensor as ", argument(static_cast<int32_t>(g.number)));
    break;
  case Guard::Kind::kTypeOf:
    t.what = "the class of an object";
    break;
  case Guard::Kind::kTypeVersion:
    t.what = shown(o);
    t.was = "unchanged";
    break;
  case Guard::Kind::kOrder:
    t.what = "the keys of an OrderedDict and their order";
    break;
  case Guard::Kind::kList:
    t.what = "the items of a list";
    t.was = plural(PyTuple_GET_SIZE(g.other.get()), "item");
    break;
  case Guard::Kind::kSet:
    t.what = "the items of a set";
    break;
  case Guard::Kind::kCell:
    t.what = cat("variable '", utf8(g.owner.get()), "' of an enclosing function");
    break;
  case Guard::Kind::kMember:
    t.what = cat("attribute ", shown(g.owner.get()), " of ", shown(o));
    break;
  case Guard::Kind::kContextVariable:
    t.what = cat("the value of ", shown(o));
    t.was = g.other.get() ? shown(g.other.get()) : "none";
    break;
  case Guard::Kind::kFunction:
    t.what = cat("the code and the defaults of ", shown(o));
    t.was = "unchanged";
    break;
  case Guard::Kind::kDict:
    t.what = "a dict";
    t.was = "unchanged";
    break;
  }
  return t;
}

GuardText PlanReader::misfit_of(const Guard& g, PyObject* const* args) const {
  GuardText t = text_of(g);
  PyObject* o = g.object.get();
  switch (g.kind) {
  case Guard::Kind::kArgumentIs:
  case Guard::Kind::kArgumentEqual:
    show_both(t, o, args[g.index]);
    break;
  case Guard::Kind::kSameTensor:
    t.now = "another one";
    break;
  case Guard::Kind::kTypeOf:
    show_both(t, g.other.get(), reinterpret_cast<PyObject*>(Py_TYPE(o)));
    break;
  case Guard::Kind::kCell:
    show_both(t, g.other.get(), PyCell_GET(o));
    break;
  case Guard::Kind::kList: {
    PyObject* items = g.other.get();
    t.now = plural(PyList_GET_SIZE(o), "item");
    for (Py_ssize_t i = 0; t.was == t.now && i < PyTuple_GET_SIZE(items); ++i) {
      if (PyTuple_GET_ITEM(items, i) == PyList_GET_ITEM(o, i)) continue;
      t.what = cat("item ", i, " of a list");
      show_both(t, PyTuple_GET_ITEM(items, i), PyList_GET_ITEM(o, i));
      break;
    }
    break;
  }
  case Guard::Kind::kDict:
    for (const Guard::Read& r : g.reads) {
      if (read_holds(o, r)) continue;
      t = text_of_read(g, r);
      t.place = place(r.place);
      PyObject* now = nullptr;
      if (r.key.get())
        now = Py_XNewRef(PyDict_GetItemWithError(o, r.key.get()));
      else
        now = PyLong_Check(r.value.get()) ? PyLong_FromSsize_t(PyDict_GET_SIZE(o))
                                          : PySequence_Tuple(o);
      show_both(t, r.value.get(), now);
      Py_XDECREF(now);
      PyErr_Clear();
      return t;
    }
    break;
  case Guard::Kind::kSet:
  case Guard::Kind::kOrder: {
    PyObject* now = PySequence_Tuple(o);
    show_both(t, g.other.get(), now);
    Py_XDECREF(now);
    PyErr_Clear();
    break;
  }
  default:
    t.now = "changed";
    break;
  }
  return t;
}

std::optional<GuardText> PlanReader::misfit_of(const TensorGuard& t, PyObject* const* args) const {
  GuardText g;
  g.what = source(t.source);
  g.place = place(t.place);
  const auto differs = [&](std::string was, std::string now) {
    g.was = std::move(was);
    g.now = std::move(now);
    return g;
  };
  const bool is_argument = t.source.kind == TensorSource::Kind::kArgument;
  PyObject* o = is_argument ? args[t.source.index] : nullptr;
  const TensorImpl* i = plan_.fetch(t.source, args);
  if (!i) return differs("a tensor", shown(o));
  if (is_argument && t.is_exact_type && !door().is_exact_tensor(o))
    return differs("a plain tensor", cat("a ", Py_TYPE(o)->tp_name));
  const auto property = [&](const char* name) { g.what = cat(name, " of ", g.what); };
  if (i->dtype != t.dtype) {
    property("dtype");
    return differs(cat(t.dtype), cat(i->dtype));
  }
  if (static_cast<int64_t>(i->sizes.size()) != t.rank) {
    property("the number of dimensions");
    return differs(cat(t.rank), cat(i->sizes.size()));
  }
  if (i->requires_grad != t.requires_grad) {
    property("requires_grad");
    return differs(t.requires_grad ? "True" : "False", i->requires_grad ? "True" : "False");
  }
  if (i->is_inference != t.is_inference) {
    const char *plain = "a plain tensor", *inference = "one made in inference mode";
    return differs(t.is_inference ? inference : plain, i->is_inference ? inference : plain);
  }
  if (plan_.has_writes && is_view_of_leaf(i) != t.is_view_of_leaf) {
    property("whether gradients see");
    return differs(t.is_view_of_leaf ? "yes" : "no", t.is_view_of_leaf ? "no" : "yes");
  }
  if (t.sizes && !(i->sizes == *t.sizes)) {
    property("the shape");
    return differs(cat(DimsView(*t.sizes)),
                   cat(DimsView(i->sizes), "; the function looked at its sizes"));
  }
  if (t.strides && !(i->strides == *t.strides)) {
    property("the strides");
    return differs(cat(DimsView(*t.strides)), cat(DimsView(i->strides)));
  }
  return std::nullopt;
}

std::optional<GuardText> PlanReader::first_misfit(PyObject* const* args, size_t count,
                                                  PyObject* kwnames) const {
  struct LetGo {
    Plan& plan;
    ~LetGo() { plan.opened_.clear(); }
  } const let_go{plan_};
  const auto by_name = kwnames ? static_cast<size_t>(PyTuple_GET_SIZE(kwnames)) : 0;
  if (count + by_name != plan_.num_arguments)
    return GuardText{"the number of arguments", cat(plan_.num_arguments), cat(count + by_name), {}};
  PyObject* names = plan_.kwnames.get();
  if (kwnames != names && !(names && kwnames && same_value(names, kwnames)))
    return GuardText{"the names of the keyword arguments",
                     names ? shown(names) : "none",
                     kwnames ? shown(kwnames) : "none",
                     {}};
  const auto word = [&](ContextWord w) { return plan_.context[w] ^ prong::context()[w]; };
  if (word(ContextWord::kModes)) {
    const auto text = [](uint64_t modes) {
      return modes & eager::kInference ? "inference mode" : modes & eager::kNoGrad ? "off" : "on";
    };
    return GuardText{"grad mode",
                     text(plan_.context[ContextWord::kModes]),
                     text(prong::context()[ContextWord::kModes]),
                     {}};
  }
  if (plan_.default_dtype != default_dtype())
    return GuardText{"the default dtype",
                     std::string(name_of(plan_.default_dtype)),
                     std::string(name_of(default_dtype())),
                     {}};
  if (plan_.tensor_type_version != version_of_tensor_type())
    return GuardText{"the methods of tensors", "others", "as they are now", {}};
  if (word(ContextWord::kAutocast))
    return GuardText{"autocast", "set otherwise", "as it is now", {}};
  if (word(ContextWord::kInterceptor))
    return GuardText{
        "who watches each op (tracing, function modes)", "another", "who does now", {}};
  if (plan_.is_opened()) {
    if (!plan_.open(args))
      return GuardText{
          "how lists, tuples, dicts and records that are passed are built (types, lengths, keys)",
          "as recorded",
          "another",
          {}};
    args = Plan::pointers(plan_.opened_);
  }
  for (const TensorGuard& t : plan_.tensors)
    if (auto g = misfit_of(t, args)) return g;
  for (Guard& g : plan_.guards)
    if (!plan_.holds(g, args)) return misfit_of(g, args);
  if (!plan_.numbers.empty()) {
    Plan::Found found;
    if (!plan_.find_numbers(args, {}, 0, found)) return misfit_of_numbers(found);
  }
  for (const Leaf& leaf : plan_.leaves)
    if (!plan_.leaf_fits(leaf, args))
      return GuardText{"what a leaf has (.grad, hooks on it)", "as recorded", "otherwise", {}};
  if (plan_.has_steps && !plan_.are_steps_plain())
    return GuardText{"where print(), logging and the like write to",
                     "plain files",
                     "something that runs code of the program",
                     {}};
  return std::nullopt;
}

// After find_numbers() has refused the call.
GuardText PlanReader::misfit_of_numbers(const Plan::Found& found) const {
  for (size_t i = 0; i < plan_.numbers.size() && i < found.values.size(); ++i) {
    const NumberStep& s = plan_.numbers[i];
    PyObject* now = found.values[i].get();
    if (!s.is_needed || s.after > 0 || (now && Py_TYPE(now) == s.type)) continue;
    return GuardText{number_text(static_cast<int32_t>(i)), cat("of type ", s.type->tp_name),
                     now ? cat("of type ", Py_TYPE(now)->tp_name) : "one that cannot be computed",
                     place(s.place)};
  }
  for (const NumberCheck& c : plan_.number_checks) {
    PyObject* now = found.values[static_cast<size_t>(c.number)].get();
    if (now && !same_value(now, c.expected.get()))
      return GuardText{number_text(c.number), shown(c.expected.get()), shown(now), place(c.place)};
  }
  return GuardText{"a number", "an int or a float", "one that cannot be computed", {}};
}

// "size 0 of argument 'x' // 2"
std::string PlanReader::number_text(int32_t number, int depth) const {
  const NumberStep& s = plan_.numbers[static_cast<size_t>(number)];
  const auto of = [&](size_t i) {
    const NumberStep& part = plan_.numbers[static_cast<size_t>(s.of[i])];
    const std::string text = number_text(s.of[i], depth + 1);
    return part.of.empty() || part.kind == NumberStep::Kind::kCall ? text : cat("(", text, ")");
  };
  if (depth > 4) return "...";
  switch (s.kind) {
  case NumberStep::Kind::kArgument:
    return argument(s.index);
  case NumberStep::Kind::kDict: {
    for (const Guard& g : plan_.guards)
      if (g.kind == Guard::Kind::kDict && g.object.get() == s.object.get())
        return key_text(g, s.key.get());
    return cat("key ", shown(s.key.get()), " of a dict");
  }
  case NumberStep::Kind::kCell:
    return cat("variable '", utf8(s.key.get()), "' of an enclosing function");
  case NumberStep::Kind::kConstant:
    return shown(s.object.get());
  case NumberStep::Kind::kSize:
    if (s.index < 0) return cat("the number of elements of ", source(s.tensor));
    return cat("size ", s.index, " of ", source(s.tensor));
  case NumberStep::Kind::kItem:
    return "the value of a tensor";
  case NumberStep::Kind::kStep:
    return cat("what ",
               name_of_callable(plan_.programs[static_cast<size_t>(s.index)].step->callable.get()),
               "() gave");
  case NumberStep::Kind::kRehearsed: {
    using Kind = Rehearsal::Question::Kind;
    const Rehearsal::Question& q = plan_.rehearsal.questions[static_cast<size_t>(s.index)];
    switch (q.kind) {
    case Kind::kSize:
      return cat("size ", q.number, " of a computed tensor");
    case Kind::kCount:
      return "the number of elements of a computed tensor";
    case Kind::kRank:
      return "how many dimensions a computed tensor has";
    case Kind::kOutputs:
      return "whether an op gives as many tensors as it did (1: it does)";
    default:
      return "whether an op has nothing to do (1: it gives its argument back)";
    }
  }
  case NumberStep::Kind::kOperator:
    if (is_unary(s.index)) return cat(operator_text(s.index), of(0));
    return cat(of(0), " ", operator_text(s.index), " ", of(1));
  case NumberStep::Kind::kCall: {
    PyObject* name = PyObject_GetAttrString(s.object.get(), "__name__");
    std::string text = cat(utf8(name), "(");
    Py_XDECREF(name);
    PyErr_Clear();
    for (size_t i = 0; i < s.of.size(); ++i)
      text = cat(text, i ? ", " : "", number_text(s.of[i], depth + 1));
    return text + ")";
  }
  }
  return "a number";
}

std::vector<GuardText> PlanReader::guards() const {
  std::vector<GuardText> all;
  for (const TensorGuard& t : plan_.tensors) {
    GuardText g{source(t.source), {}, {}, place(t.place)};
    g.was = cat("a ", name_of(t.dtype), " tensor of ", t.rank,
                t.rank == 1 ? " dimension" : " dimensions",
                t.sizes ? cat(", shape ", DimsView(*t.sizes)) : std::string(),
                t.requires_grad ? ", with requires_grad" : "");
    all.push_back(std::move(g));
  }
  for (const Guard& g : plan_.guards) {
    if (g.kind != Guard::Kind::kDict) {
      all.push_back(text_of(g));
      continue;
    }
    for (const Guard::Read& r : g.reads) {
      all.push_back(text_of_read(g, r));
      all.back().place = place(r.place);
    }
  }
  for (const NumberCheck& c : plan_.number_checks)
    all.push_back({number_text(c.number), shown(c.expected.get()), {}, place(c.place)});
  for (size_t i = 0; i < plan_.numbers.size(); ++i) {
    const NumberStep& s = plan_.numbers[i];
    if (!s.is_needed || !s.of.empty() || s.kind == NumberStep::Kind::kConstant) continue;
    const auto is_it = [&](const NumberCheck& c) { return static_cast<size_t>(c.number) == i; };
    if (std::none_of(plan_.number_checks.begin(), plan_.number_checks.end(), is_it))
      all.push_back({number_text(static_cast<int32_t>(i)),
                     cat("any ", s.type->tp_name, ", an input"),
                     {},
                     place(s.place)});
  }
  return all;
}

}  // namespace prong::capture
