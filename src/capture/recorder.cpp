// Recording of ops: which may be put off, what is known of their results without running them. See
// recorder.h.
#include "capture/recorder.h"

#include <algorithm>
#include <cstring>

#include "capture/data_checks.h"
#include "capture/forked_body.h"
#include "capture/segment_lock.h"
#include "capture/stand_ins.h"
#include "capture/tracker.h"
#include "eager/engine.h"
#include "ops/kernels/pointwise.h"

namespace prong::capture {

namespace {

template <class F>
void for_each_tensor(std::span<const IValue> args, F f) {
  for (const IValue& a : args) {
    if (a.is_tensor()) {
      f(a);
    } else if (a.is_list() || a.is_tuple()) {
      for (const IValue& item : a.items())
        if (item.is_tensor()) f(item);
    }
  }
}

bool is_plain(const IValue& v) {
  switch (v.tag()) {
  case IValue::Tag::kNone:
  case IValue::Tag::kBool:
  case IValue::Tag::kInt:
  case IValue::Tag::kFloat:
  case IValue::Tag::kDType:
  case IValue::Tag::kString:
    return true;
  case IValue::Tag::kTensor:  // a complex number in Python is no number slot
    return !(v.tensor_impl()->is_wrapped_number && is_complex(v.tensor_impl()->dtype));
  case IValue::Tag::kList:
  case IValue::Tag::kTuple:
    for (const IValue& item : v.items())
      if (!is_plain(item)) return false;
    return true;
  default:
    return false;
  }
}

// Or nothing.
bool gives_tensors(const OpDef& op) {
  for (const TypePtr& t : op.schema().results)
    if (!t->is(TypeKind::kTensor) && !t->is(TypeKind::kNone) &&
        !(t->is(TypeKind::kList) && t->element()->is(TypeKind::kTensor)))
      return false;
  return !op.schema().results.empty();
}
bool gives_nothing(const OpDef& op) { return op.schema().results[0]->is(TypeKind::kNone); }

// An op over lists, such as an optimizer's step, whose shape rule says nothing: may its kernel
// refuse the call? Not where the tensors at one place of the lists are alike, or single counts.
bool are_lists_alike(std::span<const IValue> args) {
  const IValue* first = nullptr;
  for (const IValue& a : args) {
    if (a.is_tensor() && !a.tensor_impl()->is_wrapped_number && a.tensor_impl()->numel != 1)
      return false;
    if (!a.is_list() || a.items().empty()) continue;
    if (!first) first = &a;
    if (a.items().size() != first->items().size()) return false;
    for (size_t i = 0; i < a.items().size(); ++i) {
      if (!a.items()[i].is_tensor() || !first->items()[i].is_tensor()) return false;
      const TensorImpl &one = *a.items()[i].tensor_impl(),
                       &other = *first->items()[i].tensor_impl();
      if (!is_floating(one.dtype)) return false;
      if (one.numel == 1 && one.sizes.empty()) continue;
      if (one.dtype != other.dtype || !(one.sizes == other.sizes)) return false;
    }
  }
  return true;
}

// Does the view have fewer dimensions where sizes are 1? Asked of the op itself.
bool follows_rank_from_sizes(const OpDef& op, std::span<const IValue> args) {
  if (op.family() != Family::kView) return false;
  int64_t ranks[2];
  for (const int64_t size : {1, 2}) {
    const std::vector<IValue> examples = with_tensors(args, [&](const IValue& v) {
      const TensorImpl& t = *v.tensor_impl();
      return IValue(Tensor::empty(Dims(t.sizes.size(), size), t.dtype));
    });
    try {
      RecordingOff off;
      const IValue result = op.kernel()(op, examples);
      if (!result.is_tensor()) return false;
      ranks[size - 1] = result.to_tensor().rank();
    } catch (const std::exception&) {
      return false;  // not with these arguments
    }
  }
  return ranks[0] != ranks[1];
}

// A list of indices with a mask among them, which counts.
bool has_mask(std::span<const IValue> args) {
  const auto is_mask = [](const IValue& v) {
    return v.is_tensor() &&
           (v.tensor_impl()->dtype == DType::kBool || v.tensor_impl()->dtype == DType::kUInt8);
  };
  return std::any_of(args.begin(), args.end(), [&](const IValue& a) {
    return a.is_list() && std::any_of(a.items().begin(), a.items().end(), is_mask);
  });
}

bool has_overlap(const TensorImpl& t) {
  for (size_t d = 0; d < t.sizes.size(); ++d)
    if (t.strides[d] == 0 && t.sizes[d] > 1) return true;
  return false;
}

bool spreads_to(DimsView from, DimsView to) {
  if (from.size() > to.size()) return false;
  for (size_t i = 0; i < from.size(); ++i)
    if (from[from.size() - 1 - i] != 1 && from[from.size() - 1 - i] != to[to.size() - 1 - i])
      return false;
  return true;
}

// copy_, fill_, zero_: refused for dtypes, values and shapes. The first two show on one element.
bool is_checked_fill(const OpDef& op, std::span<const IValue> args) {
  if (op.family() != Family::kCopy || !op.shape() || op.mutated_argument() != 0) return false;
  std::vector<IValue> single(args.begin(), args.end());
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].is_list()) return false;
    if (!args[i].is_tensor() || args[i].tensor_impl()->is_wrapped_number) continue;
    if (!spreads_to(args[i].tensor_impl()->sizes, args[0].tensor_impl()->sizes)) return false;
    if (overlap(args[0].to_tensor(), args[i].to_tensor()) == Overlap::kPartial) return false;
    Tensor zero = Tensor::empty(Dims{}, args[i].tensor_impl()->dtype);
    std::memset(zero.raw(), 0, zero.item_bytes());
    single[i] = IValue(std::move(zero));
  }
  try {
    RecordingOff off;
    op.kernel()(op, single);
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

// An in-place op whose call is known to be right, so that it can be put off.
bool is_checked_write(const Segment& s, const OpDef& op, const OpDef* base,
                      std::span<const IValue> args, Proof* proof) {
  *proof = prove_safe(s, op, args);
  if (!proof->holds || op.is_random()) return proof->holds;
  const TensorImpl& target = *args[static_cast<size_t>(op.mutated_argument())].tensor_impl();
  if (!base) {  // what looks at its data says all else by its shape rule
    if (has_overlap(target)) return false;
    return op.checks() ? !result_metas(op, args).is_none() : is_checked_fill(op, args);
  }
  if (base->pointwise()) {
    check_inplace_call(*base, args);
    return true;
  }
  if (!base->shape() || base->is_composite() || !base->dynamic_shape_reason().empty() ||
      has_overlap(target))
    return false;
  const IValue meta = result_metas(*base, args);
  return meta.is_meta() && meta.meta().sizes == target.sizes && meta.meta().dtype == target.dtype;
}

}  // namespace

