"""ctc_loss: the chance of a text in a sequence of frames, over all ways to align them."""

import prong
from prong import Tensor

# The log of nothing. Finite, so that no gradient is inf - inf; far below any log that can be.
_NEVER = -1e30


def _lengths(values, device=None) -> Tensor:
    return values if isinstance(values, Tensor) else prong.tensor(values, dtype=prong.int64)


def _padded(targets: Tensor, lengths: Tensor, count: int) -> Tensor:
    """Targets as a table with a row for each sample."""
    if targets.dim() == 2:
        return targets
    if targets.dim() != 1 or targets.size(0) != int(lengths.sum()):
        raise RuntimeError("Expected input_lengths to have value at most of the targets' sizes")
    longest = max(lengths.tolist(), default=0)
    rows = []
    for row in targets.split(lengths.tolist()):
        rows.append(prong.nn.functional.pad(row, [0, longest - row.size(0)]))
    return prong.stack(rows)


def _check(log_probs, targets, input_lengths, target_lengths, blank):
    frames, count, classes = log_probs.shape
    if blank < 0 or blank >= classes:
        raise RuntimeError("blank must be in label range")
    for name, lengths in (("input", input_lengths), ("target", target_lengths)):
        if lengths.numel() != count:
            raise RuntimeError(f"{name}_lengths must be of size batch_size")
    if int(input_lengths.max()) > frames:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {frames}, but got value "
            f"{int(input_lengths.max())}"
        )


def _through_softmax(log_probs: Tensor, input_lengths: Tensor) -> Tensor | float:
    """Nothing, with the gradient exp(log_probs) in each frame that counts.

    PyTorch's gradient to log_probs is that to the numbers which log_softmax was given. Through
    log_softmax itself both are the same.
    """
    if not (prong.is_grad_enabled() and log_probs.requires_grad):
        return 0.0
    counts = prong.arange(log_probs.size(0)).unsqueeze(1) < input_lengths
    mass = prong.where(counts.unsqueeze(2), log_probs.exp(), 0.0).sum((0, 2))
    return mass - mass.detach()


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths,
    target_lengths,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Negative log likelihood of the targets; log_probs is [frames, samples, classes]."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    unbatched = log_probs.dim() == 2
    if unbatched:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.reshape(1, -1)
    input_lengths = _lengths(input_lengths).reshape(-1).to(prong.int64)
    target_lengths = _lengths(target_lengths).reshape(-1).to(prong.int64)
    _check(log_probs, targets, input_lengths, target_lengths, blank)
    frames, count, _ = log_probs.shape
    table = _padded(targets, target_lengths, count).to(prong.int64)
    width = max(target_lengths.tolist(), default=0)
    if width > table.size(1):
        raise RuntimeError(f"Expected tensor to have size at least {width} at dimension 1")
    # Labels with a blank before, between and after.
    labels = prong.full((count, 2 * width + 1), blank, dtype=prong.int64)
    labels[:, 1::2] = table[:, :width]
    can_skip = prong.zeros_like(labels, dtype=prong.bool)
    can_skip[:, 3::2] = table[:, 1:width] != table[:, : max(width - 1, 0)]

    emitted = log_probs.gather(2, labels.unsqueeze(0).expand(frames, -1, -1))
    never = prong.full((count, 1), _NEVER, dtype=log_probs.dtype)
    at_start = prong.arange(labels.size(1)) < 2
    alpha = prong.where(at_start, emitted[0], _NEVER)
    for t in range(1, frames):
        before = prong.cat([never, alpha[:, :-1]], 1)
        two_before = prong.cat([never, before[:, :-1]], 1)
        two_before = prong.where(can_skip, two_before, _NEVER)
        arrived = prong.logsumexp(prong.stack([alpha, before, two_before]), 0) + emitted[t]
        alpha = prong.where((t < input_lengths).unsqueeze(1), arrived, alpha)
    last = (2 * target_lengths).unsqueeze(1)
    ends = alpha.gather(1, last)
    before_last = alpha.gather(1, (last - 1).clamp_min(0))
    ends = prong.cat([ends, prong.where(last > 0, before_last, _NEVER)], 1)
    loss = -prong.logsumexp(ends, 1) + _through_softmax(log_probs, input_lengths)
    impossible = loss > -_NEVER / 2
    loss = loss.masked_fill(impossible, 0.0 if zero_infinity else float("inf"))
    if reduction == "mean":
        return (loss / target_lengths.clamp_min(1).to(loss.dtype)).mean()
    if reduction == "sum":
        return loss.sum()
    return loss.squeeze(0) if unbatched else loss
