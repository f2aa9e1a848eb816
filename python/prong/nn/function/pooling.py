"""Pooling functions that are compositions: by a norm, and back from maxima."""

import prong
from prong import Tensor


def _spread(value, n: int) -> list[int]:
    if isinstance(value, int):
        return [value] * n
    return list(value) * n if len(value) == 1 else list(value)


def _lp_pool(pool, n, input, norm_type, kernel_size, stride, ceil_mode):
    if input.dim() not in (n + 1, n + 2):
        raise ValueError(
            f"lp_pool{n}d: expected {n + 1}D or {n + 2}D input (got {input.dim()}D input)"
        )
    count = 1
    for size in _spread(kernel_size, n):
        count *= size
    kernel, step = _spread(kernel_size, n), None if stride is None else _spread(stride, n)
    mean = pool(input.pow(norm_type), kernel, kernel if step is None else step, [0] * n, ceil_mode)
    return (mean.sign() * mean.abs().relu()).mul(count).pow(1.0 / norm_type)


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False
) -> Tensor:
    """p-norm of each window of [N, C, L]."""
    pool = prong.nn.functional.avg_pool1d
    return _lp_pool(pool, 1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False
) -> Tensor:
    """p-norm of each window of [N, C, H, W]."""
    pool = prong.nn.functional.avg_pool2d
    return _lp_pool(pool, 2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False
) -> Tensor:
    """p-norm of each window of [N, C, D, H, W]."""
    pool = prong.nn.functional.avg_pool3d
    return _lp_pool(pool, 3, input, norm_type, kernel_size, stride, ceil_mode)


def _unpooled_size(input, kernel_size, stride, padding, output_size):
    n = len(kernel_size)
    usual = [
        (input.size(d - n) - 1) * stride[d] + kernel_size[d] - 2 * padding[d] for d in range(n)
    ]
    if output_size is None:
        return usual
    output_size = list(output_size)
    if len(output_size) == n + 2:
        output_size = output_size[2:]
    if len(output_size) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length "
            f"of '{len(output_size)}'"
        )
    for d in range(n):
        low, high = usual[d] - stride[d], usual[d] + stride[d]
        if not low < output_size[d] < high:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {d} must be between {low} and {high})'
            )
    return output_size


def _max_unpool(n, input, indices, kernel_size, stride, padding, output_size):
    if input.dim() not in (n + 1, n + 2):
        raise RuntimeError(
            f"max_unpool{n}d: expected {n + 1}D or {n + 2}D input (got {input.dim()}D input)"
        )
    if indices.dtype != prong.int64:
        raise RuntimeError(f"elements in indices should be type int64 but got: {indices.dtype}")
    if indices.shape != input.shape:
        raise RuntimeError(
            f"Expected shape of indices to be: {input.size()} but got: {indices.size()}"
        )
    kernel = _spread(kernel_size, n)
    step = kernel if stride is None else _spread(stride, n)
    size = _unpooled_size(input, kernel, step, _spread(padding, n), output_size)
    count = 1
    for s in size:
        count *= s
    lead = list(input.shape[:-n])
    if indices.numel() and (int(indices.min()) < 0 or int(indices.max()) >= count):
        raise RuntimeError(
            f"Found an invalid max index: {int(indices.max())} (output volumes are of size {size})"
        )
    flat = input.new_zeros([*lead, count])
    places = indices.flatten(-n)
    return flat.scatter(-1, places, input.flatten(-n)).reshape([*lead, *size])


def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size, stride=None, padding=0, output_size=None
) -> Tensor:
    """Puts the maxima of max_pool1d back to where they were, zeros elsewhere."""
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size, stride=None, padding=0, output_size=None
) -> Tensor:
    """Puts the maxima of max_pool2d back to where they were, zeros elsewhere."""
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size, stride=None, padding=0, output_size=None
) -> Tensor:
    """Puts the maxima of max_pool3d back to where they were, zeros elsewhere."""
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)
