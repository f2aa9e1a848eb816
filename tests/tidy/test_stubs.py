"""The stubs that editors and type checkers read are those that the registry gives."""

import subprocess
import sys

from tree import ROOT


def test_stubs_are_as_generated():
    command = [sys.executable, str(ROOT / "tools/stubs.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
