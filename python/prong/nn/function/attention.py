"""multi_head_attention_forward and its masks; called by nn.MultiheadAttention and the transformer layers."""

import math
import warnings

import prong
from prong import Tensor

DType = prong.dtype


def canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: DType | None,
    other_name: str,
    target_type: DType,
    check_other: bool = True,
) -> Tensor | None:
    """A mask to add: -inf where a mask of bools is True; masks of numbers stay."""
    if mask is None:
        return None
    if mask.dtype != prong.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. "
            "Use same type for both instead.",
            stacklevel=3,
        )
    if mask.is_floating_point():
        return mask
    return prong.zeros_like(mask, dtype=target_type).masked_fill_(mask, -math.inf)


def dtype_or_none(input: Tensor | None) -> DType | None:
    """The dtype of a tensor that may be missing."""
    return None if input is None else input.dtype


def _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads) -> bool:
    """Raises for shapes that don't fit; whether there is a batch dimension."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            "query should be unbatched 2D or batched 3D tensor but received "
            f"{query.dim()}-D query tensor"
        )
    batched = query.dim() == 3
    which, rank = ("batched (3-D)", 3) if batched else ("unbatched (2-D)", 2)
    if key.dim() != rank or value.dim() != rank:
        raise AssertionError(
            f"For {which} `query`, expected `key` and `value` to be {rank}-D but found "
            f"{key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != rank - 1:
        raise AssertionError(
            f"For {which} `query`, expected `key_padding_mask` to be `None` or {rank - 1}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None and attn_mask.dim() not in (2, 3):
        raise AssertionError(
            f"For {which} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
            f"{attn_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None and not batched and attn_mask.dim() == 3:
        expected = (num_heads, query.shape[0], key.shape[0])
        if tuple(attn_mask.shape) != expected:
            raise AssertionError(
                f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}"
            )
    return batched


def _project(query, key, value, weights, bias):
    """The three products at the input: from one stacked weight, or from three."""
    linear = prong.nn.functional.linear
    if isinstance(weights, Tensor):
        if key is value and query is key:
            return linear(query, weights, bias).chunk(3, -1)
        weights = weights.chunk(3)
    biases = (None, None, None) if bias is None else bias.chunk(3)
    return [linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases)]


def _check_mask(attn_mask, batch, heads, tgt_len, src_len):
    """The mask with a dimension for batch and heads."""
    if attn_mask.dim() == 2:
        if tuple(attn_mask.shape) != (tgt_len, src_len):
            raise RuntimeError(
                f"The shape of the 2D attn_mask is {attn_mask.shape}, but should be "
                f"{(tgt_len, src_len)}."
            )
        return attn_mask.unsqueeze(0)
    if tuple(attn_mask.shape) != (batch * heads, tgt_len, src_len):
        raise RuntimeError(
            f"The shape of the 3D attn_mask is {attn_mask.shape}, but should be "
            f"{(batch * heads, tgt_len, src_len)}."
        )
    return attn_mask


def _check_embedding(embed_dim, expected, heads, query, key, value, separate):
    if embed_dim != expected:
        raise AssertionError(
            f"was expecting embedding dimension of {expected}, but got {embed_dim}"
        )
    if embed_dim % heads != 0:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {heads}")
    if separate and key.shape[:2] != value.shape[:2]:
        raise AssertionError(
            f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
        )
    if not separate and key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")


def _by_head(x, batch, heads):
    """[length, batch, heads * size] to [batch, heads, length, size]."""
    return x.reshape(x.size(0), batch, heads, -1).permute(1, 2, 0, 3)


def _given_heads(x, name, batch, heads, size):
    if x.size(0) != batch * heads:
        raise AssertionError(f"expecting {name}.size(0) of {batch * heads}, but got {x.size(0)}")
    if x.size(2) != size:
        raise AssertionError(f"expecting {name}.size(2) of {size}, but got {x.size(2)}")
    return x.reshape(batch, heads, x.size(1), size)


def _one_more(mask):
    return None if mask is None else prong.nn.functional.pad(mask, (0, 1))


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention of [length, batch, features] in ``num_heads`` heads; the weights too if needed."""
    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same_key, same_value = query is key, key is value
        query = query.unsqueeze(1)
        key = query if same_key else key.unsqueeze(1)
        value = key if same_value else value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    tgt_len, batch, embed_dim = query.shape
    src_len = key.size(0)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    key_padding_mask = canonical_mask(
        key_padding_mask, "key_padding_mask", dtype_or_none(attn_mask), "attn_mask", query.dtype
    )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None  # the attention itself makes it
    else:
        attn_mask = canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
        is_causal = is_causal and key_padding_mask is None
    _check_embedding(
        embed_dim, embed_dim_to_check, num_heads, query, key, value, use_separate_proj_weight
    )
    weights = (
        (q_proj_weight, k_proj_weight, v_proj_weight)
        if use_separate_proj_weight
        else in_proj_weight
    )
    q, k, v = _project(query, key, value, weights, in_proj_bias)
    if attn_mask is not None:
        attn_mask = _check_mask(attn_mask, batch, num_heads, tgt_len, src_len)
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key and value.")
        k = prong.cat([k, bias_k.repeat(1, batch, 1)])
        v = prong.cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, key_padding_mask = _one_more(attn_mask), _one_more(key_padding_mask)
    head_dim = embed_dim // num_heads
    q = _by_head(q, batch, num_heads)
    if static_k is None:
        k = _by_head(k, batch, num_heads)
    else:
        k = _given_heads(static_k, "static_k", batch, num_heads, head_dim)
    if static_v is None:
        v = _by_head(v, batch, num_heads)
    else:
        v = _given_heads(static_v, "static_v", batch, num_heads, head_dim)
    if add_zero_attn:
        zeros = prong.zeros((batch, num_heads, 1, head_dim), dtype=k.dtype)
        k, v = prong.cat([k, zeros], 2), prong.cat([v, zeros], 2)
        attn_mask, key_padding_mask = _one_more(attn_mask), _one_more(key_padding_mask)
    mask = _merged(attn_mask, key_padding_mask, batch, num_heads, k.size(2))
    dropout_p = dropout_p if training else 0.0
    if need_weights:
        output, attention = _with_weights(q, k, v, mask, dropout_p)
        if average_attn_weights:
            attention = attention.mean(1)
        attention = attention if batched else attention.squeeze(0)
    else:
        output = prong.nn.functional.scaled_dot_product_attention(
            q, k, v, mask, dropout_p, is_causal
        )
        attention = None
    output = output.permute(2, 0, 1, 3).reshape(tgt_len * batch, embed_dim)
    output = prong.nn.functional.linear(output, out_proj_weight, out_proj_bias)
    output = output.reshape(tgt_len, batch, output.size(1))
    return (output if batched else output.squeeze(1)), attention


def _merged(attn_mask, key_padding_mask, batch, heads, src_len):
    """Both masks as one of four dimensions."""
    if attn_mask is not None:
        if attn_mask.size(0) == 1:
            attn_mask = attn_mask.unsqueeze(0)
        else:
            attn_mask = attn_mask.reshape(batch, heads, -1, src_len)
    if key_padding_mask is None:
        return attn_mask
    if tuple(key_padding_mask.shape) != (batch, src_len):
        raise AssertionError(
            f"Expected key_padding_mask.shape to be {(batch, src_len)}, but got "
            f"{tuple(key_padding_mask.shape)}"
        )
    padding = key_padding_mask.reshape(batch, 1, 1, src_len)
    return padding if attn_mask is None else attn_mask + padding


def _with_weights(q, k, v, mask, dropout_p):
    scores = (q * math.sqrt(1.0 / q.size(-1))) @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores + mask
    attention = prong.softmax(scores, -1)
    if dropout_p > 0.0:
        attention = prong.nn.functional.dropout(attention, dropout_p)
    return attention @ v, attention
