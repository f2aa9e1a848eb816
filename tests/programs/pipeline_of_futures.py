"""Tasks that take other tasks' futures, kept in lists and dicts."""

from typing import Dict, List

import torch
from torch import Tensor


def scale(x: Tensor, k: int) -> Tensor:
    return x * k


def after(earlier: torch.jit.Future[Tensor], k: int) -> Tensor:
    return torch.jit.wait(earlier) + k


def program(x: Tensor, n: int):
    stages: List[torch.jit.Future[Tensor]] = []
    named: Dict[int, torch.jit.Future[Tensor]] = {}
    for k in range(n):
        first = torch.jit.fork(scale, x, k)
        stages.append(torch.jit.fork(after, first, 10))
        named[k * k] = first
    total = torch.zeros_like(x)
    for stage in stages[::-1]:
        total = total * 2 + stage.wait()
    return total, {k: torch.jit.wait(f) for k, f in named.items()}


def calls():
    yield (
        (torch.tensor([1.0, -1.0]), 3),
        [[80.0, 60.0], {0: [0.0, -0.0], 1: [1.0, -1.0], 4: [2.0, -2.0]}],
    )
    yield (torch.tensor([1.0]), 0), [[0.0], {}]
