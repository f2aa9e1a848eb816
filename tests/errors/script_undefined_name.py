"""RuntimeError:
undefined name 'nowhere'
    return x + nowhere
               ^^^^^^^
"""

import torch


def f(x):
    return x + nowhere


torch.jit.script(f)
