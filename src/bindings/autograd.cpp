// The tape in Python: backward and grad, grad_fn objects, hooks, and what autograd.Function stands
// on.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>

#include "bindings/capture.h"
#include "bindings/convert.h"
#include "bindings/grad_fn.h"
#include "bindings/module.h"
#include "bindings/tensor_type.h"
#include "capture/tape_calls.h"
#include "eager/engine.h"
#include "eager/record.h"

namespace nb = nanobind;

namespace prong::python {

using eager::Edge;
using eager::Node;

namespace {

Tensor tensor_or_none(PyObject* object, const char* what) {
  if (object == Py_None) return {};
  PRONG_CHECK(is_tensor(object), kType, what, " must be a Tensor or None, got ", type_name(object));
  return tensor_of(object);
}

std::vector<Tensor> tensors_of(nb::handle sequence, const char* what) {
  std::vector<Tensor> out;
  for (nb::handle item : sequence) out.push_back(tensor_or_none(item.ptr(), what));
  return out;
}

nb::tuple as_tuple(const std::vector<Tensor>& tensors) {
  nb::list list;
  for (const Tensor& t : tensors) list.append(nb::steal(wrap(t)));
  return nb::tuple(list);
}

nb::tuple backward(nb::sequence roots, nb::sequence gradients, bool keep_graph, bool create_graph,
                   nb::sequence inputs, bool returns, bool allow_unused) {
  const auto from = tensors_of(roots, "each of tensors");
  const auto first = tensors_of(gradients, "each gradient");
  const auto to = tensors_of(inputs, "each of inputs");
  std::vector<Tensor> out;
  {
    const PlaceScope place;
    WithoutGil released;
    out = eager::run_backward(from, first, to, {keep_graph, create_graph, returns, allow_unused});
  }
  return as_tuple(out);
}

// ── hooks ──

// The compiled call that was recorded when a hook was made.
class MadeIn {
 public:
  bool is_past() const { return number_ != capture::recording_number(); }

 private:
  uint64_t number_ = capture::recording_number();
};

class PyHook final : public eager::GradientHook {
 public:
  explicit PyHook(nb::handle fn, bool takes_tuple) : fn_(fn.ptr()), takes_tuple_(takes_tuple) {}
  void call(std::vector<Tensor>& gradients) override {
    WithGil held;
    if (!held.is_held()) return;
    Owned argument(takes_tuple_ ? as_tuple(gradients).release().ptr() : wrap(gradients[0]));
    PyObject* const given = argument.get();
    Owned result(checked(capture::call_by_tape(fn_.get(), &given, 1, made_in_.is_past())));
    if (result.get() == Py_None) return;
    if (!takes_tuple_) {
      PRONG_CHECK(is_tensor(result.get()), kType, "expected Variable, but hook returned '",
                  type_name(result.get()), "'");
      const Tensor replaced = tensor_of(result.get());
      PRONG_CHECK(replaced.sizes() == gradients[0].sizes(), kRuntime, "hook '", name_of_hook(),
                  "' has changed the size of value");
      gradients[0] = replaced;
      return;
    }
    replace(gradients, result.get());
  }

  static void replace(std::vector<Tensor>& gradients, PyObject* result) {
    Owned items(is_tensor(result) ? PyTuple_Pack(1, result) : PySequence_Tuple(result));
    checked(items.get());
    PRONG_CHECK(static_cast<size_t>(PyTuple_GET_SIZE(items.get())) == gradients.size(), kRuntime,
                "hook has returned an incorrect number of values (got ",
                PyTuple_GET_SIZE(items.get()), ", but expected ", gradients.size(), ")");
    for (size_t i = 0; i < gradients.size(); ++i)
      gradients[i] = tensor_or_none(PyTuple_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i)),
                                    "what a hook returns");
  }

 private:
  std::string name_of_hook() const {
    Owned name(PyObject_GetAttrString(fn_.get(), "__name__"));
    if (name && PyUnicode_Check(name.get())) return PyUnicode_AsUTF8(name.get());
    PyErr_Clear();
    return "hook";
  }
  PyObjectBox fn_;
  bool takes_tuple_;
  MadeIn made_in_;
};

class PyPostHook final : public eager::PostHook {
 public:
  explicit PyPostHook(nb::handle fn) : fn_(fn.ptr()) {}
  void call(std::vector<Tensor>& given, const std::vector<Tensor>& received) override {
    WithGil held;
    if (!held.is_held()) return;
    const nb::tuple gave = as_tuple(given), got = as_tuple(received);
    PyObject* const args[] = {gave.ptr(), got.ptr()};
    Owned result(checked(capture::call_by_tape(fn_.get(), args, 2, made_in_.is_past())));
    if (result.get() != Py_None) PyHook::replace(given, result.get());
  }

 private:
  PyObjectBox fn_;
  MadeIn made_in_;
};

int64_t next_hook_id() {
  static std::atomic<int64_t> count{0};
  return ++count;
}

// A function that takes the hook away again.
nb::object remover(std::function<void()> remove) { return nb::cpp_function(std::move(remove)); }

