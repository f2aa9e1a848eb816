"""Functions that move elements between channels and space, and local_response_norm over channels."""

import math

import prong
from prong import Tensor


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """[.., C r^2, H, W] to [.., C, H r, W r]."""
    if input.dim() < 3:
        raise RuntimeError(
            "pixel_shuffle expects input to have at least 3 dimensions, but got input with "
            f"{input.dim()} dimension(s)"
        )
    r = upscale_factor
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    c, h, w = input.size(-3), input.size(-2), input.size(-1)
    if c % (r * r) != 0:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
            f"upscale_factor, but input.size(-3)={c} is not divisible by {r * r}"
        )
    batch = list(input.shape[:-3])
    parts = input.reshape([math.prod(batch), c // (r * r), r, r, h, w]).permute(0, 1, 4, 2, 5, 3)
    return parts.reshape(batch + [c // (r * r), h * r, w * r])


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """[.., C, H r, W r] to [.., C r^2, H, W]."""
    if input.dim() < 3:
        raise RuntimeError(
            "pixel_unshuffle expects input to have at least 3 dimensions, but got input with "
            f"{input.dim()} dimension(s)"
        )
    r = downscale_factor
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    c, h, w = input.size(-3), input.size(-2), input.size(-1)
    for name, size in (("height", h), ("width", w)):
        if size % r != 0:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but "
                f"{size} is not divisible by {r}"
            )
    batch = list(input.shape[:-3])
    parts = input.reshape([math.prod(batch), c, h // r, r, w // r, r]).permute(0, 1, 3, 5, 2, 4)
    return parts.reshape(batch + [c * r * r, h // r, w // r])


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """[N, g c, ..] with the channels of the groups taken in turn."""
    if input.dim() <= 2:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes {input.size()}"
        )
    c = input.size(1)
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    if c % groups != 0:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups."
        )
    shape = list(input.shape)
    return input.reshape([shape[0], groups, c // groups, -1]).transpose(1, 2).reshape(shape)


native_channel_shuffle = channel_shuffle


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """input / (k + alpha mean of squares over ``size`` neighbouring channels) ^ beta."""
    if input.dim() < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)"
        )
    if input.numel() == 0:
        return input
    squares = input * input
    before, after = size // 2, (size - 1) // 2
    padded = prong.nn.functional.pad(squares, [0, 0] * (input.dim() - 2) + [before, after])
    channels = input.size(1)
    total = padded.narrow(1, 0, channels)
    for shift in range(1, size):
        total = total + padded.narrow(1, shift, channels)
    mean = total / size if input.is_floating_point() else total // size  # as avg_pool has it
    return input / (mean * alpha + k).pow(beta)
