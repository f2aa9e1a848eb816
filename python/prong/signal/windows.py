"""torch.signal.windows: windows of M numbers, symmetric unless sym is False."""

import math

import prong
from prong import Tensor

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _steps(name: str, M: int, dtype, requires_grad: bool) -> tuple[Tensor | None, object]:
    """0 to M - 1 in a wide type, and the dtype of the result; None where there is no shape."""
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    dtype = dtype or prong.get_default_dtype()
    if dtype not in (prong.float32, prong.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return (prong.arange(M, dtype=dtype) if M > 0 else None), dtype


def _window(body):
    name = body.__name__

    def window(
        M: int,
        *given,
        sym: bool = True,
        dtype=None,
        layout=None,
        device=None,
        requires_grad: bool = False,
        **options,
    ) -> Tensor:
        steps, dtype = _steps(name, M, dtype, requires_grad)
        if steps is None:
            result = prong.empty(0, dtype=dtype)
        elif M == 1:
            result = prong.ones(1, dtype=dtype)
        else:
            result = body(steps, M if sym else M + 1, *given, sym=sym, **options).to(dtype)
        return result.requires_grad_() if requires_grad else result

    window.__name__ = window.__qualname__ = name
    window.__doc__ = body.__doc__
    return window


@_window
def exponential(steps, size, *, center=None, tau: float = 1.0, sym=True):
    """Falling off exponentially from the center."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    center = (size - 1) / 2.0 if center is None else center
    return (-(steps - center).abs() / tau).exp()


@_window
def cosine(steps, size, *, sym=True):
    """Half a wave of the sine."""
    return ((steps + 0.5) * (math.pi / size)).sin()


@_window
def gaussian(steps, size, *, std: float = 1.0, sym=True):
    """The normal density, 1 in the middle."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    place = (steps - (size - 1) / 2.0) / (std * math.sqrt(2))
    return (-(place**2)).exp()


@_window
def kaiser(steps, size, *, beta: float = 12.0, sym=True):
    """By the modified Bessel function."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if size == 1:
        return prong.ones_like(steps)
    place = steps * (2.0 / (size - 1)) - 1
    root = (1 - place * place).clamp(min=0).sqrt()
    return prong.i0(root * beta) / prong.i0(prong.tensor(float(beta), dtype=steps.dtype))


@_window
def bartlett(steps, size, *, sym=True):
    """A triangle."""
    if size == 1:
        return prong.ones_like(steps)
    return 1 - (steps * (2.0 / (size - 1)) - 1).abs()


@_window
def general_cosine(steps, size, *given, a=None, sym=True):
    """Sums of cosines with coefficients ``a`` of alternating sign."""
    a = given[0] if given else a
    if not isinstance(a, (list, tuple)) and not hasattr(a, "__iter__"):
        raise TypeError("Coefficients must be a list/tuple")
    coefficients = list(a)
    if not coefficients:
        raise ValueError("Coefficients cannot be empty")
    if size == 1:
        return prong.ones_like(steps)
    angle = steps * (2 * math.pi / (size - 1))
    result = 0
    for i, c in enumerate(coefficients):
        result = result + (-1) ** i * c * (angle * i).cos()
    return result


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options) -> Tensor:
    """alpha less (1 - alpha) times a cosine."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **options)


def hamming(M: int, *, sym: bool = True, **options) -> Tensor:
    """general_hamming with 0.54."""
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options) -> Tensor:
    """general_hamming with 0.5."""
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def blackman(M: int, *, sym: bool = True, **options) -> Tensor:
    """Three cosines."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **options)


def nuttall(M: int, *, sym: bool = True, **options) -> Tensor:
    """Four cosines."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **options)
