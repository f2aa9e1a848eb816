"""Shape rules of calls with arguments that do not fit: they refuse what the kernel refuses.

A compiled call goes by the shape rule: what that lets pass has to run, and to give what it said.
"""

import prong
from prong import _core
from samples import call_of
from test_ops import facet, flat, is_uninitialised, run

DTYPES = (prong.float64, prong.int64, prong.int32, prong.bool)


def others(t: prong.Tensor):
    """Tensors of other shapes or dtypes: they may fit a call or not."""
    sizes = list(t.shape)
    changed = [[n + 1 for n in sizes], [2, *sizes]]
    if sizes:
        changed += [sizes[1:], [*sizes[:-1], sizes[-1] + 1], [sizes[0] + 1, *sizes[1:]]]
    for shape in changed:
        yield f"of shape {shape}", prong.zeros(shape, dtype=t.dtype)
    for dtype in DTYPES:
        if dtype is not t.dtype and not t.dtype.is_complex:
            yield f"of {dtype}", t.to(dtype)


def told(result):
    """Sizes and dtypes, as op_shape gives them."""
    return [(tuple(t.shape), t.dtype) for t in flat(result) if isinstance(t, prong.Tensor)]


def said(shape):
    if isinstance(shape, tuple) and len(shape) == 2 and isinstance(shape[1], prong.dtype):
        return [shape]
    if isinstance(shape, (list, tuple)):
        return [one for item in shape for one in said(item)]
    return []


def is_asked(op) -> bool:
    """Where the rule decides: what draws or is a view runs as it is recorded; copy_ is tried out."""
    where = op["spelling"]
    is_public = where["function"] or where["method"] or where["nn_functional"]
    left_out = op["random"] or op["dynamic_shape"] or op["family"] in ("host", "view")
    return is_public and op["has_shape"] and not left_out and op["base_name"] != "copy_"


@facet(is_asked)
def test_rules_refuse_what_kernels_refuse(op, sample):
    given, _ = call_of(op, sample)
    for i in range(len(given)):
        if not isinstance(given[i], prong.Tensor):
            continue
        for name, other in others(given[i]):
            args, kwargs = call_of(op, sample)
            args = (*args[:i], other, *args[i + 1 :])
            try:
                shape = _core.op_shape(op["name"], *args, **kwargs)
            except Exception:
                continue
            if _core.op_may_fail(op["name"], *args, **kwargs):
                continue  # by its data
            try:
                result = run(op, args, kwargs)
            except Exception as error:
                error.add_note(f"argument {i} {name}: the rule says {shape}")
                raise
            if not is_uninitialised(op):
                assert told(result) == said(shape), f"argument {i} {name}"
