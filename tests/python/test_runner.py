"""python -m prong: scripts, modules and code see Python's own __main__, and torch that is Prong."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import prong
import pytest
from prong import _alias

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(prong.__file__).parent.parent)}


def run(*arguments, cwd=None, timeout=50):
    return subprocess.run(
        [sys.executable, "-m", "prong", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        cwd=cwd,
        timeout=timeout,
    )


def script(folder, text, name="program.py"):
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path


def test_script_sees_itself_and_torch(tmp_path):
    (tmp_path / "beside.py").write_text("import torch\nvalue = torch.ones(1)\n")
    path = script(
        tmp_path,
        """
        import sys, torch, prong, beside
        import torch.nn as nn
        from torch.nn import functional as F
        import torch.nn.functional
        from torch.autograd.profiler import record_function
        assert torch is prong and sys.modules["torch.nn"] is prong.nn and F is prong.nn.functional
        assert "prong" in torch.__file__ and isinstance(beside.value, torch.Tensor)
        assert __name__ == "__main__" and __spec__ is None
        assert sys.modules["__main__"].__file__ == __file__
        assert torch.nn.__spec__.name == "prong.nn" and torch.nn.__name__ == "prong.nn"
        class Local: pass
        import pickle
        assert type(pickle.loads(pickle.dumps(Local()))) is Local
        print(sys.argv[1:], torch.ones(2))
    """,
    )
    done = run(path, "--flag", "value", cwd="/")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['--flag', 'value'] tensor([1., 1.])"


def test_error_exit_and_traceback(tmp_path):
    path = script(tmp_path, "def f():\n    raise KeyError('gone')\nf()\n")
    done = run(path)
    assert done.returncode == 1 and "KeyError: 'gone'" in done.stderr
    lines = done.stderr.splitlines()
    assert (
        lines[0].startswith("Traceback") and "program.py" in lines[1]
    )  # none of the runner's frames
    assert run(script(tmp_path, "import sys; sys.exit(7)")).returncode == 7
    assert (
        run(script(tmp_path, "def f(:\n"))
        .stderr.rstrip()
        .splitlines()[-1]
        .startswith("SyntaxError")
    )


def test_missing_file_and_usage(tmp_path):
    done = run(tmp_path / "absent.py")
    assert (
        done.returncode == 2 and "can't open file" in done.stderr and "No such file" in done.stderr
    )
    assert (
        run().returncode == 2 and run("--help").returncode == 0 and run("--wrong").returncode == 2
    )
    assert run("--version").stdout.startswith("prong ")
    assert run("-c").returncode == 2


def test_code_and_module(tmp_path):
    assert (
        run("-c", "import sys, torch; print(torch.ones(1).item(), sys.argv)", "a").stdout
        == "1.0 ['-c', 'a']\n"
    )
    script(tmp_path, "import sys, torch; print(__name__, torch.__name__, sys.argv[1:])", "mod.py")
    assert run("-m", "mod", "b", cwd=tmp_path).stdout == "__main__ prong ['b']\n"


def test_missing_names(tmp_path):
    for code, text in [
        (
            "import torch; torch.segment_reduce",
            "AttributeError: prong has no torch.segment_reduce yet",
        ),
        ("from torch import segment_reduce", "ImportError: prong has no torch.segment_reduce yet"),
        ("import torch.distributed", "ModuleNotFoundError: prong has no torch.distributed yet"),
        ("import torch; torch.ones(1).geqrf", "'Tensor' object has no attribute 'geqrf'"),
    ]:
        done = run("-c", code)
        assert done.returncode == 1 and text in done.stderr, done.stderr


def test_spawned_processes_run_on_prong_too(tmp_path):
    path = script(
        tmp_path,
        """
        import multiprocessing, torch
        def work(x):
            import torch
            return torch.__name__, (x * 2).tolist()
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.apply(work, (torch.ones(2),)))
    """,
    )
    done = run(path)
    assert done.stdout.strip() == "('prong', [2.0, 2.0])", done.stderr


@pytest.mark.parametrize("method", ["fork", "os.fork"])
def test_forked_processes(tmp_path, method):
    child = {
        "os.fork": """
            pid = os.fork()
            if pid == 0:
                ok = (torch.ones(500, 500) @ torch.ones(500, 500))[0, 0].item() == 500
                os._exit(0 if ok else 1)
            assert os.waitpid(pid, 0)[1] == 0
        """,
        "fork": """
            with multiprocessing.get_context("fork").Pool(2) as pool:
                assert pool.map(total, [torch.ones(1000)] * 4) == [1000.0] * 4
        """,
    }[method]
    program = textwrap.dedent("""
        import multiprocessing, os, torch
        def total(x):
            return x.sum().item()
        torch.ones(500, 500) @ torch.ones(500, 500)  # the pool has threads before the fork
    """) + textwrap.dedent(child)
    path = script(tmp_path, program)
    done = run(path)
    assert done.returncode == 0, done.stderr


def test_interrupt_ends_a_long_op(tmp_path):
    path = script(
        tmp_path,
        """
        import os, signal, threading, torch
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a job of a shell may ignore it
        x = torch.ones(3000, 3000)
        try:
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            for _ in range(10000):
                x = (x @ x) * 1e-4
        except KeyboardInterrupt:
            print("interrupted")
    """,
    )
    assert run(path).stdout.strip() == "interrupted"


def test_standing_in_ends():
    before = sys.modules.get("torch")
    with _alias.standing_in():
        import torch.nn

        assert torch is prong and torch.nn is prong.nn
    assert sys.modules.get("torch") is before
