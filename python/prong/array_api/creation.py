"""Functions that make tensors."""

from typing import Any

import prong
from prong import Tensor

__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]


def arange(start, /, stop=None, step=1, *, dtype=None, device=None) -> Tensor:
    """start, start + step, and on, up to stop and without it; nothing where that is behind."""
    first, last = (0, start) if stop is None else (start, stop)
    if (last - first) * (1 if step > 0 else -1) <= 0:
        floating = any(isinstance(each, float) for each in (first, last, step))
        kind = prong.get_default_dtype() if floating else prong.int64
        return prong.empty(0, dtype=dtype or kind, device=device)
    return prong.arange(first, last, step, dtype=dtype, device=device)


def asarray(obj: Any, /, *, dtype=None, device=None, copy=None) -> Tensor:
    """A tensor of numbers, of nested sequences of them, or of another library's array."""
    return prong.asarray(obj, dtype=dtype, device=device, copy=copy)


def from_dlpack(x: Any, /, *, device=None, copy=None) -> Tensor:
    """A tensor over the memory of another library's array."""
    return prong.from_dlpack(x, device=device, copy=copy)


def _filled(name: str):
    make = getattr(prong, name)

    def function(shape, *, dtype=None, device=None) -> Tensor:
        return make(shape, dtype=dtype, device=device)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"prong.{name} of a shape."
    return function


def _filled_like(name: str):
    make = getattr(prong, name)

    def function(x: Tensor, /, *, dtype=None, device=None) -> Tensor:
        return make(x, dtype=dtype, device=device)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"prong.{name}, in x's dtype unless told otherwise."
    return function


empty, ones, zeros = _filled("empty"), _filled("ones"), _filled("zeros")
empty_like, ones_like, zeros_like = (
    _filled_like("empty_like"),
    _filled_like("ones_like"),
    _filled_like("zeros_like"),
)


def full(shape, fill_value, *, dtype=None, device=None) -> Tensor:
    """One value everywhere."""
    return prong.full(_sizes(shape), fill_value, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value, *, dtype=None, device=None) -> Tensor:
    """One value everywhere, in x's shape."""
    return prong.full_like(x, fill_value, dtype=dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k=0, dtype=None, device=None) -> Tensor:
    """Ones on the k-th diagonal, zeros elsewhere."""
    columns = n_rows if n_cols is None else n_cols
    if k == 0:
        return prong.eye(n_rows, columns, dtype=dtype, device=device)
    made = prong.zeros(n_rows, columns, dtype=dtype, device=device)
    if -n_rows < k < columns:
        made.diagonal(k).fill_(1)
    return made


def linspace(start, stop, /, num: int, *, dtype=None, device=None, endpoint=True) -> Tensor:
    """num numbers at equal distances, the last at stop or, without endpoint, one step before."""
    if not endpoint:
        return linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]
    if not (isinstance(start, complex) or isinstance(stop, complex)):
        return prong.linspace(start, stop, num, dtype=dtype, device=device)
    kind = dtype or prong.get_default_dtype().to_complex()
    parts = (
        prong.linspace(first, last, num, dtype=kind.to_real(), device=device)
        for first, last in ((start.real, stop.real), (start.imag, stop.imag))
    )
    return prong.complex(*parts)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """The coordinates of a grid, one tensor a dim; "xy" has the first two dims the other way."""
    return list(prong.meshgrid(list(arrays), indexing=indexing))


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The k-th diagonal and what is below."""
    return prong.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The k-th diagonal and what is above."""
    return prong.triu(x, k)


def _sizes(shape) -> tuple:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
