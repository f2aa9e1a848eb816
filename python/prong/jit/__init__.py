"""Scripts: functions, methods and modules compiled from their Python source; fork and wait."""

import inspect as _inspect

from prong import _names
from prong._core import Future
from prong.jit import frontend
from prong.jit.archive import save
from prong.jit.classes import interface
from prong.jit.classes import script_class as _script_class
from prong.jit.freezing import freeze, optimize_for_inference
from prong.jit.functions import CompilationUnit, ScriptFunction
from prong.jit.functions import script_function as _script_function
from prong.jit.future import _fork, _wait, fork, wait
from prong.jit.loading import load
from prong.jit.markers import (
    Attribute,
    Final,
    annotate,
    export,
    ignore,
    is_scripting,
    is_tracing,
    script_if_tracing,
    unused,
)
from prong.jit.markers import (
    isinstance_ as isinstance,
)
from prong.jit.modules import RecursiveScriptModule, ScriptModule
from prong.jit.modules import script_module as _script_module
from prong.jit.tracing import TracerWarning, trace, trace_module
from prong.nn import Module as _Module

__all__ = [
    "Attribute",
    "CompilationUnit",
    "Final",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "annotate",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "optimize_for_inference",
    "save",
    "script",
    "script_if_tracing",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

Error = RuntimeError


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """Compiles a function, a class or a module from its Python source.

    A mistake is a RuntimeError that shows the file, the line and what to write instead.
    """
    if type(obj) in (ScriptFunction, ScriptModule):
        return obj
    if _inspect.isfunction(obj):
        return _script_function(obj)
    if _inspect.isclass(obj):
        return _script_class(obj)
    if type(obj).__mro__ and issubclass(type(obj), _Module):
        return _script_module(obj)._compile()
    if _inspect.ismethod(obj):
        raise RuntimeError("methods are scripted with their module: torch.jit.script(module)")
    if type(obj) in (dict, list):
        return obj
    raise RuntimeError(
        f"torch.jit.script takes a function, a class or a module, not a value of type '{type(obj).__name__}'"
    )


def script_method(fn):
    """Kept for old programs: methods of a scripted module are compiled anyway."""
    return fn


def export_opnames(m):
    raise NotImplementedError("prong has no torch.jit.export_opnames yet")


def set_fusion_strategy(strategy):
    """Accepted for compatibility: Prong decides what is fused by itself."""
    return list(strategy)


__getattr__ = _names.module_getattr("prong.jit")
