"""Native code that is made in the background: calls do not wait for it and give the same bits before and after."""

import os
import subprocess
import sys

import pytest

PRELUDE = """
import os, threading
import prong as torch

def chain(x, n=12):
    for _ in range(n):
        x = torch.tanh(x) * 1.1 + torch.sin(x)
    return x

def kernels(f, *args):
    with torch.profiler.profile() as p:
        f(*args)
    return [e.key for e in p.key_averages() if e.key.startswith("fused")]

x = torch.linspace(-3, 3, 301)
expected = chain(x)
compiled = torch.compile(chain)
"""


def run(body, **env):
    """The program in a process of its own, since tests have their kernels compiled in place."""
    code = PRELUDE + body
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PRONG_SKIP": "", **env},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_call_does_not_wait():
    run("""
for n in (40, 41, 42):  # the thread has work for a second
    torch.compile(chain)(x, n)
assert torch.equal(compiled(x), expected)
assert kernels(compiled, x) == []
torch.compiler.wait_for_kernels()
assert len(kernels(compiled, x)) == 1
assert torch.equal(compiled(x), expected)
""")


@pytest.mark.parametrize("env", [{"PRONG_SKIP": "background"}, {"PRONG_LOG": "codegen"}])
def test_kernels_in_place(env):
    run(
        """
compiled(x)
assert len(kernels(compiled, x)) == 1
""",
        **env,
    )


def test_each_call_has_the_same_bits():
    """Threads call while kernels come, for several dtypes and layouts."""
    run("""
inputs = [x, x.double(), x.reshape(7, 43).T, torch.linspace(-1, 1, 43).expand(7, 43), x.bfloat16()]
wanted = [chain(t) for t in inputs]
wrong = []
def work():
    for _ in range(40):
        wrong.extend(i for i, (t, w) in enumerate(zip(inputs, wanted)) if not torch.equal(compiled(t), w))
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
torch.compiler.wait_for_kernels()
work()
assert not wrong, wrong
""")


def test_a_child_of_fork_gets_its_kernels():
    run("""
compiled(x)
child = os.fork()
if child == 0:
    ok = torch.equal(compiled(x), expected)
    torch.compiler.wait_for_kernels()
    os._exit(0 if ok and len(kernels(compiled, x)) == 1 and torch.equal(compiled(x), expected) else 1)
assert os.waitpid(child, 0)[1] == 0
torch.compiler.wait_for_kernels()
assert len(kernels(compiled, x)) == 1
""")


def test_a_program_ends_while_kernels_are_made():
    assert (
        run("""
for n in range(1, 30):
    torch.compile(lambda x, n=n: chain(x, n))(x)
print("the end")
""")
        == "the end\n"
    )
