"""prong.compile: makes a callable whose tensor work is captured and compiled."""

import copyreg
import functools
import importlib
import os
import sys
import warnings
import weakref

from prong import _core
from prong._backends import default_backend, find_backend, name_of
from prong._compile_errors import Unsupported

SUPPORTED_PYTHON = ((3, 11),)
MODES = frozenset(
    {None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs", "check"}
)
_compiled: list = []  # weak references to what reset() clears
_core.capture_set_up(os.path.dirname(os.path.abspath(__file__)) + os.sep, Unsupported)


def compile(
    model=None,
    *,
    fullgraph=False,
    dynamic=None,
    backend=None,
    mode=None,
    options=None,
    disable=False,
    name=None,
):
    """A callable that does what `model` does, with its tensor work in compiled graphs.

    `model` is a function, a method, a class's instance with __call__, or a Module; without it, compile() gives a
    decorator. `backend` is a name ("llvm", "interpreter", "eager", one of list_backends(), or one found through the
    entry point group "prong_backends") or a callable (graph_module, example_inputs) -> callable. `fullgraph=True`
    raises where tensor work would have to be cut in two. `dynamic=False` records anew for other sizes and numbers;
    without it they are inputs from the first recording on, save where Python needs one. mode="check" runs eager
    beside compiled and raises at the first difference; the other modes are taken for PyTorch's sake and change
    nothing. `options` and `mode` go to a back end that is a callable. docs/compile.md tells more.
    """
    if model is None:
        return functools.partial(
            compile,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
            name=name,
        )
    if mode not in MODES:
        raise RuntimeError(
            f"Unrecognized mode={mode}, should be one of: {sorted(m for m in MODES if m)}"
        )
    if mode is not None and mode != "check" and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if disable:
        return model
    check_python()
    if backend is None:
        backend = default_backend()
    if isinstance(model, type):
        raise TypeError(f"compile() takes a function or an object, got the class {model.__name__}")
    if not callable(model):
        raise TypeError(f"compile() takes a callable, got {type(model).__name__}")
    as_asked = {
        "fullgraph": fullgraph,
        "dynamic": dynamic,
        "backend": backend,
        "mode": mode,
        "options": options,
        "name": name,
    }
    settings = {"options": options} if options else {}
    if mode not in (None, "default", "check"):
        settings["mode"] = mode
    maker, identity = find_backend(backend, settings)
    if isinstance(maker, str) and options:
        warnings.warn(
            f"compile(options=...) has no effect: {', '.join(map(str, options))} belong to PyTorch's inductor, and "
            f"prong's back end {name_of(backend)!r} has no options",
            stacklevel=2,
        )
    compiled = _wrap(
        model, maker, identity, fullgraph, mode == "check", dynamic is False, name, name_of(backend)
    )
    capture_of(compiled).__dict__["_as_asked"] = as_asked
    return compiled


def _again(model, as_asked):
    return compile(model, **as_asked)


def _reduced(compiled):
    """How copy and pickle see a compiled function: by its name, as other functions, or compiled again."""
    found = sys.modules.get(compiled.__dict__.get("__module__"))
    for part in compiled.__dict__.get("__qualname__", "").split("."):
        found = getattr(found, part, None)
    if found is compiled:
        return compiled.__qualname__
    return _again, (compiled.__wrapped__, compiled.__dict__["_as_asked"])


copyreg.pickle(_core.CompiledFunction, _reduced)


def check_python():
    if sys.version_info[:2] not in SUPPORTED_PYTHON:
        names = ", ".join(".".join(map(str, v)) for v in SUPPORTED_PYTHON)
        raise RuntimeError(
            f"compile() captures the bytecode of CPython {names}; this is "
            f"{sys.version_info[0]}.{sys.version_info[1]}. compile(disable=True) runs eagerly."
        )


def _wrap(model, maker, identity, fullgraph, is_checked, is_static, name, backend_name):
    if isinstance(model, _core.CompiledFunction):
        model = model.__wrapped__
    label = name or getattr(model, "__qualname__", type(model).__qualname__)
    compiled = _core.capture_compile(
        model, maker, identity, bool(fullgraph), is_checked, is_static, label, backend_name
    )
    _copy_names(model, compiled)
    _compiled.append(_weakly(compiled))
    if _is_module(model):
        return _module_class()(model, compiled)
    return compiled


def _copy_names(model, compiled):
    for key in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        try:
            compiled.__dict__[key] = getattr(model, key)
        except AttributeError:
            pass
    compiled.__dict__.update(getattr(model, "__dict__", {}) if not _is_module(model) else {})


def _weakly(compiled):
    return weakref.ref(compiled, _forget)


def _forget(reference):
    try:
        _compiled.remove(reference)
    except ValueError:
        pass


def capture_of(compiled):
    """The CompiledFunction behind what compile() gave."""
    if isinstance(compiled, _core.CompiledFunction):
        return compiled
    return compiled.__dict__["_compiled_call"]


def _is_module(model):
    nn = sys.modules.get("prong.nn")
    module = getattr(nn, "Module", None) if nn is not None else None
    return module is not None and isinstance(model, module)


@functools.cache
def _module_class():
    # prong.nn is loaded when first used, and compile() alone is no use of it.
    return importlib.import_module("prong._compiled_module").OptimizedModule


def reset():
    """Drops all that was compiled; compiled functions start anew."""
    for reference in list(_compiled):
        compiled = reference()
        if compiled is not None:
            compiled._forget()


def disable(fn=None, recursive=True, reason=None):
    """A function that is never captured: it runs as plain Python, and cuts the graph of whoever calls it."""
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if isinstance(fn, _core.CompiledFunction):
        fn = fn.__wrapped__
    text = f"a disabled function is called: {getattr(fn, '__qualname__', repr(fn))}"
    if reason:
        text += f": {reason}"

    @functools.wraps(fn)
    def plain(*args, **kwargs):
        return _core.capture_call_plainly(text, fn, *args, **kwargs)

    plain._torchdynamo_disable = True
    return plain


def is_compiling():
    """True inside a compiled function."""
    return _core.capture_is_recording()
