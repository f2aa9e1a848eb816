"""RuntimeError:
the result of the recursive function 'f' is not known yet
hint: annotate it: def f(...) -> int:
"""

import torch


def f(n: int):
    return f(n - 1)


torch.jit.script(f)
