"""Straight lines of pointwise ops, broadcast, mixed with ops that are not, with writes in between."""

import math

import torch
from torch import Tensor


def program(x: Tensor, row: Tensor, k: float):
    a = torch.relu(x * k + row) - 1
    total = a.sum(0)
    b = (a * total).abs().sqrt()
    x.add_(b)
    c = torch.where(x > 2, x, -x) * 0.5
    return c, (c + row).max(), x


def calls():  # the same in Python's numbers
    rows, shift, k = [[1.0, -2.0, 0.0], [3.0, 0.5, -1.0]], [0.0, 1.0, 2.0], 2.0
    a = [[max(v * k + s, 0.0) - 1 for v, s in zip(r, shift)] for r in rows]
    total = [sum(col) for col in zip(*a)]
    x = [[v + math.sqrt(abs(u * t)) for v, u, t in zip(r, ar, total)] for r, ar in zip(rows, a)]
    c = [[(v if v > 2 else -v) * 0.5 for v in r] for r in x]
    most = max(v + s for r in c for v, s in zip(r, shift))
    yield (torch.tensor(rows), torch.tensor(shift), k), [c, most, x]
