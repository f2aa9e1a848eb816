"""How samples become a batch: tensors are stacked, containers are gone into."""

import copy
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence

import numpy as np

import prong

_WRONG = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found "
)


def _is_namedtuple(value):
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _like_mapping(sample, items):
    """The items in a mapping of the sample's type, with whatever else that type holds."""
    try:
        if isinstance(sample, MutableMapping):
            made = copy.copy(sample)
            made.update(items)
            return made
        return type(sample)(items)
    except TypeError:
        return items


def _like_sequence(sample, values):
    try:
        if isinstance(sample, MutableSequence):
            made = copy.copy(sample)
            for i, value in enumerate(values):
                made[i] = value
            return made
        return type(sample)(values)
    except TypeError:
        return values


def default_convert(data):
    """NumPy arrays to tensors, inside of containers too; all else stays."""
    if isinstance(data, prong.Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        if isinstance(data, np.ndarray) and data.dtype.kind in "SUaO":
            return data
        return prong.as_tensor(data)
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: default_convert(data[key]) for key in data})
    if _is_namedtuple(data):
        return type(data)(*map(default_convert, data))
    if isinstance(data, tuple):
        return [default_convert(d) for d in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like_sequence(data, [default_convert(d) for d in data])
    return data


def _collate_leaf(batch, sample):
    """The batch of samples that are no containers; None for others."""
    if isinstance(sample, prong.Tensor):
        return prong.stack(batch, 0)
    if isinstance(sample, np.ndarray):
        if sample.dtype.kind in "SUaO":
            raise TypeError(f"{_WRONG}{sample.dtype}")
        return prong.stack([prong.as_tensor(b) for b in batch], 0)
    if isinstance(sample, (np.bool_, np.number)):
        return prong.as_tensor(batch)
    if isinstance(sample, float):
        return prong.tensor(batch, dtype=prong.float64)
    if isinstance(sample, int):
        return prong.tensor(batch)
    return None


def default_collate(batch):
    """One batch from a list of samples that are built alike."""
    sample = batch[0]
    if isinstance(sample, (str, bytes)):
        return batch
    leaf = _collate_leaf(batch, sample)
    if leaf is not None:
        return leaf
    if isinstance(sample, Mapping):
        return _like_mapping(sample, {k: default_collate([d[k] for d in batch]) for k in sample})
    if _is_namedtuple(sample):
        return type(sample)(*(default_collate(list(part)) for part in zip(*batch)))
    if isinstance(sample, Sequence):
        if any(len(other) != len(sample) for other in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [default_collate(part) for part in zip(*batch)]
        return parts if isinstance(sample, tuple) else _like_sequence(sample, parts)
    raise TypeError(f"{_WRONG}{type(sample)}")
