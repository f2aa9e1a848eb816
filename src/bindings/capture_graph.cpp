// Traces for Python; see capture_graph.h.
#include "bindings/capture_graph.h"

#include "bindings/convert.h"
#include "bindings/tensor_type.h"

namespace prong::python {

namespace {

using namespace capture;

PyObject* text(std::string_view s) {
  return checked(PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size())));
}

class Description {
 public:
  Description(const Trace& trace, const NumberInputs& number_inputs)
      : trace_(trace), names_(value_names(trace)), number_names_(trace.numbers.size()) {
    inputs_ = Owned(checked(PyList_New(0)));
    nodes_ = Owned(checked(PyList_New(0)));
    outputs_ = Owned(checked(PyList_New(0)));
    for (const ValueId v : trace.inputs) append(inputs_, text(names_[static_cast<size_t>(v)]));
    int count = 0;
    for (size_t i = 0; i < number_inputs.size(); ++i) {
      if (!number_inputs[i]) continue;
      number_names_[i] = cat("number_", ++count);
      append(inputs_, text(number_names_[i]));
    }
    for (const TraceNode& n : trace.nodes) append(nodes_, node(n));
    // Where something is written or drawn, the order of the program is kept.
    bodies_ = Owned(checked(PyList_New(0)));
    if (!trace.has_writes && !trace.draws)
      for (const TraceRegion& r : trace.regions) append(bodies_, body(r));
    for (const ValueId v : trace.outputs) append(outputs_, text(names_[static_cast<size_t>(v)]));
  }

  PyObject* tuple() const {
    return checked(PyTuple_Pack(4, inputs_.get(), nodes_.get(), outputs_.get(), bodies_.get()));
  }

 private:
  static void append(Owned& list, PyObject* stolen) {
    Owned item(stolen);
    checked(PyList_Append(list.get(), item.get()));
  }

  PyObject* reference(const std::string& name) const {
    return checked(Py_BuildValue("(ss)", "%", name.c_str()));
  }

  PyObject* constant(const IValue& v) const {
    if (v.is_tensor() && v.tensor_impl()->is_wrapped_number) {
      const Tensor t = v.to_tensor();
      if (t.dtype() == DType::kBool) return PyBool_FromLong(t.item_int() != 0);
      return checked(is_floating(t.dtype()) ? PyFloat_FromDouble(t.item_double())
                                            : PyLong_FromLongLong(t.item_int()));
    }
    return to_python(v);
  }

  PyObject* operand(const Operand& o) const {
    const auto i = static_cast<size_t>(o.index);
    switch (o.kind) {
    case Operand::Kind::kValue:
      return reference(names_[i]);
    case Operand::Kind::kNumber:
      return number_names_[i].empty() ? constant(trace_.numbers[i]) : reference(number_names_[i]);
    case Operand::Kind::kConstant:
      return constant(trace_.constants[i]);
    default: {
      Owned list(checked(PyList_New(0)));
      for (const Operand& item : trace_.lists[i]) append(list, operand(item));
      return list.release();
    }
    }
  }

  bool is_default(const Operand& o, const Argument& a) const {
    if (!a.has_default) return false;
    if (o.kind == Operand::Kind::kConstant)
      return equal(trace_.constants[static_cast<size_t>(o.index)], a.default_value);
    if (o.kind == Operand::Kind::kNumber)
      return number_names_[static_cast<size_t>(o.index)].empty() &&
             equal(trace_.numbers[static_cast<size_t>(o.index)], a.default_value);
    return false;
  }

  // (the body around it, first node, node after the last, name, place)
  PyObject* body(const TraceRegion& r) const {
    const Place place = r.place < 0 ? Place{} : trace_.places[static_cast<size_t>(r.place)];
    return checked(Py_BuildValue("(iiis(ssi))", r.parent, r.first, r.end, r.name.c_str(),
                                 place.file.c_str(), place.function.c_str(), place.line));
  }

