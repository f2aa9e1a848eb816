"""torch._dynamo's public names: optimize, explain, reset, disable and marks."""

import functools
import importlib
from collections import namedtuple

from prong import _compile, _core, _names
from prong._backends import list_backends, lookup_backend, register_backend
from prong._compile import disable, is_compiling, reset
from prong._dynamo import config, exc
from prong._dynamo.report import explain, guards_of
from prong.compiler import (
    allow_in_graph,
    assume_constant_result,
    set_stance,
    substitute_in_graph,
)

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
    "mark_static_address",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "nonstrict_trace",
    "optimize",
    "optimize_assert",
    "patch_dynamo_config",
    "register_backend",
    "reset",
    "reset_code_caches",
    "run",
    "set_stance",
    "substitute_in_graph",
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


def mark_dynamic(t, index, *, hint_override=None, min=None, max=None, specialize_on=None):
    """Sizes are symbolic anyway; kept so that programs need no change."""
    _check_marked("mark_dynamic", t, index)


def maybe_mark_dynamic(t, index):
    """Sizes are symbolic anyway; kept so that programs need no change."""
    _check_marked("maybe_mark_dynamic", t, index)


def mark_unbacked(t, index, **ignored):
    """Sizes are symbolic anyway; kept so that programs need no change."""
    _check_marked("mark_unbacked", t, index)


def mark_static(t, index=None):
    """Sizes are facts where Python code decides by them; kept so that programs need no change. Gives a class back."""
    if isinstance(t, type):
        return t
    return _check_marked("mark_static", t, index)


def _check_marked(name, t, index):
    if not isinstance(t, _core.Tensor):
        raise TypeError(f"{name}() takes a Tensor, got {type(t).__name__}")
    for each in index if isinstance(index, (list, tuple)) else () if index is None else (index,):
        if not isinstance(each, int) or not -t.dim() <= each < t.dim():
            raise IndexError(
                f"{name}(): a tensor with {t.dim()} dimensions has no dimension {each!r}"
            )


def mark_static_address(t, guard=False):
    """Means nothing on a CPU."""


def nonstrict_trace(traceable_fn):
    """Every function is followed anyway."""
    return allow_in_graph(traceable_fn)


def reset_code_caches():
    """The same as reset()."""
    reset()


_FROM_EVAL_FRAME = ("OptimizedModule", "is_dynamo_supported", "is_inductor_supported")
_submodule = _names.module_getattr(
    "prong._dynamo",
    ("backends", "decorators", "eval_frame", "external_utils", "testing", "utils"),
)


def __getattr__(name):
    if name in _FROM_EVAL_FRAME:
        return getattr(importlib.import_module("prong._dynamo.eval_frame"), name)
    return _submodule(name)
