"""torch._dynamo's public names: optimize, explain, reset, disable and marks."""

from prong import _backends, _compile, _core, _names
from prong._backends import list_backends, register_backend
from prong._compile import disable, is_compiling, reset
from prong._dynamo import config, exc
from prong._dynamo.report import explain

__all__ = [
    "allow_in_graph",
    "config",
    "disable",
    "exc",
    "explain",
    "graph_break",
    "is_compiling",
    "list_backends",
    "lookup_backend",
    "mark_dynamic",
    "mark_static",
    "maybe_mark_dynamic",
    "optimize",
    "register_backend",
    "reset",
    "run",
]


def optimize(
    backend=None,
    *,
    nopython=False,
    dynamic=None,
    disable=False,
    guard_export_fn=None,
    guard_fail_fn=None,
):
    """A decorator that compiles for `backend`. (Guard callbacks are taken and never called.)"""

    def decorate(fn):
        return _compile.compile(
            fn, backend=backend, fullgraph=nopython, dynamic=dynamic, disable=disable
        )

    return decorate


def lookup_backend(name):
    return _backends.find_backend(name)[0]


def run(fn=None):
    """Runs a compiled function as plain Python."""
    return disable(fn)


def graph_break(msg=""):
    """Ends the graph of the compiled function that calls this."""
    _core.capture_settle(msg or "graph_break() is called")


def allow_in_graph(fn):
    """Every function is followed anyway."""
    return fn


def mark_dynamic(tensor, index, min=None, max=None, **ignored):
    """Sizes are symbolic anyway; kept so that programs need no change."""


maybe_mark_dynamic = mark_static = mark_unbacked = mark_dynamic


def mark_static_address(tensor, guard=True):
    """Means nothing on a CPU."""


__getattr__ = _names.module_getattr("prong._dynamo")
