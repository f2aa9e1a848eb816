"""interpolate: images of another size, one dimension after the other."""

import math

import prong
from prong import Tensor

_MODES = {  # the number of dimensions that each is for
    "nearest": (3, 4, 5),
    "nearest-exact": (3, 4, 5),
    "area": (3, 4, 5),
    "linear": (3,),
    "bilinear": (4,),
    "bicubic": (4,),
    "trilinear": (5,),
}


def interpolate(
    input: Tensor,
    size=None,
    scale_factor=None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """The input at another size, or scaled: nearest, linear, bilinear, bicubic, trilinear, area."""
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the "
                "interpolating modes: linear | bilinear | bicubic | trilinear"
            )
    elif align_corners is None:
        align_corners = False
    spatial = input.dim() - 2
    sizes, factors = _output_sizes(input, size, scale_factor, spatial, recompute_scale_factor)
    if antialias and not (mode in ("bilinear", "bicubic") and input.dim() == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D "
            "tensor as input"
        )
    if mode not in _MODES or input.dim() not in _MODES[mode]:
        if mode in _MODES and input.dim() in (3, 4, 5):
            raise NotImplementedError(
                f"Got {input.dim()}D input, but {mode} mode needs {_MODES[mode][0]}D input"
            )
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported"
            f" (got {input.dim()}D) for the modes: nearest | linear | bilinear | bicubic | "
            f"trilinear | area | nearest-exact (got {mode})"
        )
    if any(s <= 0 for s in (*sizes, *input.shape[1:])):
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input {tuple(input.shape)} "
            f"and output {tuple(sizes)}"
        )
    if mode == "area":
        pool = getattr(prong.nn.functional, f"adaptive_avg_pool{spatial}d")
        return pool(input, sizes)
    if mode.startswith("nearest"):
        for d in range(spatial):
            places = _nearest(input.shape[d + 2], sizes[d], factors[d], mode == "nearest-exact")
            if places is not None:
                input = input.index_select(d + 2, places)
        return input
    return _weighted(input, sizes, factors, mode, bool(align_corners), antialias)


def _output_sizes(input, size, scale_factor, spatial, recompute):
    """Sizes of the result, and for each dim the factor that was asked for, or None."""
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        sizes = [size] * spatial if isinstance(size, int) else [int(s) for s in size]
        _check_length("size", "output", size, sizes, spatial, input)
        return sizes, [None] * spatial
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    is_list = isinstance(scale_factor, (list, tuple))
    factors = [float(f) for f in scale_factor] if is_list else [float(scale_factor)] * spatial
    _check_length("scale_factor", "scale_factor", scale_factor, factors, spatial, input)
    sizes = [math.floor(n * f) for n, f in zip(input.shape[2:], factors, strict=True)]
    return sizes, [None] * spatial if recompute else factors


def _check_length(name, word, given, values, spatial, input):
    if len(values) != spatial:
        raise ValueError(
            f"Input and {word} must have the same number of spatial dimensions, but got input with "
            f"spatial dimensions of {list(input.shape[2:])} and {name} of {given}. "
            "Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
            f"{word} size in (o1, o2, ...,oK) format."
        )


def _scale(inside: int, outside: int, factor: float | None) -> float:
    return 1.0 / factor if factor is not None and factor > 0 else inside / outside


def _nearest(inside: int, outside: int, factor: float | None, is_exact: bool) -> Tensor | None:
    if inside == outside and factor is None:
        return None
    scale = prong.tensor(_scale(inside, outside, factor), dtype=prong.float32)
    places = prong.arange(outside, dtype=prong.float32)
    places = ((places + 0.5 if is_exact else places) * scale).floor().to(prong.int64)
    return places.clamp(max=inside - 1)


def _weighted(input, sizes, factors, mode, align_corners, antialias) -> Tensor:
    dtype = input.dtype
    if dtype is prong.uint8:
        return _weighted_bytes(input, sizes, factors, mode, align_corners, antialias)
    compute = prong.float64 if dtype is prong.float64 else prong.float32
    result = input.to(compute)
    for d in reversed(range(len(sizes))):
        inside, outside, factor = input.shape[d + 2], sizes[d], factors[d]
        if antialias:
            matrix = _filter(inside, outside, factor, mode == "bicubic", align_corners)
            result = _through(result, d + 2, matrix.to(compute))
            continue
        if inside == outside and factor is None:
            continue
        taps = _cubic if mode == "bicubic" else _linear
        parts = [
            result.index_select(d + 2, places) * _along(weights, d + 2, input.dim())
            for places, weights in taps(inside, outside, factor, align_corners, compute)
        ]
        result = sum(parts[1:], parts[0])
    return result.to(dtype)


