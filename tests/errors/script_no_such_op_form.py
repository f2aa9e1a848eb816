"""RuntimeError:
mm(): no form of it takes (Tensor, List[int])
mm(input: Tensor, mat2: Tensor) -> Tensor
"""

import torch


def f(x):
    return torch.mm(x, [1])


torch.jit.script(f)
