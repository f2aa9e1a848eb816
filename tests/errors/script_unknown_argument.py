"""RuntimeError:
g(): unknown argument 'scale'
its signature is g(x: Tensor, k: int) -> Tensor
    return torch.jit.fork(g, x, 1, scale=2)
                                         ^
"""

import torch


def g(x, k: int):
    return x * k


def f(x):
    return torch.jit.fork(g, x, 1, scale=2)


torch.jit.script(f)
