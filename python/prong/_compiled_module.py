"""What compile(module) gives: the module itself, but called through its compiled __call__. Called by _compile."""

import functools

from prong import nn
from prong._compile import _reduced, disable


class OptimizedModule(nn.Module):
    """Has the attributes, parameters and hooks of the module that it stands for."""

    def __init__(self, module, compiled):
        self.__dict__["_orig_mod"] = module
        self.__dict__["_compiled_call"] = compiled
        self.__dict__["__wrapped__"] = module

    def __call__(self, *args, **kwargs):
        return self.__dict__["_compiled_call"](*args, **kwargs)

    def __getattr__(self, name):
        return getattr(self.__dict__["_orig_mod"], name)

    def __setattr__(self, name, value):
        setattr(self.__dict__["_orig_mod"], name, value)

    def __delattr__(self, name):
        delattr(self.__dict__["_orig_mod"], name)

    def __dir__(self):
        return dir(self.__dict__["_orig_mod"])

    def __repr__(self):
        inner = repr(self.__dict__["_orig_mod"]).replace("\n", "\n  ")
        return f"OptimizedModule(\n  (_orig_mod): {inner}\n)"

    def __len__(self):
        return len(self.__dict__["_orig_mod"])

    def __bool__(self):
        return bool(self.__dict__["_orig_mod"])

    def __iter__(self):
        return iter(self.__dict__["_orig_mod"])

    def __getitem__(self, index):
        return self.__dict__["_orig_mod"][index]

    def __contains__(self, item):
        return item in self.__dict__["_orig_mod"]

    def load_state_dict(self, state_dict, *args, **kwargs):
        """Takes what PyTorch's compiled modules give, too, whose names begin with _orig_mod."""
        if state_dict and all(key.startswith("_orig_mod.") for key in state_dict):
            state_dict = {k.removeprefix("_orig_mod."): v for k, v in state_dict.items()}
        return self.__dict__["_orig_mod"].load_state_dict(state_dict, *args, **kwargs)

    def __reduce__(self):
        if getattr(self.__dict__["_compiled_call"], "_torchdynamo_disable", False):
            return disable, (self.__dict__["_orig_mod"],)
        again, (_, as_asked) = _reduced(self.__dict__["_compiled_call"])
        return again, (self.__dict__["_orig_mod"], as_asked)


def _delegate(name):
    @functools.wraps(getattr(nn.Module, name))
    def method(self, *args, **kwargs):
        return getattr(self.__dict__["_orig_mod"], name)(*args, **kwargs)

    return method


def _delegate_returning_self(name):
    @functools.wraps(getattr(nn.Module, name))
    def method(self, *args, **kwargs):
        getattr(self.__dict__["_orig_mod"], name)(*args, **kwargs)
        return self

    return method


_KEPT = frozenset(
    {
        "__init__",
        "__call__",
        "__getattr__",
        "__setattr__",
        "__delattr__",
        "__dir__",
        "__repr__",
        "__reduce__",
        "load_state_dict",
    }
)
_GIVE_SELF = frozenset(
    {"train", "eval", "to", "float", "double", "half", "bfloat16", "requires_grad_", "apply"}
)
for _name, _value in list(vars(nn.Module).items()):
    if callable(_value) and not _name.startswith("__") and _name not in _KEPT:
        make = _delegate_returning_self if _name in _GIVE_SELF else _delegate
        setattr(OptimizedModule, _name, make(_name))
