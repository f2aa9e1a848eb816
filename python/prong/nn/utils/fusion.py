"""Folding a batch norm into the layer before it, for inference."""

import copy

import prong
from prong.nn.parameter import Parameter


def _scale_and_shift(bias, mean, var, eps, scale, shift):
    scale = prong.ones_like(mean) if scale is None else scale
    shift = prong.zeros_like(mean) if shift is None else shift
    bias = prong.zeros_like(mean) if bias is None else bias
    factor = scale * (var + eps).rsqrt()
    return factor, (bias - mean) * factor + shift


def _parameters(weight, new_weight, bias, new_bias):
    needs = weight.requires_grad
    return (
        Parameter(new_weight.to(weight.dtype), needs),
        Parameter(new_bias.to(weight.dtype), needs if bias is None else bias.requires_grad),
    )


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """Weight and bias of one convolution that does what convolution and batch norm do."""
    with prong.no_grad():
        factor, shift = _scale_and_shift(conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
        shape = [1, -1] if transpose else [-1, 1]
        weight = conv_w * factor.reshape(shape + [1] * (conv_w.dim() - 2))
    return _parameters(conv_w, weight, conv_b, shift)


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A convolution that does what ``conv`` and ``bn`` do; both have to be in eval mode."""
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused = copy.deepcopy(conv)
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight,
        fused.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
        transpose,
    )
    return fused


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """Weight and bias of one linear layer that does what linear layer and batch norm do."""
    with prong.no_grad():
        factor, shift = _scale_and_shift(linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
        weight = linear_w * factor.unsqueeze(-1)
    return _parameters(linear_w, weight, linear_b, shift)


def fuse_linear_bn_eval(linear, bn):
    """A linear layer that does what ``linear`` and ``bn`` do; both have to be in eval mode."""
    if linear.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1"
        )
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused
