"""RuntimeError:
try is not available in scripts
hint: test for the error beforehand, or put the try into a function marked @torch.jit.ignore
"""

import torch


def f(x):
    try:
        return x
    except ValueError:
        return -x


torch.jit.script(f)
