"""torch._higher_order_ops.scan: a recurrence as a function. Called by users."""

import prong
from prong import Tensor
from prong._higher_order_ops.cond import check_functions
from prong.func import tree

__all__ = ["scan"]


def length_along(name: str, leaves: list, dim: int) -> int:
    if not leaves:
        raise RuntimeError(f"{name}() operator requires an input with at least one tensor")
    for x in leaves:
        if not isinstance(x, Tensor):
            raise RuntimeError(
                f"{name}: expected all leaves of xs to be tensors, but got {type(x).__name__}"
            )
    lengths = {x.shape[dim] for x in leaves}
    if len(lengths) != 1:
        raise RuntimeError(
            f"{name}: expected all inputs to have one size at dim {dim}, but got {sorted(lengths)}"
        )
    return lengths.pop()


def scan(combine_fn, init, xs, *, dim=0, reverse=False):
    """(The last carry, all outputs stacked), of ``carry, y = combine_fn(carry, x)`` along ``dim``
    of ``xs``."""
    check_functions("scan", combine_fn=combine_fn)
    leaves, spec = tree.flatten(xs)
    count = length_along("scan", leaves, dim)
    order = range(count - 1, -1, -1) if reverse else range(count)
    carry, rows, row_spec = init, [], None
    for i in order:
        carry, y = combine_fn(carry, tree.unflatten([x.select(dim, i) for x in leaves], spec))
        outputs, row_spec = tree.flatten(y)
        rows.append(outputs)
    if row_spec is None:
        raise RuntimeError("scan: the scanned dimension has no elements")
    if reverse:
        rows.reverse()
    return carry, tree.unflatten([prong.stack(column) for column in zip(*rows)], row_spec)
