"""Scripted modules: a module's attributes become a class of the compiler and an object of it, sharing parameters and
buffers with the module; its methods are compiled from their source."""

import ast
import inspect
import types
import typing
import weakref
from collections import OrderedDict

import prong
from prong import _core
from prong._core import Type
from prong.jit import classes, markers
from prong.jit.archive import save, to_bytes
from prong.jit.classes import MethodSource
from prong.jit.functions import Graph, source_of
from prong.jit.hooks import hooked_call, hooks_of
from prong.jit.markers import Attribute, Handling
from prong.jit.resolve import describe, describes, function_scope
from prong.jit.types import Scope, type_of, type_of_value
from prong.nn import Module, ModuleDict, ModuleList, Sequential

# Names of nn.Module itself, which scripts do not see.
_OWN = set(vars(Module())) | {
    "training",
    "forward",
    "call_super_init",
    "dump_patches",
    "T_destination",
}


class _Source(MethodSource):
    """Members of a module's class; functions that an instance holds are constants of its type."""

    def __init__(self, python_class, script_class, held, hooks):
        super().__init__(python_class, script_class)
        self.held = held  # attribute → description or text of why not
        self.hooks = hooks
        self._call = None

    def member(self, name):
        if name in self.held:
            return self.held[name], False, False
        if self.hooks and name == "__call__":
            if self._call is None:
                forward = self.python_class.forward
                text = hooked_call(forward, self.hooks)
                self._call = self.declare(forward, "__call__", text, "<hooks>", 1, 0)
            return ("function", self._call), True, False
        if name in self.hooks:
            return ("function", self.entry(self.hooks[name])), True, False
        found = inspect.getattr_static(self.python_class, name, None)
        if found is None or getattr(Module, name, None) is found and name != "forward":
            return None
        if found is Module.forward:
            return (
                ("unsupported", f"the module class '{self.python_class.__name__}' has no forward"),
                False,
                False,
            )
        return self.describe_member(found)

    def python_method(self, function):
        return function


# Modules of one shape share a class, so that their methods are compiled once.
_shapes: dict = {}
_scripted: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # nn.Module → ScriptModule
_by_object: weakref.WeakValueDictionary = (
    weakref.WeakValueDictionary()
)  # id of the C++ object → ScriptModule


def find_python(handle):
    return _by_object.get(handle.id)


def script_module(module):
    """The ScriptModule of a module; made once."""
    if isinstance(module, ScriptModule):
        return module
    found = _scripted.get(module)
    if found is None or not found._is_current(module):
        found = _build(module)
        _scripted[module] = found
    return found


def _annotations(cls):
    """Types that the class body and __init__ declare for attributes: name → (annotation, scope)."""
    out = {}
    for base in reversed(cls.__mro__):
        if base in (object, Module):
            continue
        module = inspect.getmodule(base)
        scope = Scope(dict(vars(module)) if module else {})
        init = base.__dict__.get("__init__")
        if isinstance(init, types.FunctionType):
            scope = function_scope(init)
            try:
                tree = ast.parse(source_of(init)[0])
            except (RuntimeError, SyntaxError):
                tree = None
            for node in ast.walk(tree) if tree else ():
                if (
                    isinstance(node, ast.AnnAssign)
                    and isinstance(node.target, ast.Attribute)
                    and isinstance(node.target.value, ast.Name)
                    and node.target.value.id == "self"
                ):
                    out[node.target.attr] = (ast.unparse(node.annotation), scope)
        for name, annotation in base.__dict__.get("__annotations__", {}).items():
            out[name] = (annotation, scope)
    return out


def _is_final(annotation):
    if isinstance(annotation, str):
        return annotation.startswith(("Final", "torch.jit.Final", "typing.Final"))
    return annotation is typing.Final or typing.get_origin(annotation) is typing.Final


