"""What stays in one graph: indices that fit, random numbers, copies, running statistics, optimizer steps."""

import prong as torch
import prong.nn.functional as F
import pytest
from counting import counting_backend
from prong import nn


def compiled_whole(f):
    backend, graphs = counting_backend()
    return torch.compile(f, backend=backend, fullgraph=True), graphs


def test_lookups_and_losses_over_classes_are_one_graph():
    table = nn.Embedding(7, 4)

    def f(ids, target):
        scores = table(ids) @ table.weight.t()
        return F.cross_entropy(scores.flatten(0, 1), target.flatten(), ignore_index=-1)

    g, graphs = compiled_whole(f)
    ids, target = torch.tensor([[1, 2], [6, 0]]), torch.tensor([[2, -1], [0, 6]])
    assert g(ids, target).item() == f(ids, target).item()
    assert len(graphs) == 1


@pytest.mark.parametrize(
    "index",
    [
        lambda x: torch.arange(x.shape[0]),
        lambda x: torch.arange(1, x.shape[0]),
        lambda x: torch.arange(x.shape[0]).unsqueeze(0),
        lambda x: x.argmax(0),
        lambda x: x.sum(1).topk(2)[1],
        lambda x: x.sum(1).argsort(),
        lambda x: (torch.arange(20) + 3) % x.shape[0],
        lambda x: torch.arange(x.shape[0]) - 1 + 1,
    ],
)
def test_indices_made_in_the_graph_are_known_to_fit(index):
    def f(x):
        return (x * 2)[index(x)] + 1

    g, graphs = compiled_whole(f)
    x = torch.sin(torch.arange(20.0)).reshape(5, 4)
    assert g(x).tolist() == f(x).tolist()
    assert len(graphs) == 1


@pytest.mark.parametrize("backend", ["llvm", "eager"])
def test_an_index_out_of_range_is_refused_where_it_stands(backend):
    def f(x, i):
        done = []
        try:
            y = x * 2
            done.append(y[i])
            done.append(y.gather(0, i))
            done.append(F.embedding(i + 1, x.unsqueeze(1)))
        except IndexError:
            done.append("IndexError")
        except RuntimeError:
            done.append("RuntimeError")
        return [d if isinstance(d, str) else d.tolist() for d in done]

    g = torch.compile(f, backend=backend)
    x = torch.arange(4.0)
    for values in ([0, 1], [0, 1], [3, 0], [-1, 2], [4, 0], [0, 1], [2, 1]):
        i = torch.tensor(values)
        assert g(x, i) == f(x, i), values


def test_a_changed_index_is_not_taken_for_the_one_before():
    def f(x):
        i = torch.arange(3)
        i.add_(2)
        try:
            return x[i].tolist()
        except IndexError:
            return "refused"

    g = torch.compile(f)
    for n in (5, 4, 5):
        assert g(torch.arange(float(n))) == f(torch.arange(float(n)))


def test_division_by_integers_that_hold_no_zero_stays_in_the_graph():
    def f(x, y):
        return (x // y) % 4 + 1

    g, graphs = compiled_whole(f)
    x, y = torch.arange(6), torch.tensor([1, 2, 3, 1, 2, 3])
    for _ in range(3):
        assert g(x, y).tolist() == f(x, y).tolist()
    assert len(graphs) == 1
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.compile(f)(x, y * 0)


@pytest.mark.parametrize("backend", ["llvm", "eager"])
def test_random_numbers_and_the_generator_are_as_in_eager(backend):
    def f(x):
        h = F.dropout(x * 2, 0.5) + torch.rand_like(x)
        torch.randn(3)  # its numbers are drawn, though nobody reads them
        noise = torch.empty(4).uniform_(-1, 1)
        order = torch.randperm(5)[0] + torch.normal(torch.zeros(2), 1.0).sum()
        return h.sum() + noise.sum() + torch.randint(0, 9, (2,)).sum() + order

    g = torch.compile(f, backend=backend)
    x = torch.ones(3, 4)
    for _ in range(3):
        results = []
        for function in (f, g):
            torch.manual_seed(7)
            results.append((function(x).item(), torch.rand(1).item()))
        assert results[0] == results[1]


def test_dropout_is_no_break():
    layer = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 2), nn.Dropout(0.1))
    g, graphs = compiled_whole(layer)
    torch.manual_seed(0)
    got = g(torch.ones(2, 4))
    torch.manual_seed(0)
    assert got.tolist() == layer(torch.ones(2, 4)).tolist()
    assert len(graphs) == 1


def test_seeding_inside_acts_in_order():
    def f(x):
        a = torch.rand(2) + x
        torch.manual_seed(3)
        return a + torch.rand(2)

    results = []
    for function in (f, torch.compile(f)):
        torch.manual_seed(1)
        results.append([function(torch.zeros(2)).tolist(), torch.rand(1).item()])
    assert results[0] == results[1]


def test_wrong_parameters_of_random_ops_are_refused_where_they_stand():
    def f(x):
        try:
            return x.normal_(0.0, -1.0)
        except RuntimeError:
            return "refused"

    assert torch.compile(f)(torch.ones(2)) == "refused"


def test_copies_and_fills_stay_in_the_graph():
    def f(x, y):
        z = torch.zeros(3, 4)
        z[0] = x
        z[:, 1] = 5
        z.copy_(z + y)
        y.zero_()
        z[1].fill_(2.5)
        return z.sum(0)

    g, graphs = compiled_whole(f)
    for _ in range(3):
        y, w = torch.ones(4), torch.ones(4)
        assert g(torch.arange(4.0), y).tolist() == f(torch.arange(4.0), w).tolist()
        assert y.tolist() == w.tolist() == [0.0] * 4
    assert len(graphs) == 1


