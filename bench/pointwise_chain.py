"""How fast is a fused chain? tanh(x*a+b)*sigmoid(x)+gelu(x) against PyTorch eager and its compiler."""

import argparse
import time

import prong
import torch
from measure import interleave, report, unit


def prong_chain(x, a, b):
    return prong.tanh(x * a + b) * prong.sigmoid(x) + prong.nn.functional.gelu(x)


def torch_chain(x, a, b):
    return torch.tanh(x * a + b) * torch.sigmoid(x) + torch.nn.functional.gelu(x)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--compiler",
        action="store_true",
        help="also time torch.compile (needs a C++ compiler; takes half a minute)",
    )
    args = parser.parse_args()
    x1 = prong.randn(1000)
    start = time.perf_counter()
    prong_chain(x1, x1, x1)
    make_script = prong.jit.script
    print(
        f"loading of prong.nn and prong.jit, first eager call: {unit(time.perf_counter() - start)}"
    )
    start = time.perf_counter()
    scripted = make_script(prong_chain)
    scripted(x1, x1, x1)
    print(f"script and first call: {unit(time.perf_counter() - start)}")
    prong.compiler.wait_for_kernels()
    print(f"until the kernel is there: {unit(time.perf_counter() - start)}")
    for n in (1_000, 100_000, 1_000_000, 10_000_000):
        given = [torch.randn(n) for _ in range(3)]
        ours = [prong.from_numpy(t.numpy()) for t in given]
        variants = {
            "PyTorch eager": lambda g=given: torch_chain(*g),
            "Prong eager": lambda o=ours: prong_chain(*o),
            "Prong scripted": lambda o=ours: scripted(*o),
        }
        if args.compiler:
            compiled = torch.compile(torch_chain)
            variants["PyTorch compiled"] = lambda g=given, f=compiled: f(*g)
        report(f"n = {n:,}", interleave(variants, repeats=9), "PyTorch eager")


if __name__ == "__main__":
    main()
