"""An exception raised in a task reaches the waiter with its own class; what was not asked for is not raised."""

import torch
from torch import Tensor


def picky(x: Tensor, limit: int) -> Tensor:
    if int(x.sum()) > limit:
        raise ValueError(f"more than {limit}")
    return x + 1


def program(x: Tensor, limit: int, look: bool) -> Tensor:
    good = torch.jit.fork(picky, x, 1000)
    bad = torch.jit.fork(picky, x, limit)
    if look:
        return torch.jit.wait(good) + torch.jit.wait(bad)
    return torch.jit.wait(good)


def calls():
    yield (torch.tensor([1, 2]), 10, True), [4, 6]
    yield (torch.tensor([1, 2]), 1, True), ValueError
    yield (torch.tensor([1, 2]), 1, False), [2, 3]
