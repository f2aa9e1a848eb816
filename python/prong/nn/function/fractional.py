"""fractional_max_pool: windows whose places are drawn at random, so that sizes shrink by any factor."""

import prong
from prong import Tensor


def _starts(samples: Tensor, size: int, count: int, window: int) -> Tensor:
    """Where the windows of one dimension begin, for each plane: [planes, count]."""
    last = prong.full((samples.numel(), 1), size - window, dtype=prong.int64)
    if count == 1:
        return last
    step = prong.tensor(float(size - window), dtype=samples.dtype) / (count - 1)
    u = samples.reshape(-1, 1)
    places = ((prong.arange(count - 1, dtype=samples.dtype) + u) * step).to(prong.int64)
    return prong.cat([places - (u * step).to(prong.int64), last], 1)


def _sizes(value, n, name):
    value = [value] * n if isinstance(value, (int, float)) else list(value)
    if len(value) != n:
        raise RuntimeError(f"fractional_max_pool{n}d: {name} must either be a single number or {n}")
    return value


def _pooled(n, input, kernel_size, output_size, output_ratio, samples):
    if input.dim() not in (n + 1, n + 2):
        raise RuntimeError(
            f"fractional_max_pool{n}d(): Expected {n + 1}D or {n + 2}D tensor, but got: "
            f"{input.size()}"
        )
    if output_size is None and output_ratio is None:
        raise ValueError(
            f"fractional_max_pool{n}d requires specifying either an output_size or an output_ratio"
        )
    spatial = list(input.shape[-n:])
    if output_size is None:
        ratios = _sizes(output_ratio, n, "output_ratio")
        output_size = [int(s * r) for s, r in zip(spatial, ratios)]
    counts, windows = _sizes(output_size, n, "output_size"), _sizes(kernel_size, n, "kernel_size")
    for size, count, window in zip(spatial, counts, windows):
        if count + window - 1 > size:
            raise RuntimeError(
                f"fractional_max_pool{n}d(): pool size {window} too large relative to input size {size}"
            )
    planes = input.reshape([-1, *spatial])
    if samples is None:
        batch = 1 if input.dim() == n + 1 else input.size(0)
        samples = prong.rand([batch, input.size(-n - 1), n], dtype=input.dtype)
    samples = samples.reshape(-1, n)[: planes.size(0)]
    # In two dimensions the first sample is for the width, in three for the depth.
    order = [1, 0] if n == 2 else [0, 1, 2]
    index = prong.zeros([planes.size(0)] + [1] * (2 * n), dtype=prong.int64)
    for d in range(n):
        starts = _starts(samples[:, order[d]], spatial[d], counts[d], windows[d])
        places = starts.unsqueeze(2) + prong.arange(windows[d])
        shape = [1] * (2 * n)
        shape[d], shape[n + d] = counts[d], windows[d]
        index = index * spatial[d] + places.reshape([-1, *shape])
    index = index.flatten(n + 1)
    values = planes.flatten(1).gather(1, index.flatten(1)).reshape(index.shape)
    best, place = values.max(-1)
    where = index.gather(-1, place.unsqueeze(-1)).squeeze(-1)
    shape = [*input.shape[:-n], *counts]
    return best.reshape(shape), where.reshape(shape)


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Largest of each window of images, and where it was."""
    return _pooled(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Largest of each window of volumes, and where it was."""
    return _pooled(3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(
    input: Tensor,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
):
    """Largest of each window of images, whose places are drawn at random."""
    found = _pooled(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


def fractional_max_pool3d(
    input: Tensor,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
):
    """Largest of each window of volumes, whose places are drawn at random."""
    found = _pooled(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]
