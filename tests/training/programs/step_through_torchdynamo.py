"""A whole training step given to torchdynamo.optimize; an argument makes the run a plain one."""

import sys

import torch
import torchdynamo


class Rectified(torch.nn.Module):
    """One layer, so that the loss stays near the variance of the noise that it is asked to fit."""

    def __init__(self, width):
        super().__init__()
        self.layer = torch.nn.Linear(width, width)

    def forward(self, batch):
        return torch.relu(self.layer(batch))


torch.manual_seed(3)
net = Rectified(10)
distance = torch.nn.MSELoss()
adam = torch.optim.Adam(net.parameters(), lr=0.01)


def learn(batch, wanted):
    adam.zero_grad()
    error = distance(net(batch), wanted)
    error.backward()
    adam.step()
    return error.item()


step = learn if len(sys.argv) > 1 else torchdynamo.optimize(learn)
for _ in range(100):
    print(f"Loss: {step(torch.randn(32, 10), torch.randn(32, 10)):.6f}")
