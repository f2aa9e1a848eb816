"""Does one fork slow the rest of the process down? 48 products of 64 × 64, before and after."""

import importlib
import json
import statistics
import subprocess
import sys
import time


def child(name):
    torch = importlib.import_module(name)
    a = torch.randn(64, 64)

    def products():
        start = time.perf_counter()
        for _ in range(48):
            a @ a
        return time.perf_counter() - start

    big = torch.randn(700, 700)

    @torch.jit.script
    def forked(x):
        first = torch.jit.fork(torch.mm, x, x)
        second = torch.mm(x, x)
        return torch.jit.wait(first) + second

    for _ in range(5):
        products()
    before = statistics.median(products() for _ in range(30))
    for _ in range(3):
        forked(big)
    after = statistics.median(products() for _ in range(30))
    print(json.dumps({"before": before, "after": after}))


def main():
    if len(sys.argv) == 2:
        return child(sys.argv[1])
    from measure import unit

    for name in ("prong", "torch", "prong", "torch", "prong", "torch"):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", __file__, name], capture_output=True, text=True
        )
        if done.returncode:
            print(done.stderr)
            continue
        r = json.loads(done.stdout)
        print(
            f"{name:8} before {unit(r['before']):>9}   after {unit(r['after']):>9}   "
            f"after / before {r['after'] / r['before']:.2f}"
        )


if __name__ == "__main__":
    main()
