// See batched.h.
#include "eager/batched.h"

#include <algorithm>

#include "eager/record.h"
#include "ops/batching.h"
#include "ops/random.h"

namespace prong::eager {

std::atomic<int64_t> num_batched_alive{0};

Batched::Batched(Tensor tensor, int at, bool has)
    : physical(std::move(tensor)), level(at), has_batch(has) {
  num_batched_alive.fetch_add(1, std::memory_order_relaxed);
}
Batched::~Batched() { num_batched_alive.fetch_sub(1, std::memory_order_relaxed); }

int level_of(const IValue& v) {
  if (v.is_tensor()) return level_of(v.tensor_impl());
  int level = 0;
  if (v.is_list() || v.is_tuple())
    for (const IValue& item : v.items())
      if (item.is_tensor()) level = std::max(level, level_of(item.tensor_impl()));
  return level;
}

int level_of(std::span<const IValue> args) {
  int level = 0;
  for (const IValue& v : args) level = std::max(level, level_of(v));
  return level;
}

// ── making and taking apart ──

namespace {

// Shape and memory of a sample: that of the first one.
void show_sample(TensorImpl* t, const Tensor& physical, bool has_batch) {
  const size_t skip = has_batch ? 1 : 0;
  t->sizes = Dims(DimsView(physical.sizes()).subspan(skip));
  t->strides = Dims(DimsView(physical.strides()).subspan(skip));
  t->offset = physical.offset();
  t->numel = product(t->sizes);
  t->dtype = physical.dtype();
  t->storage = physical.storage();
  if (physical.numel() == 0 && t->numel > 0) {  // of no samples: some memory, which nobody reads
    const Tensor blank = Tensor::empty(t->sizes, t->dtype);
    t->storage = blank.storage();
    t->strides = blank.strides();
    t->offset = 0;
  }
  t->is_contiguous = t->numel == 0 || t->strides == contiguous_strides(t->sizes);
}

template <class F>
IValue map_tensors(const IValue& v, const F& change) {
  if (v.is_tensor()) return change(v);
  if (!v.is_list() && !v.is_tuple()) return v;
  std::vector<IValue> items;
  for (const IValue& item : v.items()) items.push_back(map_tensors(item, change));
  if (v.is_list()) return IValue::list(std::move(items));
  return IValue(make_ref<TupleBox>(std::move(items), v.tuple()->names));
}

IValue marked(const IValue& physical, int level, bool has_batch) {
  return map_tensors(physical, [&](const IValue& t) {
    return IValue(make_batched(t.to_tensor(), level, has_batch));
  });
}

IValue physical_at(const IValue& v, int level) {
  return map_tensors(v, [&](const IValue& t) {
    const Batched* b = batched_of(t.tensor_impl());
    return b && b->level == level ? IValue(b->physical) : t;
  });
}

bool has_batch_at(const IValue& v, int level) {
  if (v.is_tensor()) {
    const Batched* b = batched_of(v.tensor_impl());
    return b && b->level == level && b->has_batch;
  }
  if (v.is_list() || v.is_tuple())
    for (const IValue& item : v.items())
      if (has_batch_at(item, level)) return true;
  return false;
}

VmapLevel* as_level(Interceptor* interceptor) { return dynamic_cast<VmapLevel*>(interceptor); }

void insert(Levels& levels, int level, int64_t size) {
  const auto at = std::find_if(levels.begin(), levels.end(),
                               [&](const auto& one) { return one.first >= level; });
  if (at == levels.end() || at->first != level) levels.insert(at, {level, size});
}

// Ops run below a level are not seen by that level's vmap, nor by those above it.
class Below {
 public:
  explicit Below(int level) {
    uint64_t& word = context()[ContextWord::kInterceptor];
    auto* const top = reinterpret_cast<Interceptor*>(word);
    Interceptor* cut = top;
    for (VmapLevel* v = as_level(top); v; v = as_level(v->below))
      if (v->level >= level) cut = v->below;
    Levels kept;  // of what is made anew, the levels below
    for (Interceptor* i = top; i != cut; i = as_level(i)->below)
      if (const auto* made = dynamic_cast<BatchedFactories*>(i))
        for (const auto& [at, size] : made->levels)
          if (at < level) insert(kept, at, size);
    if (!kept.empty()) cut = &factories_.emplace(cut, std::move(kept));
    word = reinterpret_cast<uint64_t>(cut);
  }

