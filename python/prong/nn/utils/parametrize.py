"""Parametrizations: a tensor of a module becomes a function of other tensors, computed when it is read."""

import copy
from contextlib import contextmanager

import prong
from prong import Tensor
from prong.nn.container import ModuleDict, ModuleList
from prong.nn.parameter import Parameter

_caching = 0
_cache: dict = {}


@contextmanager
def cached():
    """Within the block, each tensor is computed once."""
    global _caching
    _caching += 1
    try:
        yield
    finally:
        _caching -= 1
        if not _caching:
            _cache.clear()


def _register(module, name, tensor):
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _inverted(parametrization, value):
    if not hasattr(parametrization, "right_inverse"):
        return value
    try:
        return parametrization.right_inverse(value)
    except NotImplementedError:
        return value


def _check_same(tensor, dtype, shape, what):
    if not isinstance(tensor, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(tensor).__name__}.")
    if tensor.dtype != dtype:
        raise ValueError(
            f"Registering a parametrization may not change the dtype of the tensor, unless the `unsafe` "
            f"flag is enabled.\n{what} dtype: {dtype}\nparametrized dtype: {tensor.dtype}"
        )
    if tensor.shape != shape:
        raise ValueError(
            f"Registering a parametrization may not change the shape of the tensor, unless the `unsafe` "
            f"flag is enabled.\n{what} shape: {shape}\nparametrized shape: {tensor.shape}"
        )


class ParametrizationList(ModuleList):
    """The functions of one tensor, and what they start from: ``original`` or ``original0``, ..."""

    def __init__(self, modules, original, unsafe=False):
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with prong.no_grad():
            start = original
            for parametrization in reversed(list(self)):
                start = _inverted(parametrization, start)
        if not isinstance(start, (Tensor, list, tuple)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(start).__name__}"
            )
        self.is_tensor = isinstance(start, Tensor)
        self.ntensors = 1 if self.is_tensor else len(start)
        if self.is_tensor:
            if start.dtype != dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {dtype}\nright_inverse(original).dtype: {start.dtype}"
                )
            if start is not original:
                original.data = start.detach()
            _register(self, "original", original)
        else:
            for i, tensor in enumerate(start):
                if not isinstance(tensor, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                        f"tuple...). Got element {i} of the sequence with type "
                        f"{type(tensor).__name__}."
                    )
                if isinstance(original, Parameter):
                    tensor = Parameter(tensor, original.requires_grad)
                _register(self, f"original{i}", tensor)
        if not unsafe:
            _check_same(self(), dtype, shape, "unparametrized")

    def right_inverse(self, value):
        """Sets the originals so that the tensor becomes ``value``."""
        with prong.no_grad():
            for parametrization in reversed(list(self)):
                if not hasattr(parametrization, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(parametrization).__name__} does not implement "
                        "right_inverse."
                    )
                value = parametrization.right_inverse(value)
            targets = self._originals()
            values = [value] if self.is_tensor else value
            if len(values) != len(targets):
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {len(targets)}. "
                    f"Got a sequence of length {len(values)}."
                )
            for target, new in zip(targets, values):
                if not isinstance(new, Tensor):
                    raise ValueError(
                        f"`right_inverse` should return a tensor. Got {type(new).__name__}"
                    )
                if new.dtype != target.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {new.dtype} while "
                        f"`original` has dtype {target.dtype}"
                    )
                target.data = new.detach()

    def _originals(self):
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def forward(self):
        first, *others = list(self)
        value = first(*self._originals())
        for parametrization in others:
            value = parametrization(value)
        return value


def _deepcopy(self, memo):
    if id(self) not in memo:
        made = self.__new__(type(self))
        memo[id(self)] = made
        made.__dict__ = copy.deepcopy(self.__dict__, memo)
    return memo[id(self)]


def _getstate(self):
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict()."
    )


def _give_own_class(module):
    cls = type(module)
    own = {"__getstate__": _getstate}
    if not hasattr(cls, "__deepcopy__"):
        own["__deepcopy__"] = _deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), own)


def _give_property(module, name):
    def computed(self):
        parametrization = self.parametrizations[name]
        if not _caching:
            return parametrization()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]

    def set_originals(self, value):
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(computed, set_originals))


def is_parametrized(module, tensor_name=None):
    """Whether the module (or one tensor of it) has parametrizations."""
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """From now on ``module.tensor_name`` is ``parametrization`` of what it was before."""
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            before = getattr(module, tensor_name)
            after = parametrization(before)
            _check_same(after, before.dtype, before.shape, f"module.{tensor_name}")
            inverse = _inverted(parametrization, after)
            _check_same(inverse, before.dtype, before.shape, f"module.{tensor_name}")
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        made = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _give_own_class(module)
            module.parametrizations = ModuleDict()
        _give_property(module, tensor_name)
        module.parametrizations[tensor_name] = made
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with "
            f"name '{tensor_name}'"
        )
    return module


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Takes the parametrizations of a tensor away; it keeps its value, or gets back the original."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrization = module.parametrizations[tensor_name]
    if parametrization.is_tensor:
        original = parametrization.original
        if leave_parametrized:
            with prong.no_grad():
                value = getattr(module, tensor_name)
            original.data = value.detach()
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in "
            "terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module):
    """The class of a module as it was without parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Gives another module the parametrizations (of one tensor) of a module, and their originals."""
    if not is_parametrized(from_module):
        return to_module
    names = [tensor_name] if tensor_name is not None else list(from_module.parametrizations)
    for name in names:
        if not hasattr(to_module, name):
            setattr(
                to_module, name, copy.deepcopy(from_module.parametrizations[name]._originals()[0])
            )
        source = from_module.parametrizations[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for mine, theirs in zip(target._originals(), source._originals()):
            mine.data = theirs.data
    return to_module
