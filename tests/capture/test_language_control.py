"""Control flow of Python in compiled functions: the third call replays a plan and does what plain Python does."""

import prong as torch
import pytest


def outcome(f, *args):
    try:
        value = f(*args)
    except Exception as error:
        return type(error).__name__, str(error)
    return repr(value)


def replays(f, *args, calls=4):
    """How many of `calls` calls were replayed; each gives what plain Python gives."""
    g = torch.compile(f)
    for _ in range(calls):
        assert outcome(g, *args) == outcome(f, *args)
    return g._counters()["replays"]


class Manager:
    def __init__(self, swallows=False):
        self.swallows = swallows

    def __enter__(self):
        return 2

    def __exit__(self, kind, error, trace):
        return self.swallows


manager, swallowing = Manager(), Manager(True)


def plain_with(x):
    with manager as by, swallowing:
        y = x * by
    return y + 1


def swallowed(x):
    with swallowing:
        x = x + 1
        raise ValueError
    return x * 2


def caught(x):
    try:
        raise KeyError
    except (ValueError, KeyError):
        y = x + 1
    finally:
        z = x * 2
    return y + z


def caught_outside(x):
    def fail():
        with manager:
            raise KeyError

    try:
        fail()
    except LookupError:
        return x * 3
    return x


@pytest.mark.parametrize("f", [plain_with, swallowed, caught, caught_outside])
def test_with_and_try_are_replayed(f):
    assert replays(f, torch.ones(3)) == 3
