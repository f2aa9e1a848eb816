"""Tensors side by side, cut up, combined."""

import itertools

import prong
from prong import Size, Tensor, _core

from .registering import composition


@composition(takes_out=False)
def broadcast_shapes(*shapes) -> Size:
    """The shape that tensors of these shapes broadcast to."""
    sizes: list[int] = []
    for shape in shapes:
        shape = [shape] if isinstance(shape, int) else list(shape)
        for size in shape:
            if size < 0:
                raise RuntimeError(
                    f"Trying to create tensor with negative dimension ({size}): ({size})"
                )
        sizes = [1] * (len(shape) - len(sizes)) + sizes
        for i in range(1, len(shape) + 1):
            if shape[-i] == 1 or shape[-i] == sizes[-i]:
                continue
            if sizes[-i] != 1:
                raise RuntimeError("Shape mismatch: objects cannot be broadcast to a single shape")
            sizes[-i] = shape[-i]
    return Size(sizes)


def _listed(tensors) -> list[Tensor]:
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return list(tensors[0])
    return list(tensors)


@composition(takes_out=False)
def broadcast_tensors(*tensors) -> tuple[Tensor, ...]:
    """The tensors as views of their common shape; those that have it already, as they are."""
    given = _listed(tensors)
    try:
        sizes = broadcast_shapes(*(t.shape for t in given))
    except RuntimeError:
        raise RuntimeError(_first_mismatch([t.shape for t in given])) from None
    return tuple(t if t.shape == sizes else t.expand(sizes) for t in given)


def _first_mismatch(shapes):
    """The text about the first of the shapes that does not fit those before it."""
    seen = shapes[0]
    for shape in shapes[1:]:
        rank = max(len(seen), len(shape))
        for i in range(1, min(len(seen), len(shape)) + 1):
            if seen[-i] != shape[-i] and 1 not in (seen[-i], shape[-i]):
                return (
                    f"The size of tensor a ({seen[-i]}) must match the size of tensor b "
                    f"({shape[-i]}) at non-singleton dimension {rank - i}"
                )
        seen = broadcast_shapes(seen, shape)
    return "the tensors cannot be broadcast to one shape"


@composition(takes_out=False)
def atleast_3d(*tensors):
    """Tensors with dimensions of size 1 added, up to three."""
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        x = tensors[0]
        if x.dim() == 0:
            return x.reshape(1, 1, 1)
        if x.dim() == 1:
            return x[None, :, None]
        return x.unsqueeze(-1) if x.dim() == 2 else x
    return tuple(atleast_3d(t) for t in _listed(tensors))


@composition()
def column_stack(tensors) -> Tensor:
    """Vectors as columns, matrices beside each other."""
    return prong.cat([t.reshape(-1, 1) if t.dim() <= 1 else t for t in tensors], 1)


@composition()
def dstack(tensors) -> Tensor:
    """Behind each other along the third dim."""
    return prong.cat([atleast_3d(t) for t in tensors], 2)


def _splitter(name: str, dim_of):
    def split(input: Tensor, indices_or_sections) -> tuple[Tensor, ...]:
        dim, least = dim_of(input)
        if input.dim() < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension"
                f"{'s' if least > 1 else ''}, but got a tensor with {input.dim()} dimensions!"
            )
        sections = indices_or_sections
        if isinstance(sections, int) and (sections <= 0 or input.shape[dim] % sections):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the "
                f"dimension {input.shape[dim]} is not divisible by the split_size {sections}!"
            )
        if isinstance(sections, int):
            return tuple(prong.tensor_split(input, sections, dim))
        edges = [0, *(int(i) for i in sections), input.shape[dim]]
        index = [slice(None)] * dim
        return tuple(
            input[(*index, slice(first, last))] for first, last in itertools.pairwise(edges)
        )

    split.__name__ = split.__qualname__ = name
    split.__doc__ = "Cut into views along one dim."
    return composition(method=True, takes_out=False)(split)


hsplit = _splitter("hsplit", lambda t: (0 if t.dim() == 1 else 1, 1))
vsplit = _splitter("vsplit", lambda t: (0, 2))
dsplit = _splitter("dsplit", lambda t: (2, 3))


@composition(takes_out=False)
def block_diag(*tensors) -> Tensor:
    """Matrices along the diagonal of one, zeros around them."""
    if not tensors:
        return prong.empty(1, 0)
    matrices = []
    for i, t in enumerate(_listed(tensors)):
        if t.dim() > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. "
                f"Input {i} has {t.dim()} dimensions"
            )
        matrices.append(t.reshape(1, -1) if t.dim() < 2 else t)
    columns = sum(m.shape[1] for m in matrices)
    dtype = matrices[0].dtype
    for m in matrices[1:]:
        dtype = prong.promote_types(dtype, m.dtype)
    rows, before = [], 0
    for m in matrices:
        after = columns - before - m.shape[1]
        left, right = (prong.zeros(m.shape[0], n, dtype=dtype) for n in (before, after))
        rows.append(prong.cat([left, m.to(dtype), right], 1))
        before += m.shape[1]
    return prong.cat(rows, 0)


@composition(takes_out=False)
def cartesian_prod(*tensors) -> Tensor:
    """Every choice of one element from each vector, as rows."""
    lines = _listed(tensors)
    for line in lines:
        if line.dim() != 1:
            raise RuntimeError("Expect a 1D vector, but got shape " + str(list(line.shape)))
    if len(lines) == 1:
        return lines[0]
    grids = prong.meshgrid(lines, indexing="ij")
    return prong.stack([g.flatten() for g in grids], 1)


@composition(takes_out=False)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Every choice of r elements of a vector, in order."""
    if input.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return prong.empty(0, dtype=input.dtype)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = list(choose(range(input.shape[0]), r))
    if not places:
        return input.new_empty(0, r) + input[:0].unsqueeze(-1)
    return input[prong.tensor(places)]


@composition(method=True)
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with the elements on its diagonal."""
    return prong.diag(input.flatten(), offset)


@composition(takes_out=False)
def unravel_index(indices: Tensor, shape) -> tuple[Tensor, ...]:
    """Places in a flattened tensor as places along each dim."""
    if indices.is_floating_point() or indices.is_complex() or indices.dtype is prong.bool:
        raise ValueError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    shape = [shape] if isinstance(shape, int) else list(shape)
    indices = indices.to(prong.int64)
    places = []
    for size in reversed(shape):
        places.append(indices % size)
        indices = prong.div(indices, size, rounding_mode="floor")
    return tuple(reversed(places))


@composition()
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of each element as a row, from high to low unless increasing."""
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x.shape[0] if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    if count == 0:
        return x.new_zeros(x.shape[0], 0)
    if count == 1:
        return prong.ones_like(x).unsqueeze(1)
    powers = prong.linalg.vander(x, N=count)
    return powers if increasing else powers.flip(1)


@composition(method=True)
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """narrow, copied."""
    return input.narrow(dim, start, length).clone()


def _raised(name: str):
    op = _core.functions[name]

    def atleast(*tensors):
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return op(tensors[0])
        return tuple(op(t) for t in _listed(tensors))

    atleast.__name__ = atleast.__qualname__ = name
    atleast.__doc__ = "Tensors with dimensions of size 1 added in front."
    return composition(replaces=True, takes_out=False)(atleast)


atleast_1d = _raised("atleast_1d")
atleast_2d = _raised("atleast_2d")
