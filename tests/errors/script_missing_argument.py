"""RuntimeError:
g(): missing value for argument 'k'
"""

import torch


def g(x, k: int):
    return x * k


def f(x):
    return torch.jit.fork(g, x)


torch.jit.script(f)