  PyObject* node(const TraceNode& n) const {
    const auto& schema = n.op->schema().arguments;
    Owned args(checked(PyList_New(0))), kwargs(checked(PyDict_New()));
    bool by_name = false;  // after one that is left out
    for (size_t i = 0; i < n.args.size(); ++i) {
      if (is_default(n.args[i], schema[i])) {
        by_name = true;
        continue;
      }
      Owned value(operand(n.args[i]));
      if (by_name || schema[i].is_keyword_only)
        checked(PyDict_SetItemString(kwargs.get(), schema[i].name.c_str(), value.get()));
      else
        checked(PyList_Append(args.get(), value.get()));
    }
    Owned outputs(checked(PyList_New(0)));
    for (int32_t k = 0; k < n.num_outputs; ++k)
      append(outputs, text(names_[static_cast<size_t>(n.first_output + k)]));
    Owned metas(checked(PyList_New(0)));
    for (int32_t k = 0; k < n.num_outputs; ++k)
      append(metas, meta(trace_.values[static_cast<size_t>(n.first_output + k)].meta));
    const Place place = n.place < 0 ? Place{} : trace_.places[static_cast<size_t>(n.place)];
    const char* kinds[] = {"tensor", "tuple", "list"};
    return checked(Py_BuildValue("{sssssOsOsOsOsss(ssi)}", "name", n.op->name().c_str(), "base",
                                 n.op->base_name().c_str(), "args", args.get(), "kwargs",
                                 kwargs.get(), "outputs", outputs.get(), "metas", metas.get(),
                                 "result", kinds[static_cast<int>(n.result)], "place",
                                 place.file.c_str(), place.function.c_str(), place.line));
  }

  static PyObject* meta(const TensorMeta& m) {
    Owned sizes(to_python(IValue(DimsView(m.sizes)))), dtype(to_python(IValue(m.dtype)));
    return checked(PyTuple_Pack(2, sizes.get(), dtype.get()));
  }

  const Trace& trace_;
  std::vector<std::string> names_, number_names_;
  Owned inputs_, nodes_, outputs_, bodies_;
};

class PythonRunner final : public Runner {
 public:
  explicit PythonRunner(PyObject* callable) : callable_(callable) {}

  std::vector<IValue> run(std::span<const IValue> inputs) override {
    WithGil gil;
    Owned args(checked(PyTuple_New(static_cast<Py_ssize_t>(inputs.size()))));
    for (size_t i = 0; i < inputs.size(); ++i)
      PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), to_python(inputs[i]));
    Owned result(checked(PyObject_Call(callable_.get(), args.get(), nullptr)));
    std::vector<IValue> results;
    if (is_tensor(result.get())) {
      results.emplace_back(tensor_of(result.get()));
      return results;
    }
    PRONG_CHECK(PyTuple_Check(result.get()) || PyList_Check(result.get()), kType,
                "what a back end gives must give a tuple of the graph's outputs, not ",
                type_name(result.get()));
    Owned items(checked(PySequence_Tuple(result.get())));
    result = Owned();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
      PyObject* item = PyTuple_GET_ITEM(items.get(), i);
      PRONG_CHECK(is_tensor(item), kType, "the back end's callable gave a ", type_name(item),
                  " where the graph gives a Tensor");
      results.emplace_back(tensor_of(item));
    }
    return results;
  }

 private:
  PyObjectBox callable_;
};

class PythonBackend final : public Backend {
 public:
  explicit PythonBackend(PyObject* compiler) : compiler_(compiler) {}

  Ref<Runner> compile(std::shared_ptr<const Trace> trace, const NumberInputs& number_inputs,
                      std::span<const IValue> inputs) override {
    WithGil gil;
    Owned description(describe_trace(*trace, number_inputs));
    Owned examples(checked(PyList_New(static_cast<Py_ssize_t>(inputs.size()))));
    for (size_t i = 0; i < inputs.size(); ++i)
      PyList_SET_ITEM(examples.get(), static_cast<Py_ssize_t>(i), to_python(inputs[i]));
    Owned callable(checked(
        PyObject_CallFunctionObjArgs(compiler_.get(), description.get(), examples.get(), nullptr)));
    PRONG_CHECK(PyCallable_Check(callable.get()), kType, "a back end must give a callable, got ",
                type_name(callable.get()));
    return make_ref<PythonRunner>(callable.get());
  }
  bool is_python() const override { return true; }

 private:
  PyObjectBox compiler_;
};

}  // namespace

PyObject* describe_trace(const Trace& trace, const NumberInputs& number_inputs) {
  return Description(trace, number_inputs).tuple();
}

Ref<Backend> python_backend(PyObject* compiler) { return make_ref<PythonBackend>(compiler); }

}  // namespace prong::python
