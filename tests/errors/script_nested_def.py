"""RuntimeError:
the function 'g' is defined inside a scripted function
hint: move the def out of the function
"""

import torch


def f(x):
    def g(y):
        return y

    return g(x)


torch.jit.script(f)
