// The public handles as what they are inside. For the files of this folder only.
#pragma once

#include "graph/archive.h"
#include "prong/module.h"
#include "tensor/ivalue.h"

namespace prong::api {

struct Tensor::Impl {
  prong::Tensor tensor;
};
struct Value::Impl {
  IValue value;
};
struct Pending::Impl {
  Ref<Future> future;
};

struct Access {
  static const prong::Tensor& inner(const Tensor& t) { return t.impl_->tensor; }
  static const IValue& inner(const Value& v) { return v.impl_->value; }
  static Tensor outer(prong::Tensor t) {
    Tensor out;
    out.impl_->tensor = std::move(t);
    return out;
  }
  static Value outer(IValue v) {
    Value out;
    out.impl_->value = std::move(v);
    return out;
  }
  static Pending outer(Ref<Future> f) {
    Pending out;
    out.impl_ = std::make_shared<Pending::Impl>(Pending::Impl{std::move(f)});
    return out;
  }
};

}  // namespace prong::api
