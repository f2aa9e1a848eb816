"""Functions that rearrange."""

from collections.abc import Sequence

import prong
from prong import Tensor
from prong.array_api.data_types import promoted

__all__ = [
    "broadcast_arrays",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "unstack",
]


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """The tensors, broadcast against one another."""
    return list(prong.broadcast_tensors(*arrays))


def broadcast_to(x: Tensor, /, shape: Sequence[int]) -> Tensor:
    """x broadcast to a shape."""
    return prong.broadcast_to(x, shape)


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """The tensors one after the other; flattened first where axis is None."""
    parts = promoted(*arrays)
    if axis is None:
        return prong.cat([x.reshape(-1) for x in parts])
    return prong.cat(list(parts), axis)


def expand_dims(x: Tensor, /, *, axis: int = 0) -> Tensor:
    """x with a dim of size one at axis."""
    return prong.unsqueeze(x, axis)


def flip(x: Tensor, /, *, axis=None) -> Tensor:
    """x backwards along axis, along all where that is None."""
    dims = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    return prong.flip(x, list(dims))


def moveaxis(x: Tensor, source, destination, /) -> Tensor:
    """Some dims at other places, the rest in order."""
    return prong.movedim(x, source, destination)


def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    """The dims in another order."""
    return prong.permute(x, axes)


def repeat(x: Tensor, repeats, /, *, axis: int | None = None) -> Tensor:
    """Each element as often as repeats says. (PyTorch calls this repeat_interleave.)"""
    counts = repeats.to(prong.int64) if isinstance(repeats, Tensor) else repeats
    return prong.repeat_interleave(x, counts, axis)


def reshape(x: Tensor, /, shape: Sequence[int], *, copy: bool | None = None) -> Tensor:
    """x in another shape; copy=False wants a view, or an error."""
    if copy:
        return x.clone().reshape(shape)
    return x.reshape(shape) if copy is None else _viewed(x, shape)


def _viewed(x: Tensor, shape: Sequence[int]) -> Tensor:
    try:
        return x.view(shape)
    except RuntimeError as error:
        raise ValueError(
            f"reshape: copy=False, but only a copy has shape {tuple(shape)}"
        ) from error


def roll(x: Tensor, /, shift, *, axis=None) -> Tensor:
    """Elements moved on by shift, those at the end to the beginning."""
    return prong.roll(x, shift, () if axis is None else axis)


def squeeze(x: Tensor, /, axis) -> Tensor:
    """x without the dims at axis, which must be of size one. (PyTorch leaves others alone.)"""
    dims = (axis,) if isinstance(axis, int) else tuple(axis)
    for dim in dims:
        if x.shape[dim] != 1:
            raise ValueError(f"squeeze: dim {dim} has size {x.shape[dim]}, not 1")
    return prong.squeeze(x, dims)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Tensors of one shape along a new dim."""
    return prong.stack(list(promoted(*arrays)), axis)


def tile(x: Tensor, repetitions: Sequence[int], /) -> Tensor:
    """x as often as told along each dim."""
    return prong.tile(x, repetitions)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts along a dim. (PyTorch calls this unbind.)"""
    return tuple(prong.unbind(x, axis))
