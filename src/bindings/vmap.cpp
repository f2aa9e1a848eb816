// What prong.func stands on: batches made and taken apart, and inputs of functions that are to be
// differentiated.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <mutex>
#include <tuple>
#include <unordered_set>

#include "bindings/convert.h"
#include "bindings/module.h"
#include "bindings/op_function.h"
#include "bindings/tensor_type.h"
#include "eager/batched.h"
#include "eager/record.h"
#include "ops/batching.h"

namespace nb = nanobind;

namespace prong::python {

using eager::Batched;
using eager::Node;
using eager::Randomness;
using eager::VmapLevel;

namespace {

// Kept for good: a task that a function forked may outlive its vmap. Few differ.
VmapLevel* level_object(eager::Interceptor* below, int level, int64_t size, Randomness randomness) {
  static std::mutex lock;
  static std::map<std::tuple<eager::Interceptor*, int, int64_t, Randomness>,
                  std::unique_ptr<VmapLevel>>
      all;
  std::lock_guard guard(lock);
  auto& one = all[{below, level, size, randomness}];
  if (!one) one = std::make_unique<VmapLevel>(below, level, size, randomness);
  return one.get();
}

// Begins a vmap; the number of its level.
int enter(int64_t size, const std::string& randomness) {
  auto* below = reinterpret_cast<eager::Interceptor*>(context()[ContextWord::kInterceptor]);
  const VmapLevel* outer = eager::current_level();
  const int level = outer ? outer->level + 1 : 1;
  const Randomness kind = randomness == "same"        ? Randomness::kSame
                          : randomness == "different" ? Randomness::kDifferent
                                                      : Randomness::kError;
  eager::Interceptor* made = level_object(below, level, size, kind);
  context()[ContextWord::kInterceptor] = reinterpret_cast<uint64_t>(made);
  return level;
}

void leave(int level) {
  VmapLevel* top = eager::current_level();
  PRONG_ASSERT(top && top->level == level, "vmap levels end in another order than they began");
  context()[ContextWord::kInterceptor] = reinterpret_cast<uint64_t>(top->below);
}

// One dimension to another place.
Tensor moved(const Tensor& t, int64_t from, int64_t to) {
  if (from == to) return t;
  const int64_t source[] = {from}, destination[] = {to};
  return run_named("movedim", t, IValue(DimsView(source)), IValue(DimsView(destination)))
      .to_tensor();
}

Tensor add_batch(const Tensor& t, int64_t dim, int level) {
  const Tensor front = moved(t, dim, 0);
  return eager::make_batched(front, level, true);
}

Tensor remove_batch(const Tensor& t, int level, int64_t dim, int64_t size) {
  const Batched* b = eager::batched_of(t.impl());
  if (b && b->level == level) {
    if (b->has_batch) return moved(b->physical, 0, dim);
    return remove_batch(b->physical, level, dim, size);
  }
  PRONG_CHECK(!b || b->level < level, kRuntime,
              "a tensor of a vmap that has ended is used in another one");
  Dims sizes{size};
  for (const int64_t s : t.sizes()) sizes.push_back(s);
  const Tensor all = run_named("expand", t, IValue(DimsView(sizes))).to_tensor();
  return moved(all, 0, dim);
}

// The input of a function that is to be differentiated: the same numbers, and gradients that end
// here, or go on to what the tensor was made from.
Tensor begin_gradient(const Tensor& given) {
  Tensor t = given;
  const VmapLevel* vmap = eager::current_level();
  if (vmap && eager::level_of(t.impl()) < vmap->level)
    t = eager::make_batched(t, vmap->level, false);
  PRONG_CHECK(eager::can_require_grad(t.dtype()), kRuntime,
              "only Tensors of floating point dtype can require gradients");
  if (eager::requires_grad(t.impl())) return run_named("alias", t).to_tensor();
  // Not detach(): below this level a tensor keeps its history.
  const Tensor own = eager::shallow_copy(t);
  own.impl()->requires_grad = true;
  return own;
}

// No gradients flow to these any more.
void end_gradient(const std::vector<Tensor>& inputs) {
  for (const Tensor& t : inputs)
    if (!t.impl()->grad_fn) t.impl()->requires_grad = false;
}

// Whether gradients of t flow to a leaf that is not among `own`.
bool depends_on_others(const Tensor& t, const std::vector<Tensor>& own) {
  std::unordered_set<const Node*> seen;
  std::vector<Node*> waiting;
  const eager::Edge edge = eager::gradient_edge(t);
  if (!edge.node) return false;
  waiting.push_back(edge.node.get());
  while (!waiting.empty()) {
    Node* node = waiting.back();
    waiting.pop_back();
    if (!seen.insert(node).second) continue;
    if (auto* end = dynamic_cast<eager::AccumulateGrad*>(node)) {
      const Tensor leaf = end->leaf();
      bool is_own = false;
      for (const Tensor& o : own) is_own |= leaf.defined() && leaf.is_same(o);
      if (leaf.defined() && leaf.requires_grad() && !is_own) return true;
      continue;
    }
    for (const eager::Edge& next : node->next())
      if (next.node) waiting.push_back(next.node.get());
  }
  return false;
}

// What a function that was differentiated gives to its caller: with a history only where that leads
// further than to the function's own inputs.
Tensor outside(const Tensor& t, const std::vector<Tensor>& own) {
  if (!eager::requires_grad(t.impl()) || depends_on_others(t, own)) return t;
  return eager::shallow_copy(t);  // not detach(): below this level it keeps its history
}

nb::object batch_of(const Tensor& t) {
  const Batched* b = eager::may_be_batched() ? eager::batched_of(t.impl()) : nullptr;
  if (!b) return nb::none();
  return nb::make_tuple(nb::steal(wrap(b->physical)), b->level, b->has_batch);
}

}  // namespace

void bind_vmap(nb::module_& m) {
  m.def("_vmap_enter", &enter);
  m.def("_vmap_leave", &leave);
  m.def("_vmap_add", &add_batch);
  m.def("_vmap_remove", &remove_batch);
  m.def("_vmap_level", [] {
    const VmapLevel* top = eager::current_level();
    return top ? top->level : 0;
  });
  m.def("_batch_of", &batch_of,
        "(physical tensor, level, has_batch) of a batched tensor, or None.");
  m.def("_vmap_randomness", [] {
    const VmapLevel* top = eager::current_level();
    return !top || top->randomness == Randomness::kError ? "error"
           : top->randomness == Randomness::kDifferent   ? "different"
                                                         : "same";
  });
  m.def("_begin_gradient", &begin_gradient);
  m.def("_end_gradient", &end_gradient);
  m.def("_outside", &outside);
  m.def("_batching", [](const std::string& op) {
    return std::string(name_of(batching_rule(registry().get(op)).kind));
  });
}

}  // namespace prong::python