 private:
  ContextGuard saved_;
  std::optional<BatchedFactories> factories_;
};

}  // namespace

Tensor make_batched(const Tensor& physical, int level, bool has_batch) {
  Ref<TensorImpl> impl = make_ref<TensorImpl>();
  show_sample(impl.get(), physical, has_batch);
  impl->is_wrapped_number = physical.is_wrapped_number() && !has_batch;
  impl->is_inference = physical.impl()->is_inference;
  Tensor t(std::move(impl));
  make_meta(t.impl()).batched = make_ref<Batched>(physical, level, has_batch);
  return t;
}

// ── a call as its rule sees it ──

namespace {

// Runs ops below a level.
class BuilderBelow final : public Builder {
 public:
  explicit BuilderBelow(int level) : level_(level) {}
  IValue apply(const OpDef& op, std::span<const IValue> args) override {
    Below below(level_);
    return eager_builder().apply(op, args);
  }
  TensorMeta meta(const IValue& tensor) override { return meta_from(tensor); }

 private:
  int level_;
};

class Call final : public BatchedCall {
 public:
  Call(const OpDef& op, std::span<const IValue> args, int level) : level_(level), below_(level) {
    op_ = &op;
    args_ = args;
    builder_ = &eager_builder();
    physical_builder_ = &below_;
    for (const IValue& v : args) find_size(v);
  }
  using BatchedCall::is_batched;
  using BatchedCall::physical;
  bool is_batched(const IValue& v) const override { return has_batch_at(v, level_); }
  IValue physical(const IValue& v) const override { return physical_at(v, level_); }
  IValue finished(const IValue& physical) override { return marked(physical, level_, true); }

  IValue loop() override {
    std::vector<IValue> results;
    for (int64_t i = 0; i < batch_size_; ++i) results.push_back(one(i));
    if (results.empty()) return none_at_all();
    return op_->mutated_argument() >= 0 ? IValue() : stacked(results);
  }

  // The call for sample i, below this level.
  IValue one(int64_t i) {
    std::vector<IValue> args;
    for (const IValue& v : args_) args.push_back(sample_of(v, i));
    return physical_builder_->apply(*op_, args);
  }

 private:
  void find_size(const IValue& v) {
    map_tensors(v, [&](const IValue& t) {
      if (has_batch_at(t, level_)) batch_size_ = batched_of(t.tensor_impl())->physical.sizes()[0];
      return t;
    });
  }

  IValue sample_of(const IValue& v, int64_t i) {
    return map_tensors(v, [&](const IValue& t) {
      const IValue p = physical(t);
      return is_batched(t) ? BatchedCall::apply("select", {p, IValue(0), IValue(i)}) : p;
    });
  }

  IValue stacked(const std::vector<IValue>& results) {
    const IValue& first = results[0];
    if (first.is_tensor()) return BatchedCall::apply("stack", {IValue::list(results), IValue(0)});
    PRONG_CHECK(first.is_list() || first.is_tuple(), kRuntime, "vmap: ", op_->name(),
                " gives something that is no tensor, and that may differ between the samples");
    std::vector<IValue> items;
    for (size_t k = 0; k < first.items().size(); ++k) {
      std::vector<IValue> column;
      for (const IValue& r : results) column.push_back(r.items()[k]);
      items.push_back(stacked(column));
    }
    if (first.is_list()) return IValue::list(std::move(items));
    return IValue(make_ref<TupleBox>(std::move(items), first.tuple()->names));
  }

