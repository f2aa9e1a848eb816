"""Clipping gradients by their norm or by value."""

import math
import warnings

import prong
from prong import Tensor


def _as_list(tensors):
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all tensors as if they were one vector."""
    tensors = _as_list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return prong.tensor(0.0)
    with prong.no_grad():
        norms = prong.stack([t.norm(norm_type) for t in tensors])
        total = norms.max() if norm_type == math.inf else norms.norm(norm_type)
    if error_if_nonfinite and not prong.isfinite(total):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it "
            "cannot be clipped. To disable this error and scale the gradients by the non-finite norm "
            "anyway, set `error_if_nonfinite=False`"
        )
    return total


def _grads(parameters):
    return [p.grad for p in _as_list(parameters) if p.grad is not None]


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None) -> None:
    """Scales the gradients by max_norm / total_norm where that is below one."""
    factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    with prong.no_grad():
        for grad in _grads(parameters):
            grad.mul_(factor.to(grad.dtype))


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales the gradients so that their total norm is at most ``max_norm``; gives the norm before."""
    parameters = _as_list(parameters)
    if not parameters:
        warnings.warn(
            "`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2
        )
    total = get_total_norm(_grads(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
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
    clip_value = float(clip_value)
    with prong.no_grad():
        for grad in _grads(parameters):
            grad.clamp_(-clip_value, clip_value)
