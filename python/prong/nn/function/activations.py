"""Activations with PyTorch's ``inplace`` argument, over the ops of the same names."""

from prong import Tensor

from . import ops


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(input, 0)."""
    if inplace:
        return ops.relu_(input)
    return ops.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(input, 0), 6)."""
    if inplace:
        return ops.relu6_(input)
    return ops.relu6(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """input * sigmoid(input)."""
    if inplace:
        return ops.silu_(input)
    return ops.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """input * tanh(softplus(input))."""
    if inplace:
        return ops.mish_(input)
    return ops.mish(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """input * relu6(input + 3) / 6."""
    if inplace:
        return ops.hardswish_(input)
    return ops.hardswish(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """relu6(input + 3) / 6."""
    if inplace:
        return ops.hardsigmoid_(input)
    return ops.hardsigmoid(input)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """scale * (max(0, input) + min(0, alpha * (exp(input) - 1)))."""
    if inplace:
        return ops.selu_(input)
    return ops.selu(input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """input, and times negative_slope below zero."""
    if inplace:
        return ops.leaky_relu_(input, negative_slope)
    return ops.leaky_relu(input, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """input, and alpha * (exp(input) - 1) below zero."""
    if inplace:
        return ops.elu_(input, alpha)
    return ops.elu(input, alpha)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """max(0, input) + min(0, alpha * (exp(input / alpha) - 1))."""
    if inplace:
        return ops.celu_(input, alpha)
    return ops.celu(input, alpha)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """input between min_val and max_val."""
    if inplace:
        return ops.hardtanh_(input, min_val, max_val)
    return ops.hardtanh(input, min_val, max_val)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """input where it is above threshold, else value."""
    if inplace:
        return ops.threshold_(input, threshold, value)
    return ops.threshold(input, threshold, value)
