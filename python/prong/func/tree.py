"""Nested tuples, lists and dicts of tensors as flat lists, and back."""

from collections import OrderedDict, defaultdict

from prong._core import Tensor


class Spec:
    """The shape of a nest: what kind of container, of which keys, around which parts. A leaf has no
    kind."""

    __slots__ = ("keys", "kind", "parts")

    def __init__(self, kind=None, keys=None, parts=()):
        self.kind, self.keys, self.parts = kind, keys, tuple(parts)

    def __eq__(self, other):
        return (
            isinstance(other, Spec)
            and self.kind is other.kind
            and self.keys == other.keys
            and self.parts == other.parts
        )

    def __hash__(self):
        return hash((self.kind, self.parts))

    def __repr__(self):
        if self.kind is None:
            return "*"
        inner = ", ".join(map(repr, self.parts))
        if self.keys is not None:
            inner = ", ".join(f"{k!r}: {p!r}" for k, p in zip(self.keys, self.parts, strict=True))
        return f"{self.kind.__name__}({inner})"


def is_container(value) -> bool:
    return type(value) in (tuple, list, dict, OrderedDict, defaultdict) or _is_named_tuple(value)


def _is_named_tuple(value) -> bool:
    """Made by namedtuple, or what ops with named results give."""
    return isinstance(value, tuple) and (
        hasattr(type(value), "_fields") or hasattr(type(value), "n_sequence_fields")
    )


def _parts(value) -> tuple:
    """(keys, parts) of a container."""
    if isinstance(value, dict):
        return tuple(value), list(value.values())
    return None, list(value)


def flatten(value) -> tuple[list, Spec]:
    if not is_container(value):
        return [value], Spec()
    keys, parts = _parts(value)
    leaves, specs = [], []
    for part in parts:
        more, spec = flatten(part)
        leaves += more
        specs.append(spec)
    return leaves, Spec(type(value), keys, specs)


def unflatten(leaves: list, spec: Spec):
    rest = iter(leaves)

    def make(s: Spec):
        if s.kind is None:
            return next(rest)
        parts = [make(part) for part in s.parts]
        if s.keys is not None:
            pairs = zip(s.keys, parts, strict=True)
            return defaultdict(None, pairs) if s.kind is defaultdict else s.kind(pairs)
        return s.kind(*parts) if hasattr(s.kind, "_fields") else s.kind(parts)

    return make(spec)


def map_tensors(function, value):
    leaves, spec = flatten(value)
    return unflatten([function(x) if isinstance(x, Tensor) else x for x in leaves], spec)


def spread(prefix, value) -> list | None:
    """One item of ``prefix`` for each leaf of ``value``; an item may stand for a whole part. None
    where they don't fit."""
    if not is_container(prefix):
        return [prefix] * len(flatten(value)[0])
    if not is_container(value) or type(prefix) is not type(value):
        return None
    keys, parts = _parts(value)
    prefix_keys, prefix_parts = _parts(prefix)
    if len(parts) != len(prefix_parts):
        return None
    if keys is not None:
        if set(keys) != set(prefix_keys):
            return None
        prefix_parts = [prefix[k] for k in keys]
    out = []
    for one, part in zip(prefix_parts, parts, strict=True):
        more = spread(one, part)
        if more is None:
            return None
        out += more
    return out
