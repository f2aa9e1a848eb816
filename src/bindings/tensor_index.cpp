// t[index] and t[index] = value: Python's index forms as select, slice, unsqueeze, index and
// index_put_.
#include "bindings/constants.h"
#include "bindings/convert.h"
#include "bindings/op_function.h"
#include "bindings/tensor_data.h"
#include "bindings/tensor_type.h"
#include "eager/batched.h"
#include "eager/dispatch.h"
#include "eager/record.h"

namespace prong::python {

Tensor index_tensor(PyObject* item) {
  if (is_tensor(item)) return tensor_of(item);
  if (PyList_Check(item) || PyRange_Check(item) || PyTuple_Check(item)) {
    Tensor t = tensor_from_data(item, std::nullopt);
    return t.numel() == 0 ? t.to(DType::kInt64) : t;
  }
  if (PyObject_CheckBuffer(item) && !PyBytes_Check(item) && !PyIndex_Check(item))
    return tensor_from_data(item, std::nullopt);
  return {};
}

namespace {

bool is_mask(const Tensor& t) { return t.dtype() == DType::kBool || t.dtype() == DType::kUInt8; }

// One slice along dim, without it, with the message of an index expression.
IValue select(const Tensor& t, int64_t dim, int64_t index) {
  const int64_t size = t.size(dim);
  PRONG_CHECK(index >= -size && index < size, kIndex, "index ", index,
              " is out of bounds for dimension ", dim, " with size ", size);
  return run_named("select", t, dim, index);
}

// What one index expression does, applied from left to right.
class Indexing {
 public:
  Indexing(const Tensor& t, PyObject* index) : result_(t) {
    if (PyTuple_Check(index)) {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index); ++i) add(PyTuple_GET_ITEM(index, i));
    } else {
      add(index);
    }
    int64_t named = 0;
    for (const Item& item : items_) named += item.dims;
    if (named > t.rank())
      throw_error(ErrorKind::kIndex, cat("too many indices for tensor of dimension ", t.rank()));
    ellipsis_ = t.rank() - named;
    for (const Item& item : items_) apply(item);
  }

  bool is_advanced() const { return !indices_.empty(); }
  const Tensor& view() const { return result_; }
  bool is_untouched() const { return !touched_; }
  IValue indices() const { return IValue::list(indices_); }

 private:
  struct Item {
    PyObject* object;  // borrowed
    Tensor tensor;
    int64_t dims;  // of the indexed tensor that it uses up
  };

  void add(PyObject* object) {
    if (object == Py_Ellipsis || object == Py_None || PyBool_Check(object)) {
      items_.push_back({object, {}, 0});
    } else if (PyLong_Check(object) || PySlice_Check(object)) {
      items_.push_back({object, {}, 1});
    } else if (Tensor t = index_tensor(object); t.defined()) {
      items_.push_back({object, t, is_mask(t) ? t.rank() : 1});
    } else if (PyIndex_Check(object)) {
      items_.push_back({object, {}, 1});
    } else {
      throw_error(
          ErrorKind::kIndex,
          cat("only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables "
              "are valid indices (got ",
              type_name(object), ")"));
    }
  }

  void set(IValue value) {
    result_ = std::move(value).to_tensor();
    touched_ = true;
  }

  void record(Tensor t, int64_t dims) {
    for (; covered_ < dim_; ++covered_) indices_.emplace_back();
    indices_.emplace_back(std::move(t));
    covered_ += dims;
    dim_ += dims;
  }

  void apply(const Item& item) {
    PyObject* object = item.object;
    if (item.tensor.defined()) return apply_tensor(item.tensor);
    if (object == Py_Ellipsis) {
      dim_ += ellipsis_;
      ellipsis_ = 0;
    } else if (object == Py_None) {
      set(run_named("unsqueeze", result_, dim_++));
    } else if (PyBool_Check(object)) {
      set(run_named("unsqueeze", result_, dim_));
      record(bool_tensor(object == Py_True, 1), 1);
    } else if (PySlice_Check(object)) {
      apply_slice(object);
    } else {
      IValue i;
      if (!try_to_ivalue(object, *Type::int_(), &i)) {
        Owned whole(checked(PyNumber_Index(object)));
        try_to_ivalue(whole.get(), *Type::int_(), &i);
      }
      set(select(result_, dim_, i.to_int()));
    }
  }

