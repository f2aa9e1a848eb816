"""torch.compiler: compile's companions."""

from prong import _names
from prong._backends import list_backends
from prong._compile import compile, disable, is_compiling, reset

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
]

is_dynamo_compiling = is_compiling


def is_exporting():
    return False


def cudagraph_mark_step_begin():
    """Means nothing on a CPU; accepted so that programs need no change."""


def allow_in_graph(fn):
    """Every function is followed anyway."""
    return fn


def assume_constant_result(fn):
    """Means nothing here: results are never taken for constants."""
    return fn


# Stances that differ in what is compiled, never in a result: accepted, and nothing changes.
_STANCES = (
    "default",
    "force_eager",
    "eager_on_recompile",
    "eager_then_compile",
    "aot_eager_then_compile",
)


class set_stance:
    """A function and a context. The one stance that can be told from outside is not here yet."""

    def __init__(self, stance="default", **settings):
        if stance == "fail_on_recompile":
            raise NotImplementedError(
                "prong has no stance 'fail_on_recompile' yet: recompilations are not refused"
            )
        if stance not in _STANCES:
            raise RuntimeError(f"invalid torch.compile stance {stance!r}; there are {_STANCES}")
        self.stance = stance

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


__getattr__ = _names.module_getattr("prong.compiler")
