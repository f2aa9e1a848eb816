"""autocast: a region (or function) in which products run in bfloat16 and losses in float32."""

import functools
import warnings
from collections.abc import Iterable, Mapping

import numpy as np

import prong
from prong import Tensor

from . import state
from .state import is_autocast_available

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]


def autocast_decorator(autocast_instance, func):
    """`func` that runs within the region."""

    @functools.wraps(func)
    def inside(*args, **kwargs):
        with autocast_instance:
            return func(*args, **kwargs)

    return inside


class autocast:
    """Within it, ops of PyTorch's lists get their float32 (or low) tensors in another dtype."""

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device_type
        if not is_autocast_available(device_type):
            raise RuntimeError(
                f"User specified an unsupported autocast device_type '{device_type}'"
            )
        self.fast_dtype = state.get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = (
            state.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        )
        self._enabled = enabled and self._check()
        self._before = None  # the state outside, and what stood here: blocks may nest

    def _check(self):
        if self.device != "cpu":
            warnings.warn(
                f"{self.device.upper()} is not available. Disabling autocast.", stacklevel=3
            )
            return False
        if self.fast_dtype not in (prong.bfloat16, prong.float16):
            warnings.warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
                "CPU Autocast only supports dtypes of torch.bfloat16, torch.float16 currently.",
                stacklevel=3,
            )
            return False
        return True

    def __enter__(self):
        before = state.get_all(self.device)
        self._before = (before, self._before)
        state.set_all(self.device, self._enabled, self.fast_dtype, self._cache_enabled)
        state.autocast_increment_nesting()
        return self

    def __exit__(self, *exception):
        state.autocast_decrement_nesting()
        before, self._before = self._before
        state.set_all(self.device, *before)
        return False

    def __call__(self, func):
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. "
                "Did you mean to use autocast as a context manager? For example:\n"
                "    with torch.autocast(device_type=...):\n"
                "        output = model(input)"
            )
        return autocast_decorator(self, func)


def _cast(value, device_type, dtype):
    """The floating-point tensors inside of containers in another dtype."""
    if isinstance(value, Tensor):
        fits = value.is_floating_point() and value.device.type == device_type
        return value.to(dtype) if fits and value.dtype is not prong.float64 else value
    if isinstance(value, (str, bytes, np.ndarray)):
        return value
    if isinstance(value, Mapping):
        return {
            _cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()
        }
    if isinstance(value, Iterable):
        items = (_cast(v, device_type, dtype) for v in value)
        return type(value)(items) if isinstance(value, (list, tuple)) else items
    return value


def _check_device(device_type):
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """For forward of an autograd.Function: notes the region's state, or casts and leaves the region."""
    _check_device(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx, *args, **kwargs):
        enabled = state.is_autocast_enabled(device_type)
        ctx._dtype = state.get_autocast_dtype(device_type)
        if cast_inputs is None:
            ctx._fwd_used_autocast = enabled
            return fwd(ctx, *args, **kwargs)
        ctx._fwd_used_autocast = False
        if not enabled:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(
                ctx,
                *_cast(args, device_type, cast_inputs),
                **_cast(kwargs, device_type, cast_inputs),
            )

    return forward


def custom_bwd(bwd=None, *, device_type):
    """For backward of an autograd.Function: runs it in the state that forward had."""
    _check_device(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx, *args, **kwargs):
        with autocast(device_type, dtype=ctx._dtype, enabled=ctx._fwd_used_autocast):
            return bwd(ctx, *args, **kwargs)

    return backward
