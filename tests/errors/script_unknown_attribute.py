"""RuntimeError:
has no attribute 'wieght'
"""

import torch


class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.fc.wieght


torch.jit.script(M())
