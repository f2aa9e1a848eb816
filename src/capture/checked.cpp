// mode="check": each program runs beside the plain loop over its nodes, and the first difference is
// an error. Called by bindings/capture.cpp through runner.h.
#include <cstring>

#include "capture/runner.h"

namespace prong::capture {

namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  if (!(a.sizes() == b.sizes()) || a.dtype() != b.dtype()) return false;
  const Tensor x = a.contiguous(), y = b.contiguous();
  return x.numel() == 0 ||
         std::memcmp(x.raw(), y.raw(), static_cast<size_t>(x.numel()) * x.item_bytes()) == 0;
}

class Checked final : public Runner {
 public:
  Checked(std::shared_ptr<const Trace> trace, Ref<Runner> checked, Ref<Runner> plain)
      : trace_(std::move(trace)), checked_(std::move(checked)), plain_(std::move(plain)) {}

  std::vector<IValue> run(std::span<const IValue> inputs) override {
    for (const TraceNode& n : trace_->nodes)
      if (n.op->is_random()) return checked_->run(inputs);  // twice would draw other numbers
    std::vector<IValue> copies;
    for (const IValue& v : inputs)
      copies.push_back(v.is_tensor() && !trace_->inputs_overlap ? IValue(v.to_tensor().clone())
                                                                : v);
    const std::vector<IValue> want =
        trace_->inputs_overlap ? std::vector<IValue>() : plain_->run(copies);
    std::vector<IValue> got = checked_->run(inputs);
    for (size_t i = 0; i < want.size() && i < got.size(); ++i)
      if (got[i].is_tensor() && !same_bits(got[i].to_tensor(), want[i].to_tensor()))
        complain(trace_->outputs[i], got[i], want[i]);
    for (size_t i = 0; i < inputs.size() && i < trace_->inputs.size() && !trace_->inputs_overlap;
         ++i)
      if (!same_bits(inputs[i].to_tensor(), copies[i].to_tensor()))
        complain(trace_->inputs[i], inputs[i], copies[i]);
    return got;
  }

 private:
  [[noreturn]] void complain(ValueId v, const IValue& got, const IValue& want) const {
    const TraceValue& value = trace_->values[static_cast<size_t>(v)];
    Place place;
    if (value.producer >= 0) {
      const int32_t at = trace_->nodes[static_cast<size_t>(value.producer)].place;
      if (at >= 0) place = trace_->places[static_cast<size_t>(at)];
    }
    throw_error(ErrorKind::kRuntime,
                cat("mode=\"check\": compiled and eager differ at ",
                    value_names(*trace_)[static_cast<size_t>(v)], " (", place.file, ":", place.line,
                    "): compiled ", to_string(got.to_tensor()), ", eager ",
                    to_string(want.to_tensor())));
  }

  std::shared_ptr<const Trace> trace_;
  Ref<Runner> checked_, plain_;
};

class CheckedBackend final : public Backend {
 public:
  explicit CheckedBackend(Ref<Backend> checked) : checked_(std::move(checked)) {}
  Ref<Runner> compile(std::shared_ptr<const Trace> trace, const NumberInputs& number_inputs,
                      std::span<const IValue> inputs) override {
    return make_ref<Checked>(trace, checked_->compile(trace, number_inputs, inputs),
                             node_loop(trace, number_inputs, false));
  }
  bool is_python() const override { return checked_->is_python(); }

 private:
  Ref<Backend> checked_;
};

}  // namespace

Ref<Backend> checked_backend(Ref<Backend> checked) {
  return make_ref<CheckedBackend>(std::move(checked));
}

}  // namespace prong::capture
