"""RuntimeError:
'y' has type 'int' on one path and 'str' on the other
    return y
"""

import torch


def f(n: int):
    if n > 0:
        y = 1
    else:
        y = "one"
    return y


torch.jit.script(f)
