"""Elementwise functions: the ops of the package, with operands promoted as the standard says."""

from collections.abc import Callable
from typing import Any

import prong
from prong import Tensor
from prong.array_api.data_types import promoted

# The standard's name, where it isn't the op's.
_OTHER_NAMES = {
    "bitwise_invert": "bitwise_not",
    "conj": "conj_physical",
    "equal": "eq",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "negative": "neg",
    "not_equal": "ne",
}
_UNARY = (
    "abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cosh exp expm1 floor imag "
    "isfinite isinf isnan log log1p log2 log10 logical_not negative positive real reciprocal "
    "signbit sinh sqrt square tanh trunc"
).split()
_BINARY = (
    "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign "
    "divide equal floor_divide greater greater_equal hypot less less_equal logaddexp logical_and "
    "logical_or logical_xor maximum minimum multiply nextafter not_equal pow subtract"
).split()

__all__ = [*_UNARY, *_BINARY, "clip", "cos", "remainder", "round", "sign", "sin", "tan"]


def _unary(op: Callable) -> Callable:
    def function(x: Tensor, /) -> Tensor:
        return op(x)

    return function


def _binary(op: Callable) -> Callable:
    def function(x1: Any, x2: Any, /) -> Tensor:
        return op(*promoted(x1, x2))

    return function


def _made(name: str, make: Callable) -> Callable:
    own = _OTHER_NAMES.get(name, name)
    function = make(getattr(prong, own))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"prong.{own}, with the standard's signature and promotion."
    return function


globals().update({name: _made(name, _unary) for name in _UNARY})
globals().update({name: _made(name, _binary) for name in _BINARY})


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """x held between the bounds; in x's dtype, whatever theirs."""
    if min is None and max is None:
        return prong.clone(x)
    bounds = [b.to(x.dtype) if isinstance(b, Tensor) else b for b in (min, max)]
    if any(isinstance(b, Tensor) for b in bounds):
        bounds = [b if b is None else prong.asarray(b, dtype=x.dtype) for b in bounds]
    return prong.clamp(x, *bounds).to(x.dtype)


def cos(x: Tensor, /) -> Tensor:
    """The cosine."""
    return _of_any_angle(prong.cos, x)


def sin(x: Tensor, /) -> Tensor:
    """The sine."""
    return _of_any_angle(prong.sin, x)


def tan(x: Tensor, /) -> Tensor:
    """The tangent."""
    return _of_any_angle(prong.tan, x)


def _of_any_angle(op: Callable, x: Tensor) -> Tensor:
    """The op, in float64 for the float32 angles that are too wide for it: it gives NaN of those."""
    made = op(x)
    if x.dtype != prong.float32:
        return made
    is_far = prong.isnan(made) & prong.isfinite(x)
    return prong.where(is_far, op(x.to(prong.float64)).to(x.dtype), made) if is_far.any() else made


def remainder(x1: Any, x2: Any, /) -> Tensor:
    """What division leaves, with the divisor's sign, also where it is zero."""
    dividend, divisor = promoted(x1, x2)
    left = prong.remainder(dividend, divisor)
    if not left.is_floating_point():
        return left
    return prong.where(left == 0, prong.copysign(left, divisor), left)


def round(x: Tensor, /) -> Tensor:
    """The nearest whole number, the even one of two; of a complex number, that of each part."""
    if x.is_complex():
        return prong.complex(prong.round(x.real), prong.round(x.imag))
    return prong.round(x)


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1, NaN of NaN; of a complex number, it divided by its size."""
    signs = prong.sgn(x)
    return prong.where(prong.isnan(x), x, signs) if x.is_floating_point() else signs
