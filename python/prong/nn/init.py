"""Initialisers. They draw the same numbers as PyTorch's from the same generator state."""

import functools
import math
import threading
import warnings
from contextlib import contextmanager

import prong

_of_thread = threading.local()


@contextmanager
def skipped():
    """Within the block initialisers of this thread leave tensors as they are; for nn.utils.skip_init."""
    before = getattr(_of_thread, "skipped", False)
    _of_thread.skipped = True
    try:
        yield
    finally:
        _of_thread.skipped = before


def _no_grad(fill):
    @functools.wraps(fill)
    def wrapped(tensor, *args, **kwargs):
        if getattr(_of_thread, "skipped", False):
            return tensor
        with prong.no_grad():
            return fill(tensor, *args, **kwargs)

    return wrapped


def calculate_gain(nonlinearity, param=None):
    """The factor by which an activation wants its weights scaled."""
    if nonlinearity in (
        "linear",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "sigmoid",
    ):
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, (int, float)) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _calculate_fan_in_and_fan_out(tensor):
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    receptive = math.prod(tensor.shape[2:])
    return tensor.size(1) * receptive, tensor.size(0) * receptive


def _calculate_correct_fan(tensor, mode):
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


@_no_grad
def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """U(a, b)."""
    return tensor.uniform_(a, b, generator=generator)


@_no_grad
def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """N(mean, std^2)."""
    return tensor.normal_(mean, std, generator=generator)


def _redraw(tensor, is_refused, draw):
    """Draws anew, whole tensors at a time, until no element is refused; the order of draws is PyTorch's."""
    values = tensor
    refused = is_refused(values)
    while refused.any():
        values = prong.where(refused, draw(), values)
        refused = refused & is_refused(values)
    return tensor if values is tensor else tensor.copy_(values)


@_no_grad
def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """N(mean, std^2) cut off to [a, b]: normal numbers inside are kept, or where few are, even numbers thinned out."""

    def below(x):
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=3,
        )
    if below((b - mean) / std) - below((a - mean) / std) > 0.3:
        low, high = tensor.new_full((), a).item(), tensor.new_full((), b).item()
        tensor.normal_(mean, std, generator=generator)
        return _redraw(
            tensor,
            lambda x: (x < low) | (x > high),
            lambda: prong.empty_like(tensor).normal_(mean, std, generator=generator),
        )
    # A candidate stays with the chance that its density bears to the highest one in [a, b].
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2

    def is_refused(x):
        chance = prong.empty_like(tensor).uniform_(generator=generator).log_()
        return chance > x.sub(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)

    tensor.uniform_(a, b, generator=generator)
    return _redraw(
        tensor, is_refused, lambda: prong.empty_like(tensor).uniform_(a, b, generator=generator)
    )


@_no_grad
def constant_(tensor, val):
    """The same value everywhere."""
    return tensor.fill_(val)


def ones_(tensor):
    """1 everywhere."""
    return constant_(tensor, 1.0)


def zeros_(tensor):
    """0 everywhere."""
    return constant_(tensor, 0.0)


@_no_grad
def eye_(tensor):
    """The identity matrix."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return tensor.copy_(prong.eye(*tensor.shape, dtype=tensor.dtype))


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """U(-a, a) with a = gain * sqrt(6 / (fan_in + fan_out))."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * (gain * math.sqrt(2.0 / float(fan_in + fan_out)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """N(0, gain^2 * 2 / (fan_in + fan_out))."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _has_no_elements(tensor):
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return True
    return False


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """U(-b, b) with b = gain * sqrt(3 / fan)."""
    if _has_no_elements(tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """N(0, gain^2 / fan)."""
    if _has_no_elements(tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    return normal_(tensor, 0.0, std, generator)


@_no_grad
def dirac_(tensor, groups=1):
    """A convolution weight that passes its input channels through."""
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    out_per_group = tensor.size(0) // groups
    centre = tuple(n // 2 for n in tensor.shape[2:])
    tensor.zero_()
    for g in range(groups):
        for d in range(min(out_per_group, tensor.size(1))):
            tensor[(g * out_per_group + d, d, *centre)] = 1
    return tensor


@_no_grad
def orthogonal_(tensor, gain=1, generator=None):
    """A (semi-)orthogonal matrix, from the QR decomposition of normal numbers."""
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows, cols = tensor.size(0), tensor.numel() // tensor.size(0)
    flat = tensor.new_empty((rows, cols)).normal_(0, 1, generator=generator)
    q, r = prong.linalg.qr(flat.t() if rows < cols else flat)
    q = q * r.diagonal().sign()
    tensor.view_as(tensor).copy_((q.t() if rows < cols else q).reshape(tensor.shape))
    return tensor.mul_(gain)


@_no_grad
def sparse_(tensor, sparsity, std=0.01, generator=None):
    """N(0, std^2), with the part ``sparsity`` of each column zero."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    tensor.normal_(0, std, generator=generator)
    for column in range(columns):
        chosen = prong.randperm(rows)[:zeros]
        tensor[chosen, column] = 0
    return tensor


def _old_name(initialiser):
    name = initialiser.__name__[:-1]

    @functools.wraps(initialiser)
    def wrapped(*args, **kwargs):
        warnings.warn(
            f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.",
            FutureWarning,
            stacklevel=2,
        )
        return initialiser(*args, **kwargs)

    wrapped.__name__ = name
    return wrapped


uniform = _old_name(uniform_)
normal = _old_name(normal_)
constant = _old_name(constant_)
eye = _old_name(eye_)
dirac = _old_name(dirac_)
xavier_uniform = _old_name(xavier_uniform_)
xavier_normal = _old_name(xavier_normal_)
kaiming_uniform = _old_name(kaiming_uniform_)
kaiming_normal = _old_name(kaiming_normal_)
orthogonal = _old_name(orthogonal_)
sparse = _old_name(sparse_)
