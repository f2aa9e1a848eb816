"""The generated pages of docs/ are what `make docs` writes."""

import subprocess
import sys

from tree import ROOT


def test_generated_pages_are_current():
    done = subprocess.run(
        [sys.executable, "tools/docs.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
