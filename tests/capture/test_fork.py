"""Forks inside compiled functions: their bodies are regions of the graph, and calls are replayed as plans."""

import pickle
import sys
import threading
import time

import prong as torch
import prong.futures
import prong.jit  # loaded when first used, which a recording does not follow
import pytest
from prong import fx

X = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])


def counted(f):
    compiled = torch.compile(f)
    return compiled, compiled._counters


def replayed(f, *args, calls=4):
    """The compiled function, after calls that must be one recording and its replays, equal to plain Python's."""
    compiled, counters = counted(f)
    for _ in range(calls):
        assert same(compiled(*args), f(*args))
    found = counters()
    assert (found["plans"], found["breaks"], found["why_evaluated"]) == (1, 0, ""), found
    assert found["replays"] == calls - 1, found
    return compiled


def same(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, torch.futures.Future):
        return same(a.wait(), b.wait())
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


def work(x, n=2):
    for _ in range(n):
        x = torch.tanh(x * 1.5 + 0.25)
    return x


def test_two_bodies_are_one_recording():
    def f(x):
        first = torch.jit.fork(work, x, 3)
        second = torch.jit.fork(work, x + 1, n=2)
        return torch.jit.wait(first) + second.wait()

    replayed(f, X)


def test_closures_methods_modules_ops_and_keywords():
    class Scale:
        def __init__(self):
            self.factor = 3.0

        def run(self, x, *, shift):
            return x * self.factor + shift

    model, scale = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU()), Scale()

    def f(x):
        y = x * 2

        def inside(z):
            return z + y

        tasks = [
            torch.jit.fork(inside, x),
            torch.jit.fork(lambda z: z - y, x),
            torch.jit.fork(scale.run, x, shift=0.5),
            torch.jit.fork(torch.mul, x, x),
            torch.jit.fork(x.neg),
            torch.jit.fork(model, x),
        ]
        return [task.wait() for task in tasks]

    with torch.no_grad():
        replayed(f, X)


def test_forks_in_forks_and_in_loops_waited_for_in_any_order():
    def tree(x, depth):
        if depth == 0:
            return work(x)
        left = torch.jit.fork(tree, x + 1, depth - 1)
        right = tree(x - 1, depth - 1)
        return left.wait() * right

    def f(x):
        tasks = {}
        for i in range(4):
            tasks[i] = torch.jit.fork(tree, x * i, 2)
        total = tasks[3].wait()
        for i in (1, 0, 2, 1):
            total = total + tasks[i].wait() * i
        return total

    replayed(f, X)


def test_a_chain_of_futures():
    def step(before):
        return before.wait() * 0.5 + 1

    def f(x):
        task = torch.jit.fork(work, x)
        for _ in range(20):
            task = torch.jit.fork(step, task)
        return task.wait()

    replayed(f, X)


def test_futures_are_results():
    def f(x):
        return [torch.jit.fork(work, x), {"neg": torch.jit.fork(torch.neg, x)}, x + 1]

    compiled = replayed(f, X)
    task = compiled(X)[0]
    assert isinstance(task, torch.futures.Future) and task.done()
    assert task is not compiled(X)[0]


def test_a_future_that_nobody_waits_for():
    def f(x):
        torch.jit.fork(work, x)
        return x + 1

    replayed(f, X)


def test_the_graph_has_the_bodies():
    big = torch.randn(64, 256)

    def branch(x, w):
        return torch.relu(x @ w) @ w

    def f(x, ws):
        tasks = [torch.jit.fork(branch, x, w) for w in ws]
        return [task.wait() for task in tasks]

    ws = [torch.randn(256, 256) for _ in range(4)]
    replayed(f, big, ws)
    assert all(torch.allclose(a, b) for a, b in zip(torch.compile(f)(big, ws), f(big, ws)))


def test_other_sizes_are_replays():
    def f(x):
        tasks = [torch.jit.fork(work, x * i, 3) for i in range(3)]
        return [task.wait() for task in tasks]

    compiled, counters = counted(f)
    seen = []
    for n in (2, 1000, 3, 5000):
        x = torch.randn(n, 8)
        assert same(compiled(x), f(x))
        seen.append((n, counters()))
    assert counters()["plans"] == 1 and counters()["replays"] == 3, seen


