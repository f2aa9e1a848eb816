"""RuntimeError:
Attempted to use Future without a contained type: write torch.jit.Future[Tensor]
"""

from typing import List

import torch


def f(x):
    jobs: List[torch.jit.Future] = []
    return x + len(jobs)


torch.jit.script(f)
