// Host ops on tensors: indexing whose meaning depends on the tensors at hand, and questions about a
// tensor.
#include <algorithm>

#include "eager/dispatch.h"
#include "eager/record.h"
#include "graph/host/tables.h"
#include "ops/boxing.h"

namespace prong {

namespace {

using Args = std::span<IValue>;

IValue run_op(std::string_view name, std::initializer_list<IValue> args) {
  return eager::run(registry().get(name), std::span<const IValue>(args.begin(), args.size()));
}

bool is_mask(const Tensor& t) { return t.dtype() == DType::kBool || t.dtype() == DType::kUInt8; }

// A tensor to index with, from (nested) lists of ints or bools.
Tensor index_tensor(const IValue& v) {
  if (v.is_tensor()) return v.to_tensor();
  std::vector<IValue> args{v, IValue()};
  const Tensor t = host_registry().get("tensor").fn(args).to_tensor();
  return t.numel() == 0 ? t.to(DType::kInt64) : t;
}

// One index expression, applied from left to right: ints and slices make views, tensors are
// collected for `index`.
class Indexing {
 public:
  Indexing(const Tensor& t, const std::vector<IValue>& items) : view_(t) {
    int64_t named = 0;
    std::vector<Tensor> tensors(items.size());
    for (size_t i = 0; i < items.size(); ++i) {
      const IValue& item = items[i];
      if (item.is_none() || item.is_bool() || item.is_string()) continue;
      if (item.is_tensor() || item.is_list()) tensors[i] = index_tensor(item);
      named += tensors[i].defined() && is_mask(tensors[i]) ? tensors[i].rank() : 1;
    }
    PRONG_CHECK(named <= t.rank(), kIndex, "too many indices for tensor of dimension ", t.rank());
    ellipsis_ = t.rank() - named;
    for (size_t i = 0; i < items.size(); ++i) apply(items[i], tensors[i]);
  }

  bool is_advanced() const { return !indices_.empty(); }
  const Tensor& view() const { return view_; }
  IValue indices() const { return IValue::list(indices_); }

 private:
  void apply(const IValue& item, const Tensor& t) {
    if (t.defined()) return apply_tensor(t);
    if (item.is_string()) {  // "..."
      dim_ += ellipsis_;
      ellipsis_ = 0;
    } else if (item.is_none()) {
      view_ = run_op("unsqueeze", {view_, dim_++}).to_tensor();
    } else if (item.is_bool()) {
      view_ = run_op("unsqueeze", {view_, dim_}).to_tensor();
      record(one_bool(item.to_bool()), 1);
    } else if (item.is_tuple()) {
      const auto& s = item.items();
      const int64_t step = s[2].is_none() ? 1 : s[2].to_int();
      PRONG_CHECK(step > 0, kValue, "step must be greater than zero");
      view_ = run_op("slice", {view_, dim_++, s[0], s[1], step}).to_tensor();
    } else {
      view_ = run_op("select", {view_, dim_, item.to_int()}).to_tensor();
    }
  }

  void apply_tensor(const Tensor& t) {
    PRONG_CHECK(!is_floating(t.dtype()), kIndex,
                "tensors used as indices must be long, int, byte or bool tensors");
    if (t.rank() > 0) return record(t, is_mask(t) ? t.rank() : 1);
    // A zero-dim int tensor selects a view, as a number does.
    if (!is_mask(t)) {
      view_ = run_op("select", {view_, dim_, t.item_int()}).to_tensor();
      return;
    }
    view_ = run_op("unsqueeze", {view_, dim_}).to_tensor();
    record(one_bool(t.item_int() != 0), 1);
  }

  void record(Tensor t, int64_t dims) {
    for (; covered_ < dim_; ++covered_) indices_.emplace_back();
    indices_.emplace_back(std::move(t));
    covered_ += dims;
    dim_ += dims;
  }

  static Tensor one_bool(bool b) {
    const int64_t sizes[] = {1};
    Tensor t = Tensor::empty(sizes, DType::kBool);
    fill(t, static_cast<int64_t>(b));
    return t;
  }

  Tensor view_;
  int64_t dim_ = 0, covered_ = 0, ellipsis_ = 0;
  std::vector<IValue> indices_;
};

IValue get_item(Args a) {
  const Indexing indexing(a[0].to_tensor(), a[1].items());
  if (indexing.is_advanced()) return run_op("index", {indexing.view(), indexing.indices()});
  if (indexing.view().is_same(a[0].to_tensor())) return run_op("alias", {a[0]});
  return IValue(indexing.view());
}

IValue set_item(Args a) {
  const Tensor target = a[0].to_tensor();
  PRONG_CHECK(!target.requires_grad() || !eager::is_leaf(target) || !eager::is_grad_enabled(),
              kRuntime, eager::kWritesViewOfLeaf);
  const Indexing indexing(target, a[1].items());
  IValue source = a[2];
  if (indexing.is_advanced()) {
    run_op("index_put_", {indexing.view(), indexing.indices(), source, false});
  } else if (source.is_tensor()) {
    // Leading dimensions of size 1 that the target lacks are dropped.
    while (source.tensor_impl()->sizes.size() > indexing.view().sizes().size() &&
           source.tensor_impl()->sizes[0] == 1)
      source = run_op("select", {source, 0, 0});
    run_op("copy_", {indexing.view(), source, false});
  } else {
    run_op("fill_", {indexing.view(), source});
  }
  return IValue();
}

}  // namespace

void register_tensors(HostRegistry& r) {
  r.add(Effect::kReads, "tensor_getitem(self: Tensor, index: t) -> Tensor", get_item);
  r.add(Effect::kMutates, "tensor_setitem(self: Tensor, index: t, value: u) -> None", set_item);
  r.add(Effect::kReads, "len.Tensor(self: Tensor) -> int", [](Args a) {
    const Tensor t = a[0].to_tensor();
    PRONG_CHECK(t.rank() > 0, kType, "len() of a 0-d tensor");
    return IValue(t.sizes()[0]);
  });
  r.add(Effect::kPure, "tensor_dtype(self: Tensor) -> dtype",
        [](Args a) { return IValue(tensor_from(a[0]).dtype()); });
  r.add(Effect::kReads, "tensor_requires_grad(self: Tensor) -> bool",
        [](Args a) { return IValue(tensor_from(a[0]).requires_grad()); });
  r.add(Effect::kReads, "tensor_is_leaf(self: Tensor) -> bool",
        [](Args a) { return IValue(eager::is_leaf(tensor_from(a[0]))); });
  r.add(Effect::kPure, "dtype_is_floating_point(self: dtype) -> bool",
        [](Args a) { return IValue(is_floating(a[0].to_dtype())); });
}

}  // namespace prong