def test_gradients_through_fork_and_wait():
    model = torch.nn.Linear(3, 3)

    def f(x):
        tasks = [torch.jit.fork(model, work(x * i)) for i in range(3)]
        return sum_of([task.wait() for task in tasks])

    def sum_of(values):
        total = 0
        for value in values:
            total = total + value
        return total.sum()

    def gradients(function):
        model.zero_grad()
        x = X.clone().requires_grad_()
        function(x).backward()
        return x.grad, model.weight.grad.clone(), model.bias.grad.clone()

    compiled, counters = counted(f)
    for _ in range(3):
        assert all(torch.allclose(a, b) for a, b in zip(gradients(compiled), gradients(f)))
    assert counters()["plans"] == 1 and counters()["replays"] == 2


def test_writes_of_bodies_come_in_order():
    def f(x, out):
        def fill(i):
            out[i] = x[i] * (i + 1)
            return out[i].sum()

        first = torch.jit.fork(fill, 0)
        second = torch.jit.fork(fill, 1)
        total = first.wait() + second.wait()
        out.mul_(2)
        return out + total

    compiled, counters = counted(f)
    for _ in range(4):
        a, b = torch.zeros(2, 3), torch.zeros(2, 3)
        assert torch.equal(compiled(X, a), f(X, b)) and torch.equal(a, b)


def test_random_numbers_are_those_of_plain_python():
    def f(x):
        first = torch.jit.fork(lambda: torch.rand(3) + x)
        a = first.wait()
        second = torch.jit.fork(lambda: torch.rand(3) * x)
        return a, second.wait(), torch.rand(2)

    compiled, _ = counted(f)
    for _ in range(4):
        torch.manual_seed(3)
        got = compiled(X)
        torch.manual_seed(3)
        assert same(got, f(X))


def test_modes_of_a_body_are_its_own():
    def f(x):
        def body(y):
            torch.set_grad_enabled(False)
            return y * 2

        task = torch.jit.fork(body, x)
        return task.wait(), (x * 3).requires_grad, torch.is_grad_enabled()

    compiled, _ = counted(f)
    x = X.clone().requires_grad_()
    for _ in range(3):
        value, tapes, is_on = compiled(x)
        assert (value.requires_grad, tapes, is_on) == (False, True, True)


# ── bodies that are not followed run as plain Python forks them ──


@pytest.mark.parametrize("threads", [1, 2])
def test_a_body_may_wait_for_what_its_caller_does_later(threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:

        def f(x):
            event, promise = threading.Event(), torch.futures.Future()

            def body(y):
                z = y * 2
                event.wait()
                return z + promise.wait()

            task = torch.jit.fork(body, x + 1)
            event.set()
            promise.set_result(x)
            return task.wait()

        def g(x):
            flag = []

            def body(y):
                while not flag:
                    time.sleep(0.0001)
                return y

            def spin(y):
                while not flag:
                    pass
                return y

            tasks = torch.jit.fork(body, x * 2), torch.jit.fork(spin, x * 3)
            flag.append(1)
            return tasks[0].wait() + tasks[1].wait()

        for function in (f, g):
            compiled, _ = counted(function)
            for _ in range(3):
                assert same(compiled(X), function(X))
    finally:
        torch.set_num_threads(before)


def test_what_others_see_is_done_once():
    seen, counts = [], {"calls": 0}

    class Counter:
        calls = 0

    counter, total = Counter(), torch.zeros(2, 3)

    def f(x):
        def body(y):
            total.add_(1)
            counter.calls += 1
            counts["calls"] += 1
            seen.append(len(seen))
            return y + 1

        task = torch.jit.fork(body, x * 2)
        return task.wait()

    compiled, counters = counted(f)
    for i in range(1, 8):
        assert torch.equal(compiled(X), X * 2 + 1)
        assert (len(seen), counter.calls, counts["calls"], total[0, 0].item()) == (i, i, i, i)


def test_a_body_that_is_not_followed_is_a_break_with_a_reason():
    def body(y):
        print(end="")
        return y + 1

    def f(x):
        return torch.jit.fork(body, x * 2).wait() + 1

    report = torch._dynamo.explain(f)(X)
    assert any("whose body is not followed: calls print" in str(r) for r in report.break_reasons)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="whose body is not followed"):
        torch.compile(f, fullgraph=True)(X)


def test_errors_come_from_wait_with_their_class_and_frames():
    class Refused(Exception):
        pass

    def body(x):
        y = x * 2
        raise Refused(f"{tuple(y.shape)}")

    def f(x):
        task = torch.jit.fork(body, x)
        y = x + 1
        try:
            return task.wait()
        except Refused as error:
            return y, str(error), error.__traceback__.tb_next is not None, len(error.__notes__)

    compiled, _ = counted(f)
    for _ in range(6):
        assert same(compiled(X), f(X))


