"""Recurrent members of a module list, forked; weights set by hand."""

import math

import torch
from torch import Tensor, nn


class Member(nn.Module):
    def __init__(self, scale: float):
        super().__init__()
        self.cell = nn.LSTM(2, 2)
        with torch.no_grad():
            for p in self.cell.parameters():
                p.fill_(scale)

    def forward(self, x: Tensor) -> Tensor:
        task = torch.jit.fork(self.cell, x)
        back = self.cell(x.flip([0]))[0].flip([0])
        return torch.jit.wait(task)[0] + back


class program(nn.Module):
    def __init__(self):
        super().__init__()
        self.members = nn.ModuleList([Member(0.1), Member(-0.2)])

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            tasks = [torch.jit.fork(m, x) for m in self.members]
            return torch.stack([torch.jit.wait(t) for t in tasks]).sum(0)


def reference(x):
    """The same by the definition of an LSTM, one unit at a time."""

    def sigmoid(v):
        return 1 / (1 + math.exp(-v))

    def run(rows, w):
        h = c = 0.0
        out = []
        for row in rows:
            g = w * sum(row) + w * 2 * h + 2 * w
            c = sigmoid(g) * c + sigmoid(g) * math.tanh(g)
            h = sigmoid(g) * math.tanh(c)
            out.append(h)
        return out

    total = [0.0] * len(x)
    for w in (0.1, -0.2):
        ahead, back = run(x, w), run(x[::-1], w)[::-1]
        total = [t + a + b for t, a, b in zip(total, ahead, back)]
    return [[[t, t]] for t in total]


def calls():
    rows = [[1.0, 2.0], [0.0, -1.0], [0.5, 0.5]]
    yield (torch.tensor(rows).unsqueeze(1),), reference(rows)
