"""Writes format_golden.txt, read by test_format.cpp: tensors and the text that PyTorch prints for them.

Run by hand with PyTorch installed, when a case is added. A record is a line `dtype | shape | options | values`
(values as hexadecimal floats, or `iota:k` for 0, k, 2k, ...), then the text, then a line `---`.
"""

import os
import random

import torch

random.seed(7)
CASES = []


def case(values, shape, dtype, **options):
    CASES.append((values, shape, dtype, options))


nan, inf = float("nan"), float("inf")
for dtype in [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
]:
    case([1, 0, 2, 3, 1, 0], (2, 3), dtype)
    case([3], (), dtype)
    case([], (0,), dtype)
    case([], (2, 0, 3), dtype)
    case("iota:3", (40, 30), dtype)
for dtype in ["float16", "bfloat16", "float32", "float64"]:
    case([0.1, -2.5, 3.14159, 100.0], (4,), dtype)
    case([0.00001, 1.0], (2,), dtype)
    case([1.0, 2000.0], (2,), dtype)
    case([1.5, 2000.0, nan, inf, -inf, 0.0, -0.0], (7,), dtype)
    case([nan, inf], (2,), dtype)
    case([1.0, nan, -inf], (3,), dtype)
    case([2.5], (), dtype)
    case([random.gauss(0, 1) for _ in range(24)], (2, 3, 4), dtype)
    case([random.gauss(0, 100) for _ in range(30)], (30,), dtype)
case([1e9, 1.0], (2,), "float64")
case([1e-300, 1e300], (2,), "float64")
case([-(2**63), 2**62], (2,), "int64")
case("iota:1", (2000,), "int64")
case("iota:0.37", (1001,), "float32")
case("iota:1", (2, 1000), "float32")
case("iota:1", (7, 7, 7, 7), "int32")
case("iota:1", (3, 2, 500), "float64")
case([random.random() for _ in range(48)], (1, 2, 2, 1, 12), "float32")
case([0] * 9, (9,), "float32")
case([random.gauss(0, 1) for _ in range(6)], (2, 3), "float32", precision=2)
case([random.gauss(0, 1) for _ in range(6)], (2, 3), "float32", precision=8, sci_mode=True)
case([1e6, 1e-6], (2,), "float32", sci_mode=False)
case("iota:1", (100,), "float32", threshold=10, edgeitems=2)
case("iota:1", (10, 100), "int64", threshold=10, edgeitems=1)
case("iota:1", (10, 10), "int64", threshold=10, edgeitems=0)
case("iota:1", (30,), "float64", linewidth=40)
case("iota:1", (2, 30), "int16", linewidth=10)
case("iota:1", (1100,), "int64", threshold=inf)

with open(os.path.join(os.path.dirname(__file__), "format_golden.txt"), "w") as out:
    for values, shape, dtype, options in CASES:
        n = 1
        for s in shape:
            n *= s
        if isinstance(values, str):
            step = float(values[5:])
            listed = [i * step for i in range(n)]
            text_values = values
        else:
            listed = values
            text_values = " ".join(
                float(v).hex() if not float(v) != float(v) else "nan" for v in values
            )
        if dtype == "int64":
            listed = [int(v) for v in listed]
        t = torch.tensor(listed, dtype=torch.float64 if dtype != "int64" else torch.int64).to(
            getattr(torch, dtype)
        )
        torch.set_printoptions(profile="default")
        torch.set_printoptions(**options)
        text = repr(t.reshape(shape))
        given = ",".join(f"{k}={v}" for k, v in options.items())
        out.write(f"{dtype} | {' '.join(map(str, shape))} | {given} | {text_values}\n{text}\n---\n")
