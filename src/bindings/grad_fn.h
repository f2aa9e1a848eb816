// Nodes of the tape as Python objects. Used by autograd.cpp and the attributes of tensors.
#pragma once

#include "bindings/python.h"
#include "eager/node.h"

namespace prong::python {

struct GradFn {
  Ref<eager::Node> node;
};

PyObject* grad_fn_object(eager::Node* node);  // a new reference; None for null

}  // namespace prong::python
