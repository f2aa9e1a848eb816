"""prong.compile: makes a callable whose tensor work is captured and compiled."""

import copyreg
import functools
import importlib
import os
import sys
import warnings
import weakref

from prong import _compile_errors, _core
from prong._backends import default_backend, find_backend, name_of

SUPPORTED_PYTHON = ((3, 11),)
MODES = (
    "check",
    "default",
    "lite",
    "max-autotune",
    "max-autotune-no-cudagraphs",
    "reduce-overhead",
)
_compiled: list = []  # weak references to what reset() clears
_core.capture_set_up(os.path.dirname(os.path.abspath(__file__)) + os.sep, _compile_errors)


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

    `model` is a function, a method, a class's instance with __call__, or a Module; of a class, calls of its instances
    are compiled, and of a staticmethod, classmethod or property the function in it; without it, compile() gives a
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
    _check_arguments(dynamic, mode, options, name)
    if disable:
        return model
    check_python()
    if backend is None:
        backend = default_backend()
    as_asked = {
        "fullgraph": fullgraph,
        "dynamic": dynamic,
        "backend": backend,
        "mode": mode,
        "options": options,
        "name": name,
    }
    if isinstance(model, (type, staticmethod, classmethod, property)):
        return _inside(model, lambda function: compile(function, **as_asked))
    if not callable(model):
        raise TypeError(f"compile() takes a callable, got {type(model).__name__}")
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


def _check_arguments(dynamic, mode, options, name):
    if dynamic is not None and not isinstance(dynamic, bool):
        raise TypeError(
            f"compile(dynamic=...) takes True, False or None, got {dynamic!r} ({type(dynamic).__name__})"
        )
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
    if options is not None and not isinstance(options, dict):
        raise TypeError(
            f"compile(options=...) takes a dict of names and values, got {options!r} ({type(options).__name__})"
        )
    if mode is not None and mode != "check" and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if name is not None and not isinstance(name, str):
        raise TypeError(f"compile(name=...) takes a string, got {name!r} ({type(name).__name__})")


def _inside(holder, treat):
    """A class, staticmethod, classmethod or property with treat(function) in place of what it calls."""
    if isinstance(holder, (staticmethod, classmethod)):
        return type(holder)(treat(holder.__func__))
    if isinstance(holder, property):
        parts = (f and treat(f) for f in (holder.fget, holder.fset, holder.fdel))
        return property(*parts, doc=holder.__doc__)
    call = _calls_of_instances(holder)
    if call is None:
        raise TypeError(
            f"compile() of a class compiles calls of its instances, but those of {holder.__name__} cannot be called: "
            "it has no __call__"
        )
    holder.__call__ = treat(call)
    return holder


def _calls_of_instances(cls):
    call = cls.__call__
    return None if getattr(call, "__self__", None) is cls else call  # else it is type's own


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
    compiled.__dict__["_torchdynamo_orig_callable"] = model


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
    """A function that is never captured: it runs as plain Python, and cuts the graph of whoever calls it. Of a class,
    calls of its instances; a module stays one.
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if isinstance(fn, (type, staticmethod, classmethod, property)):
        if isinstance(fn, type) and not _calls_of_instances(fn):
            return fn
        return _inside(fn, lambda function: disable(function, recursive, reason))
    fn = getattr(fn, "_orig_mod", fn)
    if isinstance(fn, _core.CompiledFunction):
        fn = fn.__wrapped__
    if not callable(fn):
        raise TypeError(f"disable() takes a callable, got {type(fn).__name__}")
    text = f"a disabled function is called: {getattr(fn, '__qualname__', type(fn).__qualname__)}"
    if reason:
        text += f": {reason}"

    def plain(*args, **kwargs):
        return _core.capture_call_plainly(text, fn, *args, **kwargs)

    plain._torchdynamo_disable = True
    if _is_module(fn):
        return _module_class()(fn, plain)
    plain = functools.wraps(fn)(plain)
    plain._torchdynamo_orig_callable = fn
    return plain


def is_compiling():
    """True inside a compiled function."""
    return _core.capture_is_recording()
