"""Copies of a tensor with a part written, and writes by index."""

import prong
from prong import Tensor

from .registering import METHODS, composition


def _written(input: Tensor, src: Tensor, view) -> Tensor:
    result = input.clone()
    part = view(result)
    if part.shape != src.shape:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(src.shape)}, slice size = {list(part.shape)}"
        )
    part.copy_(src)
    return result


@composition(method=True)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """input with ``src`` in the place of input.select(dim, index)."""
    return _written(input, src, lambda t: t.select(dim, index))


@composition(method=True)
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """input with ``src`` in the place of a slice along ``dim``."""
    index = [slice(None)] * (dim % input.dim()) + [slice(start, end, step)]
    return _written(input, src, lambda t: t[tuple(index)])


@composition(method=True)
def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """input with ``src`` as its diagonal."""
    return _written(input, src, lambda t: t.diagonal(offset, dim1, dim2))


@composition(method=True)
def as_strided_scatter(
    input: Tensor, src: Tensor, size, stride, storage_offset: int | None = None
) -> Tensor:
    """input with ``src`` in the place of input.as_strided(size, stride, storage_offset)."""
    return _written(input, src, lambda t: t.as_strided(size, stride, storage_offset or 0))


@composition(method=True, inplace=True)
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self=True
) -> Tensor:
    """Slices of ``source`` reduced into those of input that ``index`` names: prod, mean, amax, amin."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got "
            f"{reduce}."
        )
    if index.dim() > 1:
        raise RuntimeError("index_reduce(): Index is supposed to be a vector")
    if input.dim() == 0:
        scalar = index_reduce(
            input.reshape(1), 0, index, source.reshape(-1), reduce, include_self=include_self
        )
        return scalar.reshape([])
    sizes = [1] * input.dim()
    sizes[dim] = index.numel()
    places = index.to(prong.int64).reshape(sizes).expand(source.shape)
    return prong.scatter_reduce(input, dim, places, source, reduce, include_self=include_self)


@composition(method=True, inplace=True)
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """``source`` written to places of the flattened input."""
    if index.numel() != source.numel():
        raise RuntimeError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source.numel()}, index.numel() = {index.numel()}"
        )
    flat = prong.index_put(input.flatten(), (index.flatten(),), source.flatten(), accumulate)
    return flat.reshape(input.shape)


@composition()
def fill(input: Tensor, value) -> Tensor:
    """A tensor of input's shape and dtype full of ``value``."""
    return input.clone().fill_(value)


@composition(takes_out=False)
def fill_(input: Tensor, value) -> Tensor:
    """In place: every element is ``value``."""
    return input.fill_(value)


@composition(takes_out=False)
def zero_(input: Tensor) -> Tensor:
    """In place: every element is 0."""
    return input.zero_()


@composition(takes_out=False)
def index_put_(input: Tensor, indices, values: Tensor, accumulate: bool = False) -> Tensor:
    """In place: values written to places given by index tensors."""
    return input.index_put_(indices, values, accumulate)


@composition(takes_out=False)
def detach_(input: Tensor) -> Tensor:
    """In place: cut off from the graph of gradients."""
    return input.detach_()


def fill_diagonal_(self: Tensor, fill_value, wrap: bool = False) -> Tensor:
    """Writes ``fill_value`` to the main diagonal; again below, for a tall matrix, if ``wrap``."""
    if self.dim() < 2:
        raise RuntimeError("dimensions must larger than 1")
    if self.dim() > 2 and len(set(self.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    size, stride = min(self.shape), sum(self.stride())
    main = self.as_strided((size,), (stride,), self.storage_offset())
    main.fill_(fill_value)
    if wrap and self.dim() == 2 and self.shape[0] > self.shape[1] + 1:
        width = self.shape[1]
        start = self.stride(0) * (width + 1)
        count = (self.shape[0] * width - (width + 1) * width + width) // (width + 1)
        rest = self.as_strided((count,), (stride,), self.storage_offset() + start)
        rest.fill_(fill_value)
    return self


def float_power_(self: Tensor, exponent) -> Tensor:
    """In place: float_power, of tensors of float64."""
    result = prong.float_power(self, exponent)
    if result.dtype is not self.dtype:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {self.dtype} but the operation's result "
            f"requires dtype {result.dtype}"
        )
    return self.copy_(result)


def new_empty_strided(self: Tensor, size, stride, *, dtype=None, device=None, **_) -> Tensor:
    """An uninitialised tensor of these sizes and strides."""
    return prong.empty_strided(size, stride, dtype=dtype or self.dtype)


@composition(method=True, takes_out=False)
def isreal(input: Tensor) -> Tensor:
    """True where the imaginary part is 0."""
    if input.is_complex():
        return input.imag == 0
    return prong.ones_like(input, dtype=prong.bool)


@composition(method=True, takes_out=False)
def is_nonzero(input: Tensor) -> bool:
    """Whether the one element is not 0."""
    if input.numel() == 0:
        raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
    if input.numel() > 1:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    return bool(input)


for _method in (fill_diagonal_, float_power_, new_empty_strided):
    METHODS[_method.__name__] = _method
