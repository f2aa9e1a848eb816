"""torch.nn.functional: ops by their functional names, and the few functions that are Python over them."""

import math

import prong
from prong import Tensor, _core, _names

from .function.activations import (
    celu,
    elu,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    mish,
    relu,
    relu6,
    selu,
    silu,
    threshold,
)
from .function.attention import (
    multi_head_attention_forward,
)
from .function.bags import (
    embedding,
    embedding_bag,
)
from .function.columns import fold, unfold
from .function.ctc import (
    ctc_loss,
)
from .function.distances import (
    bilinear,
    cosine_similarity,
    normalize,
    pairwise_distance,
    pdist,
)
from .function.fractional import (
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
)
from .function.grids import affine_grid, upsample, upsample_bilinear, upsample_nearest
from .function.interpolation import interpolate
from .function.losses import (
    cosine_embedding_loss,
    gaussian_nll_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    poisson_nll_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from .function.noise import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
    gumbel_softmax,
    rrelu,
    rrelu_,
)
from .function.op_losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)
from .function.pooling import (
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from .function.sampling import grid_sample
from .function.shapes import (
    channel_shuffle,
    local_response_norm,
    native_channel_shuffle,
    pixel_shuffle,
    pixel_unshuffle,
)
from .function.windows import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
)

# Every op whose definition says nn_functional, where no Python function has its name.
globals().update(
    {name: op for name, op in _core.nn_functional_ops().items() if name not in globals()}
)


def __getattr__(name):
    _names.raise_missing("prong.nn.functional", name)


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
    if input.dim() < 2 and input.numel() == 0:  # no channels, and nothing to normalise
        return input.clone()
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
    if input.dim() < 2 or input[0, 0].numel() <= 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {input.size()}"
        )
    if running_mean is not None and running_var is not None:
        with prong.no_grad():
            each = input.reshape(input.size(0), input.size(1), -1)
            running_mean.mul_(1 - momentum).add_(each.mean(-1).mean(0), alpha=momentum)
            running_var.mul_(1 - momentum).add_(each.var(-1).mean(0), alpha=momentum)
    return prong.group_norm(input, input.size(1), weight, bias, eps)


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
    given = query.dtype
    # Scores are large, and need more bits than results.
    is_widened = given in (prong.float16, prong.bfloat16)
    if is_widened:
        query, key, value = query.float(), key.float(), value.float()
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
    result = weights @ value
    return result.to(given) if is_widened else result
