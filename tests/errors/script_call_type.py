"""RuntimeError:
f() expected a value of type 'int' for argument 'n' but got a value of type 'str'
its signature is f(n: int) -> int
"""

import torch


def f(n: int):
    return n


torch.jit.script(f)("a")
