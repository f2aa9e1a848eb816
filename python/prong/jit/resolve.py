"""What names in scripts mean: asked by the compiler, answered from closures, globals and builtins of Python.

An answer is a tuple whose first item is a kind; src/bindings/script.cpp (named_from) reads them.
"""

import builtins
import enum
import inspect
import math
import types
import typing

import prong
from prong import _core, futures
from prong._core import Future, Type
from prong.autograd.profiler import record_function
from prong.jit import future as _future
from prong.jit import markers
from prong.jit.markers import Handling
from prong.jit.types import Scope, is_named_tuple, named_tuple_type, type_of, type_of_value

_PYTHON_BUILTINS = """len range enumerate zip reversed iter int float bool str repr list tuple dict set
print min max abs sum
any all sorted super isinstance getattr hasattr round divmod pow ord chr hex oct bin hash id format frozenset""".split()


def _known_objects():
    """Objects that mean something of their own in scripts, by identity."""
    known = {getattr(builtins, name): ("builtin", name) for name in _PYTHON_BUILTINS}
    for name, value in vars(math).items():
        if callable(value) and not name.startswith("_"):
            known[value] = ("builtin", f"host:math_{name}")
    known[prong.tensor] = known[prong.as_tensor] = ("builtin", "torch.tensor")
    known[prong.is_tensor] = ("builtin", "torch.is_tensor")
    known[prong.Size] = ("builtin", "torch.Size")
    known[prong.device] = ("builtin", "torch.device")
    known[prong.is_grad_enabled] = ("builtin", "host:is_grad_enabled")
    known[prong.is_inference_mode_enabled] = ("builtin", "host:is_inference_mode_enabled")
    for name in ("no_grad", "enable_grad", "set_grad_enabled", "inference_mode"):
        known[getattr(prong, name)] = ("builtin", f"manager:{name}")
    known[_future.fork] = ("builtin", "jit.fork")
    known[_future.wait] = ("builtin", "jit.wait")
    known[markers.annotate] = known[typing.cast] = ("builtin", "jit.annotate")
    known[markers.isinstance_] = ("builtin", "jit.isinstance")
    known[markers.is_scripting] = ("builtin", "jit.is_scripting")
    known[markers.is_tracing] = ("builtin", "jit.is_tracing")
    known[futures.wait_all] = ("builtin", "futures.wait_all")
    known[futures.collect_all] = ("builtin", "futures.collect_all")
    known[record_function] = ("builtin", "manager:record_function")
    return known


_known = _known_objects()
_describers: dict = {}  # Python type → function that describes its instances


def describes(python_type):
    """Registers how objects of a type are described; for the modules that know them."""

    def register(function):
        _describers[python_type] = function
        return function

    return register


def _look_up_known(value):
    try:
        return _known.get(value)
    except TypeError:  # unhashable
        return None


def describe(value, name="", scope=None):
    """The compiler's description of a Python object that a script names."""
    known = _look_up_known(value)
    if known is not None:
        return known
    if isinstance(value, types.ModuleType):
        return (
            "namespace",
            lambda attribute: _module_attribute(value, attribute),
            value.__name__.replace("prong", "torch", 1),
        )
    op = _core.op_name(value)
    if op is not None:
        return ("op", op)
    if isinstance(value, type):
        return _class(value, scope)
    for base in type(value).__mro__:
        if base in _describers:
            return _describers[base](value)
    if isinstance(value, types.MethodType):
        return _bound_method(value)
    if isinstance(value, enum.Enum):
        return describe(value.value, name, scope)
    if value is math.pi or isinstance(
        value,
        (
            bool,
            int,
            float,
            str,
            type(None),
            prong.dtype,
            prong.Tensor,
            list,
            tuple,
            dict,
            prong.device,
            prong.layout,
        ),
    ):
        try:
            return ("constant", value, type_of_value(value))
        except RuntimeError as error:
            return ("unsupported", f"'{name}' cannot be used in a script: {error}")
    if callable(value):
        return (
            "unsupported",
            f"'{name}' (a {type(value).__name__}) cannot be called in a script; "
            f"write a def, or mark a function with @torch.jit.ignore",
        )
    return (
        "unsupported",
        f"'{name}' is a Python value of type '{type(value).__name__}', which scripts cannot hold",
    )


def _module_attribute(module, name):
    try:
        value = getattr(module, name)
    except AttributeError as error:
        return ("unsupported", str(error))
    return describe(value, f"{module.__name__}.{name}")


def raise_unused(name):
    def raises(*args, **kwargs):
        raise RuntimeError(f"'{name}' is marked @torch.jit.unused and was called from a script")

    return raises


