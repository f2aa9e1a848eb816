"""Runs one expression on PyTorch and on Prong and compares what comes out: values, dtypes, shapes, errors."""

import math

import numpy as np
import prong
import pytest

torch = pytest.importorskip("torch")


def _names(module):
    def make(array, dtype):
        tensor = (
            module.from_numpy(np.array(array, copy=True))
            if isinstance(array, np.ndarray)
            else module.tensor(array)
        )
        return tensor.to(getattr(module, dtype))

    def x(*sizes, dtype="float32"):
        """0, 1, 2, ... in the given shape."""
        return make(np.arange(math.prod(sizes)) % 97, dtype).reshape(sizes)

    def turned(*sizes, dtype="float32"):
        """The same, not contiguous."""
        return x(*sizes[::-1], dtype=dtype).permute(*range(len(sizes) - 1, -1, -1))

    def gaps(*sizes, dtype="float32"):
        """The same with every second column of a wider tensor."""
        return x(*sizes[:-1], 2 * sizes[-1], dtype=dtype)[..., ::2]

    def put(target, index, value):
        target = target.clone()
        target[index] = value
        return target

    return {
        "torch": module,
        "F": module.nn.functional,
        "L": module.tensor,
        "x": x,
        "turned": turned,
        "gaps": gaps,
        "put": put,
        "nan": math.nan,
        "inf": math.inf,
        "S": slice,
        "E": Ellipsis,
        "int64": module.int64,
        "int32": module.int32,
        "uint8": module.uint8,
        "float32": module.float32,
        "float64": module.float64,
        "float16": module.float16,
        "bfloat16": module.bfloat16,
        "bool_": module.bool,
    }


def _run(module, expression):
    try:
        return eval(expression, _names(module)), None
    except Exception as error:  # noqa: BLE001
        return None, error


def _plain(value, module):
    """Tensors as (dtype, shape, numbers), sequences as tuples."""
    if isinstance(value, module.Tensor):
        numbers = (
            value.detach().to(module.float64).tolist()
            if value.dtype != module.int64
            else value.tolist()
        )
        return ("tensor", str(value.dtype).replace("prong.", "torch."), tuple(value.shape), numbers)
    if isinstance(value, (list, tuple)):
        return tuple(_plain(item, module) for item in value)
    return value


def _equal(a, b, tolerance):
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_equal(i, j, tolerance) for i, j in zip(a, b))
    if isinstance(a, float) and isinstance(b, float):
        return (a != a and b != b) or a == b or abs(a - b) <= tolerance * max(abs(a), abs(b))
    return type(a) is type(b) and a == b


def same(expression, tolerance=0.0):
    """The result of the expression is the same on both, and it is no error."""
    expected, failure = _run(torch, expression)
    assert failure is None, f"PyTorch: {failure!r}"
    got, failure = _run(prong, expression)
    if failure is not None:
        raise failure
    a, b = _plain(expected, torch), _plain(got, prong)
    assert _equal(a, b, tolerance), f"{expression}\n  PyTorch: {a}\n  Prong:   {b}"
    return expected, got


def same_error(expression, text=None):
    """Both raise the same type with the same text (or Prong with `text`, where PyTorch's speaks of its inside)."""
    _, expected = _run(torch, expression)
    assert expected is not None, "PyTorch raises nothing"
    result, got = _run(prong, expression)
    assert got is not None, f"Prong raises nothing: {result}"
    assert type(got).__name__ == type(expected).__name__, (
        f"{expression}\n  PyTorch: {expected!r}\n  Prong:   {got!r}"
    )
    wanted = str(expected).split("\n")[0] if text is None else text
    assert str(got).split("\n")[0] == wanted, f"{expression}\n  PyTorch: {wanted}\n  Prong:   {got}"
