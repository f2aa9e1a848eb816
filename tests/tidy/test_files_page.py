"""The programs on docs/files.md run, one after another, as one program."""

import re
import subprocess
import sys

import pytest
from tree import ROOT


def test_the_programs_run(tmp_path):
    pytest.importorskip("safetensors")
    with open(f"{ROOT}/docs/files.md") as file:
        blocks = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
    assert len(blocks) == 3
    program = tmp_path / "program.py"
    program.write_text("\n".join(blocks))
    done = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "0.1\n"