Recorder* Recorder::current() {
  return static_cast<Recorder*>(
      reinterpret_cast<eager::KernelStandIn*>(context()[ContextWord::kKernels]));
}

Segment& Recorder::open() {
  if (!segment_ || segment_->is_closed()) segment_ = make_ref<Segment>(*this);
  return *segment_;
}

void Recorder::spoil(const char* why) {
  if (Tracker* tracker = current_tracker())
    tracker->give_up(why);
  else if (tracker_.load())
    spoiled_ = why;
}

ValueId Recorder::open_value(const TensorImpl* impl) const {
  if (!segment_ || segment_->is_closed()) return -1;
  const auto it = segment_->by_impl_.find(impl);
  return it == segment_->by_impl_.end() || segment_->is_stale(it->second) ? -1 : it->second;
}

// Sizes of one leave nothing to sum, but the program is for all sizes.
bool Recorder::sums_spread(bool is_needed) {
  if (!again_ && current_tracker())
    spread_sums_.push_back(is_needed);
  else if (again_ && next_spread_ < spread_sums_.size())
    is_needed |= spread_sums_[next_spread_++];
  return is_needed;
}

// While a trace is recorded once more: was the next op there this one, of that tensor?
bool Recorder::expects(const OpDef& op, const Tensor& of) const {
  if (!again_ || !segment_ || segment_->is_closed()) return false;
  const size_t next = segment_->trace_->nodes.size();
  if (next >= again_->nodes.size() || again_->nodes[next].op != &op) return false;
  if (eager::is_grad_enabled() && eager::requires_grad(of.impl()))
    return false;  // the tape sees it
  const ValueId v = segment_->find_value(IValue(of));
  const std::vector<Operand>& args = again_->nodes[next].args;
  return v < 0 || std::any_of(args.begin(), args.end(), [&](const Operand& o) {
           return o.kind == Operand::Kind::kValue && o.index == v;
         });
}

