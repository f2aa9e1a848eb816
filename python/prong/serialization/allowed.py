"""What a pickle may name and call: the short list, and what the program adds to it. Used by opcodes.py."""

import argparse
import codecs
import importlib
import pathlib
import types
from collections import Counter, OrderedDict, defaultdict
from pickle import UnpicklingError

import numpy as np

import prong
from prong import Tensor
from prong.nn.module import Module
from prong.nn.parameter import Buffer, Parameter

from .rebuild import FUNCTIONS
from .storages import DTYPE_NAMES, STORAGE_TYPES, dtype_named

_added: list = []  # what add_safe_globals was given: objects, or (object, "module.name")


def _encode(text, encoding="latin1"):
    # How old protocols write bytes.
    if not isinstance(text, str) or encoding not in ("latin1", "utf-8", "ascii"):
        raise UnpicklingError(f"_codecs.encode with the encoding {encoding!r} is refused")
    return codecs.encode(text, encoding)


def _bytearray(*arguments):
    # A number would make it as long as that number says.
    if any(isinstance(a, int) for a in arguments):
        raise UnpicklingError("bytearray of a size is refused")
    return bytearray(*arguments)


def _defaultdict(factory=None, *items):
    if factory not in (None, list, dict, int, float, set, tuple, str, OrderedDict):
        raise UnpicklingError("defaultdict with this factory is refused")
    return defaultdict(factory, *items)


def _plain_array(kind, shape, typecode):
    # What NumPy's own reconstruct makes: an empty array, which BUILD fills.
    return np.ndarray((0,), "b")


def _plain_dtype(text, align=False, copy=True):
    if not isinstance(text, str) or np.dtype(text).hasobject:
        raise UnpicklingError(f"NumPy's dtype {text!r} is refused")
    return np.dtype(text)


def _plain_scalar(dtype, data):
    if dtype.hasobject or not isinstance(data, bytes):
        raise UnpicklingError("a NumPy scalar of objects is refused")
    return np.frombuffer(data, dtype, 1)[0]


_DATA = {
    "collections.OrderedDict": OrderedDict,
    "collections.Counter": Counter,
    "collections.defaultdict": _defaultdict,
    "_codecs.encode": _encode,
    "builtins.set": set,
    "builtins.frozenset": frozenset,
    "builtins.complex": complex,
    "builtins.bytearray": _bytearray,
    "builtins.int": int,
    "builtins.float": float,
    "builtins.str": str,
    "builtins.bool": bool,
    "builtins.list": list,
    "builtins.dict": dict,
    "builtins.tuple": tuple,
    "torch.Size": prong.Size,
    "torch.device": prong.device,
    "torch.Tensor": Tensor,
    "torch.nn.parameter.Parameter": Parameter,
    "torch.nn.parameter.Buffer": Buffer,
    **{f"torch._utils.{name}": function for name, function in FUNCTIONS.items()},
    "torch._tensor._rebuild_from_type_v2": FUNCTIONS["_rebuild_from_type_v2"],
}
# Read with weights_only=False only, as in PyTorch; none of them runs code of the file either.
_MORE_DATA = {
    "numpy.core.multiarray._reconstruct": _plain_array,
    "numpy._core.multiarray._reconstruct": _plain_array,
    "numpy.core.multiarray.scalar": _plain_scalar,
    "numpy._core.multiarray.scalar": _plain_scalar,
    "numpy.dtype": _plain_dtype,
    "numpy.ndarray": np.ndarray,
    "argparse.Namespace": argparse.Namespace,
    "types.SimpleNamespace": types.SimpleNamespace,
    "builtins.slice": slice,
    "builtins.range": range,
    "pathlib.PosixPath": pathlib.PurePath,
    "pathlib.PurePosixPath": pathlib.PurePath,
    "pathlib.WindowsPath": pathlib.PureWindowsPath,
    "pathlib.PureWindowsPath": pathlib.PureWindowsPath,
}


def _qualified(item) -> tuple[str, object]:
    if isinstance(item, tuple):
        made, name = item
        return name, made
    return f"{item.__module__}.{item.__qualname__}", item


def add_safe_globals(safe_globals: list) -> None:
    """Lets these classes and functions be named by the files that load reads."""
    _added.extend(item for item in safe_globals if item not in _added)


def get_safe_globals() -> list:
    """What the program has added."""
    return list(_added)


def clear_safe_globals() -> None:
    """Takes back all that the program has added."""
    _added.clear()


class safe_globals:
    """Adds to the list within a with block."""

    def __init__(self, safe_globals: list):
        self._items = safe_globals

    def __enter__(self):
        self._before = list(_added)
        add_safe_globals(self._items)

    def __exit__(self, *exception):
        _added[:] = self._before


