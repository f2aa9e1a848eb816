"""Views as copies, old names, and answers about tensors as functions of torch."""

import builtins

import prong
from prong import Tensor

from .registering import FUNCTIONS, METHODS, composition

_range = builtins.range  # torch has a range of its own


def _copy_of_view(name: str, view):
    def copied(input: Tensor, *args, **kwargs):
        result = view(input, *args, **kwargs)
        if isinstance(result, Tensor):
            return result.clone()
        return type(result)(r.clone() for r in result)

    copied.__name__ = copied.__qualname__ = name
    copied.__doc__ = f"The views that {name.removesuffix('_copy')} gives, copied."
    composition()(copied)


def _method(name: str):
    return lambda input, *args, **kwargs: getattr(input, name)(*args, **kwargs)


for _name in (
    "as_strided",
    "detach",
    "diagonal",
    "expand",
    "permute",
    "select",
    "split",
    "split_with_sizes",
    "squeeze",
    "t",
    "transpose",
    "unbind",
    "unfold",
    "unsqueeze",
    "view",
):
    _copy_of_view(f"{_name}_copy", _method(_name))
_copy_of_view("alias_copy", lambda input: input.view(input.shape))
_copy_of_view("view_as_complex_copy", lambda input: prong.view_as_complex(input))
_copy_of_view("view_as_real_copy", lambda input: prong.view_as_real(input))


@composition(takes_out=False)
def slice_copy(input: Tensor, dim: int = 0, start=None, end=None, step: int = 1) -> Tensor:
    """A slice along ``dim``, copied."""
    index = [slice(None)] * (dim % input.dim()) + [slice(start, end, step)]
    return input[tuple(index)].clone()


@composition(method=True, takes_out=False)
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0):
    """chunk, whose pieces may be written without the tape's asking."""
    return tuple(t.clone() for t in input.chunk(chunks, dim))


@composition(method=True, takes_out=False)
def unsafe_split(input: Tensor, split_size: int, dim: int = 0):
    """split, whose pieces may be written without the tape's asking."""
    return tuple(t.clone() for t in input.split(split_size, dim))


@composition(method=True, takes_out=False)
def unsafe_split_with_sizes(input: Tensor, split_sizes, dim: int = 0):
    """split_with_sizes, whose pieces may be written without the tape's asking."""
    return tuple(t.clone() for t in input.split(split_sizes, dim))


@composition(takes_out=False)
def frobenius_norm(input: Tensor, dim=(), keepdim: bool = False) -> Tensor:
    """The root of the sum of squares."""
    return prong.linalg.vector_norm(input, 2, dim or None, keepdim)


@composition(takes_out=False)
def nuclear_norm(input: Tensor, dim=(-2, -1), keepdim: bool = False) -> Tensor:
    """The sum of the singular values."""
    return prong.linalg.matrix_norm(input, "nuc", dim, keepdim)


@composition(takes_out=False)
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norm over every dim but one."""
    if dim == -1:
        return v.norm(pow)
    return prong.linalg.vector_norm(v, pow, [d for d in _range(v.dim()) if d != dim], keepdim=True)


@composition(takes_out=False)
def range(start, end=None, step=1, *, dtype=None, **options) -> Tensor:
    """start, start + step, ... end included: the old form of arange."""
    if end is None:
        start, end = 0, start
    count = int((end - start) / step) + 1
    dtype = dtype or prong.get_default_dtype()
    return (prong.arange(count, dtype=dtype, **options) * step + start).to(dtype)


@composition(takes_out=False)
def svd_lowrank(A: Tensor, q: int = 6, niter: int = 2, M: Tensor | None = None):
    """The largest q singular values, with their vectors, by random projections."""
    a = A if M is None else A - M
    is_wide = a.shape[-2] < a.shape[-1]
    if is_wide:
        a = a.mH
    basis = prong.linalg.qr(a @ prong.randn(*a.shape[:-2], a.shape[-1], q, dtype=a.dtype)).Q
    for _ in [None] * niter:
        basis = prong.linalg.qr(a.mH @ basis).Q
        basis = prong.linalg.qr(a @ basis).Q
    u, s, vh = prong.linalg.svd(basis.mH @ a, full_matrices=False)
    u, v = basis @ u, vh.mH
    return (v, s, u) if is_wide else (u, s, v)


@composition(takes_out=False)
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2):
    """The main directions of rows, by random projections."""
    q = min(6, *A.shape[-2:]) if q is None else q
    if not 0 <= q <= min(A.shape[-2:]):
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)="
            f"{min(A.shape[-2:])}"
        )
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter=niter)


def _asks(name: str, answer, is_method: bool = False):
    answer.__name__ = answer.__qualname__ = name
    FUNCTIONS[name] = answer
    if is_method:
        METHODS[name] = answer


_asks("get_device", lambda input: -1)
_asks("is_conj", lambda input: False)
_asks("is_neg", lambda input: False)
_asks("is_inference", lambda input: input.is_inference())
_asks("is_distributed", lambda input: False, is_method=True)
_asks("is_same_size", lambda input, other: input.shape == other.shape)
_asks("resolve_neg", lambda input: input)


@composition(method=True)
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """nonzero with as many rows as asked for: cut off, or filled up."""
    found = input.nonzero()[:size]
    if found.shape[0] < size:
        rest = found.new_full((size - found.shape[0], input.dim()), fill_value)
        found = prong.cat([found, rest])
    return found


@composition(takes_out=False)
def native_layer_norm(input: Tensor, normalized_shape, weight, bias, eps: float):
    """layer_norm, with the mean and the inverse deviation that it used."""
    dims = list(_range(-len(normalized_shape), 0))
    mean = input.mean(dims, keepdim=True)
    scale = (input.var(dims, correction=0, keepdim=True) + eps).rsqrt()
    normal = prong.nn.functional.layer_norm(input, normalized_shape, weight, bias, eps)
    return normal, mean, scale


@composition(takes_out=False)
def empty_permuted(size, physical_layout, **options) -> Tensor:
    """An uninitialised tensor whose dims lie in memory in the order given."""
    inverse = sorted(_range(len(size)), key=lambda d: physical_layout[d])
    return prong.empty([size[d] for d in physical_layout], **options).permute(inverse)
