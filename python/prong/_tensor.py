"""Methods of Tensor that are Python: text, protocols, copies, pickles. The rest is ops."""

import copy
import importlib
from typing import Any

from prong import _core, _names
from prong._core import Tensor
from prong._storage import UntypedStorage
from prong.autograd.backward import TENSOR_METHODS

_OLD_NAMES = {
    "float16": "Half",
    "bfloat16": "BFloat16",
    "float32": "Float",
    "float64": "Double",
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "bool": "Bool",
}


def rebuild_tensor(cls, storage, offset, sizes, strides, dtype, requires_grad, state):
    """Unpickles a tensor; what __reduce_ex__ names."""
    made = Tensor._on_storage(storage._bytes, offset, sizes, strides, dtype)
    if cls is not Tensor:
        made = Tensor._make_subclass(cls, made, requires_grad)
    elif requires_grad:
        made.requires_grad_()
    if state:
        made.__dict__.update(state)
    return made


def _repr(self, *, tensor_contents=None):
    batch = _core._batch_of(self)
    if batch is not None:
        physical, level, has_batch = batch
        dim = 0 if has_batch else None
        inner = repr(physical).replace("\n", "\n    ")
        return f"BatchedTensor(lvl={level}, bdim={dim}, value=\n    {inner}\n)"
    return self._repr_text("tensor(")


def _format(self, spec):
    if self.dim() == 0:
        return self.item().__format__(spec)
    return object.__format__(self, spec)


def _contains(self, element):
    if isinstance(element, (Tensor, bool, int, float)):
        return bool((element == self).any().item())
    raise RuntimeError(
        f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
    )


def _reversed(self):
    return self if self.dim() == 0 else self.flip(0)


def _array(self, dtype=None, copy=None):
    made = self.numpy()
    return (
        made
        if dtype is None and not copy
        else made.astype(dtype or made.dtype, copy=copy is not False)
    )


def _array_wrap(self, array, context=None, return_scalar=False):
    return _core.as_tensor(array)


def _dlpack(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    if dl_device is not None and tuple(dl_device) != (1, 0):
        raise BufferError("prong computes on the CPU only")
    source = self.clone() if copy else self
    return source._dlpack_capsule(max_version is not None and max_version[0] >= 1)


def _dlpack_device(self):
    return (1, 0)


def _array_namespace(self, *, api_version=None):
    namespace = importlib.import_module("prong.array_api")  # loaded late: few programs ask for it
    namespace.versions.check(api_version)
    return namespace


def _to_device(self, device, /, *, stream=None):
    if stream is not None:
        raise ValueError("to_device: the CPU has no streams")
    return self.to(device)


def _state(self):
    return dict(self.__dict__)


def _reduce_ex(self, protocol):
    arguments = (
        type(self),
        UntypedStorage.of(self),
        self.storage_offset(),
        tuple(self.shape),
        self.stride(),
        self.dtype,
        self.requires_grad,
        _state(self),
    )
    return rebuild_tensor, arguments


def _deepcopy(self, memo):
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment.  If you were attempting to deepcopy a module, this may be "
            "because of a torch.nn.utils.weight_norm usage: clone it instead"
        )
    storage = copy.deepcopy(UntypedStorage.of(self), memo)
    made = rebuild_tensor(
        type(self),
        storage,
        self.storage_offset(),
        self.shape,
        self.stride(),
        self.dtype,
        self.requires_grad,
        None,
    )
    memo[id(self)] = made
    if self.grad is not None:
        made.grad = copy.deepcopy(self.grad, memo)
    made.__dict__.update(copy.deepcopy(_state(self), memo))
    return made


def _type(self, dtype=None, non_blocking=False, **kwargs):
    if dtype is None:
        return f"torch.{_OLD_NAMES[repr(self.dtype).removeprefix('torch.')]}Tensor"
    if isinstance(dtype, str):
        old = dtype.rpartition(".")[2].removesuffix("Tensor")
        found = [name for name, text in _OLD_NAMES.items() if text == old]
        if not found:
            raise ValueError(f"invalid type: '{dtype}'")
        dtype = getattr(_core, found[0])
    return self.to(getattr(dtype, "dtype", dtype))


def _new_tensor(self, data, *, dtype=None, device=None, requires_grad=False, **ignored):
    return _core.tensor(data, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)


def _new(self, *args, **kwargs):
    if len(args) == 1 and not isinstance(args[0], (int, _core.Size)):
        return _core.tensor(args[0], dtype=self.dtype)
    return self.new_empty(*args) if args else self.new_empty([0])


def _cuda(self, *args, **kwargs):
    raise AssertionError("Torch not compiled with CUDA enabled (prong computes on the CPU only)")


def _pin_memory(self, *args):
    raise RuntimeError("prong computes on the CPU only: there is no accelerator to pin memory for")


def _apply_(self, function):
    flat = [function(x) for x in self.reshape(-1).tolist()]
    self.copy_(_core.tensor(flat, dtype=self.dtype).reshape(self.shape))
    return self


def _share_memory_(self):
    raise NotImplementedError("prong has no tensors in memory shared between processes yet")


def _getattr(self, name):
    # Reached only when the normal look-up has failed.
    raise AttributeError(_names.missing_method(name))


_METHODS: dict[str, Any] = {
    "__repr__": _repr,
    "__str__": _repr,
    "__format__": _format,
    "__contains__": _contains,
    "__reversed__": _reversed,
    "__array__": _array,
    "__array_wrap__": _array_wrap,
    "__array_priority__": 1000,
    "__dlpack__": _dlpack,
    "__dlpack_device__": _dlpack_device,
    "__array_namespace__": _array_namespace,
    "to_device": _to_device,
    "__reduce_ex__": _reduce_ex,
    "__deepcopy__": _deepcopy,
    "__getattr__": _getattr,
    "type": _type,
    "new": _new,
    "new_tensor": _new_tensor,
    "cuda": _cuda,
    "pin_memory": _pin_memory,
    "is_pinned": lambda self, *args: False,
    "is_shared": lambda self: False,
    "share_memory_": _share_memory_,
    "apply_": _apply_,
    "get_device": lambda self: -1,
    "untyped_storage": lambda self: UntypedStorage.of(self),
    "storage": lambda self: UntypedStorage.of(self),
    "has_names": lambda self: False,
    "is_inference": lambda self: self._is_inference,
    "resolve_neg": lambda self: self,
    "is_conj": lambda self: False,
    "is_neg": lambda self: False,
    "dim_order": lambda self: tuple(sorted(range(self.dim()), key=lambda d: -self.stride(d))),
}


def install_methods(methods: dict | None = None) -> None:
    """Puts the methods on the type; an op of the same name gives way. Called by the package."""
    own = {**_METHODS, **TENSOR_METHODS}
    for name, method in (own if methods is None else methods).items():
        given = getattr(method, "__name__", "")
        if callable(method) and given in ("<lambda>", f"_{name}", f"_{name}_of"):
            method.__name__ = name
            method.__qualname__ = f"Tensor.{name}"
        setattr(Tensor, name, method)
