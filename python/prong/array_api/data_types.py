"""The standard's dtypes, what they promote to, and what they can hold."""

from dataclasses import dataclass
from typing import Any

import prong
from prong import Tensor

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

_BY_KIND = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8",),  # no op computes in uint16, uint32 or uint64
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_INTEGRAL = _BY_KIND["signed integer"] + _BY_KIND["unsigned integer"]
KINDS = _BY_KIND | {
    "integral": _INTEGRAL,
    "numeric": _INTEGRAL + _BY_KIND["real floating"] + _BY_KIND["complex floating"],
}
DTYPES = {name: getattr(prong, name) for names in _BY_KIND.values() for name in names}
_RANKS = {bool: 0, int: 1, float: 2, complex: 3}


@dataclass(frozen=True)
class FloatLimits:
    """What finfo gives: plain numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: prong.dtype


@dataclass(frozen=True)
class IntegerLimits:
    """What iinfo gives: plain numbers."""

    bits: int
    max: int
    min: int
    dtype: prong.dtype


def _dtype_of(type: Any) -> prong.dtype:
    return type.dtype if isinstance(type, Tensor) else type


def _rank(dtype: prong.dtype) -> int:
    if dtype.is_complex:
        return 3
    return 2 if dtype.is_floating_point else int(dtype != prong.bool)


def _holding(dtype: prong.dtype, number: Any) -> prong.dtype:
    """The dtype itself if numbers of this kind go into it, else the nearest that they go into."""
    rank = _RANKS[type(number)]
    if rank <= _rank(dtype):
        return dtype
    if rank == 1:
        return prong.int64
    if rank == 3:
        real = dtype if dtype.is_floating_point else prong.get_default_dtype()
        return real.to_complex()
    return prong.get_default_dtype()


def astype(x: Tensor, dtype: prong.dtype, /, *, copy: bool = True, device=None) -> Tensor:
    """x in another dtype. A complex one becomes real only by real() or imag()."""
    if x.dtype.is_complex and not dtype.is_complex and dtype != prong.bool:
        raise TypeError(f"astype: {x.dtype} does not go into {dtype}; take real(x) or imag(x)")
    return x.to(device or x.device, dtype, copy=copy)


def can_cast(from_: prong.dtype | Tensor, to: prong.dtype, /) -> bool:
    """Whether promotion leads from the one to the other. (prong.can_cast also narrows.)"""
    return prong.promote_types(_dtype_of(from_), to) == to


def finfo(type: prong.dtype | Tensor, /) -> FloatLimits:
    """The limits of a floating-point dtype; of a complex one, those of its parts."""
    dtype = _dtype_of(type)
    real = dtype.to_real() if dtype.is_complex else dtype
    limits = prong.finfo(real)
    return FloatLimits(
        limits.bits, limits.eps, limits.max, limits.min, limits.smallest_normal, real
    )


def iinfo(type: prong.dtype | Tensor, /) -> IntegerLimits:
    """The limits of an integer dtype."""
    dtype = _dtype_of(type)
    limits = prong.iinfo(dtype)
    return IntegerLimits(limits.bits, limits.max, limits.min, dtype)


def isdtype(dtype: prong.dtype, kind: Any) -> bool:
    """Whether the dtype is the given one, of the kind named, or either of a tuple's."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, prong.dtype):
        return dtype == kind
    if kind not in KINDS:
        raise ValueError(f"isdtype: there is no kind {kind!r}; the kinds are {', '.join(KINDS)}")
    return dtype in [DTYPES[name] for name in KINDS[kind]]


def result_type(*arrays_and_dtypes: Any) -> prong.dtype:
    """What the operands promote to. A tensor without dims counts as any other does here."""
    numbers = [each for each in arrays_and_dtypes if type(each) in _RANKS]
    dtypes = [_dtype_of(each) for each in arrays_and_dtypes if type(each) not in _RANKS]
    if not dtypes:
        raise ValueError("result_type: at least one operand must be a tensor or a dtype")
    made = dtypes[0]
    for dtype in dtypes[1:]:
        made = prong.promote_types(made, dtype)
    for number in numbers:
        made = _holding(made, number)
    return made


def promoted(*operands: Any) -> tuple:
    """The operands as tensors of one dtype. A Python number takes that of the tensors."""
    dtype = getattr(operands[0], "dtype", None)
    if dtype is not None and all(isinstance(x, Tensor) and x.dtype == dtype for x in operands):
        return operands
    dtype = result_type(*operands)
    return tuple(
        x.to(dtype) if isinstance(x, Tensor) else prong.asarray(x, dtype=dtype) for x in operands
    )
