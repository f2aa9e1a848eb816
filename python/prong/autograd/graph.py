"""torch.autograd.graph: hooks on what the tape saves, nodes and edges."""

from contextlib import contextmanager
from typing import NamedTuple

from prong import _core

Node = _core.Node

_disabled: list[str] = []


class saved_tensors_hooks:
    """Inside the block, the tape keeps ``pack(tensor)`` in the place of each tensor that it saves.

    ``unpack`` of that gives the tensor back when the backward pass needs it.
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook
        self._pushed: list = []

    def __enter__(self):
        if _disabled:
            raise RuntimeError(_disabled[-1])
        self._pushed.append(_core._push_saving_hooks(self.pack_hook, self.unpack_hook))

    def __exit__(self, *exception):
        _core._pop_saving_hooks(self._pushed.pop())


class save_on_cpu(saved_tensors_hooks):
    """Keeps what is saved on the CPU, where it is already."""

    def __init__(self, pin_memory=False, device_type="cuda"):
        super().__init__(lambda tensor: tensor, lambda packed: packed)


@contextmanager
def disable_saved_tensors_hooks(error_message):
    """Inside the block, using hooks raises RuntimeError with this text."""
    _disabled.append(error_message)
    try:
        yield
    finally:
        _disabled.pop()


class GradientEdge(NamedTuple):
    """Where a gradient goes: result ``output_nr`` of a node."""

    node: _core.Node
    output_nr: int


def get_gradient_edge(tensor) -> GradientEdge:
    """The edge at which the gradient of ``tensor`` arrives."""
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require gradients"
        )
    node = tensor.grad_fn
    if node is None:  # a leaf: the node behind any use of it
        node = tensor.view_as(tensor).grad_fn.next_functions[0][0]
    return GradientEdge(node, tensor.output_nr)


def increment_version(tensor) -> None:
    """Marks tensors as written, as an in-place op does."""
    for t in [tensor] if isinstance(tensor, _core.Tensor) else tensor:
        _core._bump_version(t)


__all__ = [
    "GradientEdge",
    "Node",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "save_on_cpu",
    "saved_tensors_hooks",
]
