// Lists, tuples and dicts that a call is given: a plan asks that they are built as those of the
// recording were, and takes their items as further arguments. So they may be other objects at each
// call. See tracker.h and plan.h.
#include <algorithm>

#include "capture/tracker.h"

namespace prong::capture {

namespace {

constexpr Py_ssize_t kMaxItems = 256;  // of a container; larger ones are the same object each time
constexpr size_t kMaxContainers = 32;

bool is_sequence(PyObject* o) { return PyList_CheckExact(o) || PyTuple_CheckExact(o); }

bool has_plain_keys(PyObject* dict) {
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict, &position, &key, &value))
    if (!is_plain_value(key)) return false;
  return true;
}

std::vector<PyObject*> items_of(PyObject* container) {
  std::vector<PyObject*> items;
  if (is_sequence(container)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(container); ++i)
      items.push_back(PySequence_Fast_GET_ITEM(container, i));
    return items;
  }
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(container, &position, &key, &value)) items.push_back(value);
  return items;
}

}  // namespace

bool is_opened(PyObject* argument) {
  if (is_sequence(argument))
    return !is_plain_value(argument) && PySequence_Fast_GET_SIZE(argument) <= kMaxItems;
  return PyDict_CheckExact(argument) && PyDict_GET_SIZE(argument) <= kMaxItems &&
         has_plain_keys(argument);
}

bool ArgumentContainer::holds(PyObject* o) const {
  if (Py_TYPE(o) != type) return false;
  if (!keys.get()) return PySequence_Fast_GET_SIZE(o) == size;
  if (PyDict_GET_SIZE(o) != size) return false;
  PyObject *key, *value;
  Py_ssize_t position = 0, k = 0;
  while (PyDict_Next(o, &position, &key, &value))
    if (!same_value(PyTuple_GET_ITEM(keys.get(), k++), key)) return false;
  return true;
}

// ── recording ──

Term Tracker::container_argument(PyObject* value) {
  if (is_container_argument(value) || plan_->containers.size() == kMaxContainers) {
    give_up("one container is passed twice, or too many are passed");
    return {};
  }
  const bool is_dict = PyDict_CheckExact(value);
  ArgumentContainer c{static_cast<int32_t>(arguments_.size()), Py_TYPE(value),
                      is_dict ? PyDict_GET_SIZE(value) : PySequence_Fast_GET_SIZE(value)};
  if (is_dict) {
    PyObject* keys = PySequence_Tuple(value);
    c.keys = Kept(keys);
    Py_XDECREF(keys);
  }
  plan_->containers.push_back(std::move(c));
  arguments_.push_back(value);
  const Term t = make(is_dict                    ? Made::Kind::kDict
                      : PyList_CheckExact(value) ? Made::Kind::kList
                                                 : Made::Kind::kTuple,
                      {}, {});
  given_.push_back({t, Kept(value), {}, {}});
  return t;
}

void Tracker::open_containers() {
  for (size_t k = 0; k < given_.size() && is_on(); ++k) {  // grows on the way
    PyObject* const container = given_[k].object.get();
    const Term t = given_[k].term;
    std::vector<PyObject*> items = items_of(container);
    std::vector<Term> terms;
    for (PyObject* item : items) {
      given_[k].items.emplace_back(item);
      terms.push_back(is_opened(item) ? container_argument(item)
                                      : argument(item, static_cast<int32_t>(arguments_.size())));
    }
    if (!is_on()) return;
    Made& m = made_[static_cast<size_t>(t.index)];
    given_[k].terms = terms;
    m.items = std::move(terms);
    m.objects = std::move(items);
    if (PyObject* keys = plan_->containers[k].keys.get())
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); ++i)
        m.keys.emplace_back(PyTuple_GET_ITEM(keys, i));
    own(t, container);
  }
}

bool Tracker::is_container_argument(PyObject* o) const {
  return std::any_of(given_.begin(), given_.end(),
                     [&](const Given& g) { return g.object.get() == o; });
}

// What the call did to them would have to be done again.
bool Tracker::containers_are_unchanged() {
  for (size_t k = 0; k < given_.size(); ++k) {
    PyObject* const container = given_[k].object.get();
    if (!plan_->containers[k].holds(container)) return false;
    const std::vector<PyObject*> now = items_of(container);
    for (size_t i = 0; i < now.size(); ++i)
      if (now[i] != given_[k].items[i].get()) return false;
    const Made& m = made(given_[k].term);
    for (size_t i = 0; i < m.items.size() && i < given_[k].terms.size(); ++i)
      if (m.items[i].kind != given_[k].terms[i].kind ||
          m.items[i].index != given_[k].terms[i].index)
        return false;  // the same object only this time
  }
  // A list from outside that the call writes to may be the one that is passed next time.
  return given_.empty() || std::none_of(effects_.begin(), effects_.end(), [](const Store& e) {
           return PyList_Check(e.owner.get()) || PyDict_Check(e.owner.get());
         });
}

// ── replay ──

bool Plan::open(PyObject* const* args) {
  opened_.clear();
  for (size_t i = 0; i < num_arguments; ++i) opened_.emplace_back(args[i]);
  for (size_t k = 0; k < containers.size(); ++k) {
    const ArgumentContainer& c = containers[k];
    PyObject* const container = opened_[static_cast<size_t>(c.index)].get();
    if (!c.holds(container)) return false;
    for (size_t before = 0; before < k; ++before)
      if (opened_[static_cast<size_t>(containers[before].index)].get() == container) return false;
    for (PyObject* item : items_of(container)) opened_.emplace_back(item);
  }
  return true;
}

}  // namespace prong::capture
