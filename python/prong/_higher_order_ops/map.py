"""torch._higher_order_ops.map: a function of each row. Called by users."""

import prong
from prong._higher_order_ops.cond import check_functions
from prong._higher_order_ops.scan import length_along
from prong.func import tree

__all__ = ["map"]


def map(f, xs, *args):
    """``f(x, *args)`` of each x along the first dimension of ``xs``, stacked."""
    check_functions("map", f=f)
    leaves, spec = tree.flatten(xs)
    rows, row_spec = [], None
    for i in range(length_along("map", leaves, 0)):
        y = f(tree.unflatten([x.select(0, i) for x in leaves], spec), *args)
        outputs, row_spec = tree.flatten(y)
        rows.append(outputs)
    if row_spec is None:
        raise RuntimeError("map() cannot be called with an empty xs")
    return tree.unflatten([prong.stack(column) for column in zip(*rows)], row_spec)
