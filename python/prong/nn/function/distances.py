"""Distances, angles and norms between vectors."""

import prong
from prong import Tensor


def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """input / max(norm(input, p, dim), eps)."""
    result = input / input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return result if out is None else out.copy_(result)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between x1 and x2 along ``dim``."""
    if x1.dim() != x2.dim() and dim >= 0:
        x1, x2 = prong.broadcast_tensors(x1, x2)  # then dim counts the dims of both
    elif x1.dim() != x2.dim() or (x1.dim() > 0 and x1.shape[dim] != x2.shape[dim]):
        x1, x2 = prong.broadcast_tensors(x1, x2)
    n1 = x1.norm(2.0, dim, keepdim=True).clamp_min(eps)
    n2 = x2.norm(2.0, dim, keepdim=True).clamp_min(eps)
    return ((x1 / n1) * (x2 / n2)).sum(dim)


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """p-norm of x1 - x2 + eps along the last dimension."""
    return (x1 - x2 + eps).norm(p, -1, keepdim=keepdim)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """p-norms of the differences of all pairs of rows, the first row's first."""
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    first, second = prong.triu_indices(input.size(0), input.size(0), 1)
    return (input[first] - input[second]).norm(p, -1)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input1^T W_k input2 for each output k, plus bias."""
    if input1.dim() != input2.dim():
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {input1.dim()} and {input2.dim()}"
        )
    if input1.size(-1) != weight.size(1) or input2.size(-1) != weight.size(2):
        raise RuntimeError(
            f"bilinear(): input sizes {input1.size(-1)} and {input2.size(-1)} do not match those of "
            f"weight: {weight.size(1)} and {weight.size(2)}"
        )
    left = prong.einsum("...i,kij->...kj", [input1, weight])
    result = (left * input2.unsqueeze(-2)).sum(-1, dtype=left.dtype)
    return result if bias is None else result + bias
