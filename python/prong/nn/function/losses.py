"""Losses that are compositions of ops."""

import math
from collections.abc import Callable

import prong
from prong import Tensor

from .distances import pairwise_distance


def reduction_of(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction, from it or from the two arguments that it replaced."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is not None and not reduce:
        return "none"
    if size_average is None or size_average:
        return "mean"
    return "sum"


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """The mean, the sum, or all of them."""
    if reduction == "none":
        return loss
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    raise ValueError(f"{reduction} is not a valid value for reduction")


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -target (input1 - input2) + margin)."""
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    loss = (-target * (input1 - input2) + margin).clamp_min(0)
    return reduced(loss, reduction_of(size_average, reduce, reduction))


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """input where target is 1, max(0, margin - input) where it is -1."""
    zeros = prong.zeros_like(input)
    far = prong.where(target == 1, zeros, (margin - input).clamp_min(0))
    near = prong.where(target == -1, zeros, input)
    return reduced(far + near, reduction_of(size_average, reduce, reduction))


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target input))."""
    loss = (-target * input).exp().log1p()
    return reduced(loss, reduction_of(size_average, reduce, reduction))


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""
    if target.dim() > 1:
        raise RuntimeError(
            f"0D or 1D target tensor expected, multi-target not supported, got {target.dim()}D"
        )
    eps = 1e-12  # inside of the root, as PyTorch has it here
    product = (input1 * input2).sum(-1)
    lengths = (((input1 * input1).sum(-1) + eps) * ((input2 * input2).sum(-1) + eps)).sqrt()
    cosine = product / lengths
    zeros = prong.zeros_like(cosine)
    near = prong.where(target == 1, 1 - cosine, zeros)
    far = prong.where(target == -1, (cosine - margin).clamp_min(0), zeros)
    return reduced(near + far, reduction_of(size_average, reduce, reduction))


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood of counts; ``full`` adds Stirling's term."""
    reduction = reduction_of(size_average, reduce, reduction)
    if log_input:
        loss = input.exp() - target * input
    else:
        loss = input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return reduced(loss, reduction)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood of normal numbers with the given variances."""
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * prong.ones_like(input)
    elif (var < 0).any():
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif (
            not (input.size()[:-1] == var.size()[:-1] and var.size(-1) == 1)
            and input.dim() != var.dim()
        ):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    var = var.clone()
    with prong.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Binary cross entropy of logits, averaged over classes."""
    loss = -(
        target * prong.nn.functional.logsigmoid(input)
        + (1 - target) * prong.nn.functional.logsigmoid(-input)
    )
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(-1) / input.size(-1)
    return reduced(loss, reduction_of(size_average, reduce, reduction))


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Mean over the wrong classes of max(0, margin - right + wrong)^p."""
    if p != 1 and p != 2:
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    rows = input if input.dim() == 2 else input.reshape(1, -1)
    classes = target.reshape(-1, 1)
    loss = (margin - rows.gather(1, classes) + rows).clamp_min(0)
    if p == 2:
        loss = loss * loss
    if weight is not None:
        loss = loss * weight[classes]
    loss = loss.scatter(1, classes, 0.0).sum(1) / rows.size(1)
    if input.dim() < 2:
        loss = loss.squeeze(0)
    return reduced(loss, reduction_of(size_average, reduce, reduction))


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Margins between each right class (listed until the first -1) and each wrong one."""
    if target.shape != input.shape:
        raise RuntimeError(
            f"inconsistent target size: {target.size()} for input of size: {input.size()}"
        )
    rows = input if input.dim() == 2 else input.reshape(1, -1)
    classes = target if target.dim() == 2 else target.reshape(1, -1)
    listed = (classes >= 0).to(prong.int64).cumprod(1)
    places = classes.clamp_min(0)
    right = prong.zeros_like(classes).scatter_add(1, places, listed) > 0
    margins = (1 - rows.gather(1, places).unsqueeze(2) + rows.unsqueeze(1)).clamp_min(0)
    counted = (listed > 0).unsqueeze(2) & right.logical_not().unsqueeze(1)
    loss = prong.where(counted, margins, 0.0).sum([1, 2]) / rows.size(1)
    if input.dim() < 2:
        loss = loss.squeeze(0)
    return reduced(loss, reduction_of(size_average, reduce, reduction))


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin)."""
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if anchor.dim() != positive.dim() or anchor.dim() != negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.dim()}D, positive {positive.dim()}D, and negative "
            f"{negative.dim()}D inputs"
        )
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = prong.minimum(far, pairwise_distance(positive, negative, p, eps))
    loss = (margin + near - far).clamp_min(0)
    return reduced(loss, reduction_of(size_average, reduce, reduction))


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """triplet_margin_loss with a distance of one's own."""
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative "
            f"{negative.ndim}D inputs"
        )
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = prong.minimum(far, distance(positive, negative))
    return reduced((margin + near - far).clamp_min(0), reduction)
