"""vmap: a function of one sample becomes one of a batch. The batching itself is C++."""

import functools

from prong import _core
from prong._core import Tensor
from prong.func import tree


def _name(func) -> str:
    return getattr(func, "__name__", None) or type(func).__name__


def _flat_in_dims(func, in_dims, args: tuple) -> list:
    head = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple, list)) or isinstance(in_dims, bool):
        raise ValueError(
            f"{head}expected `in_dims` to be int or a (potentially nested) tuple matching the "
            f"structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you "
            "are trying to vmap over a function with no inputs. The latter is unsupported."
        )
    dims = tree.spread(tuple(in_dims) if isinstance(in_dims, list) else in_dims, args)
    if dims is None:
        raise ValueError(
            f"{head}in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree.flatten(in_dims)[1]} but inputs has structure {tree.flatten(args)[1]}."
        )
    return [_checked_in_dim(head, d, x) for d, x in zip(dims, tree.flatten(args)[0], strict=True)]


def _checked_in_dim(head: str, dim, value) -> int | None:
    if dim is None:
        return None
    if not isinstance(dim, int):
        raise ValueError(
            f"{head}Got in_dim={dim} for an input but in_dim must be either an "
            "integer dimension or None."
        )
    if not isinstance(value, Tensor):
        raise ValueError(
            f"{head}Got in_dim={dim} for an input but the input is of type {type(value)}. We cannot "
            "vmap over non-Tensor arguments, please use None as the respective in_dim"
        )
    rank = value.dim()
    if not -rank <= dim < rank:
        raise ValueError(
            f"{head}Got in_dim={dim} for some input, but that input is a Tensor of dimensionality "
            f"{rank} so expected in_dim to satisfy -{rank} <= in_dim < {rank}."
        )
    return dim % rank


def _batch_size(dims: list, leaves: list) -> int:
    sizes = [x.size(d) for d, x in zip(dims, leaves, strict=True) if d is not None]
    if not sizes:
        raise ValueError("vmap: at least one input has to be mapped over, but every in_dim is None")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0]


def _flat_out_dims(func, out_dims, outputs) -> list:
    dims = tree.spread(out_dims, outputs)
    if dims is None and isinstance(out_dims, (tuple, list)) and isinstance(outputs, (tuple, list)):
        dims = tree.spread(type(outputs)(out_dims), outputs)
    if dims is None and isinstance(out_dims, tuple) and len(out_dims) == 1:
        dims = tree.spread(out_dims[0], outputs)
    if dims is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible "
            f"with the structure of `outputs`. out_dims has structure {tree.flatten(out_dims)[1]} "
            f"but outputs has structure {tree.flatten(outputs)[1]}."
        )
    return dims


def _unbatched(func, value, level: int, dim, size: int):
    if dim is None:
        if isinstance(value, Tensor):
            batch = _core._batch_of(value)
            if batch is not None and batch[1] == level and batch[2]:
                raise ValueError(
                    f"vmap({_name(func)}, ...): `{_name(func)}` can not return a batched tensor "
                    "when out_dim is None"
                )
            return _core._vmap_remove(value, level, 0, 1)[0]
        return value
    if not isinstance(value, Tensor):
        raise ValueError(
            f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type "
            f"{type(value)}. Did you mean to set out_dims= to None for output?"
        )
    return _core._vmap_remove(value, level, dim, size)


def _run(func, dims, leaves, spec, size, out_dims, randomness, kwargs):
    """One batch: (flat results, their dims, their nest)."""
    level = _core._vmap_enter(size, randomness)
    try:
        batched = [
            x if d is None else _core._vmap_add(x, d, level)
            for d, x in zip(dims, leaves, strict=True)
        ]
        outputs = func(*tree.unflatten(batched, spec), **kwargs)
    finally:
        _core._vmap_leave(level)
    flat, out_spec = tree.flatten(outputs)
    to = _flat_out_dims(func, out_dims, outputs)
    return (
        [_unbatched(func, x, level, d, size) for x, d in zip(flat, to, strict=True)],
        to,
        out_spec,
    )


def _run_in_chunks(func, dims, leaves, spec, size, out_dims, randomness, kwargs, chunk):
    parts = []
    for start in range(0, size, chunk):
        length = min(chunk, size - start)
        some = [
            x if d is None else x.narrow(d, start, length)
            for d, x in zip(dims, leaves, strict=True)
        ]
        parts.append(_run(func, dims, some, spec, length, out_dims, randomness, kwargs))
    cat = _core.functions["cat"]
    to, out_spec = parts[0][1:]
    columns = zip(*(flat for flat, _, _ in parts), strict=True)
    joined = [
        column[0] if d is None else cat(list(column), d)
        for column, d in zip(columns, to, strict=True)
    ]
    return joined, to, out_spec


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """``func`` over a batch at once: dimension ``in_dims`` of its inputs counts the samples, and
    dimension ``out_dims`` of its outputs.

    ``in_dims`` and ``out_dims`` may be nests like the inputs and outputs; None: the same for all
    samples. ``randomness`` says what random ops do: raise ("error"), draw "same" or "different"
    numbers for the samples. With ``chunk_size``, so many samples at a time.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func, updated=())
    def wrapped(*args, **kwargs):
        dims = _flat_in_dims(func, in_dims, args)
        leaves, spec = tree.flatten(args)
        size = _batch_size(dims, leaves)
        if chunk_size is None or chunk_size >= size:
            flat, _, out_spec = _run(func, dims, leaves, spec, size, out_dims, randomness, kwargs)
        else:
            flat, _, out_spec = _run_in_chunks(
                func, dims, leaves, spec, size, out_dims, randomness, kwargs, chunk_size
            )
        return tree.unflatten(flat, out_spec)

    return wrapped
