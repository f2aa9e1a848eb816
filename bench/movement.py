"""How fast are ops that move elements, next to PyTorch in the same process, interleaved?

Prints the median microseconds of a call and the ratio to PyTorch, for small tensors (the cost of a call) and large
ones (the cost of memory). Run: python bench/movement.py [name part]
"""

import sys

import prong
import torch
from measure import interleave

CASES = {
    # name: (set up, call)
    "empty(10)": ("", "m.empty(10)"),
    "zeros(10)": ("", "m.zeros(10)"),
    "view(2, 5)": ("x = m.zeros(10)", "x.view(2, 5)"),
    "transpose": ("x = m.zeros(2, 5)", "x.transpose(0, 1)"),
    "x[0]": ("x = m.zeros(2, 5)", "x[0]"),
    "x[:, 1:3]": ("x = m.zeros(2, 5)", "x[:, 1:3]"),
    "x[:, 1] = 2": ("x = m.zeros(2, 5)", "x.__setitem__((slice(None), 1), 2)"),
    "cat 2 of 10": ("a = [m.zeros(10), m.zeros(10)]", "m.cat(a)"),
    "stack 50 of 100": ("a = [m.zeros(100) for _ in range(50)]", "m.stack(a)"),
    "clone(10)": ("x = m.zeros(10)", "x.clone()"),
    "float to half 1e6": ("x = m.rand(1000000)", "x.half()"),
    "int64 to float 1e6": ("x = m.arange(1000000)", "x.float()"),
    "t().contiguous() 1000": ("x = m.rand(1000, 1000)", "x.t().contiguous()"),
    "permute(0, 2, 1, 3) 1e6": (
        "x = m.rand(4, 250, 10, 100)",
        "x.permute(0, 2, 1, 3).contiguous()",
    ),
    "cat 2 of 1000x1000, dim 1": ("a = [m.rand(1000, 1000)] * 2", "m.cat(a, 1)"),
    "flip 1000x1000": ("x = m.rand(1000, 1000)", "x.flip(1)"),
    "repeat 1000x100": ("x = m.rand(1000, 100)", "x.repeat(3, 4)"),
    "tril 1000x1000": ("x = m.rand(1000, 1000)", "x.tril()"),
    "pad reflect 8x64x64": (
        "x = m.rand(4, 8, 64, 64)",
        "m.nn.functional.pad(x, (2, 2, 2, 2), mode='reflect')",
    ),
    "index rows 1e4 x 64": ("x = m.rand(50000, 64); i = m.randint(50000, (10000,))", "x[i]"),
    "index elements 1e6": ("x = m.rand(1000000); i = m.randint(1000000, (1000000,))", "x[i]"),
    "index_select dim 1": (
        "x = m.rand(1000, 1000); i = m.randint(1000, (300,))",
        "x.index_select(1, i)",
    ),
    "gather 1000x1000": (
        "x = m.rand(1000, 1000); i = m.randint(1000, (1000, 1000))",
        "x.gather(1, i)",
    ),
    "scatter_add 1000x1000": (
        "x = m.zeros(1000, 1000); i = m.randint(1000, (1000, 1000)); s = m.rand(1000, 1000)",
        "x.scatter_add_(1, i, s)",
    ),
    "mask 1e6": ("x = m.rand(1000000); k = x > 0.5", "x[k]"),
    "nonzero 1e6": ("x = m.rand(1000, 1000) > 0.5", "x.nonzero()"),
    "index_put 1e5": (
        "x = m.zeros(1000000); i = m.randint(1000000, (100000,)); v = m.rand(100000)",
        "x.__setitem__(i, v)",
    ),
    "rand 1e6": ("", "m.rand(1000000)"),
    "randn 1e6": ("", "m.randn(1000000)"),
    "bernoulli_ 1e6": ("x = m.zeros(1000000)", "x.bernoulli_(0.3)"),
    "randperm 1e5": ("", "m.randperm(100000)"),
}


def runner(module, setup, call):
    space = {"m": module}
    exec(setup, space)
    code = compile(call, "bench", "eval")
    eval(code, space)
    return lambda: eval(code, space)


def main():
    chosen = sys.argv[1] if len(sys.argv) > 1 else ""
    print(f"{'':28}{'prong us':>12}{'PyTorch us':>12}{'ratio':>8}")
    for name, (setup, call) in CASES.items():
        if chosen not in name:
            continue
        variants = {"prong": runner(prong, setup, call), "PyTorch": runner(torch, setup, call)}
        medians = interleave(variants, repeats=9, sample_s=0.01)
        mine, theirs = medians["prong"], medians["PyTorch"]
        print(f"{name:28}{mine * 1e6:12.2f}{theirs * 1e6:12.2f}{mine / theirs:8.2f}", flush=True)


main()
