"""torch.autograd: backward and grad over the tape, custom functions, grad modes, the profiler."""

import importlib

from prong import _names
from prong.autograd import function
from prong.autograd.backward import backward, grad
from prong.autograd.function import Function
from prong.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)

_LATE = {"profiler", "functional", "gradcheck", "anomaly_mode", "graph"}


def Variable(data, requires_grad=False):
    """The old wrapper: a tensor is a variable."""
    return data.requires_grad_(requires_grad) if requires_grad else data


def __getattr__(name: str):
    if name in ("gradcheck", "gradgradcheck"):
        return getattr(importlib.import_module("prong.autograd._gradcheck"), name)
    if name in ("detect_anomaly", "set_detect_anomaly"):
        return getattr(importlib.import_module("prong.autograd.anomaly_mode"), name)
    if name in _LATE:
        return importlib.import_module(f"prong.autograd.{name}")
    _names.raise_missing("prong.autograd", name)


__all__ = [
    "Function",
    "Variable",
    "backward",
    "enable_grad",
    "function",
    "grad",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
]
