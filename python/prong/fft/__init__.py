"""torch.fft: transforms over one, two or any dims, made of three ops."""

import prong
from prong import Tensor, _core, _names
from prong._out import takes_out

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

__getattr__ = _names.module_getattr(__name__)

_c2c = _core.functions["_fft_c2c"]
_r2c = _core.functions["_fft_r2c"]
_c2r = _core.functions["_fft_c2r"]

_NONE, _ROOT, _BY_N = 0, 1, 2


def _normalization(name: str, norm: str | None, forward: bool) -> int:
    if norm in (None, "backward"):
        return _NONE if forward else _BY_N
    if norm == "forward":
        return _BY_N if forward else _NONE
    if norm == "ortho":
        return _ROOT
    raise RuntimeError(f'Invalid normalization mode: "{norm}"')


def _floating(input: Tensor, name: str, needs_complex: bool) -> Tensor:
    """Integers as the default dtype; complex where that is needed."""
    if input.dtype in (prong.float16, prong.bfloat16):
        raise RuntimeError(f"Unsupported dtype {_scalar_name(input)}")
    if not (input.is_floating_point() or input.is_complex()):
        input = input.to(prong.get_default_dtype())
    return input.to(input.dtype.to_complex()) if needs_complex else input


def _real(input: Tensor, name: str) -> Tensor:
    if input.is_complex():
        raise RuntimeError(f"{name} expects a real input tensor, but got {_scalar_name(input)}")
    return _floating(input, name, needs_complex=False)


def _scalar_name(input: Tensor) -> str:
    return {
        prong.float16: "Half",
        prong.bfloat16: "BFloat16",
        prong.complex64: "ComplexFloat",
        prong.complex128: "ComplexDouble",
    }.get(input.dtype, str(input.dtype))


def _resized(input: Tensor, dims: list[int], sizes: list[int]) -> Tensor:
    """Cut off, or filled up with zeros, at the end of each dim."""
    for dim, size in zip(dims, sizes, strict=True):
        have = input.shape[dim]
        if size < have:
            input = input.narrow(dim, 0, size)
        elif size > have:
            missing = list(input.shape)
            missing[dim] = size - have
            input = prong.cat([input, input.new_zeros(missing)], dim)
    return input


def _one_dim(input: Tensor, n: int | None, dim: int) -> tuple[int, int]:
    if input.dim() == 0:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [-1, 0], but got {dim})"
        )
    if not -input.dim() <= dim < input.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-input.dim()}, "
            f"{input.dim() - 1}], but got {dim})"
        )
    dim %= input.dim()
    size = input.shape[dim] if n is None else n
    if size < 1:
        raise RuntimeError(f"Invalid number of data points ({size}) specified")
    return size, dim


@takes_out
def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform along ``dim``."""
    size, dim = _one_dim(input, n, dim)
    return _c2c_any(input, [size], [dim], _normalization("fft", norm, True), True)


@takes_out
def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of fft."""
    size, dim = _one_dim(input, n, dim)
    return _c2c_any(input, [size], [dim], _normalization("ifft", norm, False), False)


def _c2c_any(input: Tensor, sizes, dims, normalization: int, forward: bool) -> Tensor:
    if not dims:
        return _floating(input, "fft", needs_complex=True)
    if not input.is_complex() and forward:
        return _r2c(
            _resized(_floating(input, "fft", needs_complex=False), dims, sizes),
            dims,
            normalization,
            False,
        )
    return _c2c(
        _resized(_floating(input, "fft", needs_complex=True), dims, sizes),
        dims,
        normalization,
        forward,
    )


@takes_out
def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The first half of the transform of real numbers; the rest is its mirror image."""
    input = _real(input, "rfft")
    size, dim = _one_dim(input, n, dim)
    return _r2c(_resized(input, [dim], [size]), [dim], _normalization("rfft", norm, True), True)


@takes_out
def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of rfft: n real numbers."""
    size, dim = _one_dim(input, None, dim)
    size = 2 * (size - 1) if n is None else n
    return _c2r_any(input, [size], [dim], _normalization("irfft", norm, False))


