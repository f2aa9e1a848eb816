"""An ensemble of bidirectional LSTMs with fork and wait, in PyTorch's API; runs on Prong or on PyTorch.

    python -m prong examples/lstm_ensemble.py --fork both        # on Prong
    python examples/lstm_ensemble.py --fork both                 # on PyTorch

Prints one JSON line: the seconds of each run and a checksum. --save keeps the result, --trace and --timeline
write a profile of one more run.
"""

import argparse
import json
import time
from typing import List

import torch
from torch import Tensor, nn


class OneByOne(nn.Module):
    """Reads the sequence forwards and backwards, one after the other."""

    def __init__(self, channels: int):
        super().__init__()
        self.forwards = nn.LSTM(channels, channels)
        self.backwards = nn.LSTM(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        ahead = self.forwards(x)[0]
        back = self.backwards(x.flip([0]))[0].flip([0])
        return torch.cat([ahead, back], 2)


class BothAtOnce(OneByOne):
    """The same, with the forward reading in a task of its own."""

    def forward(self, x: Tensor) -> Tensor:
        task = torch.jit.fork(self.forwards, x)
        back = self.backwards(x.flip([0]))[0].flip([0])
        ahead = torch.jit.wait(task)[0]
        return torch.cat([ahead, back], 2)


class Ensemble(nn.Module):
    """The sum of its members, one after another."""

    def __init__(self, members: List[nn.Module]):
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, x: Tensor) -> Tensor:
        results = []
        for member in self.members:
            results.append(member(x))
        return torch.stack(results).sum(0)


class ForkedEnsemble(Ensemble):
    """The sum of its members, each in a task of its own."""

    def forward(self, x: Tensor) -> Tensor:
        tasks = [torch.jit.fork(member, x) for member in self.members]
        return torch.stack([torch.jit.wait(task) for task in tasks]).sum(0)


VARIANTS = {
    "nothing": (Ensemble, OneByOne),
    "directions": (Ensemble, BothAtOnce),
    "models": (ForkedEnsemble, OneByOne),
    "both": (ForkedEnsemble, BothAtOnce),
}


def build(fork: str, models: int, channels: int):
    """The scripted ensemble; the same weights whatever is forked."""
    torch.manual_seed(0)
    whole, part = VARIANTS[fork]
    return torch.jit.script(whole([part(channels) for _ in range(models)]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fork", choices=list(VARIANTS), default="both", help="what runs in tasks")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--channels", type=int, default=1024)
    parser.add_argument("--models", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0, help="0: as the machine has")
    parser.add_argument("--save", help="write the result to this .npy file")
    parser.add_argument("--trace", help="write a Chrome trace of one more run")
    parser.add_argument("--timeline", help="write the timeline page of one more run (Prong)")
    args = parser.parse_args()

    if args.threads:
        torch.set_num_threads(args.threads)
        torch.set_num_interop_threads(args.threads)
    ensemble = build(args.fork, args.models, args.channels)
    torch.manual_seed(1)
    x = torch.rand(args.steps, args.batch, args.channels)
    seconds = []
    with torch.no_grad():
        y = ensemble(x)  # warms up: memory, packed weights
        for _ in range(args.repeats):
            start = time.perf_counter()
            y = ensemble(x)
            seconds.append(time.perf_counter() - start)
        if args.trace or args.timeline:
            with torch.autograd.profiler.profile() as profile:
                ensemble(x)
            if args.trace:
                profile.export_chrome_trace(args.trace)
            if args.timeline:
                profile.export_timeline(args.timeline)
    if args.save:
        import numpy

        numpy.save(args.save, y.numpy())
    print(json.dumps({"fork": args.fork, "seconds": seconds, "sum": float(y.double().sum())}))


if __name__ == "__main__":
    main()
