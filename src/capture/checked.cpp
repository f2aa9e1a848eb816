// mode="check": each program runs beside the plain loop over its nodes, and the first difference is
// an error. Called by bindings/capture.cpp through runner.h.
#include <algorithm>
#include <cstring>

#include "capture/runner.h"
#include "ops/random.h"

namespace prong::capture {

namespace {

// Tensors of their own memory that overlap as those given do.
std::vector<IValue> copies_of(std::span<const IValue> values) {
  std::vector<std::pair<Storage*, Tensor>> copied;
  std::vector<IValue> copies;
  for (const IValue& v : values) {
    if (!v.is_tensor()) {
      copies.push_back(v);
      continue;
    }
    const Tensor t = v.to_tensor();
    auto it = std::find_if(copied.begin(), copied.end(),
                           [&](const auto& c) { return c.first == t.storage().get(); });
    if (it == copied.end()) {
      const auto items = static_cast<int64_t>(t.storage()->bytes() / t.item_bytes());
      copied.emplace_back(t.storage().get(), t.as_strided(Dims{items}, Dims{1}, 0).clone());
      it = copied.end() - 1;
    }
    copies.push_back(it->second.as_strided(t.sizes(), t.strides(), t.offset(), t.dtype()));
  }
  return copies;
}

bool is_laid_out_alike(const Tensor& a, const Tensor& b) {
  for (size_t d = 0; d < a.sizes().size(); ++d)
    if (a.sizes()[d] > 1 && a.strides()[d] != b.strides()[d]) return false;
  return true;
}

// In which way they differ, in words; empty: in none.
std::string difference(const Tensor& got, const Tensor& want) {
  if (got.dtype() != want.dtype())
    return cat("the compiled dtype is ", got.dtype(), ", eager's is ", want.dtype());
  if (!(got.sizes() == want.sizes()))
    return cat("the compiled shape is ", got.sizes(), ", eager's is ", want.sizes());
  const Tensor x = got.contiguous(), y = want.contiguous();
  const size_t bytes = x.item_bytes();
  const auto* p = static_cast<const char*>(x.raw());
  const auto* q = static_cast<const char*>(y.raw());
  int64_t count = 0, first = -1;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const size_t at = static_cast<size_t>(i) * bytes;
    if (std::memcmp(p + at, q + at, bytes) == 0) continue;
    if (count++ == 0) first = i;
  }
  if (count == 0)
    return is_laid_out_alike(got, want)
               ? std::string()
               : cat("the compiled strides are ", got.strides(), ", eager's are ", want.strides());
  Dims at = got.sizes();
  for (size_t d = at.size(); d-- > 0; first /= got.sizes()[d]) at[d] = first % got.sizes()[d];
  return cat(count, " of ", x.numel(), count == 1 ? " values differs" : " values differ",
             at.empty() ? std::string() : cat(", first at ", at), ": compiled ", to_string(got),
             ", eager ", to_string(want));
}

bool has_own_generator(const Trace& trace) {
  return std::any_of(trace.constants.begin(), trace.constants.end(), [](const IValue& c) {
    return c.is_object() && dynamic_cast<Generator*>(c.object());
  });
}

class Checked final : public Runner {
 public:
  Checked(Ref<Backend> backend, std::shared_ptr<const Trace> trace, NumberInputs number_inputs,
          std::span<const IValue> inputs, Refuse refuse)
      : backend_(std::move(backend)), trace_(std::move(trace)),
        number_inputs_(std::move(number_inputs)), refuse_(refuse),
        is_compared_(!has_own_generator(*trace_)),
        checked_(backend_->compile(trace_, number_inputs_, inputs)),
        plain_(node_loop(trace_, number_inputs_, false)) {}

  std::vector<IValue> run(std::span<const IValue> inputs) override {
    if (!is_compared_) return checked_->run(inputs);  // twice would draw other numbers
    const std::vector<IValue> copies = copies_of(inputs), kept = copies_of(inputs);
    const Tensor drawn = random_state();
    const std::vector<IValue> want = run_aside(*plain_, copies);
    restore_random(drawn);
    std::vector<IValue> got = checked_->run(inputs);
    if (got.size() != want.size()) return got;  // an error, whatever they are
    Difference first = compare(*trace_, got, want);
    if (first.value >= 0) first = locate(first, kept, drawn);
    for (size_t i = 0; i < trace_->inputs.size(); ++i) {
      const ValueId v = trace_->inputs[i];
      std::string text = difference(inputs[i].to_tensor(), copies[i].to_tensor());
      if (!text.empty() &&
          (first.value < 0 || (writer_of(v) >= 0 && writer_of(v) < maker_of(first))))
        first = {v, std::move(text)};
    }
    if (first.value >= 0) complain(first);
    return got;
  }

 private:
  struct Difference {
    ValueId value = -1;  // -1: there is none
    std::string text;
  };

  Tensor random_state() const {
    return trace_->draws ? Generator::default_generator()->state() : Tensor();
  }
  static void restore_random(const Tensor& state) {
    if (state.impl()) Generator::default_generator()->set_state(state);
  }

