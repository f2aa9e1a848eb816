// Abstract results of ops. See stand_ins.h.
#include "capture/stand_ins.h"

#include <algorithm>

namespace prong::capture {

namespace {

struct NoData final : DeferredWork {
  void settle() override { throw DataNeeded{}; }
};

IValue abstract(const IValue& v) {
  if (v.is_tensor()) return IValue(Tensor(Ref<TensorImpl>(v.tensor_impl())).meta());
  if (!v.is_list() && !v.is_tuple()) return v;
  std::vector<IValue> items;
  for (const IValue& item : v.items()) items.push_back(abstract(item));
  return v.is_list() ? IValue::list(std::move(items)) : IValue::tuple(std::move(items));
}

}  // namespace

const Ref<DeferredWork>& no_data() {
  static const Ref<DeferredWork> work = make_ref<NoData>();
  return work;
}

Tensor stand_in_for(const TensorImpl& t) {
  Tensor fake = Tensor::view_of(make_ref<Storage>(t.storage->bytes(), no_data()), t.offset, t.sizes,
                                t.strides, t.dtype);
  fake.impl()->is_apart = t.is_apart;
  return fake;
}

Ref<TensorImpl> blank_like(const TensorImpl& t, const Dims& sizes) {
  const auto bytes = static_cast<size_t>(product(sizes)) * size_of(t.dtype);
  Tensor blank = Tensor::view_of(make_ref<Storage>(bytes, no_data()), 0, sizes,
                                 contiguous_strides(sizes), t.dtype);
  blank.impl()->is_apart = t.is_apart;
  return blank.ref();
}

bool is_same_view(const TensorImpl& a, const TensorImpl& b) {
  return a.storage == b.storage && a.offset == b.offset && a.dtype == b.dtype &&
         a.sizes == b.sizes && a.strides == b.strides;
}

bool shares_memory(const IValue& tensor, const IValue& arg) {
  if (arg.is_tensor()) return tensor.tensor_impl()->storage == arg.tensor_impl()->storage;
  return arg.is_list() &&
         std::any_of(arg.items().begin(), arg.items().end(), [&](const IValue& item) {
           return item.is_tensor() && shares_memory(tensor, item);
         });
}

bool may_alias(const OpDef& op) {
  if (op.is_random()) return false;
  if (op.is_composite()) return true;  // what its last op gives
  return op.family() == Family::kView || op.family() == Family::kCopy ||
         op.family() == Family::kOpaque || op.viewed_argument() >= 0;
}

IValue result_metas(const OpDef& op, std::span<const IValue> args) {
  try {
    std::vector<IValue> abstracts;
    for (const IValue& a : args) abstracts.push_back(abstract(a));
    return op.shape()(op, abstracts);
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace prong::capture
