"""The small language of samples, see README.md: makes the arguments of a test's call."""

import math
import zlib

import numpy as np
import prong

DTYPES = {
    name: getattr(prong, name)
    for name in (
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    )
}


class Maker:
    """Makes the tensors of one sample, from a seed that only the op and the sample decide."""

    def __init__(self, seed_text: str):
        self._random = np.random.RandomState(zlib.crc32(seed_text.encode()))

    def names(self) -> dict:
        made = {name: getattr(self, name) for name in ("t", "pos", "unit", "b", "index", "strided")}
        return {
            **DTYPES,
            **made,
            "torch": prong,
            "prong": prong,
            "inf": math.inf,
            "nan": math.nan,
            "math": math,
            "float": float,
        }

    def _tensor(self, array, dtype):
        return prong.tensor(np.ascontiguousarray(array).reshape(np.shape(array))).to(dtype)

    def t(self, *sizes, dtype=prong.float32, low=None, high=None):
        if low is not None or high is not None:
            low, high = -5 if low is None else low, 5 if high is None else high
            whole = self._random.randint(low, high, sizes) if not dtype.is_floating_point else None
            return self._tensor(
                self._random.uniform(low, high, sizes) if whole is None else whole, dtype
            )
        if dtype is prong.bool:
            return self._tensor(self._random.rand(*sizes) < 0.5, dtype)
        if dtype.is_complex:
            parts = self._random.standard_normal(sizes), self._random.standard_normal(sizes)
            return self._tensor(parts[0] + 1j * parts[1], dtype)
        if not dtype.is_floating_point:
            return self._tensor(
                self._random.randint(0 if dtype is prong.uint8 else -5, 6, sizes), dtype
            )
        return self._tensor(self._random.standard_normal(sizes), dtype)

    def pos(self, *sizes, dtype=prong.float32):
        return self._tensor(self._random.uniform(0.1, 2.1, sizes), dtype)

    def unit(self, *sizes, dtype=prong.float32):
        return self._tensor(self._random.uniform(-0.99, 0.99, sizes), dtype)

    def b(self, *sizes):
        return self.t(*sizes, dtype=prong.bool)

    def index(self, *sizes, high):
        return self._tensor(self._random.randint(0, high, sizes), prong.int64)

    def strided(self, *sizes, dtype=prong.float32):
        return not_contiguous(self.t(*sizes, dtype=dtype))


def not_contiguous(tensor):
    """The same values in memory that has gaps and another order."""
    if tensor.dim() == 0:
        wide = prong.empty(3, dtype=tensor.dtype)
        wide[1] = tensor
        return wide[1]
    sizes = list(tensor.shape)
    wide = prong.empty([2 * sizes[-1], *sizes[-2::-1]], dtype=tensor.dtype)
    view = wide[::2].permute(*range(tensor.dim() - 1, -1, -1)) if tensor.dim() > 1 else wide[::2]
    view.copy_(tensor)
    return view


def call_of(op: dict, sample: str, seed: str = "") -> tuple[tuple, dict]:
    """The positional and keyword arguments that a sample writes; another seed makes other numbers."""
    capture = lambda *args, **kwargs: (args, kwargs)  # noqa: E731
    names = Maker(f"{op['name']}({sample}){seed}").names()
    try:
        return eval(
            f"__capture__({sample})",
            {"__builtins__": {"range": range}, **names, "__capture__": capture},
        )
    except SyntaxError as error:
        raise AssertionError(f"sample {sample!r} of op {op['name']}: {error}") from None


def bind(op: dict, args: tuple, kwargs: dict) -> dict:
    """Values by the names of the schema, defaults filled in."""
    named = {}
    rest = list(args)
    for argument in op["arguments"]:
        name = argument["name"]
        if rest and not argument["keyword_only"]:
            named[name] = rest.pop(0)
        elif name in kwargs:
            named[name] = kwargs[name]
        else:
            assert argument["has_default"], f"sample of {op['name']} lacks {name}"
            named[name] = argument["default"]
        if argument["type"] == "List[int]" and isinstance(named[name], int):
            named[name] = (named[name],) * max(
                1, argument["fixed_list_size"]
            )  # one number stands for all
    assert not rest, f"sample of {op['name']} has too many arguments"
    return named


def convert(value, change):
    """The value with every tensor in it changed."""
    if isinstance(value, prong.Tensor):
        return change(value)
    if isinstance(value, (list, tuple)) and not isinstance(value, prong.Size):
        return (
            type(value)(convert(item, change) for item in value)
            if type(value) in (list, tuple)
            else tuple(convert(item, change) for item in value)
        )
    if isinstance(value, dict):
        return {key: convert(item, change) for key, item in value.items()}
    return value


def to_numpy(value):
    """Tensors as arrays (bfloat16 as float32), dtypes as NumPy's."""
    if isinstance(value, prong.dtype):
        name = repr(value).removeprefix("torch.")
        return np.dtype("float32" if name == "bfloat16" else name)

    def array(tensor):
        return (tensor.float() if tensor.dtype is prong.bfloat16 else tensor.detach()).numpy()

    return convert(value, array)
