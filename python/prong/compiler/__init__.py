"""torch.compiler: compile's companions."""

import functools

from prong import _core, _names
from prong._backends import default_backend as get_default_backend
from prong._backends import list_backends, set_default_backend
from prong._compile import compile, disable, is_compiling, reset

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "get_default_backend",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "keep_tensor_guards_unsafe",
    "list_backends",
    "nested_compile_region",
    "reset",
    "set_default_backend",
    "set_stance",
    "skip_guard_on_all_nn_modules_unsafe",
    "skip_guard_on_globals_unsafe",
    "skip_guard_on_inbuilt_nn_modules_unsafe",
    "substitute_in_graph",
    "wait_for_kernels",
]

is_dynamo_compiling = is_compiling


def wait_for_kernels():
    """Returns when the native code of all functions called so far is there.

    It is made in the background, and until it is there calls run op by op, with the same results. For measurements.
    """
    _core._wait_for_kernels()


def is_exporting():
    return False


def cudagraph_mark_step_begin():
    """Means nothing on a CPU; accepted so that programs need no change."""


def allow_in_graph(fn):
    """Every function is followed anyway."""
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(each) for each in fn]
    if not callable(fn):
        raise TypeError(f"allow_in_graph() takes a callable, got {type(fn).__name__}")
    return fn


def substitute_in_graph(original_fn, **ignored):
    """A decorator that gives its function back: what original_fn does is followed, or done as it is."""
    if not callable(original_fn):
        raise TypeError(f"substitute_in_graph() takes a callable, got {type(original_fn).__name__}")
    return lambda traceable_fn: traceable_fn


def keep_all_guards(guard_entries):
    """For options={"guard_filter_fn": ...}: guards are always checked here."""
    return [True for _ in guard_entries]


keep_tensor_guards_unsafe = skip_guard_on_globals_unsafe = keep_all_guards
skip_guard_on_all_nn_modules_unsafe = keep_all_guards
skip_guard_on_inbuilt_nn_modules_unsafe = keep_all_guards


def nested_compile_region(fn=None, **ignored):
    """Marks code that is compiled once for many calls; that is so here wherever graphs are alike."""
    return fn if fn is not None else nested_compile_region


def assume_constant_result(fn):
    """Means nothing here: results are never taken for constants."""
    return fn


# How calls of compiled functions behave in the whole process; the numbers are those of bindings/capture.cpp.
_STANCES = {
    "default": 0,
    "force_eager": 1,
    "eager_on_recompile": 2,
    "fail_on_recompile": 3,
    # The first call gives the same here, whether it is compiled or not.
    "eager_then_compile": 0,
    "aot_eager_then_compile": 0,
}


class set_stance:
    """A function, a context and a decorator: what compiled functions do in place of compiling.

    "force_eager": they run as plain Python. "eager_on_recompile": so do calls that nothing recorded before fits.
    "fail_on_recompile": such calls raise RuntimeError.
    """

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        if stance not in _STANCES:
            raise RuntimeError(
                f"invalid torch.compile stance {stance!r}; there are {', '.join(_STANCES)}"
            )
        if force_backend is not None or skip_guard_eval_unsafe:
            raise NotImplementedError(
                "set_stance has neither force_backend nor skip_guard_eval_unsafe here: guards are always checked, "
                "and compile(backend=...) names the back end"
            )
        self.stance = stance
        self._before = _core.capture_set_stance(_STANCES[stance])

    def __enter__(self):
        _core.capture_set_stance(_STANCES[self.stance])
        return self

    def __exit__(self, *error):
        _core.capture_set_stance(self._before)

    def __call__(self, function):
        _core.capture_set_stance(self._before)

        @functools.wraps(function)
        def inside(*args, **kwargs):
            with set_stance(self.stance):
                return function(*args, **kwargs)

        return inside


__getattr__ = _names.module_getattr("prong.compiler")
