"""The Fourier transforms' extension: prong.fft, with axis for dim."""

from collections.abc import Callable

import prong
from prong import Tensor

_ONE = "fft ifft rfft irfft hfft ihfft".split()
_MANY = "fftn ifftn rfftn irfftn".split()

__all__ = [*_ONE, *_MANY, "fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def _over_one(op: Callable) -> Callable:
    def function(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"):
        return op(x, n, axis, norm)

    return function


def _over_many(op: Callable) -> Callable:
    def function(x: Tensor, /, *, s=None, axes=None, norm: str = "backward"):
        return op(x, s, axes, norm)

    return function


def _shifted(op: Callable) -> Callable:
    def function(x: Tensor, /, *, axes=None) -> Tensor:
        return op(x, axes)

    return function


def _frequencies(op: Callable) -> Callable:
    def function(n: int, /, *, d: float = 1.0, dtype=None, device=None) -> Tensor:
        return op(n, d, dtype=dtype, device=device)

    return function


def _made(name: str, make: Callable) -> Callable:
    function = make(getattr(prong.fft, name))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"prong.fft.{name}, with the standard's signature."
    return function


globals().update({name: _made(name, _over_one) for name in _ONE})
globals().update({name: _made(name, _over_many) for name in _MANY})
fftshift, ifftshift = _made("fftshift", _shifted), _made("ifftshift", _shifted)
fftfreq, rfftfreq = _made("fftfreq", _frequencies), _made("rfftfreq", _frequencies)
