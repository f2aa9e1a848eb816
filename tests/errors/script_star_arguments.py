"""RuntimeError:
'*xs': functions with a variable number of arguments are not available in scripts
"""

import torch


def f(*xs):
    return xs


torch.jit.script(f)
