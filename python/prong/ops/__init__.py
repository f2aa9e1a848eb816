"""torch.ops: every op of the registry by its own name, as in prong.ops.aten.softmax_backward(...). Graphs that use ops
without a function of their own are written with it.
"""

from prong.fx.operations import function_named, op_named


class _Namespace:
    """Ops as attributes; they are looked up in the registry when first asked for."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return function_named(name) or op_named(name)
        except KeyError:
            raise AttributeError(f"prong has no op named {name!r} (see docs/ops.md)") from None

    def __repr__(self):
        return f"prong.ops.{self._name}"


aten = _Namespace("aten")
