"""What a compiled call costs over its ops, against PyTorch's where it is installed: `python bench/compile_overhead.py`.

One op, 100 identity layers, the first call; and the same with back end "eager" on PyTorch.
"""

import subprocess
import sys
import time

from measure import interleave, unit

PEER = """
import sys, torch
sys.path.insert(0, sys.argv[1])
from measure import interleave, unit
torch.set_grad_enabled(False)
x = torch.ones(8)
f = lambda x: x + 1
m = torch.nn.Sequential(*[torch.nn.Identity() for _ in range(100)])
cases = {"eager": lambda: f(x), "compiled": None, "layers": lambda: m(x), "layers compiled": None}
cf, cm = torch.compile(f, backend="eager"), torch.compile(m, backend="eager")
cases["compiled"], cases["layers compiled"] = lambda: cf(x), lambda: cm(x)
for name, s in interleave(cases, repeats=7).items():
    print(f"  torch {name}: {unit(s)}")
"""


def first_call(prong):
    """Seconds of plain and of the first compiled call of a function of some hundred bytecodes."""

    def make(n):
        body = "".join(f"    x = x * {i} + {i}\n" for i in range(n))
        scope = {}
        exec(f"def f(x):\n{body}    return x\n", scope)
        return scope["f"]

    f, x = make(20), prong.ones(8)
    f(x)
    plain, first = [], []
    for _ in range(20):
        f = make(20)
        start = time.perf_counter()
        f(x)
        plain.append(time.perf_counter() - start)
        compiled = prong.compile(make(20), backend="interpreter")
        start = time.perf_counter()
        compiled(x)
        first.append(time.perf_counter() - start)
    return min(plain), min(first)


def main():
    import prong

    prong.set_grad_enabled(False)
    x = prong.ones(8)

    def f(x):
        return x + 1

    compiled = prong.compile(f)
    layers = prong.nn.Sequential(*[prong.nn.Identity() for _ in range(100)])
    compiled_layers = prong.compile(layers)
    for _ in range(3):
        compiled(x), compiled_layers(x)
    times = interleave(
        {
            "eager": lambda: f(x),
            "compiled": lambda: compiled(x),
            "layers": lambda: layers(x),
            "layers compiled": lambda: compiled_layers(x),
        },
        repeats=9,
    )
    for name, s in times.items():
        print(f"  prong {name}: {unit(s)}")
    print(f"  over the op: {unit(times['compiled'] - times['eager'])}")
    print(
        f"  replayed: {compiled._counters()['replays'] > 0}, {compiled_layers._compiled_call._counters()}"
    )
    plain, first = first_call(prong)
    print(f"  first call: {unit(first)}, plain {unit(plain)}")
    done = subprocess.run([sys.executable, "-c", PEER, sys.path[0]], capture_output=True, text=True)
    print(done.stdout or "  (PyTorch is not installed)", end="")


if __name__ == "__main__":
    main()