nb::object add_tensor_hook(nb::handle self, nb::handle fn) {
  const Tensor t = tensor_of(self.ptr());
  PRONG_CHECK(eager::requires_grad(t.impl()), kRuntime,
              "cannot register a hook on a tensor that doesn't require gradient");
  const Edge edge = eager::gradient_edge(t);
  const int64_t id = next_hook_id();
  edge.node->make_hooks().tensor.push_back({edge.index, id, make_ref<PyHook>(fn, false)});
  return remover([node = edge.node, id] {
    std::erase_if(node->make_hooks().tensor, [&](const auto& h) { return h.id == id; });
  });
}

nb::object add_post_accumulate_hook(nb::handle self, nb::handle fn) {
  const Tensor t = tensor_of(self.ptr());
  PRONG_CHECK(eager::requires_grad(t.impl()), kRuntime,
              "cannot register a hook on a tensor that doesn't require gradient");
  PRONG_CHECK(eager::is_leaf(t), kRuntime,
              "post accumulate grad hooks cannot be registered on non-leaf tensors");
  const int64_t id = next_hook_id();
  eager::make_meta(t.impl()).post_accumulate.push_back({id, make_ref<PyHook>(fn, false)});
  const Ref<eager::WeakTensor> weak(&eager::weak_ref(t));
  return remover([weak, id] {
    if (const Tensor alive = weak->get(); alive.defined())
      std::erase_if(eager::make_meta(alive.impl()).post_accumulate,
                    [&](const auto& h) { return h.first == id; });
  });
}

// ── grad_fn objects ──

// A dict for the user, kept with the node.
nb::object metadata(const GradFn& f) {
  if (!f.node->extra) {
    nb::dict fresh;
    f.node->extra = make_ref<PyObjectBox>(fresh.ptr());
  }
  auto* box = dynamic_cast<PyObjectBox*>(f.node->extra.get());
  return box ? nb::borrow(box->get()) : nb::object(nb::dict());
}

nb::tuple next_functions(const GradFn& f) {
  nb::list list;
  for (const Edge& e : f.node->next())
    list.append(nb::make_tuple(nb::steal(grad_fn_object(e.node.get())), e.node ? e.index : 0));
  return nb::tuple(list);
}

nb::object call_node(const GradFn& f, nb::args gradients) {
  std::vector<Tensor> given = tensors_of(gradients, "each gradient"), out;
  {
    WithoutGil released;
    out = f.node->apply(given);
  }
  if (out.size() == 1) return nb::steal(wrap(out[0]));
  return as_tuple(out);
}

void bind_nodes(nb::module_& m) {
  nb::class_<GradFn>(m, "Node", nb::is_weak_referenceable())
      .def("name", [](const GradFn& f) { return f.node->name(); })
      .def("__repr__", [](const GradFn& f) { return cat("<", f.node->name(), " object>"); })
      .def("__eq__",
           [](const GradFn& f, nb::handle other) {
             return nb::isinstance<GradFn>(other) && nb::cast<GradFn&>(other).node == f.node;
           })
      .def("__hash__", [](const GradFn& f) { return reinterpret_cast<intptr_t>(f.node.get()); })
      .def("__call__", &call_node)
      .def("_sequence_nr", [](const GradFn& f) { return f.node->sequence(); })
      .def_prop_ro("next_functions", &next_functions)
      .def_prop_ro("metadata", &metadata)
      .def_prop_ro("variable",
                   [](const GradFn& f) -> nb::object {
                     auto* leaf = dynamic_cast<eager::AccumulateGrad*>(f.node.get());
                     if (!leaf) throw nb::attribute_error("only AccumulateGrad has a variable");
                     return nb::steal(wrap(leaf->leaf()));
                   })
      .def("_register_hook",
           [](const GradFn& f, nb::handle fn) {
             const int64_t id = next_hook_id();
             f.node->make_hooks().post.push_back({id, make_ref<PyPostHook>(fn)});
             return remover([node = f.node, id] {
               std::erase_if(node->make_hooks().post, [&](const auto& h) { return h.first == id; });
             });
           })
      .def("_register_prehook", [](const GradFn& f, nb::handle fn) {
        const int64_t id = next_hook_id();
        f.node->make_hooks().pre.push_back({id, make_ref<PyHook>(fn, true)});
        return remover([node = f.node, id] {
          std::erase_if(node->make_hooks().pre, [&](const auto& h) { return h.first == id; });
        });
      });
}

// ── custom functions ──

// The node of an autograd.Function: its backward is Python's.
class FunctionNode final : public Node {
 public:
  FunctionNode(std::string name, nb::handle backward, std::vector<Edge> edges)
      : name_(std::move(name)), backward_(backward.ptr()), edges_(std::move(edges)) {
    set_sequence(edges_);
  }
  std::string name() const override { return name_; }
  std::span<const Edge> next() const override { return edges_; }
  void release_saved() override { is_freed = true; }
  std::vector<Tensor> apply(std::vector<Tensor>& gradients) override {
    WithGil held;
    if (!held.is_held()) return {};
    const nb::tuple given = as_tuple(gradients);
    PyObject* const argument = given.ptr();
    Owned result(checked(capture::call_by_tape(backward_.get(), &argument, 1)));
    std::vector<Tensor> out;
    const Py_ssize_t n = PyTuple_GET_SIZE(result.get());
    for (Py_ssize_t i = 0; i < n; ++i)
      out.push_back(tensor_or_none(PyTuple_GET_ITEM(result.get(), i), "each gradient of backward"));
    return out;
  }
  bool is_freed = false;