void Recorder::settle(const char* reason) {
  if (is_dry_) throw DataNeeded{};
  if (ForkedBody* body = ForkedBody::current())
    body->refuse(reason ? reason : "an op that its data may make fail");
  if (reason && observer_) observer_->on_break(reason, has_work());
  if (!segment_) return;
  const Ref<Segment> last = std::exchange(segment_, {});
  last->run_all();
}

void Recorder::reading(const Storage& storage) {
  if (!segment_ || segment_->is_closed()) return;
  for (const Storage* s : segment_->read_)
    if (s == &storage) return settle(kMemoryIsUsed);
}

void Recorder::lose_sight() {
  is_blind_ = true;
  if (!reads_exposed()) return;
  try {
    settle(kMemoryIsUsed);
  } catch (...) {
    // Who reads a result of this work gets its error then.
  }
}

// The op as in eager mode, after what was put off.
IValue Recorder::run_now(const OpDef& op, std::span<const IValue> args, const char* reason) {
  spoil(reason);
  settle(cat(reason, " (", op.base_name(), ")").c_str());
  RecordingOff off;
  return op.kernel()(op, args);
}

IValue Recorder::run_composite(const OpDef& op, std::span<const IValue> args, KernelFn run) {
  Tracker* const tracker = is_dry_ || is_composing_ ? nullptr : current_tracker();
  if (!tracker || eager::backward_pass()) return run(op, args);
  struct Scope {
    ~Scope() { is_composing = false; }
    bool& is_composing;
  } scope{is_composing_};
  is_composing_ = true;
  has_composed_shortcut_ = false;
  const uint64_t nodes_before = num_recorded_, modes = context()[ContextWord::kModes];
  IValue result = run(op, args);
  tracker->on_composite(op, args, modes, nodes_before, has_composed_shortcut_);
  return result;
}

// No rule tells what the op gives: as a rule the call is wrong, and the kernel says how.
IValue Recorder::run_refused(const OpDef& op, std::span<const IValue> args) {
  const std::string reason = cat("the call is wrong (", op.base_name(), ")");
  spoil("the call is wrong");
  const bool had_work = has_work();
  settle(nullptr);
  if (observer_) observer_->on_break(reason, false);
  IValue result;
  {
    RecordingOff off;
    result = op.kernel()(op, args);
  }
  if (observer_) observer_->on_break(reason, had_work);
  return result;
}

// What reads memory has the segment run by itself.
IValue Recorder::run_host(const OpDef& op, std::span<const IValue> args) {
  constexpr const char* kReason = "the op answers with a Python value";
  const Ref<Segment> before = has_work() ? segment_ : Ref<Segment>();
  if (ForkedBody* body = before ? ForkedBody::current() : nullptr)
    for_each_tensor(args, [&](const IValue& t) {
      if (t.tensor_impl()->storage->deferred()) body->refuse(kReason);
    });
  IValue result;
  {
    RecordingOff off;
    result = op.kernel()(op, args);
  }
  if (before && before->is_closed() && observer_)
    observer_->on_break(cat(kReason, " (", op.base_name(), ")"), true);
  return result;
}

