// Numbers of a plan where containers hold them: `in`, tuples of floats in dicts, what zip() and
// enumerate() hand on. Called by the evaluator and the tracker.
#include "capture/evaluator.h"
#include "capture/instance_access.h"
#include "capture/session.h"

namespace prong::capture {

namespace {

// Found and walked as a dict's own keys, whatever else the class adds (Counter).
bool is_walked_as_dict(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (!PyDict_Check(o)) return false;
  for (const char* word : {"__iter__", "__contains__"})
    if (type_attribute(type, word) != type_attribute(&PyDict_Type, word)) return false;
  return true;
}

// zip() or enumerate() that only what was made of it just now will go on with.
bool is_new_walk(const Made& m, PyObject* walk) {
  return (m.is_zip || m.is_enumerate) && m.position == 0 && Py_REFCNT(walk) == 2;
}

}  // namespace

std::optional<Term> Tracker::number_in(Term number_term, PyObject* value, Term container_term,
                                       PyObject* container, bool is_in) {
  if (!container_term.is_same() || is_static_) return std::nullopt;
  if (PyList_CheckExact(container) || is_walked_as_dict(container)) {
    PyObject* items = PySequence_Tuple(container);
    const bool is_plain = items && is_plain_value(items);
    Py_XDECREF(items);
    PyErr_Clear();
    if (!is_plain) return std::nullopt;
    if (PyList_CheckExact(container)) {
      read_list(container);
    } else {
      read_type_of(container);
      read_all(container, 0);
    }
  } else if (PyFrozenSet_CheckExact(container)) {
    if (!vouch(container_term, container, true)) return std::nullopt;
  } else if (!PyTuple_CheckExact(container) || !is_plain_value(container)) {
    return std::nullopt;
  }
  if (!is_on()) return std::nullopt;
  NumberStep step{NumberStep::Kind::kCall};
  PyObject* contains = PyObject_GetAttrString(container, "__contains__");
  if (!contains) {
    PyErr_Clear();
    return std::nullopt;
  }
  step.object = Kept::steal(contains);
  step.is_safe = true;
  step.of = {step_of(number_term, value)};
  return number(std::move(step), is_in ? Py_True : Py_False);
}

// A tuple of floats (Adam's betas), which schedules may put another of in its place: its items are
// inputs, and it is built nowhere again, as the object itself would be another one.
Term Tracker::read_floats(PyObject* dict, PyObject* key, PyObject* tuple) {
  if (is_static_ || !tuple || !PyTuple_CheckExact(tuple) || !is_interned(key) ||
      !PyTuple_GET_SIZE(tuple) || PyTuple_GET_SIZE(tuple) > 8)
    return {};
  std::vector<PyObject*> objects;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    objects.push_back(PyTuple_GET_ITEM(tuple, i));
    if (!PyFloat_CheckExact(objects.back())) return {};
  }
  const std::pair<const void*, const void*> place_of(dict, key);
  if (const auto before = read_tuples_.find(place_of); before != read_tuples_.end()) {
    if (before->second.is_made() && peek(before->second).object == tuple) return before->second;
    give_up("what was read from a dict changed during the call");
    return {};
  }
  std::vector<Term> items;
  for (size_t i = 0; i < objects.size(); ++i) {
    NumberStep step{NumberStep::Kind::kDict};
    step.object = Kept(dict);
    step.key = Kept(key);
    step.index = static_cast<int32_t>(i);
    step.size = static_cast<int32_t>(objects.size());
    items.push_back(
        outside_number(std::move(step), dict, reinterpret_cast<uint64_t>(key) + i + 1, objects[i]));
  }
  const Term made_of = make(Made::Kind::kTuple, std::move(items), std::move(objects));
  own(made_of, tuple);
  if (made_of.is_made()) made_[static_cast<size_t>(made_of.index)].has_names = true;
  read_tuples_.emplace(place_of, made_of);
  return made_of;
}

// Of zip() and enumerate() over tuples and lists: by the places of what they hand on, since numbers
// cannot be known by their address. Nothing: it is not that.
std::optional<Term> Evaluator::zip_term(PyObject* function, PyObject* const* args,
                                        const std::vector<Term>& terms, PyObject* kwnames) {
  const bool is_zip = function == reinterpret_cast<PyObject*>(&PyZip_Type);
  if (!is_zip && function != reinterpret_cast<PyObject*>(&PyEnum_Type)) return std::nullopt;
  Tracker* t = tracker();
  const size_t by_name = kwnames ? static_cast<size_t>(PyTuple_GET_SIZE(kwnames)) : 0;
  const size_t count = is_zip ? terms.size() - by_name : 1;
  if (terms.size() < count) return std::nullopt;
  for (size_t i = 0; i < count; ++i) {
    const bool has_places =
        terms[i].is_made()
            ? t->made(terms[i]).kind == Made::Kind::kTuple ||
                  t->made(terms[i]).kind == Made::Kind::kList ||
                  is_new_walk(t->made(terms[i]), args[i])
            : terms[i].is_same() && (PyRange_Check(args[i]) || PyTuple_CheckExact(args[i]) ||
                                     PyList_CheckExact(args[i]));
    if (!has_places) return std::nullopt;
  }
  for (size_t i = count; i < terms.size(); ++i)  // strict, start
    if (!terms[i].is_same() || !is_plain_value(args[i])) return std::nullopt;
  for (size_t i = 0; i < count; ++i)
    if (!terms[i].is_made() && !t->vouch(terms[i], args[i], false)) return std::nullopt;
  const Term walk =
      t->make(Made::Kind::kIterator, {terms.begin(), terms.begin() + count}, {args, args + count});
  if (!walk.is_made()) return walk;
  Made& m = t->made(walk);
  for (size_t i = 0; i < count; ++i)
    if (!PyIter_Check(args[i])) m.keys.emplace_back(args[i]);  // alive
  (is_zip ? m.is_zip : m.is_enumerate) = true;
  return walk;
}

// The pair or tuple that it gave just now.
Term Evaluator::zipped_term(Term iterator, PyObject* value) {
  Tracker* t = tracker();
  Made& m = t->made(iterator);
  const size_t at = m.position++, skipped = m.is_enumerate ? 1 : 0;
  const std::vector<Term> sources = m.items;
  std::vector<Term> items(skipped, Term::same());
  std::vector<PyObject*> objects;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i)
    objects.push_back(PyTuple_GET_ITEM(value, i));
  for (size_t i = 0; i < sources.size(); ++i) {
    PyObject* item = objects[i + skipped];
    Term each;
    if (!sources[i].is_made()) {
      each = t->same(item);
    } else if (t->made(sources[i]).kind == Made::Kind::kIterator) {
      each = zipped_term(sources[i], item);
    } else if (const Made& from = t->made(sources[i]);
               at < from.items.size() && (from.objects[at] == item || !from.objects[at])) {
      each = from.items[at];
    } else {
      each = t->adopt(item);
    }
    if (!each.is_known()) t->give_up("an iterator gives values of unknown origin");
    items.push_back(each);
  }
  const Term tuple = t->make(Made::Kind::kTuple, std::move(items), std::move(objects));
  t->own(tuple, value);
  return tuple;
}

}  // namespace prong::capture
