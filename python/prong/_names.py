"""What to say about a name that is not here. Called by the __getattr__ of modules and of Tensor."""

import importlib
import opcode
import os
import sys

_DATA = os.path.join(os.path.dirname(__file__), "pytorch_names.txt")


def known_names() -> frozenset[str]:
    """Names of PyTorch's API: 'torch.einsum', 'Tensor.backward', 'torch.nn.LSTM'."""
    with open(_DATA, encoding="utf-8") as file:
        return frozenset(line.strip() for line in file if line.strip() and not line.startswith("#"))


def is_own_module(name: str) -> bool:
    """Whether prong has a module of that full name that is not loaded yet."""
    finder = importlib.import_module("importlib.util")  # loaded late: few programs come here
    try:
        return finder.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def missing_attribute(module: str, name: str) -> str:
    """The text of the AttributeError for `module.name`, with module spelled prong.x.y."""
    full = f"torch{module.removeprefix('prong')}.{name}"
    if name.startswith("__") and name.endswith("__"):
        return f"module '{module}' has no attribute '{name}'"
    if full in known_names():
        return f"prong has no {full} yet (see docs/compatibility.md)"
    return (
        f"prong has no {full} yet, nor is it a name of PyTorch that we know "
        "(see docs/compatibility.md)"
    )


_IMPORT_FROM = opcode.opmap["IMPORT_FROM"]


def raise_missing(module: str, name: str):
    """Raises for `module.name`; called by a module's __getattr__.

    `from torch import name` would replace the text of an AttributeError by one of its own: it gets
    an ImportError with ours.
    """
    text = missing_attribute(module, name)
    frame = sys._getframe(2)
    if frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM:
        raise ImportError(text, name=module)
    raise AttributeError(text)


def missing_method(name: str) -> str:
    """The text of the AttributeError for an attribute of Tensor."""
    plain = f"'Tensor' object has no attribute '{name}'"
    if f"Tensor.{name}" in known_names():
        return f"{plain}: PyTorch has it, prong does not yet (see docs/compatibility.md)"
    return plain


def module_getattr(module: str, submodules: tuple[str, ...] = ()):
    """A module's __getattr__ that loads its submodules when asked for, and says which name is missing."""

    def __getattr__(name: str):
        if name in submodules:
            return importlib.import_module(f"{module}.{name}")
        raise_missing(module, name)

    return __getattr__
