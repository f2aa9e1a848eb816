"""Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

import operator
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from prong import Tensor

from .module import Module
from .parameter import Parameter


def _position(index, length):
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index + length if index < 0 else index


def _check_times(times):
    if not isinstance(times, int):
        raise TypeError(f"unsupported operand type(s) for *: Sequential and {type(times)}")
    if times <= 0:
        raise ValueError(f"Non-positive multiplication factor {times} for Sequential")


class Sequential(Module):
    """Calls its modules one after another, each on the result of the one before."""

    def __init__(self, *args):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def _at(self, index):
        return list(self._modules)[_position(index, len(self))]

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._at(index)]

    def __setitem__(self, index, module):
        setattr(self, self._at(index), module)

    def __delitem__(self, index):
        names = list(self._modules)[index] if isinstance(index, slice) else [self._at(index)]
        for name in names:
            delattr(self, name)
        self._renumber()

    def _renumber(self):
        modules = list(self._modules.values())
        self._modules = {str(i): m for i, m in enumerate(modules)}

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __add__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {type(other)} is given."
            )
        return Sequential(*self, *other)

    def __iadd__(self, other):
        return self.extend(other)

    def __mul__(self, times):
        _check_times(times)
        return Sequential(*(list(self) * times))

    __rmul__ = __mul__

    def __imul__(self, times):
        _check_times(times)
        modules = list(self)
        for _ in range(times - 1):
            self.extend(modules)
        return self

    def pop(self, index):
        module = self[index]
        del self[index]
        return module

    def append(self, module):
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index, module):
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index if index >= 0 else index + len(self), module)
        self._modules = {str(i): m for i, m in enumerate(modules)}
        return self

    def extend(self, sequential):
        for module in sequential:
            self.append(module)
        return self

    def forward(self, input):
        for module in self:
            input = module(input)
        return input


class ModuleList(Module):
    """A list of modules that are registered."""

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self += modules

    def _name_at(self, index):
        return str(_position(index, len(self)))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._name_at(index)]

    def __setitem__(self, index, module):
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index):
        modules = list(self)
        del modules[index]
        self._modules = {str(i): m for i, m in enumerate(modules)}

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __contains__(self, module):
        return any(m is module for m in self)

    def __iadd__(self, modules):
        return self.extend(modules)

    def __add__(self, other):
        return type(self)([*self, *other])

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def insert(self, index, module):
        modules = list(self)
        modules.insert(index, module)
        self._modules = {str(i): m for i, m in enumerate(modules)}

    def append(self, module):
        self.add_module(str(len(self)), module)
        return self

    def pop(self, index):
        module = self[index]
        del self[index]
        return module

    def extend(self, modules):
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}"
            )
        for module in modules:
            self.append(module)
        return self

    def __repr__(self):
        # Runs of equal modules are folded: "(0-5): 6 x Linear(...)".
        texts = [repr(m) for m in self]
        if not texts:
            return f"{self._get_name()}()"
        lines, start = [], 0
        for i in range(1, len(texts) + 1):
            if i == len(texts) or texts[i] != texts[start]:
                count = i - start
                head = f"({start}): " if count == 1 else f"({start}-{i - 1}): {count} x "
                lines.append(head + texts[start].replace("\n", "\n  "))
                start = i
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """A dict of modules that are registered."""

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        del self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def clear(self):
        self._modules.clear()

    def pop(self, key):
        return self._modules.pop(key)

    def keys(self):
        return self._modules.keys()

    def items(self):
        return self._modules.items()

    def values(self):
        return self._modules.values()

    def update(self, modules):
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, "
                f"but got {type(modules).__name__}"
            )
        for key, module in (
            modules.items() if isinstance(modules, (Mapping, ModuleDict)) else modules
        ):
            self[key] = module


class ParameterList(Module):
    """A list of parameters (tensors become parameters) that are registered."""

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, str(_position(index, len(self))))

    def __setitem__(self, index, value):
        setattr(self, str(_position(index, len(self))), _as_parameter(value))

    def __len__(self):
        return self._size

    def __iter__(self):
        return iter(self[i] for i in range(len(self)))

    def __iadd__(self, values):
        return self.extend(values)

    def append(self, value):
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values):
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}"
            )
        for value in values:
            self.append(value)
        return self

    def extra_repr(self):
        return "\n".join(_described(i, p, lambda t: t.dtype) for i, p in enumerate(self))

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict of parameters (tensors become parameters) that are registered."""

    def __init__(self, parameters=None):
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    def _attribute(self, key):
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string "
                f"(type is '{type(key).__name__}'). Open an issue on github if you need non-string keys."
            )
        return key

    def __getitem__(self, key):
        attribute = self._attribute(key)
        if key not in self._keys:
            raise AttributeError(f"'ParameterDict' object has no attribute '{key}'")
        return getattr(self, attribute)

    def __setitem__(self, key, value):
        attribute = self._attribute(key)
        self._keys[key] = None
        setattr(self, attribute, _as_parameter(value))

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, self._attribute(key))

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(list(self._keys))

    def __contains__(self, key):
        return key in self._keys

    def __or__(self, other):
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other):
        made = ParameterDict(other)
        made.update(self)
        return made

    def __ior__(self, other):
        self.update(other)
        return self

    def copy(self):
        """Another dict with the same parameters."""
        return ParameterDict(OrderedDict((k, self[k]) for k in self._keys))

    def setdefault(self, key, default=None):
        """The value of a key, set to ``default`` if it is not there."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self):
        """Takes all away."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key):
        """Takes a value out."""
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """Takes the last key and value out."""
        key = next(reversed(list(self._keys)))
        return key, self.pop(key)

    def get(self, key, default=None):
        """The value of a key, or ``default``."""
        return self[key] if key in self else default

    def fromkeys(self, keys, default=None):
        """A new dict with these keys."""
        return ParameterDict((k, default) for k in keys)

    def keys(self):
        return self._keys.keys()

    def items(self):
        return ((k, self[k]) for k in self._keys)

    def values(self):
        return (self[k] for k in self._keys)

    def update(self, parameters):
        """Sets the keys and values of a mapping or of pairs."""
        if not isinstance(parameters, Iterable):
            raise TypeError(
                "ParametersDict.update should be called with an iterable of key/value pairs, but got "
                f"{type(parameters).__name__}"
            )
        pairs = parameters
        if isinstance(parameters, (OrderedDict, ParameterDict)):
            pairs = parameters.items()
        elif isinstance(parameters, Mapping):
            pairs = sorted(parameters.items())  # as PyTorch does, unlike ModuleDict
        for key, value in pairs:
            self[key] = value

    def extra_repr(self):
        return "\n".join(_described(k, v, lambda t: t.type()) for k, v in self.items())


def _as_parameter(value):
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _described(key, value, dtype):
    if not isinstance(value, Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(map(str, value.shape))
    return f"  ({key}): {kind} containing: [{dtype(value)} of size {size}]"
