"""Sequences of different lengths as one tensor: padded, or packed step by step."""

from collections import namedtuple

import prong
from prong import Tensor

PackedSequence_ = namedtuple(
    "PackedSequence_", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"]
)


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Where each index has gone."""
    if permutation is None:
        return None
    places = prong.arange(permutation.numel())
    return prong.empty_like(permutation).scatter_(0, permutation, places)


class PackedSequence(PackedSequence_):
    """The first elements of all sequences, longest first, then the second ones, and so on.

    ``batch_sizes`` says how many sequences reach each step; ``sorted_indices`` how they were put in order.
    """

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes.device.type != "cpu":
            raise ValueError("batch_sizes should always be on CPU")
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs):
        """The same with the data converted."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else self._replace(data=data)

    def double(self):
        return self.to(prong.float64)

    def float(self):
        return self.to(prong.float32)

    def half(self):
        return self.to(prong.float16)

    def long(self):
        return self.to(prong.int64)

    def int(self):
        return self.to(prong.int32)

    def short(self):
        return self.to(prong.int16)

    def char(self):
        return self.to(prong.int8)

    def byte(self):
        return self.to(prong.uint8)

    def cpu(self, *args, **kwargs):
        return self

    def cuda(self, *args, **kwargs):
        return self.to(device="cuda")

    def pin_memory(self):
        return self._replace(data=self.data.pin_memory())

    def is_pinned(self):
        return self.data.is_pinned()

    @property
    def is_cuda(self):
        return self.data.is_cuda


def groups_of(batch_sizes: list[int]):
    """(first step, end step, sequences) of each stretch in which no sequence ends."""
    start = 0
    for step in range(1, len(batch_sizes) + 1):
        if step == len(batch_sizes) or batch_sizes[step] != batch_sizes[start]:
            yield start, step, batch_sizes[start]
            start = step


def pack_padded_sequence(
    input: Tensor, lengths, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs a padded batch [T, B, ..] (or [B, T, ..]) with these lengths."""
    lengths = prong.as_tensor(lengths, dtype=prong.int64)
    order = None
    if not enforce_sorted:
        lengths, order = prong.sort(lengths, descending=True)
        input = input.index_select(0 if batch_first else 1, order)
    steps = input.transpose(0, 1) if batch_first else input
    counts = lengths.tolist()
    _check_lengths(counts, steps)
    left = prong.as_tensor(counts)
    batch_sizes = [int((left > t).sum()) for t in range(counts[0])]
    parts = []
    for start, end, count in groups_of(batch_sizes):
        parts.append(steps[start:end, :count].reshape([-1, *steps.shape[2:]]))
    data = prong.cat(parts)
    return PackedSequence(data, prong.tensor(batch_sizes, dtype=prong.int64), order)


def _check_lengths(lengths, steps):
    if steps.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if len(lengths) != steps.size(1):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} "
            f"(batch_size={steps.size(1)})"
        )
    if min(lengths) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that "
            "is <= 0"
        )
    if any(a < b for a, b in zip(lengths, lengths[1:])):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can "
            "pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this "
            "requirement if you do not need ONNX exportability."
        )
    if lengths[0] > steps.size(0):
        raise RuntimeError(
            f"Expected sequence length to be larger than or equal to max(lengths): got "
            f"{steps.size(0)} and {lengths[0]}"
        )


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The padded batch and the lengths."""
    sizes = sequence.batch_sizes.tolist()
    steps = len(sizes)
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but "
                f"got total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    data, count = sequence.data, sizes[0]
    rest = list(data.shape[1:])
    parts, begin = [], 0
    for start, end, here in groups_of(sizes):
        part = data[begin : begin + (end - start) * here].reshape([end - start, here, *rest])
        if here < count:
            missing = data.new_full([end - start, count - here, *rest], padding_value)
            part = prong.cat([part, missing], 1)
        parts.append(part)
        begin += (end - start) * here
    if steps > len(sizes):
        parts.append(data.new_full([steps - len(sizes), count, *rest], padding_value))
    padded = prong.cat(parts)
    left = prong.tensor(sizes, dtype=prong.int64)
    lengths = (left.unsqueeze(1) > prong.arange(count)).sum(0)
    if batch_first:
        padded = padded.transpose(0, 1)
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(0 if batch_first else 1, sequence.unsorted_indices)
        lengths = lengths.index_select(0, sequence.unsorted_indices)
    return padded, lengths


def pad_sequence(
    sequences,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences of one kind, side by side, filled up to the longest."""
    if not isinstance(sequences, (list, tuple, Tensor)):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    longest = max(s.size(0) for s in sequences)
    rows = []
    for s in sequences:
        missing = s.new_full([longest - s.size(0), *s.shape[1:]], padding_value)
        rows.append(prong.cat([s, missing] if padding_side == "right" else [missing, s]))
    return prong.stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded batch."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(n)] for row, n in zip(rows.unbind(0), prong.as_tensor(lengths).tolist())]


def pack_sequence(sequences, enforce_sorted: bool = True) -> PackedSequence:
    """Packs a list of sequences."""
    lengths = [s.size(0) for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that were packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
