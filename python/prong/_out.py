"""out= of functions that are Python over ops; ops take it in bindings/. Used wherever one is made."""

import functools
import inspect

from prong import _core


def takes_out(f):
    """Gives `f` the keyword out=: the result is written there, checked and resized as by an op."""
    name = f.__name__

    @functools.wraps(f)
    def call(*args, out=None, **kwargs):
        result = f(*args, **kwargs)
        return result if out is None else _core.store_out(name, result, out)

    signature = inspect.signature(f)
    parameters = list(signature.parameters.values())
    if all(p.kind is not inspect.Parameter.VAR_KEYWORD for p in parameters):
        parameters.append(inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None))
        call.__signature__ = signature.replace(parameters=parameters)
    return call
