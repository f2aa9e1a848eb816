"""Scripted classes and interfaces, and their instances in Python."""

import inspect
import types
import weakref

import prong
from prong import _core
from prong.jit import markers
from prong.jit.functions import describe_function, source_of
from prong.jit.markers import Handling
from prong.jit.resolve import (
    FunctionNames,
    describe,
    describes,
    python_call,
    raise_unused,
    signature_of,
)
from prong.jit.types import Scope, finds_classes, type_of

_classes: weakref.WeakKeyDictionary = (
    weakref.WeakKeyDictionary()
)  # Python class → _core.ScriptClass
_instance_classes: dict = {}  # id of the C++ class → Python class


class MethodSource:
    """Members of a Python class, for the compiler."""

    def __init__(self, python_class, script_class):
        self.python_class = python_class
        self.script_class = script_class
        self._entries = {}

    def entry(self, function):
        if function not in self._entries:
            # While the class is being decorated its own name means nothing yet.
            extra = {self.python_class.__name__: self.python_class}
            self._entries[function] = self.declare(
                function, function.__name__, *source_of(function), extra
            )
        return self._entries[function]

    def declare(self, function, name, text, file, first, indent, extra=None):
        """A method with the names that ``function`` sees."""
        return _core.declare_script(
            name,
            f"{function.__module__}.{function.__qualname__}",
            text,
            file,
            first,
            indent,
            FunctionNames(function, extra),
            self.script_class,
        )

    def describe_member(self, found):
        """(description, takes self, is a property) of what inspect.getattr_static gave."""
        if isinstance(found, property):
            handling = markers.handling_of(found.fget)
            if handling in (Handling.IGNORE, Handling.UNUSED):
                return (
                    python_call(self.python_method(found.fget), handling, self.script_class.type),
                    True,
                    True,
                )
            return ("function", self.entry(found.fget)), True, True
        if isinstance(found, staticmethod):
            return describe_function(found.__func__), False, False
        if isinstance(found, classmethod):
            return (
                (
                    "unsupported",
                    f"'{found.__func__.__name__}' is a classmethod, which scripts do not have: make it a staticmethod",
                ),
                False,
                False,
            )
        if isinstance(found, types.FunctionType):
            handling = markers.handling_of(found)
            if handling in (Handling.IGNORE, Handling.UNUSED):
                return self.python_method_description(found, handling), True, False
            return ("function", self.entry(found)), True, False
        return describe(found, getattr(found, "__name__", "")), False, False

    def python_method(self, function):
        return function

    def python_method_description(self, function, handling):
        call = (
            raise_unused(function.__qualname__)
            if handling is Handling.UNUSED
            else self.python_method(function)
        )
        return ("python", call, signature_of(function, self_type=self.script_class.type))

    def member(self, name):
        found = inspect.getattr_static(self.python_class, name, None)
        if found is None or (
            name.startswith("__")
            and isinstance(
                found,
                (
                    types.WrapperDescriptorType,
                    types.MethodDescriptorType,
                    types.BuiltinFunctionType,
                ),
            )
        ):
            return None
        if name == "__init__" and found is object.__init__:
            return None
        return self.describe_member(found)

    def super_member(self, name, qualified_name):
        order = self.python_class.__mro__
        owner = next(
            (
                i
                for i, c in enumerate(order)
                if f"{c.__module__}.{c.__qualname__}" == qualified_name.rpartition(".")[0]
            ),
            None,
        )
        if owner is None:
            return None
        for base in order[owner + 1 :]:
            if name in base.__dict__ and base is not object:
                return self.describe_member(base.__dict__[name])
        return None


class ClassSource(MethodSource):
    """Members of a scripted class. Static attributes of the class are constants."""

    def member(self, name):
        if name == "__init__" and "__init__" not in vars(self.python_class):
            inherited = inspect.getattr_static(self.python_class, "__init__", None)
            if not isinstance(inherited, types.FunctionType):
                return None
        return super().member(name)


