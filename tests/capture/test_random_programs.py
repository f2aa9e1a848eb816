"""Random programs, plain and compiled: the same values, errors and effects, call after call."""

import compare_many
import pytest
import random_functions
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


def test_a_program_that_differs_is_made_small(monkeypatch):
    def differs(source, seed, backend, tally=None):
        return source if "torch.sin(x)" in source and "return" in source else None

    monkeypatch.setattr(random_programs, "compare_source", differs)
    seeds = (s for s in range(10_000) if "torch.sin(x)" in random_functions.Writer(s).write())
    source = random_functions.Writer(next(seeds)).write()
    small = compare_many.shrink("functions", source, 0).strip().split("\n")
    assert len(small) <= 8 < source.count("\n") and any("torch.sin(x)" in line for line in small)
