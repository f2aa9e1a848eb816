"""Random programs, plain and compiled: the same values, errors and effects, call after call."""

import pytest
import random_programs
import random_replays


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_plain_and_compiled_agree(first):
    for seed in range(first, first + 50):
        text = random_programs.compare(seed, "interpreter")
        assert text is None, text


def test_native_kernels_agree():
    for seed in range(1000, 1040):
        text = random_programs.compare(seed, "llvm")
        assert text is None, text


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_replays_agree_while_what_they_read_changes(first):
    tally = {"calls": 0, "replays": 0}
    for seed in range(first, first + 50):
        text = random_replays.compare(seed, "interpreter", tally=tally)
        assert text is None, text
    assert tally["replays"] > tally["calls"] / 10  # else this test would not test what it is for
