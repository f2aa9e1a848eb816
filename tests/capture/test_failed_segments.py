"""An op that fails while it runs: what was put off before it keeps its values, and nothing counts as written."""

import prong as torch
import pytest
from prong import nn


@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
@pytest.mark.parametrize("writes_first", [False, True])
def test_values_of_before_are_there(backend, writes_first):
    @torch.compile(backend=backend)
    def f(x, y):
        a = -x
        if writes_first:
            x.mul_(2)
        try:
            y[torch.tensor([9])]
        except IndexError:
            pass
        return a.flatten(), x

    for _ in range(3):
        x = torch.ones(2)
        a, same = f(x, torch.ones(3))
        assert a.tolist() == [-1.0, -1.0] and same is x
        assert x.tolist() == ([2.0, 2.0] if writes_first else [1.0, 1.0])


@pytest.mark.parametrize("through_view", [False, True])
def test_a_write_that_fails_is_none(through_view):
    @torch.compile(backend="interpreter")
    def f(x, y):
        target = x[0] if through_view else x
        made = y.clone()
        for each in (target, made):
            try:
                each.copy_(torch.ones(7))
            except RuntimeError:
                pass
        return made

    x, y = torch.zeros(2, 3), torch.zeros(2)
    made = f(x, y)
    assert x._version == 0 and made._version == 0 and made.tolist() == [0.0, 0.0]


def test_an_op_that_fails_in_a_replay_raises_in_the_program():
    @torch.compile(backend="interpreter")
    def f(x):
        x[0] = 2.0
        return x.sum()

    for rows in (2, 3, 3):
        f(torch.zeros(rows, 3))
    with pytest.raises(IndexError, match="index 0 is out of bounds") as caught:
        f(torch.zeros(0, 3))
    assert caught.traceback[-1].name == "f"


def test_an_op_that_fails_in_a_replay_is_caught_by_the_program():
    @torch.compile(backend="interpreter")
    def f(x):
        try:
            x[0] = 2.0
        except IndexError:
            return "empty"
        return "written"

    assert [f(torch.zeros(rows, 3)) for rows in (2, 3, 3, 0, 2)] == [
        *["written"] * 3,
        "empty",
        "written",
    ]


def test_no_write_happens_before_an_op_that_may_fail_with_new_sizes():
    @torch.compile(backend="interpreter")
    def f(x, y):
        x.add_(1)
        try:
            y[0] = 2.0
        except IndexError:
            return "empty"
        return "written"

    for rows, want in ((2, "written"), (3, "written"), (3, "written"), (0, "empty"), (0, "empty")):
        x = torch.zeros(2)
        assert f(x, torch.zeros(rows, 3)) == want and x.tolist() == [1.0, 1.0]
    assert f._counters()["replays"] >= 1


def test_a_write_that_is_refused_in_a_replay_raises_in_the_program():
    @torch.compile(backend="interpreter")
    def f(x, y):
        return y.add_(x[:1])

    for _ in range(3):
        f(torch.ones(2, 3), torch.ones(2, 3))
    x = torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="single memory location") as caught:
        f(x, x)
    assert caught.traceback[-1].name == "f" and x.tolist() == torch.ones(2, 3).tolist()


def test_an_op_that_nobody_reads_raises_all_the_same():
    @torch.compile(backend="llvm")
    def f(x):
        y = x * 2 + 1
        x[1]
        return y * y

    for rows in (2, 2, 3, 3):
        f(torch.ones(rows, 3))
    for _ in range(2):
        with pytest.raises(IndexError, match="index 1 is out of bounds"):
            f(torch.ones(0, 3))
    assert f._counters()["replays"] >= 2