class Granted:
    """The names that one reading may use, and the calls that it may make."""

    def __init__(self, weights_only: bool):
        self._weights_only = weights_only
        self._own = dict(map(_qualified, _added))
        self._names = _DATA if weights_only else _DATA | _MORE_DATA
        self._given: list = []  # what was handed out and may be called

    def find(self, module: str, name: str):
        """What a name stands for."""
        module = {"__builtin__": "builtins"}.get(module, module)  # Python 2's name, in protocol 2
        full = f"{module}.{name}"
        own_name = "prong" + full.removeprefix("torch") if module.startswith("torch") else full
        for key in (full, own_name):
            if key in self._own:
                return self._give(self._own[key])
        as_torch = "torch" + full.removeprefix("prong") if module.startswith("prong") else full
        if as_torch in self._names:
            return self._give(self._names[as_torch])
        if module in ("torch", "torch.storage", "prong"):
            if name in STORAGE_TYPES:
                return STORAGE_TYPES[name]
            if name in DTYPE_NAMES:
                return dtype_named(name)
        found = None if self._weights_only else _own_module_class(module, name)
        if found is None:
            raise UnpicklingError(self._refusal(full))
        return self._give(found)

    def _refusal(self, full):
        text = (
            f"Weights only load failed. Unsupported global: GLOBAL {full} was not an allowed global "
            "by default: prong runs no code that a file names. "
        )
        if self._weights_only and full in _MORE_DATA:
            return text + "It is data that weights_only=False reads."
        name = full.rpartition(".")[2]
        return text + (
            f"If you trust it, use `torch.serialization.add_safe_globals([{name}])` or the "
            f"`torch.serialization.safe_globals([{name}])` context manager."
        )

    def _give(self, value):
        self._given.append(value)
        return value

    def _was_given(self, value):
        return any(value is given for given in self._given)

    def call(self, function, arguments):
        """The result of a function of the list."""
        if not self._was_given(function) or not callable(function):
            raise UnpicklingError(f"the pickle calls {_shown(function)}, which is not on the list")
        if not isinstance(arguments, tuple):
            raise UnpicklingError("the pickle is damaged: arguments are no tuple")
        return function(*arguments)

    def new(self, cls, arguments, keywords):
        """An object of a class of the list, without its __init__."""
        if not self._was_given(cls) or not isinstance(cls, type):
            raise UnpicklingError(f"the pickle makes {_shown(cls)}, which is not on the list")
        if cls is Parameter or cls is Tensor:
            raise UnpicklingError("tensors are made by torch._utils only")
        return cls.__new__(cls, *arguments, **keywords)

    def build(self, made, state):
        """Gives an object of the list its state."""
        kind = type(made)
        if isinstance(made, np.ndarray):
            return _fill_array(made, state)
        if isinstance(made, np.dtype):
            return _check_dtype_state(state)
        if isinstance(made, (OrderedDict, Tensor, argparse.Namespace, types.SimpleNamespace)):
            vars(made).update(_plain_state(state))
            return None
        if not self._was_given(kind):
            raise UnpicklingError(f"the pickle changes {_shown(made)}, which is not on the list")
        if hasattr(made, "__setstate__"):
            made.__setstate__(state)
            return None
        slots = None
        if isinstance(state, tuple) and len(state) == 2:
            state, slots = state
        if state:
            vars(made).update(_plain_state(state))
        for name, value in (slots or {}).items():
            setattr(made, name, value)
        return None


def _shown(value):
    return getattr(value, "__name__", None) or type(value).__name__


def _plain_state(state):
    if not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
        raise UnpicklingError("the pickle is damaged: a state is no dict of names")
    return state


def _check_dtype_state(state):
    # Version, byte order and no more: a plain dtype was made from its text.
    if not isinstance(state, tuple) or len(state) < 2 or state[1] not in ("<", "|", "="):
        raise UnpicklingError("a NumPy dtype with this state is refused")


def _fill_array(made, state):
    _, shape, dtype, fortran, data = state
    if dtype.hasobject or not isinstance(data, bytes):
        raise UnpicklingError("a NumPy array of objects is refused")
    filled = np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
    made.dtype = dtype
    made.resize(shape, refcheck=False)
    made[...] = filled


def _own_module_class(module: str, name: str):
    """A class of prong.nn by the name that PyTorch or prong pickles it under."""
    root, _, rest = module.partition(".")
    if root not in ("torch", "prong") or rest.partition(".")[0] != "nn":
        return None
    found = getattr(importlib.import_module("prong.nn"), name, None)
    return found if isinstance(found, type) and issubclass(found, Module) else None
