"""torch.functional: functions over several tensors that are made of ops; they are prong.name too."""

import prong
from prong import Tensor


def broadcast_shapes(*shapes) -> "prong.Size":
    """The shape that tensors of these shapes broadcast to."""
    sizes: list[int] = []
    for shape in shapes:
        shape = [shape] if isinstance(shape, int) else list(shape)
        for size in shape:
            if size < 0:
                raise RuntimeError(
                    f"Trying to create tensor with negative dimension ({size}): ({size})"
                )
        sizes = [1] * (len(shape) - len(sizes)) + sizes
        for i in range(1, len(shape) + 1):
            if shape[-i] == 1 or shape[-i] == sizes[-i]:
                continue
            if sizes[-i] != 1:
                raise RuntimeError("Shape mismatch: objects cannot be broadcast to a single shape")
            sizes[-i] = shape[-i]
    return prong.Size(sizes)


def broadcast_tensors(*tensors) -> tuple[Tensor, ...]:
    """The tensors as views of their common shape."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tensors[0]
    sizes = broadcast_shapes(*(t.shape for t in tensors))
    return tuple(t.expand(sizes) for t in tensors)
