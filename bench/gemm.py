"""How fast are matrix products and one LSTM layer, against PyTorch, on one thread and on all?

What single kernels reach, in GFLOP/s and without Python, is the C++ question gemm.cpp.
"""

import os

import prong
import torch
from measure import interleave, report

SIZES = [
    (64, 64, 64),
    (128, 128, 128),
    (256, 256, 256),
    (1024, 1024, 1024),
    (50, 4096, 1024),
    (2500, 4096, 1024),
    (1, 1024, 1024),
]


def product_variants(m, n, k):
    """A Linear layer's product x @ w.T in both libraries."""
    x, w = torch.randn(m, k), torch.randn(n, k)
    px, pw = prong.from_numpy(x.numpy()), prong.from_numpy(w.numpy())
    return {
        "PyTorch": lambda: torch.nn.functional.linear(x, w),
        "Prong": lambda: prong.nn.functional.linear(px, pw),
    }


def lstm_variants(steps=50, batch=50, width=1024):
    x = torch.rand(steps, batch, width)
    theirs = torch.nn.LSTM(width, width).eval()
    ours = prong.nn.LSTM(width, width).eval()
    ours.load_state_dict(
        {name: prong.from_numpy(p.detach().numpy()) for name, p in theirs.state_dict().items()}
    )
    px = prong.from_numpy(x.numpy())
    difference = abs(ours(px)[0].numpy() - theirs(x)[0].numpy()).max()
    print(f"largest difference of the LSTM's outputs: {difference:.1e}")
    return {"PyTorch": lambda: theirs(x), "Prong": lambda: ours(px)}


def main():
    torch.set_grad_enabled(False)
    prong.set_grad_enabled(False)
    for threads in sorted({1, os.cpu_count()}):
        torch.set_num_threads(threads)
        prong.set_num_threads(threads)
        print(f"\nthreads: {threads}")
        for m, n, k in SIZES:
            report(
                f"linear {m} x {n} x {k}",
                interleave(product_variants(m, n, k), repeats=9),
                "PyTorch",
            )
        report(
            "LSTM 50 steps, 50 rows, 1024 wide",
            interleave(lstm_variants(), repeats=5, warm=1),
            "PyTorch",
        )


if __name__ == "__main__":
    main()