def test_an_error_that_nobody_waits_for_is_silent():
    def body(x):
        return x[torch.tensor([7])]

    def f(x):
        torch.jit.fork(body, x)
        return x + 1

    compiled, _ = counted(f)
    for _ in range(3):
        assert torch.equal(compiled(X), X + 1)


def test_an_index_that_fits_not_each_time():
    def body(x, i):
        return x[i] * 2

    def f(x, i):
        task = torch.jit.fork(body, x, i)
        y = x + 1
        return task.wait() + y[0]

    compiled, _ = counted(f)
    for i in (0, 1, 1, 5, 0):
        index = torch.tensor([i])
        if i == 5:
            with pytest.raises(IndexError):
                compiled(X, index)
        else:
            assert torch.equal(compiled(X, index), f(X, index))


def test_futures_from_outside():
    def f(task, x):
        return task.wait() + x

    compiled, _ = counted(f)
    for _ in range(3):
        assert torch.equal(compiled(torch.jit.fork(work, X), X), work(X) + X)


def test_wait_all_collect_all_and_then():
    def f(x):
        tasks = [torch.jit.fork(work, x * i) for i in range(3)]
        all_of = torch.futures.collect_all(tasks)
        twice = tasks[1].then(lambda done: done.value() * 2)
        return torch.futures.wait_all(tasks), [t.wait() for t in all_of.wait()], twice.wait()

    compiled, _ = counted(f)
    for _ in range(5):
        assert same(compiled(X), f(X))


def test_scripts_that_fork():
    @torch.jit.script
    def scripted(x: torch.Tensor) -> torch.Tensor:
        task = torch.jit.fork(torch.neg, x)
        return torch.jit.wait(task) + 1

    def f(x):
        a = torch.jit.fork(scripted, x * 2)
        return scripted(x) + a.wait()

    compiled, _ = counted(f)
    for _ in range(3):
        assert torch.equal(compiled(X), f(X))


def test_what_stands_before_a_fork_is_done_before_the_task_writes():
    seen = []

    def wipe(x):
        seen.append(x)  # not followed
        x.mul_(0)
        x.sub_(4)

    def f(x):
        before = x + 0
        torch.jit.fork(wipe, x).wait()
        promise = torch.futures.Future()

        def later(y):
            y.add_(promise.wait())

        task = torch.jit.fork(later, x)
        between = x * 1
        promise.set_result(1)
        task.wait()
        return before, between, x + 0

    compiled, _ = counted(f)
    for _ in range(6):
        assert same(compiled(X.clone()), (X, X * 0 - 4, X * 0 - 3))


def graph_of(f, *args):
    modules = []

    def keep(module, example_inputs):
        modules.append(module)
        return module

    compiled = torch.compile(f, backend=keep)
    for _ in range(3):
        assert same(compiled(*args), f(*args))
    assert len(modules) == 1 and compiled._counters()["plans"] == 1
    return modules[0]


def test_graphs_show_bodies_and_can_be_put_in_one_line(tmp_path):
    def outer(x):
        inner = torch.jit.fork(work, x)
        y = torch.relu(x)
        return inner.wait() + y

    def f(x):
        first = torch.jit.fork(outer, x * 2)
        second = torch.jit.fork(lambda: torch.sigmoid(x) - 1)
        y = x * 3
        return first.wait() * y, second.wait()

    module = graph_of(f, X)
    kinds = [getattr(n.target, "__name__", "") for n in module.graph.nodes]
    assert (kinds.count("fork"), kinds.count("wait")) == (2, 2)
    for line in (
        "    def outer_body(mul_1):",
        "        def work_body(mul_1):",
        "        work_task = prong.jit.fork(work_body, mul_1)",
        "    outer_task = prong.jit.fork(outer_body, mul_1)",
        "    lambda_task = prong.jit.fork(lambda_body, arg_1)",
    ):
        assert line in module.code.splitlines()
    module.graph.lint()
    flat = module.without_forks()
    assert "fork" not in flat.code
    values = module(X)
    for other in (flat, pickle.loads(pickle.dumps(module)), fx.Interpreter(module).run):
        assert same(list(other(X)), list(values))
    module.save(tmp_path / "graph.pt")
    assert fx.GraphModule.load(tmp_path / "graph.pt").code == flat.code


