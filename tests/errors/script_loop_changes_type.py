"""RuntimeError:
'x' has type 'int' before the loop and 'str' after a turn of it
hint: give 'x' a value of type 'str' before the loop
"""

import torch


def f(n: int):
    x = 0
    for _i in range(n):
        x = "a"
    return x


torch.jit.script(f)
