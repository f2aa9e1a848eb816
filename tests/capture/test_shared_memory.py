"""Memory that compiled calls share with others: arrays of NumPy, tensors given as out=, methods that programs set."""

import numpy as np
import prong as torch
import pytest


def array():
    return np.ones(3)


def item(x, a):
    y = x * 2
    a[0] = 100
    return y


def operator(x, a):
    y = x * 2
    a += 1
    return y, a[0]


def ufunc(x, a):
    y = x * 2
    np.add(a, 1, out=a)
    return y


def reading(x, a):
    x += 1
    first = a[0]
    x += 1
    return first, f"{a}", [float(v) for v in a], sum(a), -a, 2.0 in a, x


def made_inside(x, a):
    b = x.numpy()
    y = x * 2
    b[1] = 50
    t = torch.from_numpy(a) * 3
    a[2] = 7
    return y, t


def in_a_loop(x, a):
    total = 0
    for value in a:
        total = total + value
        x += 1
    return total, x


def interpreted(x, a):
    async def later():
        y = x * 2
        a[0] = 9
        return y

    task = later()
    try:
        task.send(None)
    except StopIteration as done:
        return done.value


@pytest.mark.parametrize("f", [item, operator, ufunc, reading, made_inside, in_a_loop, interpreted])
def test_arrays_over_the_memory_of_an_input(f):
    compiled = torch.compile(f)
    for _ in range(3):
        a, b = array(), array()
        wanted, got = f(torch.from_numpy(a), a), compiled(torch.from_numpy(b), b)
        assert str(wanted) == str(got)
        assert a.tolist() == b.tolist()


def test_a_tensor_given_as_out_is_written_in_each_call():
    def f(x, o):
        r = torch.add(x, 1, out=o)
        torch.mul(x, x, out=x)
        return r is o, o + 1

    compiled = torch.compile(f)
    for shape in [(2,), (2,), (2,), (3,), (3,), (0,), (2,)]:
        x, o, y, p = torch.ones(2) * 3, torch.zeros(shape), torch.ones(2) * 3, torch.zeros(shape)
        assert str(f(x, o)) == str(compiled(y, p))
        assert (x.tolist(), o.tolist()) == (y.tolist(), p.tolist())
    assert compiled._counters()["replays"] >= 2


def test_a_method_of_tensors_is_set_between_calls(monkeypatch):
    @torch.compile
    def f(x):
        return x.mine(2), x.relu()

    x = torch.tensor([-1.0, 3.0])
    for mine in (lambda s, k: s * k, lambda s, k: s - k):
        monkeypatch.setattr(torch.Tensor, "mine", mine, raising=False)
        for _ in range(3):
            assert str(f(x)) == str((mine(x, 2), x.relu()))
    monkeypatch.setattr(torch.Tensor, "relu", lambda s: s * 7)
    assert f(x)[1].tolist() == [-7.0, 21.0]


def test_an_error_of_work_that_an_array_waits_for_comes_from_the_program():
    def f(x, a, i):
        y = x[i] * 2
        a[0] = 5
        return y

    compiled = torch.compile(f)
    for i in (0, 0, 7, 1):
        outcomes = []
        for g in (f, compiled):
            a = array()
            try:
                outcomes.append((str(g(torch.from_numpy(a), a, torch.tensor([i]))), a.tolist()))
            except IndexError as error:
                outcomes.append((str(error), a.tolist()))
        assert outcomes[0] == outcomes[1]
