"""Searching, sorting, sets and indexing by integers."""

from typing import Any, NamedTuple

import prong
from prong import Tensor
from prong.array_api.data_types import promoted

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "nonzero",
    "searchsorted",
    "sort",
    "take",
    "take_along_axis",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "where",
]


class UniqueAll(NamedTuple):
    """What unique_all gives."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """What unique_counts gives."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """What unique_inverse gives."""

    values: Tensor
    inverse_indices: Tensor


def _found(op, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    made = op(x, axis, keepdims) if axis is not None else op(x)
    return made.reshape((1,) * x.ndim) if axis is None and keepdims else made


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the largest element is, the first of equal ones."""
    return _found(prong.argmax, x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the smallest element is, the first of equal ones."""
    return _found(prong.argmin, x, axis, keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Where elements aren't zero: their indices, one tensor a dim."""
    if x.ndim == 0:
        raise ValueError("nonzero: a tensor without dims has no indices")
    return tuple(prong.nonzero(x, as_tuple=True))


def searchsorted(x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter=None) -> Tensor:
    """Where the elements of x2 would go into x1 to leave it sorted."""
    line, values = promoted(x1, x2)
    return prong.searchsorted(line, values, side=side, sorter=sorter)


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """x1 where the condition is true, x2 elsewhere."""
    return prong.where(condition, *promoted(x1, x2))


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order. (prong.sort gives their places as well.)"""
    return prong.sort(x, dim=axis, descending=descending, stable=stable)[0]


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """The places of the elements in order."""
    return prong.argsort(x, dim=axis, descending=descending, stable=stable)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The parts of x along axis that the indices name; negative ones count from the end."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: axis must be given for a tensor of {x.ndim} dims")
        axis = 0
    places = indices.to(prong.int64)  # an index of uint8 would be a mask
    return x[(slice(None),) * (axis % x.ndim) + (places,)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The element of each line along axis that the index at its place names."""
    places = indices.to(prong.int64)
    counted = prong.where(places < 0, places + x.shape[axis], places)
    return prong.take_along_dim(x, counted, axis)


def _unique(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Distinct elements, which of them each element is, counts; complex ones as rows of two."""
    if not x.is_complex():
        return prong.unique(x, return_inverse=True, return_counts=True)
    rows = prong.view_as_real(x.reshape(-1))
    values, inverse, counts = prong.unique(rows, return_inverse=True, return_counts=True, dim=0)
    return prong.view_as_complex(values), inverse.reshape(x.shape), counts


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements, where each stands first, which each element is, and how often."""
    values, inverse, counts = _unique(x)
    places = prong.arange(inverse.numel())
    last = prong.full_like(counts, inverse.numel())
    first = last.scatter_reduce(0, inverse.reshape(-1), places, "amin")
    return UniqueAll(values, first, inverse, counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements, and how often each stands there."""
    values, _, counts = _unique(x)
    return UniqueCounts(values, counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements, and which of them each element is."""
    values, inverse, _ = _unique(x)
    return UniqueInverse(values, inverse)


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements."""
    return _unique(x)[0]
