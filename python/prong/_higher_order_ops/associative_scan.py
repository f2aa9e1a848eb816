"""torch._higher_order_ops.associative_scan: all prefixes of a sequence. Called by users."""

import prong
from prong._higher_order_ops.cond import check_functions
from prong._higher_order_ops.scan import length_along
from prong.func import tree

__all__ = ["associative_scan"]


def associative_scan(combine_fn, xs, dim, reverse=False, combine_mode="pointwise"):
    """All prefixes along ``dim``, combined by ``combine_fn(a, b)`` from the first on."""
    check_functions("associative_scan", combine_fn=combine_fn)
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(
            "associative_scan: combine_mode must be 'pointwise' or 'generic', but got "
            f"{combine_mode!r}"
        )
    leaves, spec = tree.flatten(xs)
    count = length_along("associative_scan", leaves, dim)
    order = range(count - 1, -1, -1) if reverse else range(count)
    rows: list[list] = []
    for i in order:
        here = tree.unflatten([x.select(dim, i) for x in leaves], spec)
        if rows:
            here = combine_fn(tree.unflatten(rows[-1], spec), here)
        rows.append(tree.flatten(here)[0])
    if not rows:
        return xs
    if reverse:
        rows.reverse()
    return tree.unflatten([prong.stack(column, dim) for column in zip(*rows)], spec)