  // No samples: the shape rule tells what a sample would give.
  IValue none_at_all() {
    if (op_->mutated_argument() >= 0) return {};
    PRONG_CHECK(op_->shape(), kRuntime, "vmap: ", op_->name(), " over a batch of no samples");
    std::vector<IValue> metas;
    for (const IValue& v : args_)
      metas.push_back(map_tensors(v, [](const IValue& t) { return IValue(meta_from(t)); }));
    return empty_like(op_->shape()(*op_, metas));
  }
  IValue empty_like(const IValue& meta) {
    if (meta.is_meta()) {
      Dims sizes{0};
      for (const int64_t s : meta.meta().sizes) sizes.push_back(s);
      return IValue(Tensor::empty(sizes, meta.meta().dtype));
    }
    if (!meta.is_list() && !meta.is_tuple()) return meta;
    std::vector<IValue> items;
    for (const IValue& item : meta.items()) items.push_back(empty_like(item));
    return meta.is_list() ? IValue::list(std::move(items)) : IValue::tuple(std::move(items));
  }

  int level_;
  BuilderBelow below_;
};

void check_written(const OpDef& op, std::span<const IValue> args, int level) {
  const int written = op.mutated_argument();
  if (written < 0 || has_batch_at(args[static_cast<size_t>(written)], level)) return;
  const std::string& target = op.schema().arguments[static_cast<size_t>(written)].name;
  for (size_t i = 0; i < args.size(); ++i)
    if (has_batch_at(args[i], level))
      throw_error(ErrorKind::kRuntime,
                  cat("vmap: ", op.base_name(), " cannot write ", target,
                      " in place: all samples share it, but ", op.schema().arguments[i].name,
                      " differs between them. Use the form of the op that makes a new tensor, or "
                      "make ",
                      target, " from a tensor that is batched (zeros_like, new_zeros)."));
}

void throw_data(const OpDef& op) {
  if (op.base_name() == "item") throw_item();
  if (op.base_name() == "equal" || op.base_name() == "allclose") throw_control_flow();
  throw_error(ErrorKind::kRuntime, cat("vmap: ", op.base_name(),
                                       " of a batched tensor is not one answer but one for each "
                                       "sample"));
}

// The op wrote args[written] below: its sample shows what came of it.
IValue rewritten(const OpDef& op, std::span<const IValue> args) {
  const IValue& target = args[static_cast<size_t>(op.mutated_argument())];
  TensorImpl* t = target.tensor_impl();
  const Batched& b = *batched_of(t);
  show_sample(t, b.physical, b.has_batch);
  return target;
}

}  // namespace

IValue run_batched_kernel(const OpDef& op, std::span<const IValue> args) {
  const int level = level_of(args);
  bool has_batch = false;
  for (const IValue& v : args) has_batch |= has_batch_at(v, level);
  const BatchingRule rule = batching_rule(op);
  if (rule.kind == BatchingRule::Kind::kHost) return op.kernel()(op, args);
  if (!has_batch) {  // all samples share everything: once is enough
    std::vector<IValue> below;
    for (const IValue& v : args) below.push_back(physical_at(v, level));
    const IValue result = BuilderBelow(level).apply(op, below);
    return op.mutated_argument() >= 0 ? rewritten(op, args) : marked(result, level, false);
  }
  if (rule.kind == BatchingRule::Kind::kData) throw_data(op);
  PRONG_CHECK(op.dynamic_shape_reason().empty(), kRuntime,
              "vmap: We do not support batching operators that can output dynamic shape. "
              "Attempted to vmap over aten::",
              op.base_name(), ": ", op.dynamic_shape_reason());
  if (rule.kind == BatchingRule::Kind::kComposite) return run_composite(op, args);
  check_written(op, args, level);
  PRONG_CHECK(op.mutated_argument() < 0 ||
                  args[static_cast<size_t>(op.mutated_argument())].is_tensor(),
              kRuntime, "vmap: ", op.base_name(),
              " writes whole lists of tensors in place, which vmap cannot batch");
  Call call(op, args, level);
  if (rule.kind == BatchingRule::Kind::kSamples) return rule.fn(call);
  const IValue result = rule.fn ? rule.fn(call) : call.loop();
  if (op.mutated_argument() >= 0) return rewritten(op, args);
  if (result.is_tensor())  // nothing was to be done (contiguous, to)
    for (const IValue& v : args)
      if (v.is_tensor() && has_batch_at(v, level) &&
          batched_of(v.tensor_impl())->physical.impl() == result.tensor_impl())
        return v;
  return marked(result, level, true);
}

IValue run_batched(const OpDef& op, std::span<const IValue> args) {
  const int level = level_of(args);
  bool is_recorded = false, is_below = false;
  for (const IValue& v : args)
    map_tensors(v, [&](const IValue& t) {
      (level_of(t.tensor_impl()) == level ? is_recorded : is_below) |=
          requires_grad(t.tensor_impl());
      return t;
    });
  if (!is_recorded || !is_grad_enabled() || !op.is_differentiable())
    return run_unrecorded(op, args);
  if (!is_below) return run_recorded(op, args);
  // What requires grad below this level is recorded there alone.
  std::vector<IValue> lifted;
  for (const IValue& v : args)
    lifted.push_back(map_tensors(v, [&](const IValue& t) {
      if (level_of(t.tensor_impl()) == level || !requires_grad(t.tensor_impl())) return t;
      return IValue(make_batched(t.to_tensor(), level, false));
    }));
  return run_recorded(op, lifted);
}

// ── levels ──

void BatchOf::add(const Tensor& t) {
  if (!t.defined()) return;
  for (const Batched* b = batched_of(t.impl()); b; b = batched_of(b->physical.impl()))
    if (b->has_batch) insert(levels, b->level, b->physical.sizes()[0]);
}

BatchScope::BatchScope(const BatchOf& batch) {
  if (batch.levels.empty()) return;
  uint64_t& word = context()[ContextWord::kInterceptor];
  Interceptor* made = &factories_.emplace(reinterpret_cast<Interceptor*>(word), batch.levels);
  word = reinterpret_cast<uint64_t>(made);
}

VmapLevel* current_level() {
  auto* top = reinterpret_cast<Interceptor*>(context()[ContextWord::kInterceptor]);
  return top ? dynamic_cast<VmapLevel*>(top) : nullptr;
}

namespace {

// Keeps the numbers of a generator for the next sample.
class SameDraws {
 public:
  SameDraws(const OpDef& op, std::span<const IValue> args) {
    const int g = op.schema().find("generator");
    generator_ = generator_from(g >= 0 ? args[static_cast<size_t>(g)] : IValue());
    state_ = generator_->state();
  }
  void again() { generator_->set_state(state_); }

