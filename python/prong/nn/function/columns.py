"""unfold and fold: images as columns of patches, and back."""

import prong
from prong import Tensor

from . import ops


def _pair(value) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else tuple(value)


def _steps(size, kernel, dilation, padding, stride) -> list[int]:
    """How many patches fit along each dimension."""
    return [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, d, p, s in zip(size, kernel, dilation, padding, stride, strict=True)
    ]


def unfold(input: Tensor, kernel_size, dilation=1, padding=0, stride=1) -> Tensor:
    """Every patch of the image as one column: [N, C, H, W] to [N, C * kernel, patches]."""
    kernel, dilation, padding, stride = map(_pair, (kernel_size, dilation, padding, stride))
    if input.dim() not in (3, 4):
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(input.shape)}"
        )
    if input.dim() == 3:
        return unfold(input.unsqueeze(0), kernel, dilation, padding, stride).squeeze(0)
    count = _steps(input.shape[2:], kernel, dilation, padding, stride)
    if min(count) < 1:
        raise RuntimeError(
            f"Given input with spatial size {tuple(input.shape[2:])}, kernel_size={kernel}, "
            f"dilation={dilation}, padding={padding}, stride={stride}, calculated shape of the "
            f"array of sliding blocks as {tuple(count)}, but its components must be at least one."
        )
    if any(padding):
        input = ops.pad(input, (padding[1], padding[1], padding[0], padding[0]))
    patches = input.unfold(2, dilation[0] * (kernel[0] - 1) + 1, stride[0])
    patches = patches.unfold(3, dilation[1] * (kernel[1] - 1) + 1, stride[1])
    patches = patches[..., :: dilation[0], :: dilation[1]].permute(0, 1, 4, 5, 2, 3)
    return patches.reshape(
        input.shape[0], input.shape[1] * kernel[0] * kernel[1], count[0] * count[1]
    )


def fold(input: Tensor, output_size, kernel_size, dilation=1, padding=0, stride=1) -> Tensor:
    """The sum of patches where they came from: the transpose of unfold."""
    size, kernel = _pair(output_size), _pair(kernel_size)
    dilation, padding, stride = map(_pair, (dilation, padding, stride))
    if input.dim() not in (2, 3):
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
            f"non-zero dimensions for input, but got: {list(input.shape)}"
        )
    if input.dim() == 2:
        return fold(input.unsqueeze(0), size, kernel, dilation, padding, stride).squeeze(0)
    area = kernel[0] * kernel[1]
    if input.shape[1] % area:
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, "
            f"but got input.size(1)={input.shape[1]} and kernel_size={kernel}."
        )
    count = _steps(size, kernel, dilation, padding, stride)
    if input.shape[2] != count[0] * count[1]:
        raise RuntimeError(
            f"Given output_size={size}, kernel_size={kernel}, dilation={dilation}, "
            f"padding={padding}, stride={stride}, expected size of input's dimension 2 to match "
            f"the calculated number of sliding blocks {count[0]} * {count[1]} = "
            f"{count[0] * count[1]}, but got input.size(2)={input.shape[2]}."
        )
    rows = _places(kernel[0], count[0], dilation[0], stride[0])
    columns = _places(kernel[1], count[1], dilation[1], stride[1])
    wide = size[1] + 2 * padding[1]
    places = rows[:, None, :, None] * wide + columns[None, :, None, :]
    channels = input.shape[1] // area
    image = input.new_zeros(input.shape[0], channels, (size[0] + 2 * padding[0]) * wide)
    image = image.index_add(2, places.flatten(), input.reshape(input.shape[0], channels, -1))
    image = image.reshape(input.shape[0], channels, size[0] + 2 * padding[0], wide)
    return image[:, :, padding[0] : padding[0] + size[0], padding[1] : padding[1] + size[1]]


def _places(kernel: int, count: int, dilation: int, stride: int) -> Tensor:
    return prong.arange(kernel)[:, None] * dilation + prong.arange(count)[None, :] * stride
