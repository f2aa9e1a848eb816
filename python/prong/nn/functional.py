"""torch.nn.functional: ops by their functional names, and the few functions that are Python over them."""

import math

import prong
from prong import Tensor, _core

# Every op whose definition says nn_functional; the registry is the one list.
globals().update(_core.nn_functional_ops())


def __getattr__(name):
    raise AttributeError(
        f"prong has no torch.nn.functional.{name} yet (docs/compatibility.md lists what is here)"
    )


def softmax(
    input: Tensor,
    dim: int | None = None,
    _stacklevel: int = 3,
    dtype: prong.dtype | None = None,
) -> Tensor:
    """exp(input) scaled to sum 1 along ``dim``."""
    return prong.softmax(input, _softmax_dim(input.dim()) if dim is None else dim, dtype=dtype)


def log_softmax(
    input: Tensor,
    dim: int | None = None,
    _stacklevel: int = 3,
    dtype: prong.dtype | None = None,
) -> Tensor:
    """log(softmax(input, dim)), computed stably."""
    return prong.log_softmax(input, _softmax_dim(input.dim()) if dim is None else dim, dtype=dtype)


def softmin(
    input: Tensor,
    dim: int | None = None,
    _stacklevel: int = 3,
    dtype: prong.dtype | None = None,
) -> Tensor:
    """softmax(-input, dim)."""
    return prong.softmax(-input, _softmax_dim(input.dim()) if dim is None else dim, dtype=dtype)


def _softmax_dim(ndim: int) -> int:
    # PyTorch's rule for a missing dim.
    if ndim == 0 or ndim == 1 or ndim == 3:
        return 0
    return 1


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes elements with probability ``p`` and scales the rest by 1 / (1 - p) while training."""
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0.0:
        return input
    if p == 1.0:
        return input.mul_(0.0) if inplace else input * 0.0
    mask = prong.empty_like(input).bernoulli_(1.0 - p).div_(1.0 - p)
    return input.mul_(mask) if inplace else input * mask


def _channel_dropout(
    input: Tensor, p: float, training: bool, inplace: bool, spatial: int
) -> Tensor:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0.0:
        return input
    kept = input.dim() - spatial
    shape = list(input.shape[:kept]) + [1] * spatial
    mask = prong.empty(shape, dtype=input.dtype).bernoulli_(1.0 - p).div_(1.0 - p)
    return input.mul_(mask) if inplace else input * mask


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zeroes whole channels of [.., C, L]."""
    return _channel_dropout(input, p, training, inplace, 1)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zeroes whole channels of [.., C, H, W]."""
    return _channel_dropout(input, p, training, inplace, 2)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zeroes whole channels of [.., C, D, H, W]."""
    return _channel_dropout(input, p, training, inplace, 3)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel; see the op batch_norm."""
    return prong.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps, False
    )


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel of each sample by itself."""
    if not use_input_stats:
        return prong.batch_norm(
            input, weight, bias, running_mean, running_var, False, momentum, eps, False
        )
    return group_norm(input, input.size(1), weight, bias, eps)  # type: ignore[name-defined]  # noqa: F821 (from the registry)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of ``weight`` at the indices ``input``."""
    if max_norm is not None:
        raise NotImplementedError("embedding: prong has no max_norm yet")
    return prong.embedding(weight, input, -1 if padding_idx is None else padding_idx)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """input / max(norm(input, p, dim), eps)."""
    return input / input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between x1 and x2 along ``dim``."""
    n1 = x1.norm(2.0, dim, keepdim=True).clamp_min(eps)
    n2 = x2.norm(2.0, dim, keepdim=True).clamp_min(eps)
    return ((x1 / n1) * (x2 / n2)).sum(dim)


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """p-norm of x1 - x2 + eps along the last dimension."""
    return (x1 - x2 + eps).norm(p, -1, keepdim=keepdim)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """First half of ``dim`` times the sigmoid of the second."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    if input.size(dim) % 2 != 0:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {dim} is size {input.size(dim)}"
        )
    a, b = input.chunk(2, dim)
    return a * b.sigmoid()


def tanh(input: Tensor) -> Tensor:
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    return input.sigmoid()


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ key.T * scale + mask) @ value; scale defaults to 1 / sqrt(E)."""
    if enable_gqa:
        key = key.repeat_interleave(query.size(-3) // key.size(-3), -3)
        value = value.repeat_interleave(query.size(-3) // value.size(-3), -3)
    scores = (
        query
        @ key.transpose(-2, -1)
        * (1.0 / math.sqrt(query.size(-1)) if scale is None else scale)
    )
    if is_causal:
        if attn_mask is not None:
            raise RuntimeError(
                "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
            )
        allowed = prong.ones(query.size(-2), key.size(-2), dtype=prong.bool).tril()
        scores = scores.masked_fill(allowed.logical_not(), -math.inf)
    elif attn_mask is not None:
        if attn_mask.dtype == prong.bool:
            scores = scores.masked_fill(attn_mask.logical_not(), -math.inf)
        else:
            scores = scores + attn_mask
    weights = prong.softmax(scores, -1)
    if dropout_p > 0.0:
        weights = dropout(weights, dropout_p, True, False)
    return weights @ value


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(d(anchor, positive) - d(anchor, negative) + margin, 0)."""
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = prong.minimum(far, pairwise_distance(positive, negative, p, eps))
    loss = (near - far + margin).clamp_min(0)
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def _pixel_shape(shape: list[int], factor: int) -> list[int]:
    return [shape[0], shape[1] // (factor * factor), factor, factor, shape[2], shape[3]]


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """[N, C r^2, H, W] to [N, C, H r, W r]."""
    n, c, h, w = input.shape
    r = upscale_factor
    if c % (r * r) != 0:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
            f"upscale_factor, but input.size(-3)={c} is not divisible by {r * r}"
        )
    return (
        input.reshape(_pixel_shape([n, c, h, w], r))
        .permute(0, 1, 4, 2, 5, 3)
        .reshape(n, c // (r * r), h * r, w * r)
    )