 private:
  Ref<Generator> generator_;
  Tensor state_;
};

IValue run_below(Interceptor* below, const OpDef& op, std::span<const IValue> args) {
  InterceptorScope scope(below);
  return run(op, args);
}

// size=[...] with the batch in front, where the op makes numbers of that size.
IValue draw_many(VmapLevel& vmap, const OpDef& op, std::span<const IValue> args) {
  const int written = op.mutated_argument();
  PRONG_CHECK(written < 0, kRuntime,
              "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will "
              "appear like same randomness. If this is necessary for your usage, please file an "
              "issue with functorch.");
  std::vector<IValue> all(args.begin(), args.end());
  const int size = op.schema().find("size");
  IValue result;
  if (size >= 0) {
    Dims sizes{vmap.batch_size};
    for (const int64_t s : args[static_cast<size_t>(size)].to_dims()) sizes.push_back(s);
    all[static_cast<size_t>(size)] = IValue(DimsView(sizes));
    result = run_below(vmap.below, op, all);
  } else {
    std::vector<IValue> draws;
    for (int64_t i = 0; i < vmap.batch_size; ++i) draws.push_back(run_below(vmap.below, op, args));
    static const OpDef& stack = registry().get("stack");
    const IValue both[] = {IValue::list(std::move(draws)), IValue(0)};
    result = run_below(vmap.below, stack, both);
  }
  return marked(result, vmap.level, true);
}

IValue run_random(VmapLevel& vmap, const OpDef& op, std::span<const IValue> args) {
  PRONG_CHECK(vmap.randomness != Randomness::kError, kRuntime,
              "vmap: called random operation while in randomness error mode. Please either use the "
              "'same' or 'different' randomness flags on vmap or perform the randomness operation "
              "out of vmap");
  bool has_batch = false;
  for (const IValue& v : args) has_batch |= has_batch_at(v, vmap.level);
  if (vmap.randomness == Randomness::kDifferent)
    return has_batch ? run_plain(op, args) : draw_many(vmap, op, args);
  if (!has_batch) return level_of(args) ? run_plain(op, args) : run_below(vmap.below, op, args);
  // The same numbers for each sample: drawn again from the same state.
  SameDraws draws(op, args);
  Call call(op, args, vmap.level);
  std::vector<IValue> results;
  for (int64_t i = 0; i < call.batch_size(); ++i) {
    draws.again();
    results.push_back(call.one(i));
  }
  if (op.mutated_argument() >= 0) return args[static_cast<size_t>(op.mutated_argument())];
  static const OpDef& stack = registry().get("stack");
  PRONG_CHECK(!results.empty() && results[0].is_tensor(), kRuntime, "vmap: ", op.name(),
              " with randomness='same' over a batch");
  const IValue both[] = {IValue::list(std::move(results)), IValue(0)};
  return marked(run_below(vmap.below, stack, both), vmap.level, true);
}

}  // namespace

IValue VmapLevel::run(const OpDef& op, std::span<const IValue> args) {
  if (op.is_random())
    return op.is_composite() ? run_composite(op, args) : run_random(*this, op, args);
  if (below && !dynamic_cast<VmapLevel*>(below) && level_of(args) == 0) return below->run(op, args);
  return run_plain(op, args);
}

IValue BatchedFactories::run(const OpDef& op, std::span<const IValue> args) {
  if (op.family() != Family::kFactory || op.is_random() || level_of(args) >= level)
    return below ? below->run(op, args) : run_plain(op, args);
  Below scope(level);
  const Tensor one = eager::run(op, args).to_tensor();
  int64_t span = 1;  // elements from the first to the last
  for (size_t i = 0; i < one.sizes().size(); ++i)
    span = one.sizes()[i] == 0 ? 1 : span + (one.sizes()[i] - 1) * one.strides()[i];
  Dims sizes{batch_size}, strides{span};
  for (const int64_t s : one.sizes()) sizes.push_back(s);
  for (const int64_t s : one.strides()) strides.push_back(s);
  // By an op, which lower levels see: what is batched there is so here.
  const Tensor all =
      eager_builder()("empty_strided",
                      {IValue(DimsView(sizes)), IValue(DimsView(strides)), IValue(one.dtype())})
          .to_tensor();
  eager_builder()("copy_", {IValue(all), IValue(one)});
  return IValue(make_batched(all, level, true));
}

// ── refusals ──

void throw_item() {
  throw_error(ErrorKind::kRuntime,
              "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over "
              "calling .item() on a Tensor, please try to rewrite what you're doing with other "
              "operations.");
}

void throw_control_flow() {
  throw_error(
      ErrorKind::kRuntime,
      "vmap: It looks like you're attempting to use a Tensor in some data-dependent control "
      "flow. We don't support that yet: use where() to choose between values.");
}

void check_not_batched(const TensorImpl* t, std::string_view op) {
  PRONG_CHECK(!may_be_batched() || !batched_of(t), kRuntime, "vmap: ", op,
              " of a batched tensor: inside vmap it stands for every sample at once, and has no "
              "numbers of its own");
}

}  // namespace prong::eager