def _c2r_any(input: Tensor, sizes, dims, normalization: int) -> Tensor:
    last = sizes[-1]
    if last < 1:
        raise RuntimeError(f"Invalid number of data points ({last}) specified")
    input = _floating(input, "irfft", needs_complex=True)
    input = _resized(input, dims, [*sizes[:-1], last // 2 + 1])
    return _c2r(input, dims, normalization, last)


@takes_out
def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The transform of numbers of which half is given, the rest being its mirror image: real."""
    size, dim = _one_dim(input, None, dim)
    size = 2 * (size - 1) if n is None else n
    return _c2r_any(
        _floating(input, "hfft", needs_complex=True).conj(),
        [size],
        [dim],
        _normalization("hfft", norm, True),
    )


@takes_out
def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of hfft."""
    input = _real(input, "ihfft")
    size, dim = _one_dim(input, n, dim)
    normalization = _normalization("ihfft", norm, False)
    return _r2c(_resized(input, [dim], [size]), [dim], normalization, True).conj()


# ── several dims ──


def _many_dims(input: Tensor, s, dim) -> tuple[list[int], list[int]]:
    if dim is not None:
        dim = [dim] if isinstance(dim, int) else list(dim)
        for d in dim:
            if not -input.dim() <= d < input.dim():
                raise IndexError(
                    f"Dimension out of range (expected to be in range of [{-input.dim()}, "
                    f"{input.dim() - 1}], but got {d})"
                )
        dims = [d % input.dim() for d in dim]
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
    if s is not None:
        s = [s] if isinstance(s, int) else list(s)
        if dim is None:
            if len(s) > input.dim():
                raise RuntimeError(
                    f"Got shape with {len(s)} values but input tensor only has "
                    f"{input.dim()} dimensions."
                )
            dims = list(range(input.dim() - len(s), input.dim()))
        elif len(s) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
        sizes = [input.shape[d] if size == -1 else size for size, d in zip(s, dims, strict=True)]
    else:
        if dim is None:
            dims = list(range(input.dim()))
        sizes = [input.shape[d] for d in dims]
    for size in sizes:
        if size < 1:
            raise RuntimeError(f"Invalid number of data points ({size}) specified")
    return sizes, dims


def _half_sizes(input: Tensor, s, dim, name: str) -> tuple[list[int], list[int]]:
    """Of irfftn and hfftn: the last size counts real numbers."""
    sizes, dims = _many_dims(input, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    if s is None or (not isinstance(s, int) and list(s)[-1] == -1):
        sizes[-1] = 2 * (input.shape[dims[-1]] - 1)
    return sizes, dims


@takes_out
def fftn(input: Tensor, s=None, dim=None, norm: str | None = None) -> Tensor:
    """The transform over several dims."""
    sizes, dims = _many_dims(input, s, dim)
    return _c2c_any(input, sizes, dims, _normalization("fftn", norm, True), True)


@takes_out
def ifftn(input: Tensor, s=None, dim=None, norm: str | None = None) -> Tensor:
    """The inverse of fftn."""
    sizes, dims = _many_dims(input, s, dim)
    return _c2c_any(input, sizes, dims, _normalization("ifftn", norm, False), False)


@takes_out
def rfftn(input: Tensor, s=None, dim=None, norm: str | None = None) -> Tensor:
    """The transform of real numbers over several dims; of the last one the first half."""
    input = _real(input, "rfftn")
    sizes, dims = _many_dims(input, s, dim)
    if not dims:
        raise RuntimeError("rfftn must transform at least one axis")
    return _r2c(_resized(input, dims, sizes), dims, _normalization("rfftn", norm, True), True)


@takes_out
def irfftn(input: Tensor, s=None, dim=None, norm: str | None = None) -> Tensor:
    """The inverse of rfftn."""
    sizes, dims = _half_sizes(input, s, dim, "irfftn")
    return _c2r_any(input, sizes, dims, _normalization("irfftn", norm, False))


@takes_out
def hfftn(input: Tensor, s=None, dim=None, norm: str | None = None) -> Tensor:
    """hfft over the last of several dims, fft over the others."""
    sizes, dims = _half_sizes(input, s, dim, "hfftn")
    input = _floating(input, "hfftn", needs_complex=True)
    return _c2r_any(input.conj(), sizes, dims, _normalization("hfftn", norm, True))


@takes_out
def ihfftn(input: Tensor, s=None, dim=None, norm: str | None = None) -> Tensor:
    """The inverse of hfftn."""
    input = _real(input, "ihfftn")
    sizes, dims = _many_dims(input, s, dim)
    if not dims:
        raise RuntimeError("ihfftn must transform at least one axis")
    normalization = _normalization("ihfftn", norm, False)
    return _r2c(_resized(input, dims, sizes), dims, normalization, True).conj()


@takes_out
def fft2(input: Tensor, s=None, dim=(-2, -1), norm: str | None = None) -> Tensor:
    """fftn over the last two dims."""
    return fftn(input, s, dim, norm)


@takes_out
def ifft2(input: Tensor, s=None, dim=(-2, -1), norm: str | None = None) -> Tensor:
    """ifftn over the last two dims."""
    return ifftn(input, s, dim, norm)


@takes_out
def rfft2(input: Tensor, s=None, dim=(-2, -1), norm: str | None = None) -> Tensor:
    """rfftn over the last two dims."""
    return rfftn(input, s, dim, norm)


@takes_out
def irfft2(input: Tensor, s=None, dim=(-2, -1), norm: str | None = None) -> Tensor:
    """irfftn over the last two dims."""
    return irfftn(input, s, dim, norm)


@takes_out
def hfft2(input: Tensor, s=None, dim=(-2, -1), norm: str | None = None) -> Tensor:
    """hfftn over the last two dims."""
    return hfftn(input, s, dim, norm)


@takes_out
def ihfft2(input: Tensor, s=None, dim=(-2, -1), norm: str | None = None) -> Tensor:
    """ihfftn over the last two dims."""
    return ihfftn(input, s, dim, norm)


# ── frequencies ──


@takes_out
def fftfreq(
    n: int, d: float = 1.0, *, dtype=None, device=None, requires_grad: bool = False, **_
) -> Tensor:
    """The frequency of each place of fft's result, for samples ``d`` apart."""
    values = prong.arange(n, dtype=dtype or prong.get_default_dtype(), device=device)
    values = prong.where(values < (n + 1) // 2, values, values - n) * (1.0 / (n * d))
    return values.requires_grad_() if requires_grad else values


@takes_out
def rfftfreq(
    n: int, d: float = 1.0, *, dtype=None, device=None, requires_grad: bool = False, **_
) -> Tensor:
    """The frequency of each place of rfft's result, for samples ``d`` apart."""
    values = prong.arange(n // 2 + 1, dtype=dtype or prong.get_default_dtype(), device=device)
    values = values * (1.0 / (n * d))
    return values.requires_grad_() if requires_grad else values


def _shift_dims(input: Tensor, dim) -> list[int]:
    if dim is None:
        return list(range(input.dim()))
    return [dim] if isinstance(dim, int) else list(dim)


def fftshift(input: Tensor, dim=None) -> Tensor:
    """Turned so that frequency 0 is in the middle."""
    dims = _shift_dims(input, dim)
    return input.roll([input.shape[d] // 2 for d in dims], dims)


def ifftshift(input: Tensor, dim=None) -> Tensor:
    """The inverse of fftshift."""
    dims = _shift_dims(input, dim)
    return input.roll([(input.shape[d] + 1) // 2 for d in dims], dims)
