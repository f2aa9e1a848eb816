"""RuntimeError:
return: expected a value of type 'Future[float]' but got 'Future[int]'
"""

import torch


def g(x: int) -> int:
    return x


def f(x: int) -> torch.jit.Future[float]:
    return torch.jit.fork(g, x)


torch.jit.script(f)