IValue Recorder::run_kernel(const OpDef& op, std::span<const IValue> args) {
  if (op.family() == Family::kHost) return run_host(op, args);
  for (const IValue& a : args)
    if (!is_plain(a)) return run_now(op, args, "an argument is neither a tensor nor a constant");
  if (is_blind_) {
    bool is_exposed = false;
    for_each_tensor(args,
                    [&](const IValue& t) { is_exposed |= t.tensor_impl()->storage->is_exposed(); });
    if (is_exposed) return run_now(op, args, kMemoryIsUsed);
  }
  if (!gives_tensors(op)) return run_step(op, args, "the op answers with a Python value");
  int written = op.mutated_argument();
  const bool writes_its_result = written >= 0 && args[static_cast<size_t>(written)].is_tensor();
  const uint64_t written_arguments = op.written_arguments(args);
  const bool writes_more =
      written_arguments & ~(writes_its_result ? uint64_t{1} << written : uint64_t{0});
  if (writes_more || gives_nothing(op)) {
    if (!op.shape() || !written_arguments || (writes_its_result && !gives_nothing(op)) ||
        op.is_random() || (gives_nothing(op) && !are_lists_alike(args)))
      return run_now(op, args, "the op writes more than the tensor that it gives back");
    written = -1;
  }
  ForkedBody* const body = ForkedBody::current();
  if (body && written_arguments) body->check_write(op, args, written_arguments);
  const bool changes_geometry =
      written >= 0 && (op.family() == Family::kView || !op.is_differentiable());
  if (changes_geometry)
    return run_now(op, args, "the op changes the shape or the history of a tensor in place");

  // A view that was made behind the recorder's back, or memory that another thread's segment is to
  // fill.
  bool is_foreign = false;
  for_each_tensor(args, [&](const IValue& t) {
    const Storage& storage = *t.tensor_impl()->storage;
    const Ref<DeferredWork> work = storage.deferred();
    if (!work || (is_dry_ && work.get() == no_data().get())) return;
    if (work.get() != segment_.get() && body)
      body->refuse("work of another thread is needed");
    else if (work.get() != segment_.get())
      work->settle();
    else if (segment_->find_value(t) < 0 && !segment_->is_visible(storage) && !segment_->adopt(t))
      is_foreign = true;
  });
  if (is_foreign) settle("a view was taken by other than an op");

  if (written < 0 && (!op.dynamic_shape_reason().empty() || !op.shape()))
    return run_step(op, args, kShapeIsData);

  if (trials_.refuse(op, args)) {
    IValue result = run_refused(op, args);
    trials_.went_well(op, args);
    return result;
  }
  Segment& s = open();
  bool runs_at_once = false;
  bool needs_own =
      false;  // a segment that can be run twice: if the op fails, the rest is run again
  IValue result;
  {
    SegmentLock lock(s.mutex_);
    if (s.is_closed_) return run_kernel(op, args);  // another thread had it run meanwhile
    if (writes_more || gives_nothing(op)) {
      result = record_writes(s, op, args, written_arguments);
      if (result.is_none() && gives_nothing(op)) return result;
    } else if (written >= 0) {
      const OpDef* base = op.inplace_of();
      Proof proof;
      runs_at_once = !is_checked_write(s, op, base, args, &proof);
      s.note_proof(proof);
      needs_own = runs_at_once && s.cannot_run_twice();
      if (!needs_own) result = record_write(s, op, args, runs_at_once);
    } else {
      if (may_alias(op)) result = record_view(s, op, args);
      if (result.is_none()) {
        const Proof proof = prove_safe(s, op, args);
        runs_at_once = !proof.holds;
        s.note_proof(proof);
        needs_own = runs_at_once && s.cannot_run_twice();
        if (!needs_own) result = record_call(s, op, args, runs_at_once);
      }
    }
  }
  if (needs_own) {
    settle(nullptr);
    return run_kernel(op, args);
  }
  if (result.is_none() && has_mask(args)) return run_step(op, args, kShapeIsData);
  if (result.is_none()) return run_refused(op, args);
  // What is gone through once more ends there, too.
  const bool is_last_again =
      again_ && again_->may_raise && s.trace_->nodes.size() == again_->nodes.size();
  if (runs_at_once && !is_last_again) settle(nullptr);
  return result;
}

IValue Recorder::record_call(Segment& s, const OpDef& op, std::span<const IValue> args,
                             bool runs_at_once) {
  const IValue metas = result_metas(op, args);
  if (metas.is_none()) return {};
  TraceNode node = make_node(s, op, args);
  IValue result = deferred(s, metas, node);
  s.trace_->nodes.push_back(std::move(node));
  s.trace_->may_raise |= runs_at_once;
  return result;
}

IValue Recorder::record_write(Segment& s, const OpDef& op, std::span<const IValue> args,
                              bool runs_at_once) {
  const IValue& target = args[static_cast<size_t>(op.mutated_argument())];
  TraceNode node = make_node(s, op, args);
  node.first_output = s.find_value(target);
  node.num_outputs = 0;
  s.note_write(target.to_tensor());
  s.trace_->nodes.push_back(std::move(node));
  s.trace_->may_raise |= runs_at_once;
  return target;
}

// Ops that write several tensors and give a new one or nothing: running statistics, optimizers.
IValue Recorder::record_writes(Segment& s, const OpDef& op, std::span<const IValue> args,
                               uint64_t written) {
  IValue result;
  if (gives_nothing(op)) {
    TraceNode node = make_node(s, op, args);
    node.num_outputs = 0;
    s.trace_->nodes.push_back(std::move(node));
  } else {
    result = record_call(s, op, args, false);
    if (result.is_none()) return result;
  }
  for (size_t i = 0; i < args.size(); ++i)
    if (written >> i & 1)
      for_each_tensor(args.subspan(i, 1), [&](const IValue& t) { s.note_write(t.to_tensor()); });
  return result;
}

