"""Statistics, running sums and integrals."""

import collections
import math
from typing import Any

import prong
from prong import Tensor, _core

from .registering import composition


@composition(method=True, takes_out=False)
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """The covariance of the rows, columns being observations."""
    if input.dim() > 2:
        raise RuntimeError(
            "cov(): expected input to have two or fewer dimensions but got an input with "
            f"{input.dim()} dimensions"
        )
    if input.dtype is prong.bool:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input.reshape(1, -1) if input.dim() < 2 else input
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(prong.get_default_dtype())
    weights = None
    total: Any  # of the weights: a number or a tensor
    divisor: Any
    for given in (fweights, aweights):
        if given is not None:
            weights = given if weights is None else weights * given
    if weights is None:
        total = x.shape[1]
        mean = x.sum(1, True) / total
        divisor = max(0, total - correction)
        centered = scaled = x - mean
    else:
        if not weights.is_floating_point():
            weights = weights.to(x.real.dtype if x.is_complex() else x.dtype)
        total = weights.sum()
        mean = (x * weights).sum(1, True) / total
        if aweights is None:
            lost = correction
        else:
            lost = correction * (weights * aweights).sum() / total
        divisor = (total - lost).clamp(min=0)
        centered = x - mean
        scaled = centered * weights
    return (scaled @ centered.mH / divisor).squeeze()


@composition(method=True, takes_out=False)
def corrcoef(input: Tensor) -> Tensor:
    """The correlation coefficients of the rows."""
    if input.dim() > 2:
        raise RuntimeError(
            "corrcoef(): expected input to have two or fewer dimensions but got an input with "
            f"{input.dim()} dimensions"
        )
    c = cov(input)
    if c.dim() == 0:
        return c / c
    deviations = c.diagonal().sqrt()
    c = c / deviations[:, None] / deviations[None, :]
    if c.is_complex():
        return prong.complex(c.real.clamp(-1, 1), c.imag.clamp(-1, 1))
    return c.clamp(-1, 1)


@composition(method=True)
def nanmean(input: Tensor, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """The mean of what is not NaN."""
    if not (input.is_floating_point() or input.is_complex()) and dtype is None:
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got "
            f"{input.dtype}"
        )
    count = input.isnan().logical_not().sum(dim, keepdim)
    return prong.nansum(input, dim, keepdim, dtype=dtype) / count


@composition(method=True)
def nanquantile(
    input: Tensor, q, dim: int | None = None, keepdim: bool = False, *, interpolation="linear"
) -> Tensor:
    """The quantile of what is not NaN."""
    q = q if isinstance(q, Tensor) else prong.tensor(q, dtype=input.dtype)
    if input.dim() == 0:
        return nanquantile(input.reshape(1), q, 0, interpolation=interpolation)
    x = input.flatten() if dim is None else input.movedim(dim, -1)
    ordered = x.sort(-1).values  # NaN come last
    count = x.isnan().logical_not().sum(-1, keepdim=True)
    ranks = q.reshape(-1) * (count - 1).clamp(min=0)
    below = {
        "linear": ranks.floor,
        "lower": ranks.floor,
        "higher": ranks.ceil,
        "midpoint": ranks.floor,
        "nearest": ranks.round,
    }
    if interpolation not in below:
        raise RuntimeError(
            "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, "
            f"but got {interpolation}"
        )
    first = below[interpolation]()
    result = ordered.gather(-1, first.to(prong.int64))
    if interpolation in ("linear", "midpoint"):
        weight = (ranks - first) if interpolation == "linear" else prong.full_like(ranks, 0.5)
        second = ordered.gather(-1, ranks.ceil().to(prong.int64))
        result = prong.lerp(result, second, weight)
    result = prong.where(count == 0, math.nan, result)
    if dim is None:
        sizes = [1] * input.dim() if keepdim else []
        return result.reshape([*q.shape, *sizes])
    result = result.movedim(-1, 0)
    if not q.dim():
        result = result.squeeze(0)
    if not keepdim:
        return result
    return result.unsqueeze(dim if dim < 0 else dim + q.dim())


def _spacing(y: Tensor, x: Tensor | None, dx: float | None, dim: int):
    """The widths of the intervals, so that they broadcast against y along ``dim``."""
    if x is None:
        return 1.0 if dx is None else dx
    if x.dim() == 1 and y.dim() > 0:
        if x.shape[0] != y.shape[dim]:
            raise RuntimeError("trapezoid: There must be one `x` value for each sample point")
        sizes = [1] * y.dim()
        sizes[dim] = x.shape[0]
        x = x.reshape(sizes)
    return prong.diff(x, dim=dim if x.dim() == y.dim() else dim - y.dim() if dim >= 0 else dim)


def _areas(y: Tensor, x, dx, dim: int) -> Tensor:
    n = y.shape[dim]
    width = _spacing(y, x, dx, dim)
    return (y.narrow(dim, 0, n - 1) + y.narrow(dim, 1, n - 1)) * width / 2


@composition(takes_out=False)
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx=None, dim: int = -1) -> Tensor:
    """The integral along ``dim`` by trapezoids."""
    if y.shape[dim] == 0:
        return y.sum(dim)
    return _areas(y, x, dx, dim).sum(dim)


@composition(takes_out=False)
def trapz(y: Tensor, x: Tensor | None = None, *, dx=None, dim: int = -1) -> Tensor:
    """The same as trapezoid."""
    return trapezoid(y, x, dx=dx, dim=dim)


@composition(takes_out=False)
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx=None, dim: int = -1) -> Tensor:
    """The integral up to each place along ``dim``."""
    return _areas(y, x, dx, dim).cumsum(dim)


