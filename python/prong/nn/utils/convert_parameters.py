"""Parameters to one vector and back."""

import prong
from prong import Tensor


def parameters_to_vector(parameters):
    """All parameters, flattened and joined."""
    return prong.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec, parameters) -> None:
    """Puts the pieces of a vector into the parameters, which share its memory from then on."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    for p in parameters:
        p.data = vec[start : start + p.numel()].view_as(p).data
        start += p.numel()
