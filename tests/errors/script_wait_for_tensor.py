"""RuntimeError:
wait() needs a Future but got a value of type 'Tensor'
hint: wait for what torch.jit.fork gave
"""

import torch


def f(x):
    return torch.jit.wait(x)


torch.jit.script(f)
