"""What a compiled call costs over its ops, against PyTorch's where it is installed: `python bench/compile_overhead.py`.

One op, 100 identity layers, and the same with back end "eager" on PyTorch. Then first calls, each against its limit,
three plain calls and a millisecond for each 100 bytecodes that a plain call runs, and against PyTorch's first call.
"""

import json
import statistics
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


# Functions of x, made anew for each first call. Run with `torch` as Prong and as PyTorch.
FIRST = """
import torch
torch.manual_seed(0)
x = torch.randn(16, 8)

def arithmetic():
    scope = {}
    body = "".join(f"    x = x * {i} + {i}\\n" for i in range(20))
    exec(f"def f(x):\\n{body}    return x\\n", scope)
    return scope["f"]

def transcendental():
    def f(x):
        for _ in range(12):
            x = torch.tanh(x) * 1.1 + torch.sin(x)
        return x
    return f

def recurrent():
    w = torch.randn(8, 8) * 0.1
    def f(x):
        h = x
        for _ in range(100):
            h = torch.tanh(h @ w + x)
        return h
    return f

def layers():
    nn = torch.nn
    return nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.LayerNorm(8)) for _ in range(20)])

def training():
    nn = torch.nn
    model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    def f(x):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()
    return f

CASES = [arithmetic, transcendental, recurrent, layers, training]
"""

FIRST_OF_PEER = (
    FIRST
    + """
import json, time
for make in CASES:
    start = time.perf_counter()
    torch.compile(make())(x)
    print(json.dumps([make.__name__, time.perf_counter() - start]), flush=True)
"""
)


def bytecodes(f, x):
    """How many a call runs."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        f(x)
    finally:
        sys.settrace(None)
    return count


def first_calls(prong):
    """Prints, for each function, the plain call, the first compiled one, its limit, and the time until all of it is
    native."""
    sys.modules["torch"] = prong
    scope = {}
    exec(FIRST, scope)
    del sys.modules["torch"]
    x = scope["x"]
    prong.compile(scope["transcendental"]())(x)  # what the process does once
    prong.compiler.wait_for_kernels()
    for make in scope["CASES"]:
        plain, first = [], []
        for i in range(5):
            f = make()
            f(x)
            start = time.perf_counter()
            f(x)
            plain.append(time.perf_counter() - start)
            compiled = prong.compile(make())
            start = time.perf_counter()
            compiled(x)
            first.append(time.perf_counter() - start)
            prong.compiler.wait_for_kernels()
            if i == 0:  # later ones find their kernels
                native = time.perf_counter() - start
        plain, first = statistics.median(plain), statistics.median(first)
        limit = 3 * plain + bytecodes(make(), x) * 1e-5
        print(
            f"  {make.__name__}: plain {unit(plain)}, first {unit(first)}, limit {unit(limit)} "
            f"({first / limit:.2f}), native after {unit(native)}"
        )


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
    done = subprocess.run([sys.executable, "-c", PEER, sys.path[0]], capture_output=True, text=True)
    print(done.stdout or "  (PyTorch is not installed)\n", end="")
    prong.set_grad_enabled(True)
    print("first calls")
    first_calls(prong)
    done = subprocess.run([sys.executable, "-c", FIRST_OF_PEER], capture_output=True, text=True)
    for line in done.stdout.splitlines():
        name, seconds = json.loads(line)
        print(f"  torch {name}: first {unit(seconds)}")


if __name__ == "__main__":
    main()