@finds_classes
def script_class_of(cls):
    """The compiler's class for a Python class; compiled member by member when used."""
    found = _classes.get(cls)
    if found is not None:
        return found
    if not isinstance(cls, type) or cls.__module__ == "builtins":
        raise RuntimeError(f"'{getattr(cls, '__name__', cls)}' is no type that scripts have")
    if getattr(cls, "__prong_interface__", False):
        return _interface(cls)
    if issubclass(cls, prong.nn.Module):
        raise RuntimeError(
            f"the module class '{cls.__name__}' is not one type in scripts; "
            f"declare an interface with @torch.jit.interface"
        )
    script_class = _core.ScriptClass(f"{cls.__module__}.{cls.__qualname__}", "class")
    _classes[cls] = script_class
    _instance_classes[script_class.id] = cls
    script_class.set_source(ClassSource(cls, script_class))
    try:
        annotations = {}
        for base in reversed(cls.__mro__[:-1]):
            annotations.update(
                {k: (v, base) for k, v in base.__dict__.get("__annotations__", {}).items()}
            )
        for name, (annotation, base) in annotations.items():
            module = inspect.getmodule(base)
            script_class.add_attribute(
                name, type_of(annotation, Scope(vars(module) if module else {}))
            )
        # __init__ tells the attributes.
        script_class.method("__init__")
    except BaseException:
        del _classes[cls]
        raise
    return script_class


def class_attribute(cls, name):
    """What Class.name means in a script."""
    found = inspect.getattr_static(cls, name, None)
    if found is None:
        return None
    if isinstance(found, staticmethod):
        return describe_function(found.__func__)
    return describe(found, f"{cls.__name__}.{name}")


def script_class(cls):
    """torch.jit.script of a class: checks and compiles its methods; Python keeps using the class itself."""
    compiled = script_class_of(cls)
    for name, member in vars(cls).items():
        if isinstance(member, types.FunctionType) and markers.handling_of(member) not in (
            Handling.IGNORE,
            Handling.UNUSED,
        ):
            compiled.method(name)
    return cls


class _InterfaceSource:
    def __init__(self, python_class, script_class):
        pass

    def member(self, name):
        return None

    super_member = member


def interface(cls):
    """Declares the methods that a module or an object must have; its class is a type in scripts."""
    if not isinstance(cls, type):
        raise RuntimeError("interface() decorates a class")
    cls.__prong_interface__ = True
    _interface(cls)
    return cls


def _interface(cls):
    found = _classes.get(cls)
    if found is not None:
        return found
    script_class = _core.ScriptClass(f"{cls.__module__}.{cls.__qualname__}", "interface")
    _classes[cls] = script_class
    for base in reversed(cls.__mro__):
        if base in (object, prong.nn.Module) or not getattr(base, "__prong_interface__", False):
            continue
        for name, member in vars(base).items():
            if isinstance(member, types.FunctionType):
                _declare(script_class, name, member)
    return script_class


def _declare(script_class, name, function):
    # The body (pass, ..., a docstring) is replaced by a raise, so that any declared result fits.

    arguments = [p for p in inspect.signature(function).parameters.values()]
    text, file, first, indent = source_of(function)
    scope = FunctionNames(function)
    parts = []
    for position, p in enumerate(arguments):
        part = p.name
        if position and p.annotation is not p.empty:
            part += f": __annotation_{position}"
            scope.extra[f"__annotation_{position}"] = p.annotation
        if p.default is not p.empty:
            part += " = __default" if p.annotation is not p.empty else "=__default"
        parts.append(part)
    header = f"def {name}({', '.join(parts)})"
    result = inspect.signature(function).return_annotation
    if result is not inspect.Signature.empty:
        header += " -> __annotation_result"
        scope.extra["__annotation_result"] = result
    else:
        header += " -> Tensor"
    text = f"{header}:\n    raise RuntimeError('a method of an interface')\n"
    entry = _core.declare_script(
        name,
        f"{function.__module__}.{function.__qualname__}",
        text,
        file,
        first,
        indent,
        scope,
        script_class,
    )
    script_class.declare_method(name, entry)


class ScriptInstance:
    """An object of a scripted class that a script gave to Python."""

    def __init__(self, handle):
        object.__setattr__(self, "_object", handle)

    def __getattr__(self, name):
        handle = self.__dict__["_object"]
        if handle.has(name):
            return handle.get(name)
        python_class = _instance_classes.get(handle.class_id)
        compiled = _classes.get(python_class) if python_class else None
        method = compiled.method(name) if compiled and not name.startswith("__") else None
        if method is None:
            raise AttributeError(f"'{handle.class_name}' object has no attribute '{name}'")
        return lambda *args, **kwargs: method.call_method(handle, *args, **kwargs)

    def __setattr__(self, name, value):
        self._object.set(name, value)

    def __repr__(self):
        return f"<torch.jit.ScriptObject {self._object.class_name}>"


@describes(ScriptInstance)
def _describe_instance(instance):
    return ("object", instance._object)


@describes(type)
def _describe_class(cls):
    try:
        found = script_class_of(cls)
    except RuntimeError as error:
        return ("unsupported", str(error))
    return ("class", found, lambda name: class_attribute(cls, name))