class _Shape:
    """What the compiler has to know of a module: collected from an instance, compared between instances."""

    def __init__(self, module):
        self.python_class = type(module)
        self.attributes = []  # (name, Type, is_parameter, is_buffer)
        self.values = {}  # name → value
        self.constants = {}
        self.held = {}
        self.children = {}  # name → ScriptModule
        self.hooks = hooks_of(module)
        annotations = _annotations(self.python_class)
        constants = set()
        for base in self.python_class.__mro__:
            constants.update(base.__dict__.get("__constants__", ()))
        for name, parameter in module._parameters.items():
            self._add(name, parameter, annotations, is_parameter=True)
        for name, buffer in module._buffers.items():
            self._add(name, buffer, annotations, is_buffer=True)
        for name, child in module._modules.items():
            if child is None:
                self._attribute(name, Type.none(), None)
                continue
            self.children[name] = script_module(child)
            declared = annotations.get(name)
            kind = None
            if declared is not None:
                try:
                    kind = type_of(*declared)
                except (RuntimeError, NameError):
                    kind = None
            self.attributes.append(
                (
                    name,
                    kind
                    if kind is not None and kind.kind == "class"
                    else self.children[name]._class.type,
                    False,
                    False,
                )
            )
            self.values[name] = self.children[name]
        self._attribute("training", Type.bool(), module.training)
        for name, value in module.__dict__.items():
            if name in _OWN or name in self.values:
                continue
            annotation, scope = annotations.get(name, (None, None))
            if name in constants or (annotation is not None and _is_final(annotation)):
                if self._constant(name, value):
                    continue
            self._plain(name, value, annotation, scope)
        for name in constants | {n for n, (a, _) in annotations.items() if _is_final(a)}:
            # Constants that the class holds.
            if (
                name not in self.values
                and name not in self.constants
                and name not in self.held
                and hasattr(self.python_class, name)
            ):
                self._constant(name, getattr(self.python_class, name))

    def _attribute(self, name, kind, value, is_parameter=False, is_buffer=False):
        self.attributes.append((name, kind, is_parameter, is_buffer))
        self.values[name] = value

    def _add(self, name, tensor, annotations, **kind):
        declared = annotations.get(name)
        if declared is not None:
            try:
                return self._attribute(name, type_of(*declared), tensor, **kind)
            except (RuntimeError, NameError, TypeError):
                pass
        self._attribute(name, Type.tensor() if tensor is not None else Type.none(), tensor, **kind)

    def _constant(self, name, value):
        if isinstance(value, (bool, int, float, str, type(None), prong.dtype)) or (
            isinstance(value, tuple) and all(isinstance(v, (bool, int, float, str)) for v in value)
        ):
            self.constants[name] = value
            return True
        return False

    def _plain(self, name, value, annotation, scope):
        if isinstance(value, Attribute):
            return self._attribute(name, type_of(value.type, scope), value.value)
        if annotation is not None and not _is_final(annotation):
            try:
                return self._attribute(name, type_of(annotation, scope), value)
            except (RuntimeError, NameError, TypeError) as error:
                self.held[name] = (
                    "unsupported",
                    f"the annotation of '{name}' is no type of scripts: {error}",
                )
                return None
        if (
            isinstance(
                value, (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)
            )
            or _core.op_name(value) is not None
            or hasattr(value, "_describe")
        ):
            if isinstance(value, types.MethodType) and markers.handling_of(value) is None:
                return None
            self.held[name] = describe(value, name)
            return None
        try:
            self._attribute(name, type_of_value(value), value)
        except RuntimeError as error:
            if isinstance(value, (list, tuple, dict)) and any(
                isinstance(v, Module)
                for v in (value.values() if isinstance(value, dict) else value)
            ):
                why = f"'{name}' is a {type(value).__name__} of modules: use nn.ModuleList or nn.ModuleDict"
            else:
                why = f"the attribute '{name}' cannot be used in a script: {error}"
            try:
                compiled = classes._classes.get(type(value))
            except TypeError:
                compiled = None
            if compiled is not None:
                return self._attribute(name, compiled.type, value)
            self.held[name] = ("unsupported", why)
        return None

    def container(self, module):
        if isinstance(module, ModuleDict):
            return "dict"
        if isinstance(module, (ModuleList, Sequential)):
            return "sequence"
        return None

    def key(self, module):
        held = tuple(
            (name, d[0], d[1] if isinstance(d[1], str) else id(d[1]))
            for name, d in sorted(self.held.items())
        )
        return (
            self.python_class,
            tuple((name, kind, p, b) for name, kind, p, b in self.attributes),
            tuple((name, type(v), v) for name, v in sorted(self.constants.items())),
            held,
            tuple(self.hooks.items()),
            self.container(module),
        )