 private:
  std::string name_;
  PyObjectBox backward_;  // backward(gradients) -> one gradient or None for each edge
  std::vector<Edge> edges_;
};

GradFn make_function_node(const std::string& name, nb::handle backward_call, nb::sequence inputs) {
  std::vector<Edge> edges;
  for (nb::handle item : inputs)
    edges.push_back(is_tensor(item.ptr()) ? eager::gradient_edge(tensor_of(item.ptr())) : Edge());
  return {Ref<Node>(new FunctionNode(name, backward_call, std::move(edges)))};
}

void bind_functions(nb::module_& m) {
  capture::is_python_node = [](const Node& node) {
    return dynamic_cast<const FunctionNode*>(&node) != nullptr;
  };
  m.def("_make_function_node", &make_function_node);
  // The i-th result of a node made above: `t` becomes what that node has made.
  m.def("_set_history", [](nb::handle t, const GradFn& f, uint32_t output) {
    const Tensor result = tensor_of(t.ptr());
    f.node->add_result(result);
    eager::set_history(result.impl(), f.node.get(), output);
  });
  m.def("_add_result",
        [](nb::handle t, const GradFn& f) { f.node->add_result(tensor_of(t.ptr())); });
  m.def("_rebase_history", [](nb::handle t, const GradFn& f, uint32_t output, size_t edge) {
    const Tensor target = tensor_of(t.ptr());
    f.node->add_result(target);
    if (eager::is_view(target.impl()))
      eager::rebase_history(target, f.node, edge);
    else
      eager::set_history(target.impl(), f.node.get(), output);
  });
  m.def("_check_inplace", [](nb::handle t) { eager::check_inplace(tensor_of(t.ptr())); });
  m.def("_bump_version", [](nb::handle t) { tensor_of(t.ptr()).bump_version(); });
  m.def("_is_freed", [](const GradFn& f) {
    auto* node = dynamic_cast<FunctionNode*>(f.node.get());
    return node && node->is_freed;
  });
  m.def("_throw_freed", [] { eager::throw_freed(); });

  struct Saved {
    eager::SavedTensor tensor;
    bool is_defined;
  };
  nb::class_<Saved>(m, "_SavedTensor");
  m.def(
      "_save_for_backward",
      [](nb::handle t, nb::handle node) {
        const Node* owner = node.is_none() ? nullptr : nb::cast<GradFn&>(node).node.get();
        const bool defined = is_tensor(t.ptr());
        return Saved{defined ? eager::SavedTensor(tensor_of(t.ptr()), owner) : eager::SavedTensor(),
                     defined};
      },
      nb::arg("t").none(), nb::arg("node").none());
  m.def(
      "_saved_for_backward",
      [](const Saved& s, nb::handle owner) -> nb::object {
        if (!s.is_defined) return nb::none();
        return nb::steal(
            wrap(owner.is_none() ? s.tensor.get() : s.tensor.get(*nb::cast<GradFn&>(owner).node)));
      },
      nb::arg("saved"), nb::arg("node").none());
}

// ── anomaly mode ──

std::string python_stack() {
  WithGil held;
  if (!held.is_held()) return {};
  Owned module(PyImport_ImportModule("traceback"));
  Owned lines(module ? PyObject_CallMethod(module.get(), "format_stack", nullptr) : nullptr);
  Owned empty(PyUnicode_FromString(""));
  Owned text(lines ? PyUnicode_Join(empty.get(), lines.get()) : nullptr);
  if (!text) {
    PyErr_Clear();
    return {};
  }
  return PyUnicode_AsUTF8(text.get());
}

}  // namespace

PyObject* grad_fn_object(Node* node) {
  if (!node) return Py_NewRef(Py_None);
  return nb::cast(GradFn{Ref<Node>(node)}).release().ptr();
}

void bind_autograd(nb::module_& m) {
  bind_nodes(m);
  bind_functions(m);
  m.def("_run_backward", &backward);
  m.def("_add_tensor_hook", &add_tensor_hook);
  m.def("_add_post_accumulate_hook", &add_post_accumulate_hook);
  m.def("_retain_grad", [](nb::handle t) { eager::retain_grad(tensor_of(t.ptr())); });
  m.def("_gradient_edge", [](nb::handle t) {
    const Edge e = eager::gradient_edge(tensor_of(t.ptr()));
    return nb::make_tuple(nb::steal(grad_fn_object(e.node.get())), e.index);
  });
  m.def("_set_anomaly", [](bool on) { eager::anomaly_where = on ? &python_stack : nullptr; });
  m.def("_is_anomaly", &eager::is_anomaly_enabled);
}

}  // namespace prong::python
