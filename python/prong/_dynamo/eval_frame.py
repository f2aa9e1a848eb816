"""torch._dynamo.eval_frame: names that programs import from there."""

from prong import _dynamo, _names
from prong._compile import check_python
from prong._compiled_module import OptimizedModule

__all__ = ["OptimizedModule", "innermost_fn", "is_dynamo_supported", "is_inductor_supported"]

optimize, optimize_assert = _dynamo.optimize, _dynamo.optimize_assert
disable, reset, explain = _dynamo.disable, _dynamo.reset, _dynamo.explain


def innermost_fn(fn):
    """The function inside of compile() and disable()."""
    while hasattr(fn, "_torchdynamo_orig_callable"):
        fn = fn._torchdynamo_orig_callable
    return fn


def is_dynamo_supported():
    """Whether functions can be compiled on this Python."""
    try:
        check_python()
    except RuntimeError:
        return False
    return True


def is_inductor_supported():
    """Whether there is a compiler behind it: prong's own, which is always there."""
    return is_dynamo_supported()


__getattr__ = _names.module_getattr("prong._dynamo.eval_frame")
