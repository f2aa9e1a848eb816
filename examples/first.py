"""The program of docs/tour.md: one layer, scripted. See it pass through the compiler: PRONG_LOG=passes,codegen."""

import torch


def layer(x, w, b):
    y = torch.relu(x @ w + b)
    return y * 2.0


if __name__ == "__main__":
    scripted = torch.jit.script(layer)
    x, w, b = torch.ones(2, 3), torch.ones(3, 4), torch.arange(4.0) - 5
    print(scripted(x, w, b))
