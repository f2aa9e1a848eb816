"""torch.cond: one of two functions, by a tensor. Called by users; a compiled caller has a plan for
each way."""

from prong import Tensor

__all__ = ["cond"]


def truth(name: str, value) -> bool:
    """Of a condition: a bool, or a tensor with one element."""
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise RuntimeError(
                f"{name}: expected the condition to be a bool or a tensor with one element, but it "
                f"has shape {list(value.shape)}"
            )
        return bool(value)
    if not isinstance(value, (bool, int, float)):
        raise RuntimeError(
            f"{name}: expected the condition to be a bool or a tensor, but got {value!r}"
        )
    return bool(value)


def check_functions(name: str, **functions) -> None:
    for argument, function in functions.items():
        if not callable(function):
            raise RuntimeError(
                f"{name}: expected {argument} to be callable, but got {type(function).__name__}"
            )


def cond(pred, true_fn, false_fn, operands=()):
    """``true_fn(*operands)`` where ``pred`` is true, else ``false_fn(*operands)``."""
    check_functions("torch.cond", true_fn=true_fn, false_fn=false_fn)
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(
            "torch.cond: expected operands to be a tuple of nested dicts, lists and tuples of "
            f"tensors, but got {operands!r}"
        )
    return true_fn(*operands) if truth("torch.cond", pred) else false_fn(*operands)