def test_graphs_that_write_keep_the_order_of_the_program():
    def f(x):
        out = torch.zeros(2, 3)

        def fill(i):
            out[i] = x[i] * 2

        tasks = [torch.jit.fork(fill, i) for i in range(2)]
        for task in tasks:
            task.wait()
        return out + 1

    module = graph_of(f, X)
    assert "fork" not in module.code


@pytest.mark.parametrize("backend", ["eager", "interpreter", "llvm"])
def test_back_ends_and_the_checking_mode(backend):
    def f(x, w):
        tasks = [torch.jit.fork(work, x @ w + i, 3) for i in range(4)]
        return [task.wait() for task in reversed(tasks)]

    x, w = torch.randn(40, 50), torch.randn(50, 60)
    for options in ({}, {"mode": "check"}):
        compiled = torch.compile(f, backend=backend, **options)
        for _ in range(3):
            assert same(compiled(x, w), f(x, w))
        assert compiled._counters()["plans"] == 1


def test_an_lstm_both_ways():
    there, back = torch.nn.LSTM(4, 5), torch.nn.LSTM(4, 5)

    def f(x):
        task = torch.jit.fork(there, x)
        y, _ = back(torch.flip(x, [0]))
        return torch.cat([task.wait()[0], torch.flip(y, [0])], -1)

    with torch.no_grad():
        replayed(f, torch.randn(6, 2, 4))


def test_a_list_that_holds_an_argument_is_no_list_of_weights():
    def f(x, tree):
        return torch.stack(tree) + len(tree) + sum(t.sum() for t in tree) + x

    compiled, _ = counted(f)
    for _ in range(3):
        assert same(compiled(X, [X, X * 2]), f(X, [X, X * 2]))


def test_gradients_through_bodies_sum_in_the_order_of_plain_forks():
    def f(x):
        def body(a):
            return a.tanh() * 1.7 + x * 0.3

        futures = [torch.jit.fork(body, x * i) for i in range(3)]
        return futures[1].wait() - futures[2].wait()

    compiled = torch.compile(f)
    torch.manual_seed(0)
    for _ in range(20):
        drawn, sums = torch.randn(2, 3), []
        for function in (f, compiled):
            x = drawn.clone().requires_grad_()
            function(x).sum().backward()
            sums.append(x.grad.tolist())
        assert sums[0] == sums[1]
    assert compiled._counters()["replays"] > 10


@pytest.mark.parametrize("shape", [(2, 3), (64, 1024)], ids=["in order", "tasks"])
def test_a_number_between_forks_leaves_the_order_of_sums(shape):
    def f(x):
        x = x - 1

        def body(a, by=1):
            return a.tanh() * 2.5 + x * by

        first = torch.jit.fork(body, x[0])
        by = int(x.sum() * 0.5) % 5  # a graph ends here: the other fork stands in the next one
        return (torch.jit.fork(body, x, by).wait() + x) * first.wait()

    compiled = torch.compile(f)
    torch.manual_seed(0)
    for _ in range(12):
        drawn, sums = torch.randn(shape, dtype=torch.float64), []
        for function in (f, compiled):
            x = drawn.clone().requires_grad_()
            function(x).sum().backward()
            sums.append(x.grad)
        assert torch.equal(*sums)
    assert compiled._counters()["replays"] == 11


def test_a_generator_with_a_finally_runs_it_once():
    log = []

    def numbers():
        try:
            yield from (1, 2, 3)
        finally:
            log.append("closed")

    def f(x):
        def body(a):
            for i in numbers():
                log.append(i)
                a = a * i
            return a

        return torch.jit.fork(body, x).wait()

    compiled = torch.compile(f)
    for _ in range(3):
        log.clear()
        assert compiled(torch.ones(2)).tolist() == [6, 6]
        assert log == [1, 2, 3, "closed"]


def test_a_reader_on_another_thread_waits_until_bodies_are_done():
    made, seen, interval = [], [], sys.getswitchinterval()

    def f(x):
        y = x + 1
        made.append(y)

        def body(z):
            for _ in range(20):
                z = z + 1
            return z

        return torch.jit.fork(body, y).wait() + torch.jit.fork(body, y).wait()

    def read():
        while not is_done:
            for y in made[-1:]:
                seen.append(torch.equal(y, X + 1))

    is_done = []
    reader = threading.Thread(target=read)
    sys.setswitchinterval(1e-6)
    try:
        reader.start()
        for _ in range(30):
            compiled, _ = counted(f)
            assert torch.equal(compiled(X), f(X))
    finally:
        is_done.append(1)
        reader.join()
        sys.setswitchinterval(interval)
    assert seen and all(seen)