def signature_of(function, skip_self=False, self_type=None):
    """(name, [(argument, type, keyword only, has default, default)], result) of an ignored function."""
    scope = function_scope(function)
    arguments = []
    for position, p in enumerate(inspect.signature(function).parameters.values()):
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise RuntimeError(
                f"the ignored function '{function.__name__}' takes *{p.name}, "
                f"which scripts cannot give: name its parameters"
            )
        if position == 0 and self_type is not None:
            kind = self_type
        elif p.annotation is p.empty:
            kind = (
                Type.tensor()
                if p.default is p.empty or p.default is None
                else type_of_value(p.default)
            )
            if p.default is None:
                kind = Type.optional(kind)
        else:
            kind = type_of(p.annotation, scope)
        has_default = p.default is not p.empty
        arguments.append(
            (
                p.name,
                kind,
                p.kind is p.KEYWORD_ONLY,
                has_default,
                p.default if has_default else None,
            )
        )
    result = inspect.signature(function).return_annotation
    return (
        function.__name__,
        arguments,
        Type.tensor() if result is inspect.Signature.empty else type_of(result, scope),
    )


def python_call(function, handling, self_type=None):
    call = raise_unused(function.__qualname__) if handling is Handling.UNUSED else function
    return ("python", call, signature_of(function, self_type=self_type))


def _bound_method(method):

    if isinstance(method.__self__, prong.nn.Module):
        return (
            "unsupported",
            f"'{method.__name__}' is a method of a module outside of the script; give the module as a submodule",
        )
    return ("unsupported", f"'{method.__name__}' is a method of a Python object; write a def")


def _class(cls, scope):
    if is_named_tuple(cls):
        defaults = tuple(cls._field_defaults[f] for f in cls._fields if f in cls._field_defaults)
        return ("named_tuple", named_tuple_type(cls, scope), cls.__qualname__, defaults)
    if issubclass(cls, BaseException):
        name = (
            cls.__qualname__
            if cls.__module__ == "builtins"
            else f"{cls.__module__}.{cls.__qualname__}"
        )
        return ("exception", name, cls)
    if issubclass(cls, enum.Enum):
        return (
            "namespace",
            lambda name: (
                describe(getattr(cls, name).value, name) if name in cls.__members__ else None
            ),
            cls.__qualname__,
        )
    if issubclass(cls, prong.nn.Module):
        return (
            "unsupported",
            f"modules cannot be made inside a script: make {cls.__name__}(...) in __init__ and keep it as an attribute",
        )
    if cls is Future or issubclass(cls, prong.Tensor):
        return ("unsupported", f"{cls.__name__} stands only in annotations of scripts")
    return _describers[type](cls)


def function_scope(function):
    """Names that an annotation in a function can use: closure over globals."""
    names = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # not bound yet
            pass
    return Scope(names)


class FunctionNames:
    """Names seen from inside a function; the compiler's resolver."""

    def __init__(self, function, extra=None):
        self.function = function
        self.extra = extra or {}
        self._scope = None

    @property
    def scope(self):
        if self._scope is None:
            self._scope = function_scope(self.function)
            self._scope.names.update(self.extra)
        return self._scope

    def lookup(self, name):
        if name in self.extra:
            return describe(self.extra[name], name, self.scope)
        function = self.function
        if name in function.__code__.co_freevars:
            try:
                value = function.__closure__[
                    function.__code__.co_freevars.index(name)
                ].cell_contents
            except ValueError:
                return None
            return describe(value, name, self.scope)
        if name in function.__globals__:
            return describe(function.__globals__[name], name, self.scope)
        if hasattr(builtins, name):
            return describe(getattr(builtins, name), name, self.scope)
        return None

    def type(self, text):
        try:
            return type_of(self.scope.evaluate(text), self.scope)
        except NameError as error:
            raise RuntimeError(f"unknown type '{text.strip()}': {error}") from None

    def default(self, parameter, text):
        return inspect.signature(self.function).parameters[parameter].default


class TextNames:
    """Names seen from text that has no Python function (CompilationUnit)."""

    def __init__(self, names):
        self.names = names  # of the unit: name → ScriptEntry
        self.scope = Scope({})

    def lookup(self, name):
        if name in self.names:
            return ("function", self.names[name])
        if name == "torch":
            return describe(prong, name)
        if name == "math":
            return describe(math, name)
        if hasattr(builtins, name):
            return describe(getattr(builtins, name), name)
        return None

    def type(self, text):
        return type_of(self.scope.evaluate(text), self.scope)

    def default(self, parameter, text):
        return self.scope.evaluate(text)
