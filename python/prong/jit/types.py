"""Annotations of Python as static types of scripts. Called by the resolvers of names and by the classes of modules."""

import collections.abc
import enum
import inspect
import types
import typing
from types import GenericAlias

import prong
from prong._core import Future, Type

_SIMPLE = {
    prong.Tensor: Type.tensor,
    int: Type.int,
    float: Type.float,
    bool: Type.bool,
    str: Type.str,
    None: Type.none,
    type(None): Type.none,
    typing.Any: Type.any,
    object: Type.any,
    prong.dtype: Type.dtype,
    prong.device: Type.device,
    prong.layout: Type.layout,
}


class Scope:
    """Where names of an annotation mean something: globals and closure of the function or class that it stands in."""

    def __init__(self, names):
        self.names = names

    def evaluate(self, text):
        # Scripts know these without an import, as in PyTorch; the program's own names come first.
        return eval("(" + text + "\n)", dict(_KNOWN, **_plain(self.names)))


def _plain(names):
    return names if isinstance(names, dict) else dict(names)


def type_of(annotation, scope=None):
    """The static type of an annotation; TypeError or RuntimeError says what is wrong with it."""
    if isinstance(annotation, str):
        return type_of((scope or Scope({})).evaluate(annotation), scope)
    if isinstance(annotation, typing.ForwardRef):
        return type_of(annotation.__forward_arg__, scope)
    if isinstance(annotation, Type):
        return annotation
    try:
        simple = _SIMPLE.get(annotation)
    except TypeError:  # unhashable
        simple = None
    if simple is not None:
        return simple()
    if annotation is Future:
        raise RuntimeError(
            "Attempted to use Future without a contained type: write torch.jit.Future[Tensor], or what else it holds"
        )
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is not None:
        return _generic(annotation, origin, arguments, scope)
    if annotation in (list, dict, tuple, list, dict, tuple, typing.Optional):
        name = getattr(annotation, "__name__", None) or str(annotation)
        raise RuntimeError(
            f"Attempted to use {name.capitalize()} without a contained type: "
            f"write List[int], Dict[str, Tensor], Tuple[int, int]"
        )
    if isinstance(annotation, type):
        return _class(annotation, scope)
    if isinstance(annotation, typing.NewType):
        return type_of(annotation.__supertype__, scope)
    raise RuntimeError(f"unknown type {annotation!r} in an annotation of a script")


def _generic(annotation, origin, arguments, scope):
    inner = (
        [type_of(a, scope) for a in arguments if a is not Ellipsis]
        if origin not in (typing.Union, types.UnionType, typing.Annotated)
        else None
    )
    if origin is Future:
        return Type.future(inner[0])
    if origin is list:
        return Type.list(inner[0])
    if origin is dict:
        return Type.dict(inner[0], inner[1])
    if origin is tuple:
        if Ellipsis in arguments:
            return Type.list(inner[0])
        return Type.tuple([] if arguments == ((),) else inner)
    if origin in (typing.Union, types.UnionType):
        return _union(arguments, scope)
    if origin is typing.Annotated:
        return type_of(arguments[0], scope)
    if origin in (collections.abc.Sequence, collections.abc.Iterable):
        return Type.list(inner[0])
    if getattr(origin, "__prong_final__", False) or origin is typing.Final:
        return inner[0]
    raise RuntimeError(f"unknown type {annotation!r} in an annotation of a script")


def _union(arguments, scope):
    others = [a for a in arguments if a is not type(None)]
    if len(others) == 1:
        element = type_of(others[0], scope)
        return Type.optional(element) if len(others) < len(arguments) else element
    kinds = {type_of(a, scope).kind for a in others}
    if kinds <= {"int", "float", "bool"}:
        number = Type.number()
        return Type.optional(number) if len(others) < len(arguments) else number
    # Values of several types travel as Any; isinstance tells them apart.
    return Type.any()


def is_named_tuple(cls):
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


_named_tuples: dict = {}


def named_tuple_type(cls, scope=None):
    if cls not in _named_tuples:
        own = Scope(vars(inspect.getmodule(cls) or types) | (_plain(scope.names) if scope else {}))
        hints = {}
        for base in reversed(cls.__mro__):
            hints.update(base.__dict__.get("__annotations__", {}))
        fields = list(cls._fields)
        items = [type_of(hints[f], own) if f in hints else Type.tensor() for f in fields]
        name = f"{cls.__module__}.{cls.__qualname__}"
        _named_tuples[cls] = Type.named_tuple(name, fields, items, cls)
    return _named_tuples[cls]


def _class(cls, scope):
    if is_named_tuple(cls):
        return named_tuple_type(cls, scope)
    if cls is prong.Size:
        return Type.list(Type.int())
    if issubclass(cls, prong.Tensor):
        return Type.tensor()
    if issubclass(cls, enum.Enum):
        raise RuntimeError(
            f"enums are not available in scripts yet ({cls.__name__}): use its values"
        )
    return _class_finders[0](cls).type


_class_finders: list = []


def finds_classes(function):
    """Registers what gives the compiler's class of a Python class; done by classes.py."""
    _class_finders[:] = [function]
    return function


def type_of_value(value):
    """The static type of a value held by a module or a closure; RuntimeError says why there is none."""
    if value is None:
        return Type.none()
    if isinstance(value, prong.Tensor):
        return Type.tensor()
    for python, make in ((bool, Type.bool), (int, Type.int), (float, Type.float), (str, Type.str)):
        if isinstance(value, python):
            return make()
    if isinstance(value, prong.dtype):
        return Type.dtype()
    if isinstance(value, prong.device):
        return Type.device()
    if isinstance(value, prong.layout):
        return Type.layout()
    if isinstance(value, Future):
        return Type.future(Type.any())
    if is_named_tuple(type(value)):
        return named_tuple_type(type(value))
    if isinstance(value, prong.Size):
        return Type.list(Type.int())
    if isinstance(value, tuple):
        return Type.tuple([type_of_value(v) for v in value])
    if isinstance(value, list):
        return Type.list(_common(value, "list"))
    if isinstance(value, dict):
        if not value:
            raise RuntimeError("the type of an empty dict is not known: annotate it")
        return Type.dict(_common(list(value), "dict"), _common(list(value.values()), "dict"))
    raise RuntimeError(f"scripts cannot hold a value of type '{type(value).__name__}'")


def _common(items, what):
    if not items:
        raise RuntimeError(f"the type of an empty {what} is not known: annotate it")
    kinds = [type_of_value(v) for v in items]
    widest = next((k for k in kinds if k.kind != "None"), kinds[0])
    if any(k.kind == "None" for k in kinds) and widest.kind != "None":
        widest = Type.optional(widest)
    for k in kinds:
        if not k.fits(widest):
            raise RuntimeError(
                f"a {what} in a script holds one type, but this one holds {kinds[0]} and {k}"
            )
    return widest


def _known():
    names = {
        n: getattr(typing, n)
        for n in (
            "Any",
            "Dict",
            "Final",
            "List",
            "NamedTuple",
            "Optional",
            "Tuple",
            "Union",
            "Callable",
        )
    }
    return names | {
        "Future": Future,
        "Tensor": prong.Tensor,
        "number": int | float,
        "NoneType": type(None),
        "device": prong.device,
        "dtype": prong.dtype,
        "torch": prong,
        "prong": prong,
    }


_KNOWN = _known()
__all__ = [
    "GenericAlias",
    "Scope",
    "is_named_tuple",
    "named_tuple_type",
    "type_of",
    "type_of_value",
]
