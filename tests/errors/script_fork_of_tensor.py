"""RuntimeError:
cannot call a value of type 'Tensor': torch.jit.fork needs something that can be called
hint: give the function first and its arguments after it
"""

import torch


def f(x):
    return torch.jit.wait(torch.jit.fork(x))


torch.jit.script(f)
