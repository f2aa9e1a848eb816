"""docs/tour.md shows what the compiler really prints for examples/first.py."""

import os
import subprocess
import sys

from tree import ROOT


def indented_blocks(text):
    block = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("    "):
            block.append(line[4:])
        elif block:
            yield block
            block = []


def test_the_graphs_of_the_tour_are_printed():
    done = subprocess.run(
        [sys.executable, "-m", "prong", os.path.join(ROOT, "examples", "first.py")],
        env={**os.environ, "PRONG_LOG": "passes"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    printed = "\n".join(line.removeprefix("[passes] ") for line in done.stderr.splitlines())
    with open(os.path.join(ROOT, "docs", "tour.md")) as file:
        graphs = [
            "\n".join(block)
            for block in indented_blocks(file.read())
            if block[0].startswith("def ")
        ]
    assert len(graphs) == 2
    for graph in graphs:
        assert graph in printed