// For ops that may give a view or the argument itself: the kernel runs on stand-ins that have
// geometry but no memory. None where it wants to read, so that its result is a new tensor.
IValue Recorder::record_view(Segment& s, const OpDef& op, std::span<const IValue> args) {
  // To find out costs an exception; the same facts lead to the same answer.
  std::string facts = op.family() == Family::kView ? std::string() : facts_of(op, args);
  if (!facts.empty() && reads_data_.count(facts)) return {};
  std::vector<std::pair<const Storage*, Tensor>> originals;  // of stand-in storages
  std::vector<std::pair<const TensorImpl*, IValue>> same;
  const auto stand_in = [&](const IValue& v) -> IValue {
    const Tensor t = v.to_tensor();
    if (t.is_wrapped_number()) return v;
    Tensor fake = stand_in_for(*t.impl());
    originals.emplace_back(fake.storage().get(), t);
    same.emplace_back(fake.impl(), v);
    return IValue(std::move(fake));
  };
  const std::vector<IValue> fakes = with_tensors(args, stand_in);
  IValue raw;
  try {
    RecordingOff off;
    raw = op.kernel()(op, fakes);
  } catch (const DataNeeded&) {
    if (reads_data_.size() >= kMaxFacts) reads_data_.clear();
    if (!facts.empty()) reads_data_.insert(std::move(facts));
    return {};
  }
  bool is_view = true;
  const auto real = [&](const IValue& r) -> IValue {
    if (!r.is_tensor()) {
      is_view = false;
      return {};
    }
    for (auto& [fake, original] : same)
      if (fake == r.tensor_impl()) return original;
    for (auto& [storage, original] : originals) {
      if (storage != r.tensor_impl()->storage.get()) continue;
      const TensorImpl& i = *r.tensor_impl();
      return IValue(original.as_strided(i.sizes, i.strides, i.offset, i.dtype));
    }
    is_view = false;
    return {};
  };
  std::vector<IValue> outputs;
  if (raw.is_tensor()) {
    outputs.push_back(real(raw));
  } else if (raw.is_list() || raw.is_tuple()) {
    for (const IValue& item : raw.items()) outputs.push_back(real(item));
  } else {
    return {};
  }
  if (!is_view || outputs.empty()) return {};
  if (raw.is_tensor() && outputs[0].tensor_impl() != nullptr) {
    for (size_t i = 0; i < args.size(); ++i)
      if (args[i].is_tensor() && args[i].tensor_impl() == outputs[0].tensor_impl()) {
        if (const Tensor t = args[i].to_tensor(); expects(op, t)) {
          // It has nothing to do for these sizes; its kernel finds that out again.
          outputs[0] = IValue(t.as_strided(t.sizes(), t.strides(), t.offset(), t.dtype()));
          break;
        }
        has_composed_shortcut_ = true;
        // What follows from sizes there is found out by going the same way again.
        if (is_dry_ || is_composing_ || eager::backward_pass()) return args[i];
        if (Tracker* tracker = current_tracker())
          tracker->on_shortcut(op, args, i);
        else
          spoil("what an op did depends on sizes");
        return args[i];  // it had nothing to do
      }
  }
  TraceNode node = make_node(s, op, args);
  node.result = raw.is_tensor() ? ResultKind::kTensor
                : raw.is_list() ? ResultKind::kList
                                : ResultKind::kTuple;
  node.num_outputs = static_cast<int32_t>(outputs.size());
  const auto producer = static_cast<int32_t>(s.trace_->nodes.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor t = outputs[i].to_tensor();
    const Ref<DeferredWork> work = t.storage()->deferred();
    bool is_deferred = false;
    if (work.get() == &s)
      is_deferred = std::none_of(s.written_.begin(), s.written_.end(),
                                 [&](auto& w) { return w.storage == t.storage(); });
    const ValueId v = s.add_value(t, producer, static_cast<int32_t>(i), is_deferred);
    if (i == 0) node.first_output = v;
  }
  s.trace_->nodes.push_back(std::move(node));
  if (Tracker* tracker = is_dry_ || is_composing_ ? nullptr : current_tracker();
      tracker && raw.is_tensor() && !eager::backward_pass() && follows_rank_from_sizes(op, args))
    tracker->pin_rank(outputs[0].tensor_impl());
  if (raw.is_tensor()) return outputs[0];
  s.trace_->key.push_back(uint64_t{6} << 60 | outputs.size());  // as many as a size, for unbind()
  return raw.is_list() ? IValue::list(std::move(outputs)) : IValue::tuple(std::move(outputs));
}

