"""RuntimeError:
'parts' is a list of modules: use nn.ModuleList or nn.ModuleDict
"""

import torch


class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = [torch.nn.Linear(2, 2)]

    def forward(self, x):
        for p in self.parts:
            x = p(x)
        return x


torch.jit.script(M())
