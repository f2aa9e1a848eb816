"""A recursive sum over a tensor, each half in a task of its own."""

import torch
from torch import Tensor


def program(x: Tensor, grain: int) -> Tensor:
    if x.numel() <= grain:
        return x.sum()
    half = x.numel() // 2
    left = torch.jit.fork(program, x[:half], grain)
    right = program(x[half:], grain)
    return torch.jit.wait(left) + right


def calls():
    yield (torch.arange(100), 1), 4950
    yield (torch.arange(10.0), 3), 45.0
