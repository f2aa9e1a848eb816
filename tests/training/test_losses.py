"""100 steps of training from one seed: the losses are PyTorch's, from goldens, and live where it is installed."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import prong
import pytest
from training_programs import CASES

GOLDEN = Path(__file__).with_name("losses.json")
PROGRAM = Path(__file__).with_name("programs") / "step_through_torchdynamo.py"


def run(module, case):
    module.manual_seed(0)
    return CASES[case](module)


@pytest.mark.parametrize("case", CASES)
def test_losses_of_the_goldens(case):
    golden = json.loads(GOLDEN.read_text())[case]
    np.testing.assert_allclose(run(prong, case), golden, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_losses_of_pytorch(case):
    torch = pytest.importorskip("torch")
    np.testing.assert_allclose(run(prong, case), run(torch, case), rtol=1e-5, atol=1e-5)


def losses_of_program(*arguments):
    command = [sys.executable, "-m", "prong", str(PROGRAM), *arguments]
    out = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    return [float(line.removeprefix("Loss: ")) for line in out.splitlines()]


def test_a_step_through_torchdynamo():
    """By `python -m prong`, with its imports of torch and torchdynamo: as without torchdynamo."""
    losses = losses_of_program()
    assert len(losses) == 100
    assert all(0.5 < loss < 3 for loss in losses)
    assert losses == losses_of_program("plain")


@pytest.mark.parametrize("threads", [1, 3])
def test_losses_do_not_depend_on_threads(threads):
    before = prong.get_num_threads()
    want = run(prong, "mlp with Adam")
    try:
        prong.set_num_threads(threads)
        assert run(prong, "mlp with Adam") == want
    finally:
        prong.set_num_threads(before)


def write_goldens():
    """Run with PyTorch installed: python tests/training/test_losses.py"""
    import torch

    GOLDEN.write_text(json.dumps({case: run(torch, case) for case in CASES}, indent=0) + "\n")


if __name__ == "__main__":
    write_goldens()
