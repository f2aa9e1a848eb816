"""Arrays of NumPy that share memory with tensors, read and written between ops of a compiled call."""

import numpy as np
import prong as torch
import pytest

BACKENDS = ["eager", "interpreter", "llvm"]


def written_inside(x):
    n = x.numpy()
    x.add_(1)
    n[0] = 100
    y = x * 2
    n += 1
    t = torch.as_tensor(n)
    t[1] = -5
    return y, x + 0, float(n.sum()), x.sum()


def read_by_functions(x):
    n = x.numpy()
    x.mul_(3)
    total, listed = np.add.reduce(n), n.tolist()
    y = x + 1
    n.fill(7)
    x.add_(1)
    return y, f"{n}", total, listed, [v for v in n], np.stack([n, n]).sum()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", [written_inside, read_by_functions])
def test_arrays_and_tensors_see_each_other(f, backend):
    compiled = torch.compile(f, backend=backend)
    for k in (1, 2, 3):
        given = torch.arange(3.0) * k
        assert str(compiled(given.clone())) == str(f(given.clone()))


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_array_from_outside_that_shares_memory(backend):
    array = np.ones(3, dtype=np.float32)
    x = torch.from_numpy(array)

    @torch.compile(backend=backend)
    def f(x, k):
        y = x * k
        array[0] += 1
        z = x * k
        x[1] = k
        return y, z, array.tolist()

    for k in (2.0, 3.0, 4.0):
        before = float(array[0])
        y, z, seen = f(x, k)
        assert (y[0].item(), z[0].item()) == (before * k, (before + 1) * k) and seen[1] == k


def test_an_array_that_shares_nothing_breaks_no_graph():
    table = np.arange(3.0)

    @torch.compile(fullgraph=True)
    def f(x):
        y = x * 2
        k = table[1] + 1
        return y * float(k)

    assert f(torch.ones(2)).tolist() == [4.0, 4.0]
