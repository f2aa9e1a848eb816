"""out= in compiled functions: the write is part of plans."""

import prong as torch
import pytest


def arithmetic(x, o):
    r = torch.add(x, 1, out=o)
    a = o * 2
    torch.mul(o, o, out=o)
    return a, o, r is o


def row(x, o):
    torch.sum(x, 0, out=o[0])
    return (o,)


def named(x, o):
    values, indices = torch.empty(x.shape[1:]), torch.empty(x.shape[1:], dtype=torch.int64)
    best = torch.max(x, 0, out=(values, indices))
    return best.values, indices, best.indices is indices


def resized(x, o):
    torch.cat([x, x], out=(both := torch.empty(0)))
    torch.matmul(x, x.t(), out=(square := torch.empty(0)))
    return both, square


def composed(x, o):
    torch.std(x, 0, out=o[0])
    torch.cumsum(x, 0, out=o[:1].expand_as(x) if x.shape[0] == 1 else o)
    torch.where(x > 1, x, 0.0, out=o)
    torch.norm(x, dim=1, out=o[:, 0])
    return (o,)


@pytest.mark.parametrize("backend", ["eager", "interpreter", "llvm"])
@pytest.mark.parametrize("f", [arithmetic, row, named, resized, composed])
def test_what_out_names_is_written_in_each_call(f, backend):
    compiled = torch.compile(f, backend=backend)
    for n in (2, 3, 2, 4, 2):
        x = torch.arange(n * 2.0).view(n, 2)
        mine, its = torch.zeros(n, 2), torch.zeros(n, 2)
        assert str(compiled(x, its)) == str(f(x, mine)) and its.tolist() == mine.tolist()
    if f in (arithmetic, row, named):
        assert compiled._counters()["replays"] >= 2
