"""How fast are pointwise ops, reductions and sorts of a million elements?

Each against PyTorch, on the same number of threads.
"""

import argparse

import prong
import torch
from measure import interleave, report

POINTWISE = "add mul div maximum lt pow atan2 fmod exp log tanh sigmoid erf sin relu abs".split()
BINARY = {"add", "mul", "div", "maximum", "lt", "pow", "atan2", "fmod"}
REDUCTIONS = "sum mean amax argmax var softmax log_softmax logsumexp cumsum".split()


def compare(title, on_torch, on_prong):
    report(title, interleave({"PyTorch": on_torch, "Prong": on_prong}, repeats=7), "PyTorch")


def both(name, *args):
    theirs = getattr(torch, name)
    ours = getattr(prong, name)
    mine = [prong.from_numpy(a.numpy()) if isinstance(a, torch.Tensor) else a for a in args]
    return lambda: theirs(*args), lambda: ours(*mine)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    prong.set_num_threads(args.threads)
    x, y = torch.randn(1_000_000), torch.randn(1_000_000)
    for name in POINTWISE:
        given = (x, y) if name in BINARY else (x.abs() if name == "log" else x,)
        compare(f"{name}, 1e6 float32", *both(name, *given))
    square = x.reshape(1000, 1000)
    compare("matrix + row", *both("add", square, y[:1000]))
    compare("matrix + column", *both("add", square, y[:1000].reshape(1000, 1)))
    compare("matrix.t() + matrix", *both("add", square.t(), square))
    for dtype in (torch.uint8, torch.int32, torch.int64, torch.float16, torch.float64):
        compare(f"add, 1e6 {dtype}", *both("add", x.to(dtype), y.to(dtype)))
    for name in REDUCTIONS:
        for dim in (0, 1):
            compare(f"{name} of 1000 × 1000, dim {dim}", *both(name, square, dim))
    compare("sum of 1e6", *both("sum", x))
    compare("sort of 1000 rows", *both("sort", square))
    compare("sort of 1e6", *both("sort", x))
    compare("topk(10) of 1000 rows", *both("topk", square, 10))


if __name__ == "__main__":
    main()
