"""torch._higher_order_ops.while_loop: a loop as a function. Called by users."""

from prong._higher_order_ops.cond import check_functions, truth

__all__ = ["while_loop"]


def while_loop(cond_fn, body_fn, carried_inputs):
    """Carried values, changed by ``body_fn(*carried)`` as long as ``cond_fn(*carried)`` holds."""
    check_functions("while_loop", cond_fn=cond_fn, body_fn=body_fn)
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(
            "while_loop: expected carried_inputs to be a tuple or list, but got "
            f"{type(carried_inputs).__name__}"
        )
    carried = tuple(carried_inputs)
    while truth("while_loop", cond_fn(*carried)):
        following = body_fn(*carried)
        if not isinstance(following, (tuple, list)) or len(following) != len(carried):
            raise RuntimeError(
                f"while_loop: body_fn should give as many values as it is given ({len(carried)}), "
                f"but gave {following!r}"
            )
        carried = tuple(following)
    return carried
