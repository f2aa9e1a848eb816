"""RuntimeError:
'y' is not defined on the else path of the if in line
"""

import torch


def f(n: int):
    if n > 0:
        y = 1
    return y


torch.jit.script(f)