def _weighted_bytes(image, sizes, factors, mode, align_corners, antialias) -> Tensor:
    """Of uint8: in fixed point, a dimension after the other, each rounded to bytes as PyTorch does."""
    for d in reversed(range(len(sizes))):
        inside, outside, factor = image.shape[d + 2], sizes[d], factors[d]
        if inside == outside:
            continue
        if antialias:
            matrix = _filter(inside, outside, factor, mode == "bicubic", align_corners)
            weights, bits = _fixed_point(matrix)
            total = _through(image.to(prong.float64), d + 2, weights).to(prong.int32)
        else:
            read = _cubic if mode == "bicubic" else _linear
            taps = _merged(read(inside, outside, factor, align_corners, prong.float64))
            weights, bits = _fixed_point(prong.stack([weight for _, weight in taps]))
            parts = [
                image.index_select(d + 2, places).to(prong.int32)
                * _along(weight, d + 2, image.dim())
                for (places, _), weight in zip(taps, weights.to(prong.int32), strict=True)
            ]
            total = sum(parts[1:], parts[0])
        image = ((total + (1 << (bits - 1))) >> bits).clamp(0, 255).to(prong.uint8)
    return image


def _merged(taps: list) -> list:
    """Where the border is met several times, one tap has all its weight."""
    for i in range(len(taps) - 1):
        (place, weight), (next_place, next_weight) = taps[i], taps[i + 1]
        is_same = place == next_place
        taps[i] = place, weight.masked_fill(is_same, 0.0)
        taps[i + 1] = next_place, next_weight + prong.where(is_same, weight, 0.0)
    return taps


def _fixed_point(weights: Tensor) -> tuple[Tensor, int]:
    """Whole numbers of 16 bits that stand for the weights, and how many bits are behind the point."""
    most, bits = weights.max().item(), 0
    while bits < 22 and int(0.5 + most * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    scaled = weights * (1 << bits)
    return (scaled + prong.where(scaled < 0, -0.5, 0.5)).trunc(), bits


def _along(weights: Tensor, dim: int, rank: int) -> Tensor:
    return weights.reshape([-1 if d == dim else 1 for d in range(rank)])


def _sources(inside, outside, factor, align_corners, dtype, is_cubic) -> Tensor:
    """Where each element of the result lies among those of the input."""
    places = prong.arange(outside, dtype=dtype)
    if align_corners:
        return places * prong.tensor(
            (inside - 1) / (outside - 1) if outside > 1 else 0.0, dtype=dtype
        )
    places = (places + 0.5) * prong.tensor(_scale(inside, outside, factor), dtype=dtype) - 0.5
    return places if is_cubic else places.clamp(min=0)


def _linear(inside, outside, factor, align_corners, dtype):
    places = _sources(inside, outside, factor, align_corners, dtype, False)
    first = places.to(prong.int64).clamp(max=inside - 1)
    second = (first + 1).clamp(max=inside - 1)
    weight = places - first.to(dtype)
    return [(first, 1 - weight), (second, weight)]


def _cubic(inside, outside, factor, align_corners, dtype):
    places = _sources(inside, outside, factor, align_corners, dtype, True)
    floor = places.floor()
    t = places - floor
    first = floor.to(prong.int64)
    return [
        ((first + i - 1).clamp(0, inside - 1), weights)
        for i, weights in enumerate(cubic_weights(t))
    ]


def cubic_weights(t: Tensor, a: float = -0.75) -> list[Tensor]:
    """The weights of the four neighbours of a place t behind the second one."""

    def near(x):
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x):
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _filter(inside, outside, factor, is_cubic, align_corners) -> Tensor:
    """The matrix [outside, inside] of a filter as wide as what one element of the result covers."""
    if align_corners:
        scale = (inside - 1) / (outside - 1) if outside > 1 else 0.0
    else:
        scale = _scale(inside, outside, factor)
    reach = 2.0 if is_cubic else 1.0
    support = reach * scale if scale >= 1 else reach
    shrink = 1 / scale if scale >= 1 else 1.0
    rows = []
    for i in range(outside):
        center = scale * (i + 0.5)
        first = max(int(center - support + 0.5), 0)
        last = min(int(center + support + 0.5), inside)
        weights = [
            (_cubic_filter if is_cubic else _triangle)((j - center + 0.5) * shrink)
            for j in range(first, last)
        ]
        total = sum(weights) or 1.0
        row = [0.0] * inside
        row[first:last] = [w / total for w in weights]
        rows.append(row)
    return prong.tensor(rows, dtype=prong.float64)


def _triangle(x: float) -> float:
    return max(0.0, 1 - abs(x))


def _cubic_filter(x: float) -> float:
    a, x = -0.5, abs(x)
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    if x < 2:
        return (((x - 5) * x + 8) * x - 4) * a
    return 0.0


def _through(input: Tensor, dim: int, matrix: Tensor) -> Tensor:
    return (input.movedim(dim, -1) @ matrix.T).movedim(-1, dim)
