"""What do fork and wait cost? One, a hundred, a tree, a chain, a million in flight; against PyTorch.

PyTorch's variants run in a process of their own: after a fork its process stays slower.
"""

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import time

PROGRAM = """
def neg(x):
    return torch.neg(x)

@torch.jit.script
def call(x, n: int):
    y = x
    for _ in range(n):
        y = neg(x)
    return y

@torch.jit.script
def fork_and_wait(x, n: int):
    y = x
    for _ in range(n):
        y = torch.jit.wait(torch.jit.fork(neg, x))
    return y

@torch.jit.script
def many(x, n: int):
    tasks = [torch.jit.fork(neg, x) for _ in range(n)]
    y = x
    for task in tasks:
        y = torch.jit.wait(task)
    return y

def next_one(task: torch.jit.Future[torch.Tensor]):
    return torch.jit.wait(task) + 1

@torch.jit.script
def chain(x, n: int):
    task = torch.jit.fork(neg, x)
    for _ in range(n):
        task = torch.jit.fork(next_one, task)
    return torch.jit.wait(task)
"""
TREE = """
def fib(n: int) -> int:
    if n < 2:
        return n
    left = torch.jit.fork(fib, n - 1)
    right = fib(n - 2)
    return torch.jit.wait(left) + right
"""


def once(fn, *args):
    start = time.perf_counter()
    fn(*args)
    return time.perf_counter() - start


def child(name):
    torch = importlib.import_module(name)
    import linecache

    def load(source, file):
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        space = {"torch": torch, "__name__": "__main__"}
        exec(compile(source, file, "exec"), space)
        return space

    p = load(PROGRAM, "<programs>")
    x = torch.ones(1)
    out = {}
    n = 2000
    for fn in (p["call"], p["fork_and_wait"]):
        for _ in range(3):
            fn(x, n)
    calls = [once(p["call"], x, n) / n for _ in range(9)]
    forks = [once(p["fork_and_wait"], x, n) / n for _ in range(9)]
    out["scripted call of neg"] = statistics.median(calls)
    out["fork and wait on top of it"] = statistics.median(forks) - statistics.median(calls)
    p["many"](x, 100)
    out["100 forks, then 100 waits"] = statistics.median(once(p["many"], x, 100) for _ in range(9))
    p["chain"](x, 10)
    out["chain of 10,000 tasks"] = once(p["chain"], x, 10_000)
    out["1,000,000 forks in flight"] = once(p["many"], x, 1_000_000)
    if name == "prong":
        fib = torch.jit.script(load(TREE, "<tree>")["fib"])
        fib(5)
        out["recursive fib(20), 10,945 forks"] = statistics.median(once(fib, 20) for _ in range(5))
    print(json.dumps(out))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--child")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    if args.child:
        return child(args.child)
    from measure import unit

    results = {"prong": [], "torch": []}
    for _ in range(args.rounds):
        for name in results:
            done = subprocess.run(
                [sys.executable, "-W", "ignore", __file__, "--child", name],
                capture_output=True,
                text=True,
            )
            if done.returncode == 0:
                results[name].append(json.loads(done.stdout.splitlines()[-1]))
            else:
                print(
                    f"{name}: exit status {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"
                )
    print(f"{'':36}{'Prong':>12}{'PyTorch':>12}{'ratio':>10}")
    for key in results["prong"][0]:
        ours = statistics.median(r[key] for r in results["prong"])
        theirs = [r[key] for r in results["torch"] if key in r]
        peer = statistics.median(theirs) if theirs else None
        print(
            f"{key:36}{unit(ours):>12}{unit(peer) if peer else 'refused':>12}{f'{ours / peer:.3f}' if peer else '':>10}"
        )


if __name__ == "__main__":
    main()
