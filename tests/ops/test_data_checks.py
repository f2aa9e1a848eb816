"""An op's checks() and bounds(): a call that passes the checks never fails because of its numbers."""

import prong
import pytest
from prong import _core
from samples import call_of, convert
from test_ops import OPS, facet, run

# What stands in for all integers, and for all other numbers, of a call's tensors.
HOSTILE = {
    "large": (100, float("inf")),
    "negative": (-100, -3.0),
    "minus one": (-1, -1.0),
    "zero": (0, 0.0),
    "one": (1, float("nan")),
}


def variants(op, sample):
    """The sample's call with other numbers in its tensors: in the integers, in the others, in all."""
    for name, (whole, real) in HOSTILE.items():
        for which in ("whole", "real", "all"):

            def change(t, which=which, name=name, whole=whole, real=real):
                is_real = t.dtype.is_floating_point or t.dtype.is_complex
                if which not in ("all", "real" if is_real else "whole"):
                    return t
                if t.dtype is prong.bool:
                    return prong.full_like(t, name != "zero")
                if not is_real and whole < 0 and t.dtype is prong.uint8:
                    return t
                return prong.full_like(t, real if is_real else whole)

            args, kwargs = call_of(op, sample)
            yield f"{name} in {which}", convert(args, change), convert(kwargs, change)


@facet(lambda op: op["family"] != "host")
def test_what_fails_by_its_numbers_says_so(op, sample):
    for name, args, kwargs in variants(op, sample):
        may_fail = _core.op_may_fail(op["name"], *args, **kwargs)
        try:
            run(op, args, kwargs)
        except Exception as error:
            error.add_note(name)
            assert op["checks_data"] and may_fail, (name, error)


RANGED = {
    "index",
    "scatter",
    "embedding",
    "nll_loss",
    "cross_entropy",
    "take",
    "gather",
    "remainder",
}


@facet(lambda op: op["base_name"].rstrip("_") in RANGED)
def test_checks_pass_numbers_that_fit(op, sample):
    args, kwargs = call_of(op, sample)
    assert not _core.op_may_fail(op["name"], *args, **kwargs)


def test_no_op_is_left_out():
    asked = {op["base_name"].rstrip("_") for op in OPS if op["checks_data"]}
    assert asked >= RANGED


@pytest.mark.parametrize(
    "op", [op for op in _core.ops() if op["inplace_of"]], ids=lambda op: op["name"]
)
def test_in_place_forms_check_what_their_op_checks(op):
    base = next(o for o in _core.ops() if o["name"] == op["inplace_of"])
    assert op["checks_data"] == base["checks_data"]
