"""Reductions: statistics, cumulative ones, and those of truth."""

from functools import partial
from typing import Any

import prong
from prong import Tensor

__all__ = [
    "all",
    "any",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]


def _dims(x: Tensor, axis) -> list[int]:
    """The dims reduced, as non-negative numbers: every one where axis is None, none where ()."""
    if axis is None:
        return list(range(x.ndim))
    dims = (axis,) if isinstance(axis, int) else tuple(axis)
    for dim in dims:
        if not -x.ndim <= dim < x.ndim:
            raise IndexError(f"axis {dim} is out of range for a tensor of {x.ndim} dims")
    return [dim % x.ndim for dim in dims]


def _reduced(op, x: Tensor, axis, keepdims: bool) -> Tensor:
    """By an op that takes a list of dims; which means every dim to PyTorch if it is empty."""
    dims = _dims(x, axis)
    if dims:
        return op(x, dims, keepdims)
    return op(x.unsqueeze(0), [0], False)


def _summable(x: Tensor, dtype) -> Tensor:
    """What a sum is taken in: a given dtype, int64 for integers, else x's own.

    The op is to be told its dtype as well: left to itself, a sum of integers is int64.
    """
    if dtype is not None:
        return x.to(dtype)
    return x if x.is_floating_point() or x.is_complex() else x.to(prong.int64)


def sum(x: Tensor, /, *, axis=None, dtype=None, keepdims: bool = False) -> Tensor:
    """The sum; of integers in int64."""
    values = _summable(x, dtype)
    return _reduced(partial(prong.sum, dtype=values.dtype), values, axis, keepdims)


def prod(x: Tensor, /, *, axis=None, dtype=None, keepdims: bool = False) -> Tensor:
    """The product; of integers in int64."""
    made = _summable(x, dtype)
    for dim in sorted(_dims(x, axis), reverse=True):
        made = prong.prod(made, dim, keepdims, dtype=made.dtype)
    return made.clone() if made is x else made


def max(x: Tensor, /, *, axis=None, keepdims: bool = False) -> Tensor:
    """The largest element. (prong.amax; prong.max with a dim gives its place as well.)"""
    return _reduced(prong.amax, x, axis, keepdims)


def min(x: Tensor, /, *, axis=None, keepdims: bool = False) -> Tensor:
    """The smallest element. (prong.amin; prong.min with a dim gives its place as well.)"""
    return _reduced(prong.amin, x, axis, keepdims)


def mean(x: Tensor, /, *, axis=None, keepdims: bool = False) -> Tensor:
    """The arithmetic mean."""
    return _reduced(prong.mean, x, axis, keepdims)


def var(x: Tensor, /, *, axis=None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance; divided by the count less the correction. (PyTorch's correction is 1.)"""
    return _spread(prong.var, x, axis, correction, keepdims)


def std(x: Tensor, /, *, axis=None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation, with the correction of var."""
    return _spread(prong.std, x, axis, correction, keepdims)


def _spread(op, x: Tensor, axis, correction: float, keepdims: bool) -> Tensor:
    def reduce(values: Tensor, dims: list[int], keep: bool) -> Tensor:
        return op(values, dims, correction=correction, keepdim=keep)

    return _reduced(reduce, x, axis, keepdims)


def all(x: Tensor, /, *, axis=None, keepdims: bool = False) -> Tensor:
    """Whether every element is true; as bool, whatever x is."""
    return _reduced(prong.all, x.to(prong.bool), axis, keepdims)


def any(x: Tensor, /, *, axis=None, keepdims: bool = False) -> Tensor:
    """Whether some element is true; as bool, whatever x is."""
    return _reduced(prong.any, x.to(prong.bool), axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis=None, keepdims: bool = False) -> Tensor:
    """How many elements aren't zero."""
    return _reduced(prong.sum, x.to(prong.bool).to(prong.int64), axis, keepdims)


def _line(name: str, x: Tensor, axis: int | None) -> int:
    if axis is not None:
        return axis
    if x.ndim != 1:
        raise ValueError(f"{name}: axis must be given for a tensor of {x.ndim} dims")
    return 0


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype=None, include_initial: bool = False
) -> Tensor:
    """The sums up to each element, with the empty one before them if asked for."""
    dim = _line("cumulative_sum", x, axis)
    values = _summable(x, dtype)
    made = prong.cumsum(values, dim, dtype=values.dtype)
    return _after(0, made, dim) if include_initial else made


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype=None, include_initial: bool = False
) -> Tensor:
    """The products up to each element, with the empty one before them if asked for."""
    dim = _line("cumulative_prod", x, axis)
    values = _summable(x, dtype)
    made = prong.cumprod(values, dim, dtype=values.dtype)
    return _after(1, made, dim) if include_initial else made


def _after(value: int, x: Tensor, dim: int) -> Tensor:
    shape = list(x.shape)
    shape[dim] = 1
    return prong.cat([x.new_full(shape, value), x], dim)


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None):
    """The differences of neighbours along axis, taken n times."""
    return prong.diff(x, n, axis, prepend, append)
