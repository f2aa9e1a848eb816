"""RuntimeError:
a list of 'int' cannot take a 'str'
hint: lists in scripts hold one type; a tuple may hold several
"""

import torch


def f():
    return [1, "a"]


torch.jit.script(f)
