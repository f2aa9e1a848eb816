"""grid_sample: an image read at the places that a grid names."""

import itertools
import warnings

import prong
from prong import Tensor

from .interpolation import cubic_weights


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The values of input [N, C, ...] at grid [N, ..., 2 or 3], whose numbers run from -1 to 1."""
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since "
            "1.3.0. Please specify align_corners=True if the old behavior is desired.",
            stacklevel=2,
        )
        align_corners = False
    _check(input, grid, mode)
    sizes = input.shape[2:]
    # The last number of a grid point is the first spatial dimension.
    places = [grid[..., -1 - d] for d in range(len(sizes))]
    places = [
        (x + 1) / 2 * (n - 1) if align_corners else ((x + 1) * n - 1) / 2
        for x, n in zip(places, sizes, strict=True)
    ]
    inside = _Reader(input, padding_mode, align_corners)
    if mode == "bicubic":
        return _bicubic(inside, places)
    places = [inside.moved(x, n) for x, n in zip(places, sizes, strict=True)]
    if mode == "nearest":
        return inside.read([x.round() for x in places])
    return _linear(inside, places)


def _check(input: Tensor, grid: Tensor, mode: str) -> None:
    if input.dim() not in (4, 5) or input.dim() != grid.dim():
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but "
            f"got input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if input.shape[0] != grid.shape[0]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with "
            f"sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if grid.shape[-1] != input.dim() - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {input.dim() - 2} in last dimension, but "
            f"got grid with sizes {list(grid.shape)}"
        )
    if 0 in input.shape[2:]:
        raise RuntimeError(
            "grid_sampler(): expected input to have non-empty spatial dimensions, but input has "
            f"sizes {list(input.shape)}"
        )
    if mode == "bicubic" and input.dim() != 4:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")


class _Reader:
    """Reads an image at whole places, by the rule for what lies outside."""

    def __init__(self, input: Tensor, padding_mode: str, align_corners: bool):
        self._flat = input.flatten(2)
        self._sizes = input.shape[2:]
        self._padding, self._align = padding_mode, align_corners

    def moved(self, x: Tensor, size: int) -> Tensor:
        """Places outside moved to the border or mirrored, where the mode says so."""
        if self._padding == "zeros":
            return x
        if self._padding == "reflection":
            low, high = (0, 2 * (size - 1)) if self._align else (-1, 2 * size - 1)
            x = _mirrored(x, low / 2, (high - low) / 2)
        return x.clamp(0, size - 1)

    def read(self, places: list[Tensor], weight: Tensor | None = None) -> Tensor:
        """The values at places (whole numbers, as floats), times weight; 0 outside."""
        fits, wholes = [], []
        for x, size in zip(places, self._sizes, strict=True):
            fits.append((x >= 0) & (x <= size - 1))
            wholes.append(prong.where(fits[-1], x, 0.0).detach().to(prong.int64))
        is_inside, index = fits[0], wholes[0]
        for size, fit, whole in zip(self._sizes[1:], fits[1:], wholes[1:], strict=True):
            is_inside, index = is_inside & fit, index * size + whole
        batch, channels = self._flat.shape[:2]
        values = self._flat.gather(2, index.reshape(batch, 1, -1).expand(-1, channels, -1))
        values = values.reshape(batch, channels, *index.shape[1:])
        factor = is_inside.to(values.dtype)
        if weight is not None:
            factor = factor * weight
        return values * factor.unsqueeze(1)


def _mirrored(x: Tensor, low: float, span: float) -> Tensor:
    if span == 0:
        return prong.zeros_like(x)
    x = (x - low).abs()
    extra = x % span
    flips = (x / span).floor()
    return prong.where(flips % 2 == 0, extra + low, span - extra + low)


def _linear(inside: _Reader, places: list[Tensor]) -> Tensor:
    floors = [x.detach().floor() for x in places]
    values = []
    for corner in itertools.product((0, 1), repeat=len(places)):
        weight = None
        for x, floor, bit in zip(places, floors, corner, strict=True):
            part = x - floor if bit else floor + 1 - x
            weight = part if weight is None else weight * part
        at = [f + bit for f, bit in zip(floors, corner, strict=True)]
        values.append(inside.read(at, weight))
    return sum(values[1:], values[0])


def _bicubic(inside: _Reader, places: list[Tensor]) -> Tensor:
    floors = [x.detach().floor() for x in places]
    rows, columns = (cubic_weights(x - f) for x, f in zip(places, floors, strict=True))
    sizes = inside._sizes
    values = []
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            at = [
                inside.moved(f + shift, n).round()
                for f, shift, n in zip(floors, (i - 1, j - 1), sizes, strict=True)
            ]
            values.append(inside.read(at, row * column))
    return sum(values[1:], values[0])