@composition(takes_out=False)
def gradient(input: Tensor, *, spacing=1, dim=None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """The slope along each dim, by differences of second order inside."""
    dims = list(range(input.dim())) if dim is None else [dim] if isinstance(dim, int) else dim
    spacing = 1 if spacing is None else spacing
    spacings = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(dims)
    return tuple(_slope(input, s, d, edge_order) for s, d in zip(spacings, dims, strict=True))


def _slope(x: Tensor, spacing, dim: int, edge_order: int) -> Tensor:
    n = x.shape[dim]
    if n <= edge_order:
        raise RuntimeError(
            "torch.gradient expected each dimension size to be at least edge_order+1"
        )
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(prong.get_default_dtype())
    steps = prong.diff(x, dim=dim)
    if isinstance(spacing, Tensor) and spacing.dim() > 0:
        sizes = [1] * x.dim()
        sizes[dim] = n - 1
        h = prong.diff(spacing.to(x.dtype)).reshape(sizes)
    else:
        h = prong.full([1] * x.dim(), float(spacing), dtype=x.dtype).expand(
            [n - 1 if d == dim % x.dim() else 1 for d in range(x.dim())]
        )
    slopes = steps / h
    before, after = h.narrow(dim, 0, n - 2), h.narrow(dim, 1, n - 2)
    left, right = slopes.narrow(dim, 0, n - 2), slopes.narrow(dim, 1, n - 2)
    middle = (left * after + right * before) / (before + after)
    first, last = slopes.narrow(dim, 0, 1), slopes.narrow(dim, n - 2, 1)
    if edge_order == 2:
        second, before_last = slopes.narrow(dim, 1, 1), slopes.narrow(dim, n - 3, 1)
        h0, h1 = h.narrow(dim, 0, 1), h.narrow(dim, 1, 1)
        first = first - (second - first) * h0 / (h0 + h1)
        h0, h1 = h.narrow(dim, n - 2, 1), h.narrow(dim, n - 3, 1)
        last = last + (last - before_last) * h0 / (h0 + h1)
    return prong.cat([first, middle, last], dim)


@composition(method=True, inplace=True)
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Each slice along ``dim`` scaled down where its p-norm is above maxnorm."""
    if input.dim() < 2:
        raise RuntimeError(
            f"renorm: input needs at least 2 dimensions, got {input.dim()} dimensions"
        )
    if p <= 0:
        raise RuntimeError("renorm: non-positive norm degree")
    if not -input.dim() <= dim < input.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-input.dim()}, "
            f"{input.dim() - 1}], but got {dim})"
        )
    dims = [d for d in range(input.dim()) if d != dim % input.dim()]
    norms = prong.linalg.vector_norm(input, p, dims, keepdim=True)
    return input * prong.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)


_Histogram = collections.namedtuple("histogram", ["hist", "bin_edges"])  # type: ignore[name-match]


@composition(method=True)
def histogram(input: Tensor, bins, *, range=None, weight: Tensor | None = None, density=False):
    """How many elements (or how much weight) fall between each two edges."""
    if isinstance(bins, Tensor):
        edges = bins
    else:
        if bins <= 0:
            raise RuntimeError(
                f"torch.histogramdd(): bins value cannot be less than or equal to 0, got {bins}"
            )
        if range is not None:
            low, high = range
        elif input.numel():
            low, high = input.min().item(), input.max().item()
        else:
            low, high = 0.0, 1.0
        if low > high:
            raise RuntimeError(
                f"torch.histogramdd: min should not exceed max, but got min {low} max {high}"
            )
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges = prong.linspace(low, high, bins + 1, dtype=input.dtype)
    x = input.flatten()
    place = prong.searchsorted(edges, x, right=True) - 1
    place = prong.where(x == edges[-1], edges.numel() - 2, place)
    inside = (x >= edges[0]) & (x <= edges[-1])
    amount = prong.ones_like(x) if weight is None else weight.flatten().to(x.dtype)
    counts = x.new_zeros(edges.numel() - 1)
    counts = counts.index_add(0, place[inside], amount[inside])
    if density:
        counts = counts / counts.sum() / prong.diff(edges)
    return _Histogram(counts, edges)


@composition(method=True, inplace=True)
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The logarithm of the gamma function of p by p matrices."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if not input.is_floating_point():
        input = input.to(prong.get_default_dtype())
    steps = prong.arange(0, -p, -1, dtype=input.dtype) * 0.5
    return (input.unsqueeze(-1) + steps).lgamma().sum(-1) + p * (p - 1) * 0.25 * math.log(math.pi)


@composition(method=False)
def polygamma(n: int, input: Tensor) -> Tensor:
    """The n-th derivative of digamma."""
    return _core.op_modules["special"]["polygamma"](n, input)


@composition(function=False, method=True, inplace=True, name="polygamma")
def _polygamma(input: Tensor, n: int) -> Tensor:
    """The n-th derivative of digamma."""
    return polygamma(n, input)


_diff = _core.functions["diff"]


@composition(replaces=True, method=True)
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """The differences of neighbours along ``dim``, n times over; more may stand at the ends."""
    if n == 0:
        return input.clone()
    parts = [t for t in (prepend, input, append) if t is not None]
    return _diff(prong.cat(parts, dim) if len(parts) > 1 else input, n, dim)


def _with_mean(name: str):
    op = _core.functions[name]

    def spread(
        input: Tensor,
        dim=None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction=None,
    ) -> tuple[Tensor, Tensor]:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if unbiased is not None:
            correction = int(unbiased)
        return op(input, dim, correction=correction, keepdim=keepdim)

    spread.__name__ = spread.__qualname__ = name
    spread.__doc__ = "The spread over ``dim``, and the mean."
    return composition(replaces=True, takes_out=False)(spread)


var_mean = _with_mean("var_mean")
std_mean = _with_mean("std_mean")
