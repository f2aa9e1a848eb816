"""Numbers that are one object only in the recorded call: in containers that change, in generators for builtins."""

import prong as torch
import pytest


def doubled(x):
    return sum(n * 2 for n in (x.shape[0], 3))


def reversed_pair(x, n, k):
    pair = [n, k]
    pair.reverse()
    return pair


def assigned_slice(x, n, k):
    pair = [0, 0]
    pair[:] = [k, n]
    return pair


def first_item(pair, n):
    pair[0] = n
    return pair


CASES = {
    doubled: [(torch.ones(n),) for n in (3, 4, 5, 3)],
    reversed_pair: [(1, 2, 2), (1, 1, 2), (1, 2, 3), (1, 5, 4)],
    assigned_slice: [(1, 2, 2), (1, 1, 2), (1, 2, 3), (1, 5, 4)],
    first_item: [([1, 2], 1), ([1, 2], 1), ([3, 4], 7), ([5, 5], 1)],
}


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_other_numbers_are_other_objects(f):
    def copied(args):
        return [list(a) if isinstance(a, list) else a for a in args]

    compiled = torch.compile(f)
    for args in CASES[f]:
        plain, given = copied(args), copied(args)
        assert str((compiled(*given), given)) == str((f(*plain), plain))
