"""What all Python tests share: those that need PyTorch run where it is installed, or are counted.

A test that compares with PyTorch is marked `needs_torch` (everything under tests/parity is). Where
PyTorch is missing those tests are left out and counted in the summary; with PRONG_REQUIRE_TORCH=1,
as in .ci/run, its absence is an error.
"""

import importlib.util
import os

import pytest

HAS_TORCH = importlib.util.find_spec("torch") is not None


def pytest_configure(config):
    config.addinivalue_line("markers", "needs_torch: compares with PyTorch, where it is installed")
    if os.environ.get("PRONG_REQUIRE_TORCH") and not HAS_TORCH:
        raise pytest.UsageError("PRONG_REQUIRE_TORCH is set, but torch is not installed")


def pytest_collection_modifyitems(config, items):
    for item in items:
        if "parity" in item.path.parts:
            item.add_marker("needs_torch")
    if HAS_TORCH:
        return
    left_out = [item for item in items if item.get_closest_marker("needs_torch")]
    if left_out:
        items[:] = [item for item in items if not item.get_closest_marker("needs_torch")]
        config.hook.pytest_deselected(items=left_out)
