"""Writes objects as the pickles that torch.load reads: tensors under PyTorch's names, their bytes beside them."""

import io
import pickle
from collections import OrderedDict

import prong
from prong import Tensor
from prong._storage import UntypedStorage
from prong.nn.parameter import Buffer, Parameter
from prong.nn.state import StateDict

from .storages import dtype_name, storage_name


class _Named:
    """Stands for a name that is written into the file and is no object here."""

    def __init__(self, module: str, name: str):
        self.module, self.name = module, name

    def __call__(self):
        raise TypeError(f"{self.module}.{self.name} is a name in a file")


class _StorageKey:
    """Stands for a storage; written as its persistent id."""

    def __init__(self, identity):
        self.identity = identity


_names: dict[tuple[str, str], _Named] = {}


def _named(module, name):
    return _names.setdefault((module, name), _Named(module, name))


class Pickler(pickle._Pickler):  # the one written in Python: the other lets no names be changed
    """One pickle; the storages that it met are in `storages`, in order."""

    def __init__(self, file, protocol):
        super().__init__(file, protocol)
        self.storages: list[UntypedStorage] = []
        self._keys: dict[int, tuple[str, object]] = {}

    def persistent_id(self, obj):
        return obj.identity if isinstance(obj, _StorageKey) else None

    def save_global(self, obj, name=None):
        if isinstance(obj, prong.dtype):
            module, name = "torch", dtype_name(obj)
        elif isinstance(obj, _Named):
            module, name = obj.module, obj.name
        else:
            return super().save_global(obj, name)
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    def _storage(self, storage, dtype):
        key = id(storage)
        if key not in self._keys:
            self._keys[key] = (str(len(self.storages)), dtype)
            self.storages.append(storage)
        number, first = self._keys[key]
        if first is not dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types"
            )
        count = storage.nbytes() // dtype.itemsize
        kind = _named("torch", storage_name(dtype))
        return _StorageKey(("storage", kind, number, "cpu", count))

    def _tensor(self, tensor):
        arguments = (
            self._storage(UntypedStorage.of(tensor), tensor.dtype),
            tensor.storage_offset(),
            tuple(tensor.shape),
            tensor.stride(),
            tensor.requires_grad,
            OrderedDict(),
        )
        rebuild = _named("torch._utils", "_rebuild_tensor_v2")
        state = tensor.__reduce_ex__(2)[1][-1]
        if not state:
            return rebuild, arguments
        return (
            _named("torch._tensor", "_rebuild_from_type_v2"),
            (rebuild, _named("torch", "Tensor"), arguments, state),
        )

    def reducer_override(self, obj):
        if isinstance(obj, _Named):
            return obj.name
        kind = type(obj)
        if kind is Parameter:
            return (
                _named("torch._utils", "_rebuild_parameter"),
                (obj.data, obj.requires_grad, OrderedDict()),
            )
        if kind is Buffer:
            return self._tensor(obj.detach())
        if kind is Tensor:
            return self._tensor(obj)
        if isinstance(obj, prong.dtype):
            return dtype_name(obj)
        if kind is prong.Size:
            return _named("torch", "Size"), (tuple(obj),)
        if isinstance(obj, prong.device):
            return _named("torch", "device"), (str(obj),)
        if kind is StateDict:
            return OrderedDict, (), vars(obj) or None, None, iter(obj.items())
        if obj is UntypedStorage or kind is UntypedStorage:
            raise TypeError("prong saves tensors; a storage by itself is not saved yet")
        return NotImplemented


def pickled(obj, protocol: int) -> tuple[bytes, list[UntypedStorage]]:
    """The pickle of `obj`, and the storages that belong into the records 0, 1, 2 and so on."""
    file = io.BytesIO()
    pickler = Pickler(file, protocol)
    pickler.dump(obj)
    return file.getvalue(), pickler.storages