def test_a_copy_that_does_not_fit_is_refused_where_it_stands():
    def f(x):
        try:
            x[:2] = torch.ones(3)
        except RuntimeError:
            return x.sum().item()
        return "taken"

    g = torch.compile(f)
    assert g(torch.zeros(4)) == f(torch.zeros(4)) == 0.0


def test_running_statistics_are_written_by_the_graph():
    def made():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU())

    plain, other = made(), made()
    g, graphs = compiled_whole(other)
    for i in range(4):
        x = torch.sin(torch.arange(8.0) + i).reshape(2, 4)
        assert g(x).tolist() == plain(x).tolist()
        assert other[1].running_mean.tolist() == plain[1].running_mean.tolist()
        assert other[1].running_var.tolist() == plain[1].running_var.tolist()
        assert other[1].num_batches_tracked.item() == i + 1
    assert len(graphs) == 1


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda p: torch.optim.SGD(p, lr=0.1),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: torch.optim.AdamW(p, lr=0.1),
        lambda p: torch.optim.RMSprop(p, lr=0.01),
        lambda p: torch.optim.Adagrad(p, lr=0.1),
    ],
)
def test_a_training_step_is_one_graph_after_the_first(optimizer):
    def made():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
        opt = optimizer(model.parameters())
        sched = torch.optim.lr_scheduler.StepLR(opt, step_size=1, gamma=0.9)

        def step(x, y):
            opt.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            opt.step()
            return loss.detach()

        return model, step, sched

    backend, graphs = counting_backend()
    plain, plain_step, plain_sched = made()
    model, step, sched = made()
    step = torch.compile(step, backend=backend)
    for i in range(6):
        x = torch.sin(torch.arange(8.0) + i).reshape(2, 4)
        y = torch.tensor([i % 3, 1])
        want, got = plain_step(x, y), step(x, y)
        plain_sched.step(), sched.step()
        assert want.item() == got.item()
        for p, q in zip(plain.parameters(), model.parameters(), strict=True):
            assert p.tolist() == q.tolist()
            assert p.grad.tolist() == q.grad.tolist()
    assert len(graphs) <= 4
    assert step._counters()["breaks"] == 0


def test_as_many_results_as_a_size_are_counted_anew():
    def f(x):
        parts = list(x.unbind(0))
        a, *rest = torch.split(x, 1)
        return [p * 2 for p in parts], a + 1, len(rest), torch.stack(x.chunk(2)[:1])

    g = torch.compile(f)
    for n in (1, 3, 1, 3, 2, 4, 1, 2):
        x = torch.arange(n * 2.0).reshape(n, 2)
        want, got = f(x), g(x)
        assert [p.tolist() for p in want[0]] == [p.tolist() for p in got[0]]
        assert want[1].tolist() == got[1].tolist() and want[2] == got[2]
        assert want[3].tolist() == got[3].tolist()


def test_results_with_names_are_followed():
    def f(x):
        values, indices = x.max(1)
        top = torch.topk(x, 2)
        return values + indices, top.values.sum() + top[1].sum(), x.sort(0).indices

    g = torch.compile(f)
    for i in range(4):
        x = torch.sin(torch.arange(12.0) + i).reshape(3, 4)
        assert [t.tolist() for t in f(x)] == [t.tolist() for t in g(x)]
    assert g._counters()["replays"] == 3


def test_whole_named_results_keep_their_type():
    def f(x):
        return x.max(1)

    g = torch.compile(f)
    x = torch.arange(6.0).reshape(2, 3)
    for _ in range(3):
        assert type(g(x)) is type(f(x)) and g(x).values.tolist() == [2.0, 5.0]


def test_forks_inside_run_and_give_what_they_give_outside():
    def work(x, n):
        for _ in range(n):
            x = (x * 1.5).tanh()
        return x

    def f(x):
        first = torch.jit.fork(work, x, 3)
        second = torch.jit.fork(work, x + 1, 2)
        here = x * 2
        return torch.jit.wait(first) + torch.jit.wait(second) + here

    g = torch.compile(f)
    for i in range(4):
        x = torch.full((3,), float(i))
        assert g(x).tolist() == f(x).tolist()


def test_an_error_of_a_fork_inside_comes_from_its_wait():
    def work(x):
        return x[torch.tensor([9])]

    def f(x):
        future = torch.jit.fork(work, x * 2)
        try:
            return torch.jit.wait(future).tolist()
        except IndexError:
            return "refused"

    g = torch.compile(f)
    for _ in range(3):
        assert g(torch.ones(2)) == f(torch.ones(2)) == "refused"


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x * 2) @ torch.ones(7, 7),
        lambda x: (x + 1).view(5, 5),
        lambda x: torch.cat([x * 2, torch.ones(9, 9)]),
        lambda x: (x * 2).sum(dim=4),
    ],
)
def test_an_op_that_refuses_its_arguments_says_so_in_one_graph_too(function):
    x = torch.ones(2, 3)
    with pytest.raises(Exception) as plain:
        function(x)
    for fullgraph in (True, False):
        compiled = torch.compile(function, fullgraph=fullgraph)
        for _ in range(2):
            with pytest.raises(type(plain.value)) as raised:
                compiled(x)
            assert type(raised.value) is type(plain.value)
            assert str(raised.value) == str(plain.value)


def test_a_refused_op_whose_error_is_handled_ends_a_graph():
    def handled(x):
        y = x * 2
        try:
            y = y @ torch.ones(7, 7)
        except RuntimeError:
            y = y + 1
        return y * 3

    assert torch.compile(handled)(torch.ones(2)).tolist() == [9.0, 9.0]
    with pytest.raises(torch._dynamo.exc.Unsupported, match="the call is wrong"):
        torch.compile(handled, fullgraph=True)(torch.ones(2))
