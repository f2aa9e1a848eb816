"""RuntimeError:
'+' is not defined for Optional[int] and int
hint: a value of type 'Optional[int]' may be None: test it with 'is not None' first
"""

from typing import Optional

import torch


def f(x: Optional[int]):
    return x + 1


torch.jit.script(f)