def _build(module):
    shape = _Shape(module)
    key = shape.key(module)
    script_class = _shapes.get(key)
    if script_class is None:
        script_class = _core.ScriptClass(
            f"{shape.python_class.__module__}.{shape.python_class.__qualname__}", "module"
        )
        script_class.set_source(_Source(shape.python_class, script_class, shape.held, shape.hooks))
        for name, kind, is_parameter, is_buffer in shape.attributes:
            script_class.add_attribute(name, kind, is_parameter, is_buffer)
        for name, value in shape.constants.items():
            script_class.add_constant(name, value)
        kind = shape.container(module)
        if kind is not None:
            script_class.set_container(kind, list(module._modules))
        _shapes[key] = script_class
    handle = script_class.make_object()
    for name, kind, _, _ in shape.attributes:
        value = shape.values[name]
        if isinstance(value, ScriptModule):
            if kind.kind == "class" and not value._class.type.fits(kind):
                _compile_for_interface(value, kind)
                if not value._class.type.fits(kind):
                    raise RuntimeError(
                        f"the submodule '{name}' ({value._class.name}) "
                        f"does not have the methods of the interface {kind}"
                    )
            handle.set_object(name, value._object)
        else:
            handle.set(name, value)
    made = ScriptModule._make(module, script_class, handle, shape.children)
    made.__dict__["_hooks"] = shape.hooks
    if shape.hooks:  # compiled into __call__; those that are added from now on run in Python
        made.__dict__["_forward_hooks"] = OrderedDict()
        made.__dict__["_forward_pre_hooks"] = OrderedDict()
    return made


def _compile_for_interface(value, kind):
    """An interface asks for methods by name: they are compiled now."""
    for cls, compiled in list(classes._classes.items()):
        if compiled.type == kind:
            for base in cls.__mro__:
                for name, member in vars(base).items():
                    if isinstance(member, types.FunctionType) and getattr(
                        base, "__prong_interface__", False
                    ):
                        value._class.method(name)