def test_arguments_that_come_to_share_memory_are_evaluated():
    def add_rows(x, y):
        rows = y.unsqueeze(0)
        y += 1
        try:
            rows.add_(x)
        except RuntimeError:
            return "refused"
        return y * 1

    compiled = torch.compile(add_rows)
    for x, y in ((torch.ones(3), torch.ones(3)), (torch.ones(3), torch.zeros(3))):
        assert compiled(x.clone(), y.clone()).tolist() == add_rows(x.clone(), y.clone()).tolist()
    for run in (compiled, add_rows):
        x = torch.ones(3)
        assert (run(x, x), x.tolist()) == ("refused", [2.0, 2.0, 2.0])


# What the numbers in these tensors make fail, and numbers that do not.
FAILS_BY_DATA = {
    "cholesky": (torch.linalg.cholesky, (-torch.eye(3),), (torch.eye(3),)),
    "inv": (torch.linalg.inv, (torch.zeros(2, 2),), (torch.eye(2),)),
    "solve": (
        torch.linalg.solve,
        (torch.zeros(2, 2), torch.ones(2)),
        (torch.eye(2), torch.ones(2)),
    ),
    "lu_solve": (
        torch.linalg.lu_solve,
        (torch.eye(2), torch.tensor([5, 1], dtype=torch.int32), torch.ones(2, 1)),
        (torch.eye(2), torch.tensor([2, 2], dtype=torch.int32), torch.ones(2, 1)),
    ),
    "embedding": (
        torch.nn.functional.embedding,
        (torch.tensor([3]), torch.ones(3, 2)),
        (torch.tensor([2]), torch.ones(3, 2)),
    ),
    "take_along_dim": (
        torch.take_along_dim,
        (torch.ones(2, 2), torch.tensor([[2]]), 1),
        (torch.ones(2, 2), torch.tensor([[-1]]), 1),
    ),
    "masked_scatter": (
        torch.masked_scatter,
        (torch.zeros(3), torch.tensor([True, True, True]), torch.ones(1)),
        (torch.zeros(3), torch.tensor([True, False, False]), torch.ones(1)),
    ),
    "histc": (torch.histc, (torch.tensor([float("nan")]),), (torch.ones(2),)),
}


def caught_where_it_is_called(op, wrong, right, errors):
    """Writes around a call that fails in some of the calls, as plain Python makes them."""

    def f(count, *args):
        count.add_(1)
        try:
            result = op(*args)
        except errors:
            return count + 100
        count.add_(1)
        return result * 2 + count.sum()

    compiled = torch.compile(f, backend="interpreter")
    for args in (right, right, wrong, right, wrong, wrong, right):
        plain, count = torch.zeros(1), torch.zeros(1)
        assert torch.equal(compiled(count, *args), f(plain, *args))
        assert torch.equal(count, plain)


@pytest.mark.parametrize("name", FAILS_BY_DATA)
def test_what_fails_by_its_data_is_caught_where_it_is_called(name):
    caught_where_it_is_called(*FAILS_BY_DATA[name], (RuntimeError, IndexError))


def put(x, index, values):
    x[index] = values
    return x


