"""What all Python tests share: those that need PyTorch run where it is installed, or are counted.

Everything under tests/parity compares with PyTorch, and so does what is marked `needs_torch`. Where
PyTorch is missing those tests are left out, and the last lines of `make test` say so; with
PRONG_REQUIRE_TORCH=1, as in .ci/run, its absence is an error.
"""

import importlib.util
import os
import random
import sys

import numpy as np
import pytest

# Kernels are compiled by the call that needs them, so that tests run them; tests/capture/test_background.py
# and a mode of tests/programs leave that to the background, as programs do.
os.environ.setdefault("PRONG_SKIP", "background")

HAS_TORCH = importlib.util.find_spec("torch") is not None
collect_ignore_glob = [] if HAS_TORCH else ["parity/*"]


def pytest_configure(config):
    config.addinivalue_line("markers", "needs_torch: compares with PyTorch, where it is installed")
    if os.environ.get("PRONG_REQUIRE_TORCH") and not HAS_TORCH:
        raise pytest.UsageError("PRONG_REQUIRE_TORCH is set, but torch is not installed")


def pytest_collection_modifyitems(config, items):
    if HAS_TORCH:
        return
    left_out = [item for item in items if item.get_closest_marker("needs_torch")]
    if left_out:
        items[:] = [item for item in items if not item.get_closest_marker("needs_torch")]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(autouse=True)
def same_numbers_each_time():
    """A test that draws numbers draws the same ones in each run."""
    random.seed(0)
    np.random.seed(0)
    for name in ("prong", "torch"):
        if name in sys.modules:
            sys.modules[name].manual_seed(0)
