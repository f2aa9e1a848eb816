"""RuntimeError:
lambda is not available in scripts
hint: write a def at the top of the file and use its name
"""

import torch


def f(x):
    g = lambda y: y + 1  # noqa: E731
    return g(x)


torch.jit.script(f)
