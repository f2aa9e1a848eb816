"""affine_grid, and the old names of interpolate."""

import warnings

import prong
from prong import Tensor


def _positions(count: int, align_corners: bool, dtype) -> Tensor:
    """Where the centres (or, aligned, the outermost ones the corners) of `count` pixels lie in [-1, 1]."""
    if count <= 1:
        return prong.zeros(count, dtype=dtype)
    positions = prong.linspace(-1, 1, count, dtype=dtype)
    return positions if align_corners else positions * (count - 1) / count


def affine_grid(theta: Tensor, size: list[int], align_corners: bool | None = None) -> Tensor:
    """The points that grid_sample looks up for an affine map of each image."""
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since "
            "1.3.0. Please specify align_corners=True if the old behavior is desired.",
            stacklevel=2,
        )
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    n = len(size) - 2
    if n not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
            f"Got size {size}."
        )
    if theta.dim() != 3 or theta.shape[-2] != n or theta.shape[-1] != n + 1:
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. "
            f"Got {theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    axes = [_positions(s, align_corners, theta.dtype) for s in size[2:]]
    grids = prong.meshgrid(axes, indexing="ij")
    points = prong.stack([*reversed(grids), prong.ones_like(grids[0])], -1)
    flat = points.reshape(1, -1, n + 1) @ theta.transpose(1, 2)
    return flat.reshape([size[0], *size[2:], n])


def _renamed(name, instead):
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.{instead}` instead.",
        stacklevel=3,
    )


def upsample(
    input: Tensor, size=None, scale_factor=None, mode: str = "nearest", align_corners=None
) -> Tensor:
    """The old name of interpolate."""
    _renamed("upsample", "interpolate")
    return prong.nn.functional.interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size=None, scale_factor=None) -> Tensor:
    """The old name of interpolate with mode "nearest"."""
    _renamed("upsample_nearest", "interpolate")
    return prong.nn.functional.interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size=None, scale_factor=None) -> Tensor:
    """The old name of interpolate with mode "bilinear" and its corners kept."""
    _renamed("upsample_bilinear", "interpolate")
    return prong.nn.functional.interpolate(input, size, scale_factor, "bilinear", True)
