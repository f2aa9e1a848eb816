"""torch.autograd: grad modes and the profiler; the tape itself comes later."""

from prong import _names
from prong.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)


def Variable(data, requires_grad=False):
    """The old wrapper: a tensor is a variable."""
    return data.requires_grad_(requires_grad) if requires_grad else data


def __getattr__(name: str):
    if name == "profiler":
        import importlib

        return importlib.import_module("prong.autograd.profiler")
    _names.raise_missing("prong.autograd", name)


__all__ = ["Variable", "enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]
