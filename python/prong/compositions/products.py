"""Products, distances and powers of matrices."""

import math

import prong
from prong import Tensor, _core

from .registering import composition


@composition()
def tensordot(a: Tensor, b: Tensor, dims=2) -> Tensor:
    """The sum of products over the last ``dims`` of a and the first of b, or over dims named."""
    if isinstance(dims, (list, tuple)):
        first, second = dims
    elif isinstance(dims, Tensor) and dims.numel() > 1:
        first, second = dims[0].tolist(), dims[1].tolist()
    else:
        count = int(dims)
        if count < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={count}")
        if count > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={count}")
        first, second = list(range(a.dim() - count, a.dim())), list(range(count))
    first = [first] if isinstance(first, int) else list(first)
    second = [second] if isinstance(second, int) else list(second)
    if len(first) != len(second):
        raise RuntimeError("both dimension lists should have same length")
    first, second = [d % a.dim() for d in first], [d % b.dim() for d in second]
    for i, j in zip(first, second, strict=True):
        if a.shape[i] == 1 and b.shape[j] != 1:  # what broadcasts is summed first
            b = b.sum(j, keepdim=True, dtype=b.dtype)
        elif b.shape[j] == 1 and a.shape[i] != 1:
            a = a.sum(i, keepdim=True, dtype=a.dtype)
        if a.shape[i] != b.shape[j]:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a.shape[i]} in dim {i} "
                f"and second has size {b.shape[j]} in dim {j}"
            )
    left = [d for d in range(a.dim()) if d not in first]
    right = [d for d in range(b.dim()) if d not in second]
    size = math.prod(a.shape[d] for d in first)
    x = a.permute(left + first).reshape(-1 if size else math.prod(a.shape[d] for d in left), size)
    y = b.permute(second + right).reshape(size, math.prod(b.shape[d] for d in right))
    sizes = [a.shape[d] for d in left] + [b.shape[d] for d in right]
    return (x @ y).reshape(sizes)


@composition(method=True)
def inner(input: Tensor, other: Tensor) -> Tensor:
    """The sum of products over the last dim of both."""
    if input.dim() == 0 or other.dim() == 0:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(input.shape)} and {list(other.shape)}"
        )
    return tensordot(input, other, dims=([-1], [-1]))


@composition(method=True)
def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: other times each element of input, side by side."""
    rank = max(input.dim(), other.dim())
    a = input.reshape([1] * (rank - input.dim()) + list(input.shape))
    b = other.reshape([1] * (rank - other.dim()) + list(other.shape))
    sizes = [m * n for m, n in zip(a.shape, b.shape, strict=True)]
    a = a.reshape([s for n in a.shape for s in (n, 1)])
    b = b.reshape([s for n in b.shape for s in (1, n)])
    return (a * b).reshape(sizes)


@composition(method=True)
def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix."""
    if input.dim() != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.dim()}")
    return input.diagonal().sum()


@composition(method=True)
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product along ``dim``, by default the first dim of size 3."""
    if dim is None:
        dim = next((d for d, size in enumerate(input.shape) if size == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return prong.linalg.cross(input, other, dim=dim)


def _alpha_beta(input: Tensor, product: Tensor, beta, alpha) -> Tensor:
    if not (product.is_floating_point() or product.is_complex()):
        alpha, beta = int(alpha), int(beta)
    scaled = product if alpha == 1 else product * alpha
    if beta == 0:
        return scaled
    return (input if beta == 1 else input * beta) + scaled


@composition(method=True, inplace=True)
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta=1, alpha=1) -> Tensor:
    """beta input + alpha (mat @ vec)."""
    return _alpha_beta(input, prong.mv(mat, vec), beta, alpha)


@composition(method=True, inplace=True)
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta=1, alpha=1) -> Tensor:
    """beta input + alpha (vec1 outer vec2)."""
    result = _alpha_beta(input, prong.outer(vec1, vec2), beta, alpha)
    is_bool = input.dtype is vec1.dtype is vec2.dtype is prong.bool
    return result.to(prong.bool) if is_bool else result


@composition(method=True)
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta=1, alpha=1) -> Tensor:
    """beta input + alpha times the sum of the products of two batches of matrices."""
    return _alpha_beta(input, prong.bmm(batch1, batch2).sum(0, dtype=batch1.dtype), beta, alpha)


@composition(function=False, method=True, name="addbmm_")
def _addbmm_(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta=1, alpha=1) -> Tensor:
    """In place: beta input + alpha times the sum of products; takes the result's shape."""
    result = addbmm(input, batch1, batch2, beta=beta, alpha=alpha)
    if result.shape != input.shape:
        input.resize_(result.shape)
    return input.copy_(result)


