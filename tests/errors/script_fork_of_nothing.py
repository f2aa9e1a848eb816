"""RuntimeError:
torch.jit.fork() needs a function to call
"""

import torch


def f(x):
    return torch.jit.wait(torch.jit.fork())


torch.jit.script(f)
