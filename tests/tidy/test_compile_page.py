"""docs/compile.md is true: its programs run, and its table of breaks is that of the code."""

import re
import subprocess
import sys

from tree import ROOT


def text():
    with open(f"{ROOT}/docs/compile.md") as file:
        return file.read()


def test_the_programs_run(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", text(), re.DOTALL)
    program = tmp_path / "program.py"
    program.write_text("\n".join(blocks))
    done = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "[1.0, 7.0]",
        *(f"loss {2 * i * i:.3f} torch.Size([2])" for i in range(3)),
        "2 1 C002",
        "def forward(self, arg_1):",
        "    sin_1 = prong.sin(arg_1)",
        "    mul_1 = sin_1 * 2",
        "    return (mul_1,)",
        "",
        "branch_task = prong.jit.fork(branch_body, arg_1, arg_2)",
        "True",
    ]


def test_the_breaks_are_those_of_the_code():
    with open(f"{ROOT}/src/capture/breaks.def") as file:
        entries = re.findall(r"PRONG_BREAK\((.*?)\)\n(?=PRONG_BREAK|\Z)", file.read(), re.DOTALL)
    rows = []
    for entry in entries:
        id, reason, *hint = re.findall(r'"((?:[^"\\]|\\.)*)"', entry)
        rows.append(f"| {id} | {reason.strip()} | {''.join(hint)} |")
    assert rows == re.findall(r"^\| C\d.*$", text(), re.MULTILINE)