// Tensors without memory for the abstract results of a node.
IValue Recorder::deferred(Segment& s, const IValue& meta, TraceNode& node) {
  const auto producer = static_cast<int32_t>(s.trace_->nodes.size());
  int32_t count = 0;
  const auto one = [&](const IValue& m) {
    const TensorMeta& want = m.meta();
    auto impl = make_ref<TensorImpl>();
    impl->numel = product(want.sizes);
    impl->storage = make_ref<Storage>(static_cast<size_t>(impl->numel) * size_of(want.dtype),
                                      Ref<DeferredWork>(&s));
    impl->sizes = want.sizes;
    impl->strides = contiguous_strides(want.sizes);
    impl->dtype = want.dtype;
    const Tensor t(std::move(impl));
    const ValueId v = s.add_value(t, producer, count, true);
    if (count++ == 0) node.first_output = v;
    return IValue(t);
  };
  if (meta.is_meta()) return one(meta);
  std::vector<IValue> items;
  for (const IValue& m : meta.items()) items.push_back(one(m));
  node.num_outputs = count;
  s.trace_->key.push_back(uint64_t{6} << 60 | static_cast<uint64_t>(count));
  node.result = meta.is_list() ? ResultKind::kList : ResultKind::kTuple;
  return meta.is_list() ? IValue::list(std::move(items)) : IValue::tuple(std::move(items));
}

TraceNode Recorder::make_node(Segment& s, const OpDef& op, std::span<const IValue> args) {
  TraceNode node;
  node.op = &op;
  node.modes = context()[ContextWord::kModes];
  if (observer_) {
    node.place = static_cast<int32_t>(s.trace_->places.size());
    s.trace_->places.push_back(observer_->place());
  }
  ++num_recorded_;
  s.trace_->draws |= op.is_random();
  s.trace_->key.push_back(reinterpret_cast<uint64_t>(&op));
  for (const IValue& a : args) node.args.push_back(operand(s, a));
  return node;
}

Operand Recorder::operand(Segment& s, const IValue& v) {
  Trace& trace = *s.trace_;
  const auto coded = [&](Operand::Kind kind, size_t index) {
    trace.key.push_back(operand_code(kind, index));
    return Operand{kind, static_cast<int32_t>(index)};
  };
  const auto number = [&](uint64_t kind) {
    trace.numbers.push_back(v);
    trace.key.push_back(uint64_t{3} << 60 | kind);
    return Operand{Operand::Kind::kNumber, static_cast<int32_t>(trace.numbers.size() - 1)};
  };
  if (v.is_tensor()) {
    if (v.tensor_impl()->is_wrapped_number)
      return number(16 + static_cast<uint64_t>(v.tensor_impl()->dtype));
    ValueId id = s.find_value(v);
    if (id < 0 && s.adopt_input(v)) id = s.find_value(v);
    if (id < 0) id = s.add_input(v.to_tensor());
    return coded(Operand::Kind::kValue, static_cast<size_t>(id));
  }
  if (v.is_int() || v.is_float()) return number(static_cast<uint64_t>(v.tag()));
  if (v.is_list() || v.is_tuple()) {
    std::vector<Operand> items;
    trace.key.push_back(uint64_t{4} << 60 | v.items().size() << 1 | (v.is_tuple() ? 1 : 0));
    for (const IValue& item : v.items()) items.push_back(operand(s, item));
    trace.lists.push_back(std::move(items));
    return {Operand::Kind::kList, static_cast<int32_t>(trace.lists.size() - 1)};
  }
  trace.constants.push_back(v);
  uint64_t content = 0;
  if (v.is_bool()) content = v.to_bool() ? 1 : 0;
  if (v.is_dtype()) content = static_cast<uint64_t>(v.to_dtype());
  if (v.is_string()) {
    const std::string& text = v.to_string();
    trace.key.push_back(text.size());
    for (size_t i = 0; i < text.size(); i += 8) {
      uint64_t word = 0;
      std::memcpy(&word, text.data() + i, std::min<size_t>(8, text.size() - i));
      trace.key.push_back(word);
    }
  }
  trace.key.push_back(uint64_t{5} << 60 | static_cast<uint64_t>(v.tag()) << 32 | content);
  return {Operand::Kind::kConstant, static_cast<int32_t>(trace.constants.size() - 1)};
}

}  // namespace prong::capture