@composition(function=False, inplace=True, name="addmm")
def _addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta=1, alpha=1) -> Tensor:
    """beta input + alpha (mat1 @ mat2)."""
    return prong.addmm(input, mat1, mat2, beta=beta, alpha=alpha)


@composition(function=False, inplace=True, name="baddbmm")
def _baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta=1, alpha=1) -> Tensor:
    """beta input + alpha (batch1 @ batch2)."""
    return prong.baddbmm(input, batch1, batch2, beta=beta, alpha=alpha)


@composition(takes_out=False)
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """The product of several matrices, in the order that costs least."""
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = tuple(matrices[0])
    if len(matrices) == 0:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    result = matrices[0] if len(matrices) == 1 else prong.linalg.multi_dot(list(matrices))
    return result if out is None else prong.clone(result, out=out)


@composition(method=True)
def matrix_power(input: Tensor, n: int) -> Tensor:
    """linalg.matrix_power."""
    return prong.linalg.matrix_power(input, n)


@composition(method=True, takes_out=False)
def matrix_exp(input: Tensor) -> Tensor:
    """linalg.matrix_exp."""
    return prong.linalg.matrix_exp(input)


@composition(takes_out=False)
def cdist(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """The p-norm distance between each row of x1 and each row of x2, by batches."""
    if x1.dim() < 2 or x2.dim() < 2:
        which, t = ("X1", x1) if x1.dim() < 2 else ("X2", x2)
        raise RuntimeError(f"cdist only supports at least 2D tensors, {which} got: {t.dim()}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}"
        )
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    modes = {
        "use_mm_for_euclid_dist_if_necessary": max(x1.shape[-2], x2.shape[-2]) > 25,
        "use_mm_for_euclid_dist": True,
        "donot_use_mm_for_euclid_dist": False,
    }
    if compute_mode not in modes:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    if p == 2 and modes[compute_mode]:
        squares = (x1 * x1).sum(-1, True) + (x2 * x2).sum(-1, True).mT - 2 * (x1 @ x2.mT)
        return _root(squares.clamp(min=0))
    return _norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


def _root(squares: Tensor) -> Tensor:
    """The square root, with gradient 0 where it is 0."""
    is_zero = squares == 0
    return prong.where(is_zero, 0.0, prong.where(is_zero, 1.0, squares).sqrt())


def _norm(difference: Tensor, p: float) -> Tensor:
    if p == 2:
        return _root((difference * difference).sum(-1))
    if p == 1:
        return difference.abs().sum(-1)
    if p == 0:
        return ((difference != 0).to(difference.dtype) + difference * 0).sum(-1)
    if p == math.inf:
        return difference.abs().amax(-1)
    return (difference.abs() ** p).sum(-1) ** (1 / p)


@composition(takes_out=False)
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The distances between all pairs of rows."""
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    i, j = prong.triu_indices(input.shape[0], input.shape[0], 1).unbind()
    return _norm(input[i] - input[j], p)


@composition(takes_out=False)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """nn.functional.bilinear."""
    return prong.nn.functional.bilinear(input1, input2, weight, bias)


@composition(method=True)
def lu(input: Tensor, pivot: bool = True, get_infos: bool = False):
    """The LU factors in one matrix and the row exchanges (linalg.lu_factor_ex)."""
    factors, pivots, info = _core.op_modules["linalg"]["lu_factor_ex"](input, pivot=pivot)
    return (factors, pivots, info) if get_infos else (factors, pivots)


_einsum, _norm_op = _core.functions["einsum"], _core.functions["norm"]


@composition(replaces=True, takes_out=False)
def einsum(*args) -> Tensor:
    """Sums of products in Einstein's notation: an equation, or operands and lists of numbers."""
    if args and isinstance(args[0], str):
        return _einsum(*args)
    operands, subscripts = list(args[:-1:2]), list(args[1::2])
    output = args[-1] if len(args) % 2 else None
    if output is not None:
        operands, subscripts = list(args[:-1:2]), list(args[1:-1:2])
    text = ",".join(map(_letters, subscripts))
    return _einsum(text if output is None else f"{text}->{_letters(output)}", *operands)


def _letters(numbers) -> str:
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    return "".join("..." if n is ... else alphabet[n] for n in numbers)


@composition(replaces=True, method=True)
def norm(input: Tensor, p="fro", dim=None, keepdim: bool = False, dtype=None) -> Tensor:
    """The p-norm over dim: of the elements, or 'nuc' for matrices."""
    if p == "nuc":
        dims = (-2, -1) if dim is None else dim
        return prong.linalg.matrix_norm(input, "nuc", dims, keepdim, dtype=dtype)
    return _norm_op(input, 2 if p == "fro" or p is None else p, dim, keepdim, dtype=dtype)