  // What it does to copies is no effect.
  static std::vector<IValue> run_aside(Runner& runner, std::span<const IValue> inputs) {
    struct Restore {
      uint64_t before = effects_done;
      ~Restore() { effects_done = before; }
    } restore;
    return runner.run(inputs);
  }

  // The difference in the value that is made first.
  static Difference compare(const Trace& trace, const std::vector<IValue>& got,
                            const std::vector<IValue>& want) {
    Difference found;
    for (size_t i = 0; i < want.size(); ++i) {
      const ValueId v = trace.outputs[i];
      if (!got[i].is_tensor() || (found.value >= 0 && found.value < v)) continue;
      std::string text = difference(got[i].to_tensor(), want[i].to_tensor());
      if (!text.empty()) found = {v, std::move(text)};
    }
    return found;
  }

  // Compiles the graph once more with all values as results: the first that differs is where the
  // difference comes from. Where it does not show then, `seen` is all that is known.
  Difference locate(Difference seen, const std::vector<IValue>& inputs, const Tensor& drawn) const {
    auto all = std::make_shared<Trace>(*trace_);
    all->outputs.clear();
    for (size_t v = 0; v < all->values.size(); ++v)
      if (all->values[v].producer >= 0) all->outputs.push_back(static_cast<ValueId>(v));
    try {
      const std::vector<IValue> for_plain = copies_of(inputs), for_checked = copies_of(inputs);
      restore_random(drawn);
      const auto want = run_aside(*node_loop(all, number_inputs_, false), for_plain);
      restore_random(drawn);
      const auto got = run_aside(*backend_->compile(all, number_inputs_, for_checked), for_checked);
      Difference first = compare(*all, got, want);
      if (got.size() == want.size() && first.value >= 0 && first.value <= seen.value) return first;
    } catch (const std::exception&) {
      // A back end that does not take this graph.
    }
    return seen;
  }

  std::string place_of(int32_t node) const {
    const int32_t at = node < 0 ? -1 : trace_->nodes[static_cast<size_t>(node)].place;
    if (at < 0 || trace_->places[static_cast<size_t>(at)].file.empty()) return {};
    const Place& place = trace_->places[static_cast<size_t>(at)];
    return cat(" (", place.file, ":", place.line, ")");
  }

  // The node after which it shows.
  int32_t maker_of(const Difference& d) const {
    const int32_t writer = writer_of(d.value);
    return writer >= 0 ? writer : trace_->values[static_cast<size_t>(d.value)].producer;
  }

  // The last node that writes the memory of a value in place; -1: none.
  int32_t writer_of(ValueId v) const {
    const auto storage = [&](ValueId w) {
      const ValueId first = trace_->values[static_cast<size_t>(w)].storage;
      return first < 0 ? w : first;
    };
    int32_t last = -1;
    for (size_t n = 0; n < trace_->nodes.size(); ++n) {
      const TraceNode& node = trace_->nodes[n];
      const uint64_t written = node.op->written_arguments();
      for (size_t i = 0; written >> i && i < node.args.size(); ++i)
        if (written >> i & 1 && node.args[i].kind == Operand::Kind::kValue &&
            storage(node.args[i].index) == storage(v))
          last = static_cast<int32_t>(n);
    }
    return last;
  }

  void complain(const Difference& found) const {
    const TraceValue& value = trace_->values[static_cast<size_t>(found.value)];
    std::string what = value_names(*trace_)[static_cast<size_t>(found.value)];
    if (value.producer < 0) what = cat("the input ", what);
    what += place_of(value.producer);
    if (const int32_t writer = writer_of(found.value); writer >= 0)
      what = cat(what, ", which ", trace_->nodes[static_cast<size_t>(writer)].op->base_name(),
                 place_of(writer), " writes");
    else if (value.producer < 0)
      what = cat(what, ", which no node writes");
    refuse_(cat("mode=\"check\": compiled and eager differ first at ", what, ": ", found.text));
  }

  Ref<Backend> backend_;
  std::shared_ptr<const Trace> trace_;
  NumberInputs number_inputs_;
  Refuse refuse_;
  bool is_compared_;
  Ref<Runner> checked_, plain_;
};

class CheckedBackend final : public Backend {
 public:
  CheckedBackend(Ref<Backend> checked, Refuse refuse)
      : checked_(std::move(checked)), refuse_(refuse) {}
  Ref<Runner> compile(std::shared_ptr<const Trace> trace, const NumberInputs& number_inputs,
                      std::span<const IValue> inputs) override {
    return make_ref<Checked>(checked_, std::move(trace), number_inputs, inputs, refuse_);
  }
  bool is_python() const override { return checked_->is_python(); }

 private:
  Ref<Backend> checked_;
  Refuse refuse_;
};

}  // namespace

Ref<Backend> checked_backend(Ref<Backend> checked, Refuse refuse) {
  return make_ref<CheckedBackend>(std::move(checked), refuse);
}

}  // namespace prong::capture