class ScriptModule(Module):
    """A compiled module. Parameters and buffers are those of the module it was made from; changes of their values are
    seen on both sides. Other attributes live in the compiled object."""

    def __init__(self):
        super().__init__()

    @classmethod
    def _make(cls, module, script_class, handle, children):
        self = cls.__new__(cls)
        own = self.__dict__
        if module is not None:
            own.update({k: v for k, v in module.__dict__.items() if k in _OWN})
            own["_parameters"] = dict(module._parameters)
            own["_buffers"] = dict(module._buffers)
            own["_original_type"] = type(module)
            own["_original"] = weakref.ref(module)
        else:
            Module.__init__(self)
            own["_original_type"] = None
            own["_original"] = lambda: None
        own["_modules"] = dict(children)
        own.pop("training", None)
        own["_class"] = script_class
        own["_object"] = handle
        own["_methods"] = {}
        own["_slots"] = frozenset(name for name, *_ in script_class.attributes)
        _by_object[handle.id] = self
        return self

    def _is_current(self, module):
        # Scripting the same module again gives the same ScriptModule while nothing in it was replaced.
        return (
            self.__dict__.get("_hooks", {}) == hooks_of(module)
            and all(self._parameters.get(k) is v for k, v in module._parameters.items())
            and module._modules.keys() == self._modules.keys()
            and all(
                m is None
                or self._modules[k]._original() in (m, None)
                and self._modules[k]._is_current(m)
                for k, m in module._modules.items()
                if not isinstance(m, ScriptModule)
            )
            and all(
                _same(self._object.get(k), v)
                for k, v in module.__dict__.items()
                if k in self._slots and isinstance(v, (bool, int, float, str, type(None)))
            )
            and module.training == self.training
        )

    def _compile(self, names=None):
        if names is None:
            names = [
                n
                for n in dir(self._original_type)
                if markers.handling_of(inspect.getattr_static(self._original_type, n))
                is Handling.EXPORT
            ]
            if getattr(self._original_type, "forward", None) is not Module.forward:
                names.insert(0, "forward")
                if self.__dict__.get("_hooks"):
                    names.append("__call__")
        for name in names:
            self._method(name)
        return self

    def _method(self, name):
        methods = self.__dict__["_methods"]
        if name not in methods:
            methods[name] = self._class.method(name)
        return methods[name]

    # ── attributes ──

    def __getattr__(self, name):
        own = self.__dict__
        if "_object" in own:
            if name in own["_slots"]:
                if name in own["_modules"]:
                    return own["_modules"][name]
                return own["_object"].get(name)
            if name in own["_class"].constants:
                return own["_class"].constants[name]
            original = own["_original_type"]
            found = inspect.getattr_static(original, name, None) if original is not None else None
            if (
                isinstance(found, types.FunctionType)
                and markers.handling_of(found) is not Handling.EXPORT
                and markers.handling_of(found) is not None
            ):
                return types.MethodType(found, self)
            if isinstance(found, (staticmethod, classmethod)):
                return getattr(original, name)
            if not name.startswith("__"):
                method = self._method(name)
                if method is not None:
                    handle = own["_object"]
                    if isinstance(found, property):
                        return method.call_method(handle)
                    return lambda *args, **kwargs: method.call_method(handle, *args, **kwargs)
        return super().__getattr__(name)

    def __setattr__(self, name, value):
        own = self.__dict__
        if "_object" not in own:
            return super().__setattr__(name, value)
        if name in own["_slots"]:
            if isinstance(value, Module):
                value = script_module(value)
                own["_object"].set_object(name, value._object)
                own["_modules"][name] = value
                return None
            own["_object"].set(name, value)
            for store in ("_parameters", "_buffers"):
                if name in own[store]:
                    own[store][name] = value
            return None
        if name in own["_class"].constants:
            raise AttributeError(f"'{name}' is a constant of the scripted module and cannot be set")
        if isinstance(value, (prong.nn.Parameter, Module)):
            raise RuntimeError(
                f"parameters and submodules cannot be added to a scripted module ('{name}'): "
                f"add them before torch.jit.script"
            )
        return object.__setattr__(self, name, value)

    def __delattr__(self, name):
        raise RuntimeError(f"attributes of a scripted module cannot be deleted ('{name}')")

    # ── calls ──

    def forward(self, *args, **kwargs):
        return self._run("forward", args, kwargs)

    def __call__(self, *args, **kwargs):
        if self._method("__call__") is None:
            return super().__call__(*args, **kwargs)
        if self._forward_hooks or self._forward_pre_hooks:
            raise RuntimeError(
                "hooks cannot be added to a scripted module that has compiled ones: add them before torch.jit.script"
            )
        return self._run("__call__", args, kwargs)

    def _run(self, name, args, kwargs):
        method = self._method(name)
        if method is None:
            raise NotImplementedError(f"the scripted module '{self._class.name}' has no forward")
        result = method.call_method(self._object, *args, **kwargs)
        self._refresh()
        return result

    def _refresh(self):
        """Buffers that the script replaced come back into Python's tables."""
        for name in self._buffers:
            self._buffers[name] = self._object.get(name)

    def train(self, mode=True):
        super().train(mode)
        return self

    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        for name, buffer in self._buffers.items():
            self._object.set(name, buffer)
        for name, kind, is_parameter, is_buffer in self._class.attributes:
            # Lists of tensors (the flat weights of an LSTM) hold the parameters themselves, whose
            # data were changed in place.
            if kind.kind == "Tensor" and not is_parameter and not is_buffer:
                self._object.set(name, fn(self._object.get(name)))
        return self

    # ── for people ──

    @property
    def original_name(self):
        return self._class.name.rpartition(".")[2]

    @property
    def graph(self):
        return Graph(self._method("forward").graph)

    inlined_graph = graph

    @property
    def code(self):
        return self._method("forward").graph

    def graph_for(self, *args, **kwargs):
        return self.graph

    def get_debug_state(self):
        return self.graph

    def save(self, f, **kwargs):
        save(self, f)

    def _saved_parts(self):
        return None, self._object

    def copy(self):
        return self.__deepcopy__({})

    def __deepcopy__(self, memo):
        return from_object(_core.load_script(to_bytes(self))[1])

    def __reduce_ex__(self, protocol):
        raise RuntimeError("scripted modules cannot be pickled: use torch.jit.save")

    def _get_name(self):
        return "RecursiveScriptModule"

    def extra_repr(self):
        return f"original_name={self.original_name}"

    # Containers keep their Python ways.

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(
            list(self._modules)
            if issubclass(self._original_type or Module, ModuleDict)
            else self._modules.values()
        )

    def __getitem__(self, index):
        if isinstance(index, str):
            return self._modules[index]
        return list(self._modules.values())[index]

    def __bool__(self):
        return True

    def __contains__(self, key):
        return key in self._modules