F = torch.nn.functional
# Shapes and dtypes that a kernel refuses, and such as fit.
REFUSED = {
    "conv2d": (
        lambda b: F.conv2d(torch.ones(1, 3, 5, 5), torch.ones(5, 3, 3, 3), b),
        torch.ones(4),
        torch.ones(5),
    ),
    "group_norm": (lambda w: F.group_norm(torch.ones(2, 4), 2, w), torch.ones(3), torch.ones(4)),
    "cross_entropy": (
        lambda w: F.cross_entropy(torch.ones(2, 3), torch.tensor([0, 2]), w),
        torch.ones(2),
        torch.ones(3),
    ),
    "addmm": (
        lambda b: torch.addmm(b, torch.ones(2, 3), torch.ones(3, 4)),
        torch.ones(3),
        torch.ones(4),
    ),
    "index_put_": (
        lambda v: put(torch.zeros(4), torch.tensor([1, 3]), v),
        torch.ones(3),
        torch.ones(2),
    ),
    "scatter_": (
        lambda v: torch.zeros(4).scatter_(0, torch.tensor([1, 3]), v),
        torch.ones(1),
        torch.ones(2),
    ),
    "quantile": (lambda x: torch.quantile(x, 0.5), torch.ones(3, dtype=torch.int64), torch.ones(3)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_caught_where_it_is_called(name):
    op, wrong, right = REFUSED[name]
    caught_where_it_is_called(op, (wrong,), (right,), RuntimeError)


def test_writes_by_index_are_steps_of_a_plan():
    def f(x, index, values):
        y = x * 2
        y[index] = values
        y.index_add_(0, index, values)
        y.scatter_(0, index, values)
        return y + 1

    compiled = torch.compile(f, backend="interpreter")
    x, values = torch.zeros(4), torch.tensor([1.0, 2.0])
    for pair in ([1, 3], [0, 2], [1, 2], [2, 0]):
        index = torch.tensor(pair)
        assert torch.equal(compiled(x, index, values), f(x, index, values))
    assert compiled._counters()["replays"] >= 2
    for wrong in ([1, 4], [0, 9]):
        with pytest.raises(IndexError):
            compiled(x, torch.tensor(wrong), values)


def refusing(call):
    def f(*args):
        try:
            return call(*args)
        except (RuntimeError, IndexError, NotImplementedError) as error:
            return type(error).__name__, str(error)

    return f


@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
@pytest.mark.parametrize(
    "call, args",
    [
        (lambda x: (x + 0).kthvalue(99), [torch.ones(3)]),
        (lambda b, x: torch.addmm(b, x + 0, x), [torch.ones(3, 3), torch.ones(2, 2)]),
        (lambda x: (x > 0) @ (x > 0), [torch.ones(2, 2)]),
        (lambda x: (x + 0).std(), [torch.tensor([1, 2])]),
        (lambda x: torch.linalg.cholesky(x - 1), [torch.zeros(2, 2)]),
        (lambda x: torch.linalg.inv(x * 0), [torch.ones(2, 2)]),
        (lambda x: torch.arange(3, dtype=torch.complex64) + x, [torch.ones(3)]),
        (lambda x, m: nn.functional.batch_norm(x + 0, m, m), [torch.ones(2, 3), torch.ones(5)]),
        (
            lambda x, i: (x + 0).scatter(0, i, x),
            [torch.ones(4), torch.zeros(2, 2, dtype=torch.int64)],
        ),
        (
            lambda x, i: (x + 0).index_add_(0, i, x),
            [torch.ones(2, 3), torch.zeros(1, dtype=torch.int64)],
        ),
    ],
)
def test_what_only_the_kernel_refuses_is_refused_where_it_is_called(backend, call, args):
    f = refusing(call)
    compiled = torch.compile(f, backend=backend)
    want = f(*args)
    assert isinstance(want[0], str)
    for _ in range(3):
        assert compiled(*args) == want


def test_a_factorization_that_fails_is_tried_again_by_the_program():
    @torch.compile
    def root(x, jitter):
        for _ in range(10):
            try:
                return torch.linalg.cholesky(x * 1).sum()
            except torch.linalg.LinAlgError:
                x = x + torch.eye(2) * jitter
        return None

    for start in (1.0, 0.0, 1.0, -2.0, 0.0):
        x = torch.eye(2) * start
        for _ in range(2):
            want = max(start, start + 0.5 * (start <= 0) * (1 + int(-start / 0.5)))
            assert root(x, 0.5).item() == pytest.approx(2 * want**0.5)


def test_a_program_that_failed_at_first_is_whole_the_next_time():
    def f(x, rows):
        return x[rows]

    compiled = torch.compile(f)
    x = torch.ones(2, 3)
    for i in (5, 1, 0, 7, 1):
        rows = torch.tensor([i])
        if i > 1:
            with pytest.raises(IndexError):
                compiled(x, rows)
        else:
            assert compiled(x, rows).tolist() == [[1.0, 1.0, 1.0]]
