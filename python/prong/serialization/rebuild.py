"""The functions that files name to make tensors, with every argument checked. Used by allowed.py."""

from pickle import UnpicklingError

import prong
from prong import Tensor
from prong.nn.parameter import Parameter


class LoadedStorage:
    """Bytes of a file, and the dtype that the file gives them."""

    def __init__(self, data, dtype):
        self.data = data  # a uint8 tensor
        self.dtype = dtype


def _integers(values, what):
    if not isinstance(values, (tuple, list)) or not all(type(v) is int for v in values):
        raise UnpicklingError(f"a tensor's {what} is no tuple of integers")
    return tuple(values)


def _tensor_on(storage, offset, sizes, strides, dtype):
    if not isinstance(storage, LoadedStorage):
        raise UnpicklingError("a tensor is made without a storage")
    sizes, strides = _integers(sizes, "size"), _integers(strides, "stride")
    if len(sizes) != len(strides) or type(offset) is not int:
        raise UnpicklingError("a tensor's size, stride and offset don't fit together")
    if offset < 0 or min(sizes + strides, default=0) < 0:
        raise UnpicklingError("a tensor's size, stride or offset is negative")
    last = offset + sum((n - 1) * s for n, s in zip(sizes, strides))
    count = storage.data.numel() // dtype.itemsize
    if 0 not in sizes and last >= count:
        raise UnpicklingError(
            f"a tensor of size {sizes} and stride {strides} at {offset} reaches beyond its storage of "
            f"{count} elements"
        )
    return Tensor._on_storage(storage.data, offset, list(sizes), list(strides), dtype)


def _rebuild_tensor(storage, offset, size, stride):
    return _tensor_on(storage, offset, size, stride, getattr(storage, "dtype", None))


def _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks, metadata=None):
    made = _rebuild_tensor(storage, offset, size, stride)
    return made.requires_grad_() if requires_grad is True else made


def _rebuild_tensor_v3(
    storage, offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None
):
    made = _tensor_on(storage, offset, size, stride, dtype)
    return made.requires_grad_() if requires_grad is True else made


def _rebuild_parameter(data, requires_grad, backward_hooks):
    return Parameter(data, requires_grad is True)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    made = Parameter(data, requires_grad is True)
    return _with_state(made, state)


def _with_state(made, state):
    if isinstance(state, tuple):
        state = state[0]
    if state:
        if not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
            raise UnpicklingError("a tensor's state is no dict of names")
        vars(made).update(state)
    return made


def _rebuild_from_type_v2(function, kind, arguments, state):
    # A tensor of a subclass, or with attributes of its own.
    if function not in (_rebuild_tensor_v2, _rebuild_tensor_v3):
        raise UnpicklingError("a tensor is made by a function that is not on the list")
    made = function(*arguments)
    if kind is not Tensor:
        if not (isinstance(kind, type) and issubclass(kind, Tensor)):
            raise UnpicklingError("a tensor's type is no tensor type")
        made = made.as_subclass(kind)
    return _with_state(made, state)


def _rebuild_device_tensor_from_numpy(data, dtype, device, requires_grad):
    made = prong.from_numpy(data).to(dtype)
    return made.requires_grad_() if requires_grad is True else made


def _not_here(name):
    def refuse(*arguments):
        raise NotImplementedError(
            f"prong has no {name} tensors, which the file holds (torch._utils.{name})"
        )

    return refuse


FUNCTIONS = {
    "_rebuild_tensor": _rebuild_tensor,
    "_rebuild_tensor_v2": _rebuild_tensor_v2,
    "_rebuild_tensor_v3": _rebuild_tensor_v3,
    "_rebuild_parameter": _rebuild_parameter,
    "_rebuild_parameter_with_state": _rebuild_parameter_with_state,
    "_rebuild_from_type_v2": _rebuild_from_type_v2,
    "_rebuild_device_tensor_from_numpy": _rebuild_device_tensor_from_numpy,
    "_rebuild_sparse_tensor": _not_here("_rebuild_sparse_tensor"),
    "_rebuild_qtensor": _not_here("_rebuild_qtensor"),
    "_rebuild_meta_tensor_no_storage": _not_here("_rebuild_meta_tensor_no_storage"),
    "_rebuild_nested_tensor": _not_here("_rebuild_nested_tensor"),
}