def _same(a, b):
    return type(a) is type(b) and (a == b or a != a and b != b)


RecursiveScriptModule = ScriptModule


def _training(self):
    return self._object.get("training") if "_object" in self.__dict__ else True


def _set_training(self, mode):
    if "_object" in self.__dict__:
        self._object.set("training", mode)


ScriptModule.training = property(_training, _set_training)  # type: ignore[assignment]


def from_object(handle):
    """The ScriptModule of an object that came out of an archive."""
    children, parameters, buffers = {}, {}, {}
    script_class = handle.script_class
    for name, kind, is_parameter, is_buffer in script_class.attributes:
        if kind.kind == "class":
            child = handle.get_object(name)
            if child is not None:
                children[name] = from_object(child)
        elif is_parameter or is_buffer:
            value = handle.get(name)
            if is_parameter and value is not None:
                value = prong.nn.Parameter(value, requires_grad=value.requires_grad)
                handle.set(name, value)
            (parameters if is_parameter else buffers)[name] = value
    self = ScriptModule._make(None, script_class, handle, children)
    self.__dict__["_parameters"].update(parameters)
    self.__dict__["_buffers"].update(buffers)
    return self


@describes(Module)
def _describe_module(module):
    return ("object", script_module(module)._object)


def to_python(handle):
    """The Python object of a C++ one; called by the conversions."""
    module = find_python(handle)
    return module if module is not None else classes.ScriptInstance(handle)


def from_python(obj):
    """The C++ object of a Python one, or None."""
    if isinstance(obj, classes.ScriptInstance):
        return obj._object
    if isinstance(obj, prong.nn.Module):
        return script_module(obj)._object
    compiled = classes._classes.get(type(obj))
    if compiled is None:
        return None
    # An instance made in Python: its attributes are copied.
    handle = compiled.make_object()
    for name, _, _, _ in compiled.attributes:
        handle.set(name, getattr(obj, name))
    return handle


_core._set_object_hooks(to_python, from_python)
