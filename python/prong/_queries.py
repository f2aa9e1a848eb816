"""Questions about objects and dtypes that need no arithmetic."""

from prong import _core


def is_tensor(obj) -> bool:
    """Whether obj is a tensor."""
    return isinstance(obj, _core.Tensor)


def is_storage(obj) -> bool:
    """Whether obj is a storage."""
    from_storage = getattr(type(obj), "_is_prong_storage", False)
    return bool(from_storage)


def is_complex(input) -> bool:
    """Whether the dtype is complex: never, there are no complex tensors here yet."""
    return input.is_complex()


def typename(obj) -> str:
    """The dtype's old name for a tensor ('torch.FloatTensor'), else the type's full name."""
    if isinstance(obj, _core.Tensor):
        return obj.type()
    owner = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(owner, "__module__", None)
    return owner.__qualname__ if module in (None, "builtins") else f"{module}.{owner.__qualname__}"


def promote_types(type1, type2):
    """The smallest dtype that holds both."""
    return _core._promote(type1, type2)


def can_cast(from_, to) -> bool:
    """Whether PyTorch's rules let a result of the first dtype be stored in the second."""
    return _core._can_cast(from_, to)


def result_type(tensor1, tensor2):
    """The dtype of arithmetic between two tensors or numbers."""
    return _core._result_type(tensor1, tensor2)


def get_device_module(device=None):
    """The module of the accelerator: there is none here."""
    raise RuntimeError("prong computes on the CPU only; there is no device module")
