"""How a composition becomes prong.name, Tensor.name, Tensor.name_ and takes out=."""

import functools
import inspect

from prong import Tensor, _core

FUNCTIONS: dict = {}  # prong.name
METHODS: dict = {}  # Tensor.name
REPLACED: dict = {}  # prong.name, more than the op of that name

_clone = _core.functions["clone"]


def _store(result, out):
    """What out= asks for: written there, resized where it must be."""
    if isinstance(result, Tensor):
        return _clone(result, out=out)
    for value, target in zip(result, out, strict=True):
        _clone(value, out=target)
    return out


def composition(
    *, function=True, method=False, inplace=False, takes_out=True, name=None, replaces=False
):
    """Decorates a function over ops. In-place forms are methods that write the result into self."""

    def decorate(f):
        own = name or f.__name__

        @functools.wraps(f)
        def call(*args, out=None, **kwargs):
            result = f(*args, **kwargs)
            return result if out is None else _store(result, out)

        made = call if takes_out else f
        if takes_out:
            signature = inspect.signature(f)
            out_argument = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
            parameters = list(signature.parameters.values())
            if all(p.kind is not inspect.Parameter.VAR_KEYWORD for p in parameters):
                call.__signature__ = signature.replace(parameters=[*parameters, out_argument])
        if function:
            (REPLACED if replaces else FUNCTIONS)[own] = made
        if method:
            METHODS[own] = f
        if inplace:
            METHODS[own + "_"] = _inplace(f, own + "_")
        return made

    return decorate


def _inplace(f, name):
    @functools.wraps(f)
    def write(self, *args, **kwargs):
        result = f(self, *args, **kwargs)
        if result.shape != self.shape:
            raise RuntimeError(
                f"output with shape {list(self.shape)} doesn't match the broadcast shape "
                f"{list(result.shape)}"
            )
        return self.copy_(result)

    write.__name__ = write.__qualname__ = name
    write.__doc__ = f"In place: {f.__doc__}"
    return write