  void apply_slice(PyObject* object) {
    Py_ssize_t start, stop, step;
    const auto* s = reinterpret_cast<PySliceObject*>(object);
    if (s->start == Py_None && s->stop == Py_None && s->step == Py_None) {
      ++dim_;
      return;
    }
    checked(PySlice_Unpack(object, &start, &stop, &step));
    PRONG_CHECK(step > 0, kValue, "step must be greater than zero");
    set(run_named("slice", result_, dim_++, int64_t{start}, int64_t{stop}, int64_t{step}));
  }

  void apply_tensor(const Tensor& t) {
    const bool is_batched = eager::may_be_batched() && eager::batched_of(t.impl());
    if (t.rank() == 0 && !is_inexact(t.dtype()) && !is_batched) {
      if (!is_mask(t)) return set(select(result_, dim_, t.item_int()));
      set(run_named("unsqueeze", result_, dim_));
      return record(bool_tensor(t.item_int() != 0, 1), 1);
    }
    PRONG_CHECK(!is_inexact(t.dtype()), kIndex,
                "tensors used as indices must be long, int, byte or bool tensors");
    record(t, is_mask(t) ? t.rank() : 1);
  }

  static Tensor bool_tensor(bool value, int64_t size) {
    const int64_t sizes[] = {size};
    Tensor t = Tensor::empty(sizes, DType::kBool);
    fill(t, static_cast<int64_t>(value));
    return t;
  }

  std::vector<Item> items_;
  Tensor result_;
  int64_t dim_ = 0, covered_ = 0, ellipsis_ = 0;
  std::vector<IValue> indices_;
  bool touched_ = false;
};

// The value of an assignment: a tensor or a number as it is.
IValue value_to_assign(PyObject* value, const Tensor& target) {
  if (is_tensor(value)) return IValue(tensor_of(value));
  IValue number;
  if (number_to_ivalue(value, &number)) return number;
  throw_error(ErrorKind::kType, cat("can't assign a ", type_name(value),
                                    " to a torch tensor of dtype ", target.dtype()));
}

// PyTorch drops leading dimensions of size 1 that the target lacks.
IValue without_leading_ones(IValue value, int64_t rank) {
  if (!value.is_tensor()) return value;
  Tensor t = value.to_tensor();
  while (t.rank() > rank && t.sizes()[0] == 1) t = run_named("select", t, 0, 0).to_tensor();
  return IValue(t);
}

void assign(PyObject* self, PyObject* index, PyObject* value) {
  const Tensor target = tensor_of(self);
  PRONG_CHECK(value, kType, "Tensor does not support deleting items");
  PRONG_CHECK(!target.requires_grad() || !eager::is_leaf(target) || !eager::is_grad_enabled(),
              kRuntime, eager::kWritesViewOfLeaf);
  IValue source = value_to_assign(value, target);
  const Indexing indexing(target, index);
  const Tensor& view = indexing.view();
  if (indexing.is_advanced()) {
    run_named("index_put_", view, indexing.indices(), source);
  } else if (source.is_tensor()) {
    source = without_leading_ones(std::move(source), view.rank());
    run_named("copy_", view, source);
  } else {
    run_named("fill_", view, source);
  }
}

}  // namespace

PyObject* tensor_subscript(PyObject* self, PyObject* index) {
  return guarded([&]() -> PyObject* {
    const Tensor t = tensor_of(self);
    if (PyLong_CheckExact(index)) {
      PRONG_CHECK(t.rank() > 0, kIndex,
                  "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                  "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number");
      IValue i;
      try_to_ivalue(index, *Type::int_(), &i);
      return wrap(select(t, 0, i.to_int()).to_tensor());
    }
    const Indexing indexing(t, index);
    if (indexing.is_advanced())
      return wrap(run_named("index", indexing.view(), indexing.indices()).to_tensor());
    if (indexing.is_untouched()) return wrap(run_named("alias", t).to_tensor());
    return wrap(indexing.view());
  });
}

int tensor_assign_subscript(PyObject* self, PyObject* index, PyObject* value) {
  return guarded([&]() -> int {
    assign(self, index, value);
    return 0;
  });
}

}  // namespace prong::python
