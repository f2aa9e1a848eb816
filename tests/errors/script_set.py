"""RuntimeError:
sets are not available in scripts
hint: use a list
"""

import torch


def f(n: int):
    return n in {1, 2}


torch.jit.script(f)
