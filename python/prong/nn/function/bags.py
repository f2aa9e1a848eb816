"""Lookups in tables of rows: embedding and embedding_bag."""

import prong
from prong import Tensor


def renorm_rows(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scales the rows that are looked up, in place, to at most ``max_norm``."""
    with prong.no_grad():
        rows = indices.reshape(-1)  # one that is there twice is scaled once: both write the same
        chosen = weight.index_select(0, rows)
        norms = chosen.norm(norm_type, 1, keepdim=True)
        scale = prong.where(norms > max_norm, max_norm / (norms + 1e-7), 1.0)
        weight.index_copy_(0, rows, (chosen * scale).to(weight.dtype))


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
    if padding_idx is not None:
        if padding_idx >= weight.size(0) or padding_idx < -weight.size(0):
            raise AssertionError("Padding_idx must be within num_embeddings")
        if padding_idx < 0:
            padding_idx = weight.size(0) + padding_idx
    else:
        padding_idx = -1
    if max_norm is not None:
        renorm_rows(weight, input, max_norm, norm_type)
    return prong.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def _offsets(input: Tensor, offsets: Tensor | None) -> Tensor:
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of "
                f"fixed length sequences. However, found offsets of type {type(offsets)}"
            )
        return prong.arange(0, input.numel(), input.size(1))
    if input.dim() != 1:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}"
        )
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    if offsets.numel() and int(offsets[0]) != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
            f"position 0. However, got {int(offsets[0])}"
        )
    if offsets.numel() and not (0 <= int(offsets.min()) and int(offsets.max()) <= input.numel()):
        raise RuntimeError(
            f"offsets have to be between 0 and {input.numel()}, the length of input, but got "
            f"{offsets.tolist()}"
        )
    return offsets


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sum, mean or maximum of the rows of each bag of indices."""
    if weight.dim() != 2:
        raise ValueError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}"
        )
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, "
            f"then it must have the same shape as the input ({input.shape})"
        )
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for "
            f"mode='sum' (got mode='{mode}')."
        )
    starts = _offsets(input, offsets).to(prong.int64)
    indices = input.reshape(-1)
    places = prong.arange(indices.numel())
    counted = prong.ones(indices.numel(), dtype=prong.bool)
    if include_last_offset and input.dim() == 1:
        counted = places < starts[-1]
        starts = starts[:-1]
    if max_norm is not None:
        renorm_rows(weight, indices, max_norm, norm_type)
    bags = starts.numel()
    bag = prong.searchsorted(starts, places, right=True) - 1
    if padding_idx is not None:
        padding_idx = padding_idx + weight.size(0) if padding_idx < 0 else padding_idx
        counted = counted & (indices != padding_idx)
    rows = prong.embedding(weight, indices, -1, scale_grad_by_freq, sparse)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, 1)
    rows = prong.where(counted.unsqueeze(1), rows, 0.0)
    zeros = rows.new_zeros((bags, weight.size(1)))
    if mode == "max":
        rows = rows[counted]
        index = bag[counted].unsqueeze(1).expand_as(rows)
        return zeros.scatter_reduce(0, index, rows, "amax", include_self=False)
    total = zeros.index_add(0, bag, rows)
    if mode == "sum":
        return total
    sizes = rows.new_zeros(bags).index_add(0, bag, counted.to(rows.dtype))
    return total / sizes.clamp_min(1).unsqueeze(1)
