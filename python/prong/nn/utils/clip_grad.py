"""Clipping gradients by their norm or by value."""

import types
import warnings

import prong
from prong import Tensor, _core

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]


def _as_list(tensors):
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all tensors as if they were one vector."""
    tensors = _as_list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return prong.tensor(0.0)
    total = prong._total_norm(tensors, norm_type)
    if error_if_nonfinite and not prong.isfinite(total):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it "
            "cannot be clipped. To disable this error and scale the gradients by the non-finite norm "
            "anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None) -> None:
    """Scales the gradients by max_norm / total_norm where that is below one."""
    grads = _core._gradients_of(_as_list(parameters))
    if grads:
        prong._clip_by_norm_(grads, total_norm, float(max_norm))


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales the gradients so that their total norm is at most ``max_norm``; gives the norm before."""
    is_generator = isinstance(parameters, types.GeneratorType)
    parameters = _as_list(parameters)
    if is_generator and not parameters:
        warnings.warn(
            "`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2
        )
    grads = _core._gradients_of(parameters)
    total = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    if grads:
        prong._clip_by_norm_(grads, total, float(max_norm))
    return total


def clip_grad_norm(*args, **kwargs):
    """The old name of clip_grad_norm_."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(*args, **kwargs)


def clip_grad_value_(parameters, clip_value, foreach=None) -> None:
    """Clamps each gradient to [-clip_value, clip_value]."""
    grads = _core._gradients_of(_as_list(parameters))
    if grads:
        prong._clip_by_value_(grads, float(clip_value))
