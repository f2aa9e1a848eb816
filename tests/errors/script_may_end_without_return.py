"""RuntimeError:
the function 'f' may end without a return, but its result is 'int'
hint: add a return or a raise at its end
"""

import torch


def f(n: int) -> int:
    if n > 0:
        return n


torch.jit.script(f)
