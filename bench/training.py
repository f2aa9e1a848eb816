"""What does a training step cost? The seed's step, an MLP, residual blocks, optimizers alone, small
recorded ops; and peak memory."""

import argparse
import ctypes
import gc
import subprocess
import sys

import prong
import torch
from measure import interleave, on_one_thread, report


def seed_step(module, gives=lambda loss: loss.item()):
    """The step of the seed's program: a layer of 10 × 10, relu, MSE, Adam, batch 32."""
    nn = module.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(10, 10)

        def forward(self, x):
            return module.relu(self.linear(x))

    model, loss_fn = Model(), nn.MSELoss()
    optimizer = module.optim.Adam(model.parameters())
    x, y = module.randn(32, 10), module.randn(32, 10)

    def step():
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        return gives(loss)

    return step


def mlp_step(
    module, batch=128, sizes=(784, 512, 512, 10), make=None, gives=lambda loss: loss.item()
):
    """A step of an MLP with cross entropy."""
    nn = module.nn
    layers = []
    for i, (a, b) in enumerate(zip(sizes, sizes[1:], strict=False)):
        layers += [nn.ReLU()] if i else []
        layers.append(nn.Linear(a, b))
    model, loss_fn = nn.Sequential(*layers), nn.CrossEntropyLoss()
    optimizer = (make or (lambda m, p: m.optim.SGD(p, lr=0.01)))(module, model.parameters())
    x, y = module.randn(batch, sizes[0]), module.randint(0, sizes[-1], (batch,))

    def step():
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        return gives(loss)

    return step


def residual_block_step(module, batch, channels, size):
    """Forward and backward of a residual block: two 3 × 3 convolutions with batch norm."""
    nn = module.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(channels)
            self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(channels)

        def forward(self, x):
            y = self.bn1(self.conv1(x)).relu()
            return (self.bn2(self.conv2(y)) + x).relu()

    block = Block()
    x = module.randn(batch, channels, size, size)

    def step():
        block.zero_grad()
        block(x).mean().backward()

    return step


def optimizer_step(module, make, shapes):
    params = [module.randn(*s).requires_grad_() for s in shapes]
    for p in params:
        p.grad = module.randn(*p.shape)
    optimizer = make(module, params)
    optimizer.step()
    return optimizer.step


def recorded_ops(module, grad):
    x = module.randn(10).requires_grad_(grad)
    y = module.randn(10)

    def run():
        return (x * y + y) * x

    return run


def chain_backward(module):
    x = module.randn(10).requires_grad_()

    def run():
        y = x
        for _ in range(10):
            y = y * x
        y.sum().backward()
        x.grad = None

    return run


def both(title, make, **options):
    variants = {"PyTorch": make(torch), "Prong": make(prong)}
    report(title, interleave(variants, **options), "PyTorch")


def compiled(title, make, **options):
    """The step as it is, and compiled as a whole: after three calls a replay of one program."""
    step = prong.compile(make(prong))
    for _ in range(8):
        step()
    assert step._counters()["replays"] >= 4, step._counters()["why_evaluated"]
    variants = {"PyTorch": make(torch), "Prong": make(prong), "Prong, compiled": step}
    report(title, interleave(variants, **options), "Prong")


QUICK = {"repeats": 11, "sample_s": 0.03}
SLOW = {"repeats": 7, "sample_s": 0.1}
OPTIMIZERS = {
    "SGD": lambda m, p: m.optim.SGD(p, lr=1e-6),
    "SGD momentum": lambda m, p: m.optim.SGD(p, lr=1e-6, momentum=0.9),
    "Adam": lambda m, p: m.optim.Adam(p, lr=1e-6),
    "AdamW": lambda m, p: m.optim.AdamW(p, lr=1e-6),
}


PEAKS = [(128, (784, 512, 512, 10)), (1024, (784, 512, 512, 10)), (4096, (784, 2048, 2048, 10))]


def resident(field):
    """VmRSS, what is resident now, or VmHWM, the most that was since the mark was last set back."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))


def peak(name, case):
    """The most that 10 MLP steps have resident beyond the model and its data, in bytes.

    In a process of its own. Imports go higher than many a step, and free what the steps then use
    unseen: so what is free is given back first, and the mark set to what is left.
    """
    module = {"torch": torch, "prong": prong}[name]
    batch, sizes = PEAKS[case]
    step = mlp_step(module, batch=batch, sizes=sizes)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as mark:
        mark.write("5")
    before = resident("VmRSS")
    for _ in range(10):
        step()
    print(resident("VmHWM") - before)


def report_peaks():
    for case, (batch, sizes) in enumerate(PEAKS):
        print(f"peak memory of MLP steps, {'-'.join(map(str, sizes))}, batch {batch}")
        bytes_of = {}
        for name in ("torch", "prong"):
            run = [sys.executable, __file__, "--peak", name, "--case", str(case)]
            done = subprocess.run(run, check=True, capture_output=True, text=True)
            bytes_of[name] = int(done.stdout)
            ratio = bytes_of[name] / bytes_of["torch"]
            print(f"  {name:36}{bytes_of[name] / 2**20:9.1f} MiB{ratio:8.2f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--peak", help="print the peak memory of one side, in bytes")
    parser.add_argument("--case", type=int, default=0, help="which of PEAKS")
    parser.add_argument("--only", default="", help="run only what has this in its title")
    parser.add_argument("--one-thread", action="store_true", help="one thread, processor time")
    args = parser.parse_args()
    if args.one_thread:
        on_one_thread(prong, torch)
    if args.peak:
        peak(args.peak, args.case)
        return
    wanted = [
        ("the seed's training step", seed_step, QUICK),
        ("MLP 784-512-512-10, batch 128, SGD", mlp_step, SLOW),
        (
            "MLP 784-512-512-10, batch 128, Adam",
            lambda m: mlp_step(m, make=OPTIMIZERS["Adam"]),
            SLOW,
        ),
        *(
            (
                f"residual block {batch} × {channels} × {size} × {size}",
                lambda m, b=batch, c=channels, n=size: residual_block_step(m, b, c, n),
                SLOW,
            )
            for batch, channels, size in ((8, 64, 56), (8, 128, 28), (8, 256, 14), (8, 512, 7))
        ),
        ("three small ops, no gradients", lambda m: recorded_ops(m, False), QUICK),
        ("three small ops, recorded", lambda m: recorded_ops(m, True), QUICK),
        ("ten small products and backward", chain_backward, QUICK),
    ]
    for name, make in OPTIMIZERS.items():
        small, large = [(10, 10), (10,)] * 4, [(512, 784), (512,), (512, 512), (512,)]
        wanted.append(
            (f"{name}.step, 8 small", lambda m, f=make, s=small: optimizer_step(m, f, s), QUICK)
        )
        wanted.append(
            (f"{name}.step, MLP", lambda m, f=make, s=large: optimizer_step(m, f, s), QUICK)
        )
    for title, make, options in wanted:
        if args.only in title:
            both(title, make, **options)
    detached = {"gives": lambda loss: loss.detach()}
    for title, make, options in (
        ("the seed's step, compiled", lambda m: seed_step(m, **detached), QUICK),
        ("MLP step with SGD, compiled", lambda m: mlp_step(m, **detached), SLOW),
        (
            "MLP step with Adam, compiled",
            lambda m: mlp_step(m, make=OPTIMIZERS["Adam"], **detached),
            SLOW,
        ),
    ):
        if args.only in title:
            compiled(title, make, **options)
    if args.only in "memory":
        report_peaks()


if __name__ == "__main__":
    main()
