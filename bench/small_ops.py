"""What does a small eager op cost? Tiny tensors against PyTorch and NumPy; and import times."""

import statistics
import subprocess
import sys
import time

import numpy as np
import prong
import torch
from measure import interleave, report, unit


def ops():
    a, b = np.random.rand(10).astype("float32"), np.random.rand(10).astype("float32")
    m = np.random.rand(8, 8).astype("float32")
    for title, on_tensor, on_array in (
        (
            "add of two 10-element tensors",
            lambda x, y, z: lambda: x + y,
            lambda x, y, z: lambda: x + y,
        ),
        ("x + 1", lambda x, y, z: lambda: x + 1, lambda x, y, z: lambda: x + 1),
        ("x * 2.5", lambda x, y, z: lambda: x * 2.5, lambda x, y, z: lambda: x * np.float32(2.5)),
        ("sum", lambda x, y, z: lambda: x.sum(), lambda x, y, z: lambda: x.sum()),
        ("mm of 8 × 8", lambda x, y, z: lambda: z @ z, lambda x, y, z: lambda: z @ z),
        (
            "reshape",
            lambda x, y, z: lambda: z.reshape(4, 16),
            lambda x, y, z: lambda: z.reshape(4, 16),
        ),
        ("z[2]", lambda x, y, z: lambda: z[2], lambda x, y, z: lambda: z[2]),
    ):
        variants = {
            "PyTorch": on_tensor(*map(torch.from_numpy, (a, b, m))),
            "Prong": on_tensor(*map(prong.from_numpy, (a, b, m))),
            "NumPy": on_array(a, b, m),
        }
        report(title, interleave(variants), "PyTorch")


def imports():
    times = {}
    for _ in range(5):
        for name in ("torch", "prong", "numpy"):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", f"import {name}"], check=True)
            times.setdefault(name, []).append(time.perf_counter() - start)
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        times.setdefault("python alone", []).append(time.perf_counter() - start)
    base = statistics.median(times.pop("python alone"))
    print("import, less the start of Python")
    for name, values in times.items():
        print(f"  {name:36}{unit(statistics.median(values) - base):>12}")


if __name__ == "__main__":
    ops()
    imports()
