"""Marks on functions and values that tell the script compiler something; outside of scripts they do nothing."""

import enum
import functools
import typing

import prong
from prong import _core
from prong._scripting import is_scripting  # noqa: F401 (found here by jit)


class Handling(enum.Enum):
    """What scripts do with a function."""

    IGNORE = "called through Python"
    UNUSED = "raises if it is ever called"
    EXPORT = "compiled though forward does not call it"


def _mark(function, handling):
    target = (
        function.fget if isinstance(function, property) else getattr(function, "__func__", function)
    )
    target.__prong_handling__ = handling
    return function


def handling_of(function):
    """The mark of a function, or None."""
    return getattr(getattr(function, "__func__", function), "__prong_handling__", None)


def ignore(drop=False, **kwargs):
    """Leaves a function as Python: scripts call it through the interpreter."""
    if callable(drop):
        return _mark(drop, Handling.IGNORE)
    handling = Handling.UNUSED if drop else Handling.IGNORE
    return functools.partial(_mark, handling=handling)


def unused(fn):
    """Takes a function out of scripts: a call of it raises."""
    return _mark(fn, Handling.UNUSED)


def export(fn):
    """Compiles a method though forward does not call it."""
    return _mark(fn, Handling.EXPORT)


def annotate(the_type, the_value):
    """``the_value``; in a script, of the type ``the_type``."""
    return the_value


is_tracing = _core.is_tracing


def isinstance_(obj, target_type):
    """isinstance for types with arguments: ``isinstance(x, List[int])`` looks into containers."""
    if isinstance(target_type, tuple):
        return any(isinstance_(obj, t) for t in target_type)
    origin, arguments = typing.get_origin(target_type), typing.get_args(target_type)
    if origin is None:
        return target_type is typing.Any or isinstance(
            obj, type(None) if target_type is None else target_type
        )
    if origin in (typing.Union, type(int | str)):
        return any(isinstance_(obj, t) for t in arguments)
    if origin is list:
        return isinstance(obj, list) and all(isinstance_(item, arguments[0]) for item in obj)
    if origin is dict:
        return isinstance(obj, dict) and all(
            isinstance_(k, arguments[0]) and isinstance_(v, arguments[1]) for k, v in obj.items()
        )
    if origin is tuple:
        return (
            isinstance(obj, tuple)
            and len(obj) == len(arguments)
            and all(map(isinstance_, obj, arguments))
        )
    return isinstance(obj, origin)


class Attribute(typing.NamedTuple):
    """A value for an attribute of a module, with its type: ``self.names = Attribute({}, Dict[str, int])``."""

    value: object
    type: object


Final = typing.Final


class _Strict:
    def __call__(self, *args, **kwargs):
        return self


def script_if_tracing(fn):
    """``fn``, compiled while a call is traced, so that its control flow is kept."""

    @functools.wraps(fn)
    def called(*args, **kwargs):
        if not is_tracing():
            return fn(*args, **kwargs)
        return prong.jit.script(fn)(*args, **kwargs)

    return called
