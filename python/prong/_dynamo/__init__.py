"""torch._dynamo's public names: optimize, explain, reset, disable and marks."""

import functools
from collections import namedtuple

from prong import _compile, _core, _names
from prong._backends import list_backends, lookup_backend, register_backend
from prong._compile import disable, is_compiling, reset
from prong._dynamo import config, exc
from prong._dynamo.report import explain, guards_of
from prong.compiler import assume_constant_result, set_stance

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disallow_in_graph",
    "exc",
    "explain",
    "forbid_in_graph",
    "graph_break",
    "GuardFail",
    "is_compiling",
    "list_backends",
    "lookup_backend",
    "mark_dynamic",
    "mark_static",
    "maybe_mark_dynamic",
    "optimize",
    "optimize_assert",
    "patch_dynamo_config",
    "register_backend",
    "reset",
    "set_stance",
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
    """A decorator that compiles for `backend`.

    guard_fail_fn(GuardFail(reason, orig_code)) is called where no plan fits a call; guard_export_fn(guards) where a
    plan was made, with the guards that it is held to.
    """

    def decorate(fn):
        compiled = _compile.compile(
            fn, backend=backend, fullgraph=nopython, dynamic=dynamic, disable=disable
        )
        if not disable and (guard_fail_fn or guard_export_fn):
            captured = _compile.capture_of(compiled)
            captured._guard_listener = _guard_listener(captured, guard_fail_fn, guard_export_fn)
        return compiled

    return decorate


GuardFail = namedtuple("GuardFail", "reason orig_code")


def _guard_listener(captured, on_fail, on_plan):
    function = captured.__wrapped__
    code = getattr(getattr(function, "__func__", function), "__code__", None)

    def listener(kind, text):
        if kind == "misfit" and on_fail:
            on_fail(GuardFail(text, code))
        if kind == "plan" and on_plan:
            on_plan(guards_of(captured)[0])

    return listener


def optimize_assert(backend=None, **settings):
    """optimize() with fullgraph: a break raises."""
    return optimize(backend, nopython=True, **settings)


def disallow_in_graph(fn):
    """A function that runs plainly, between two graphs."""
    return _compile.disable(fn, reason="disallow_in_graph() was asked for it")


def forbid_in_graph(fn):
    """A function that must not be called from compiled code; there it raises Unsupported."""

    @functools.wraps(fn)
    def outside_only(*args, **kwargs):
        if _compile.is_compiling():
            raise exc.Unsupported(f"{fn.__qualname__} must not be called from compiled code")
        return fn(*args, **kwargs)

    return outside_only


def run(fn=None):
    """Runs a compiled function as plain Python."""
    return disable(fn)


def graph_break(msg=""):
    """Ends the graph of the compiled function that calls this."""
    _core.capture_settle(f"graph_break() is called: {msg}" if msg else "graph_break() is called")


patch_dynamo_config = config.patch


def allow_in_graph(fn):
    """Every function is followed anyway."""
    return fn


def mark_dynamic(tensor, index, min=None, max=None, **ignored):
    """Sizes are symbolic anyway; kept so that programs need no change."""


maybe_mark_dynamic = mark_static = mark_unbacked = mark_dynamic


def mark_static_address(tensor, guard=True):
    """Means nothing on a CPU."""


__getattr__ = _names.module_getattr("prong._dynamo")
