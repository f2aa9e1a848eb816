// Which objects a plan only borrows, and what happens when they die. See plan_list.h.
#include "capture/plan_list.h"

#include <algorithm>
#include <map>

#include "capture/python_steps.h"
#include "capture/session.h"
#include "capture/tracker.h"

namespace prong::capture {

// What the weak references' callback knows; it may be called after the plan is gone, where several
// objects die at once.
struct PlanLink {
  Plan* plan;
  PlanList* list;
};

namespace {

constexpr const char* kLinkName = "prong.plan";

PyObject* object_died(PyObject* capsule, PyObject*) {
  const PlanLink link =
      **static_cast<std::shared_ptr<PlanLink>*>(PyCapsule_GetPointer(capsule, kLinkName));
  if (link.plan) link.list->died(link.plan);
  Py_RETURN_NONE;
}

PyMethodDef on_death = {"plan_object_died", object_died, METH_O, nullptr};

PyObject* callback_of(const std::shared_ptr<PlanLink>& link) {
  auto* held = new std::shared_ptr<PlanLink>(link);
  PyObject* capsule = PyCapsule_New(held, kLinkName, [](PyObject* c) {
    delete static_cast<std::shared_ptr<PlanLink>*>(PyCapsule_GetPointer(c, kLinkName));
  });
  if (!capsule) delete held;
  PyObject* callback = capsule ? PyCFunction_New(&on_death, capsule) : nullptr;
  Py_XDECREF(capsule);
  return callback;
}

bool has_life_of_its_own(PyObject* o) {
  if (!o || door().is_tensor(o)) return false;
  return PyFunction_Check(o) ||
         (is_instance_class(Py_TYPE(o)) && PyType_SUPPORTS_WEAKREFS(Py_TYPE(o)));
}

}  // namespace

template <class F>
void Plan::for_each_kept(F f) {
  for (Guard& g : guards) {
    f(g.object);
    f(g.other);
    f(g.owner);
    for (Guard::Read& r : g.reads) {
      f(r.key);
      f(r.value);
    }
  }
  for (NumberStep& n : numbers) {
    f(n.object);
    f(n.last);
  }
  for (Kept& k : objects) f(k);
  for (Effect& e : effects) f(e.owner);
}

void Plan::borrow_objects(PlanList& list) {
  std::map<PyObject*, std::vector<Kept*>> places;
  for_each_kept([&](Kept& k) {
    if (has_life_of_its_own(k.get())) places[k.get()].push_back(&k);
  });
  if (places.empty()) return;
  link_ = std::make_shared<PlanLink>(PlanLink{this, &list});
  const Kept callback = Kept::steal(callback_of(link_));
  std::vector<Kept> alive;  // until the list has the plan: what nobody else keeps dies at the end
  for (const auto& [object, kept] : places) {
    PyObject* reference = callback.get() ? PyWeakref_NewRef(object, callback.get()) : nullptr;
    if (!reference) {
      PyErr_Clear();
      continue;
    }
    alive.emplace_back(object);
    borrowed_.push_back(Kept::steal(reference));
    for (Kept* k : kept) {
      lent_.insert(k);
      k->lend();
    }
  }
  borrow_dicts();
  for (const Kept& k : objects)
    if (lent_.count(&k)) used_late_.push_back(k.get());
  for (const Effect& e : effects)
    if (lent_.count(&e.owner)) used_late_.push_back(e.owner.get());
}

// The attributes of a borrowed object: a guard asks first whether they are still in that dict.
void Plan::borrow_dicts() {
  std::map<PyObject*, PyObject*> owners;  // by dict
  const auto lend = [&](Kept& k) {
    if (lent_.insert(&k).second) k.lend();
  };
  for (Guard& g : guards) {
    if (g.kind == Guard::Kind::kTypeOf && g.number && lent_.count(&g.object))
      owners.emplace(reinterpret_cast<PyObject*>(g.number), g.object.get());
    if (g.kind != Guard::Kind::kDict && g.kind != Guard::Kind::kOrder) continue;
    const auto owner = owners.find(g.object.get());
    if (owner == owners.end()) continue;
    lend(g.object);
    // So that nobody asks the dict whose it is.
    if (!g.owner.get()) g.owner = Kept(reinterpret_cast<PyObject*>(Py_TYPE(owner->second)));
  }
  for (NumberStep& n : numbers)
    if (n.kind == NumberStep::Kind::kDict && owners.count(n.object.get())) lend(n.object);
}

Plan::~Plan() {
  if (link_) link_->plan = nullptr;
  for_each_kept([&](Kept& k) {
    if (lent_.count(&k)) k.forget();
  });
}

std::vector<Kept> Plan::hold_objects() const {
  std::vector<Kept> held;
  for (const Kept& reference : borrowed_) held.emplace_back(PyWeakref_GET_OBJECT(reference.get()));
  return held;
}

int Plan::traverse(visitproc visit, void* arg) const {
  int stop = 0;
  const_cast<Plan*>(this)->for_each_kept([&](const Kept& k) {
    if (!stop && k.get() && !lent_.count(&k)) stop = visit(k.get(), arg);
  });
  if (stop) return stop;
  for (const ArgumentContainer& c : containers) {
    Py_VISIT(c.keys.get());
    Py_VISIT(c.slots.get());
  }
  for (const HeldTensor& h : held) {
    Py_VISIT(h.holder.get());
    Py_VISIT(h.owner.get());
  }
  for (const Kept& reference : borrowed_) Py_VISIT(reference.get());
  for (const PlanProgram& p : programs) {
    if (!p.step) continue;
    Py_VISIT(p.step->callable.get());
    for (const Kept& frame : p.step->frames) Py_VISIT(frame.get());
  }
  return 0;
}

PlanList::~PlanList() { clear(); }

void PlanList::add(std::unique_ptr<Plan> plan) {
  plan->replays_before = *replays_;
  plans_.insert(plans_.begin(), std::move(plan));
  const std::shared_ptr<Plan> first = plans_.front();
  first->borrow_objects(*this);
}

void PlanList::clear() {
  const auto dropped = std::exchange(plans_, {});
  num_useless_ = 0;
}

void PlanList::died(Plan* plan) {
  plan->is_dead = true;
  num_useless_ = *replays_ == plan->replays_before ? num_useless_ + 1 : 0;
  has_dead_ = true;
  if (num_users_ == 0) drop_dead();
}

void PlanList::drop_dead() {
  has_dead_ = false;
  std::vector<std::shared_ptr<Plan>> dead;  // what they keep is dropped when the list is whole
  for (auto& plan : plans_)
    if (plan->is_dead) dead.push_back(std::move(plan));
  std::erase(plans_, nullptr);
}

}  // namespace prong::capture
