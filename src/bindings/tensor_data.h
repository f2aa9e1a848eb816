// Tensors from Python data (numbers, nested lists, arrays) and back. Called by methods, indexing
// and the module.
#pragma once

#include <optional>

#include "bindings/errors.h"
#include "tensor/tensor.h"

namespace prong::python {

// A new tensor with a copy of the data: a number, nested sequences of numbers, an array, a tensor.
Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype);
// A tensor to index with, from a tensor, list, range or array; none when the object is none of
// these. tensor_index.cpp.
Tensor index_tensor(PyObject* item);
// Numbers and nested lists.
PyObject* to_list(const Tensor& t);
PyObject* to_number(const Tensor& t);  // of a tensor with one element; kRuntime otherwise

// Without a copy. numpy.cpp:
Tensor
from_buffer_object(PyObject* array);  // shares the memory of anything with the buffer protocol
// `count` items of `dtype` from byte `offset` on of a bytes-like object.
Tensor from_bytes(PyObject* bytes, DType dtype, int64_t offset, int64_t count);
PyObject* to_numpy(const Tensor& t);  // an ndarray that shares the tensor's memory
// dlpack.cpp:
PyObject* to_dlpack(const Tensor& t, bool versioned);
Tensor from_dlpack(PyObject* capsule);

void init_tensor_data(PyObject* module);  // tensor, as_tensor, from_numpy, frombuffer, from_dlpack

}  // namespace prong::python
