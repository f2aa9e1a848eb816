"""RuntimeError:
argument 'x' of g(): expected a value of type 'Tensor' but got 'int'
hint: parameters without an annotation are Tensors: annotate it, or make a tensor with torch.tensor(...)
"""

import torch


def g(x):
    return x


def f(n: int):
    return g(n)


torch.jit.script(f)
