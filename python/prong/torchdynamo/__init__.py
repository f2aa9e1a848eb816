"""`import torchdynamo`: the names of the package as it was before PyTorch 2.0."""

from prong import _compile, _names
from prong._compile import disable, reset
from prong._dynamo import explain, list_backends, run

__all__ = ["disable", "explain", "list_backends", "optimize", "reset", "run"]


def optimize(target=None, *, nopython=False, dynamic=None):
    """optimize(function) compiles it; optimize("name") and optimize(back end) give a decorator.

    A callable that takes (graph_module, example_inputs) and is used as `@optimize(compiler)` cannot be told from
    a function to compile by its look; the parameters' names decide.
    """
    if target is None or isinstance(target, str):
        return lambda fn: _compile.compile(fn, backend=target, fullgraph=nopython, dynamic=dynamic)
    if _is_backend(target):
        return lambda fn: _compile.compile(fn, backend=target, fullgraph=nopython, dynamic=dynamic)
    return _compile.compile(target, fullgraph=nopython, dynamic=dynamic)


def _is_backend(target):
    code = getattr(target, "__code__", None)
    if code is None:
        return False
    names = code.co_varnames[: code.co_argcount]
    return (
        len(names) == 2
        and names[0] in ("gm", "graph_module", "model", "graph", "module")
        and "input" in names[1]
    )


__getattr__ = _names.module_getattr("prong.torchdynamo")
