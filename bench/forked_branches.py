"""Independent branches in one function: serial, forked, compiled, and both; against PyTorch.

2, 4 and 8 gated cells over small and middle states, an ensemble of 4 networks, and an LSTM forwards and backwards.
"""

import subprocess
import sys

PEER_FLAG = "--on-torch"


def cell(x, w, u, steps=6):
    h = x
    for _ in range(steps):
        h = (h @ w).sigmoid() * (h @ u).tanh() + x
    return h


def make_cells(torch):
    def forked(x, ws, us):
        tasks = [torch.jit.fork(cell, x, w, u) for w, u in zip(ws, us)]
        total = x
        for task in tasks:
            total = total + task.wait()
        return total

    def serial(x, ws, us):
        total = x
        for w, u in zip(ws, us):
            total = total + cell(x, w, u)
        return total

    return forked, serial


def make_ensemble(torch, models):
    def forked(x):
        tasks = [torch.jit.fork(model, x) for model in models]
        total = tasks[0].wait()
        for task in tasks[1:]:
            total = total + task.wait()
        return total / len(models)

    def serial(x):
        total = models[0](x)
        for model in models[1:]:
            total = total + model(x)
        return total / len(models)

    return forked, serial


def make_lstm(torch, there, back):
    def forked(x):
        task = torch.jit.fork(there, x)
        y, _ = back(torch.flip(x, [0]))
        return torch.cat([task.wait()[0], torch.flip(y, [0])], -1)

    def serial(x):
        y, _ = back(torch.flip(x, [0]))
        return torch.cat([there(x)[0], torch.flip(y, [0])], -1)

    return forked, serial


def programs(torch):
    nn = torch.nn
    for n, rows, width in ((2, 32, 64), (4, 32, 64), (8, 32, 64), (4, 128, 256)):
        weights = [[torch.randn(width, width) * 0.1 for _ in range(n)] for _ in range(2)]
        args = (torch.randn(rows, width), *weights)
        yield f"{n} cells of {rows} × {width}", *make_cells(torch), args
    models = [
        nn.Sequential(
            nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8)
        )
        for _ in range(4)
    ]
    yield "4 networks of 64 × 256", *make_ensemble(torch, models), (torch.randn(64, 128),)
    lstms = [nn.LSTM(64, 128) for _ in range(2)]
    yield "an LSTM both ways, 40 × 16 × 128", *make_lstm(torch, *lstms), (torch.randn(40, 16, 64),)


def variants(torch, forked, serial, args):
    both = torch.compile(forked), torch.compile(serial)
    return {
        "serial": lambda: serial(*args),
        "forked": lambda: forked(*args),
        "serial, compiled": lambda: both[1](*args),
        "forked, compiled": lambda: both[0](*args),
    }


def run(torch, name, interleave, report):
    torch.set_grad_enabled(False)
    torch.set_num_threads(2)
    for title, forked, serial, args in programs(torch):
        found = interleave(variants(torch, forked, serial, args), repeats=7, sample_s=0.03)
        report(f"{name}: {title}", found, "forked")


def main():
    from measure import interleave, report

    if PEER_FLAG in sys.argv:
        import warnings

        import torch

        warnings.simplefilter("ignore")
        return run(torch, "PyTorch", interleave, report)
    import prong
    import prong.jit

    run(prong, "Prong", interleave, report)
    sys.stdout.flush()
    return subprocess.run([sys.executable, __file__, PEER_FLAG], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
