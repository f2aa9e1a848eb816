"""compile(): what is captured, what a back end sees, breaks, plans, threads and what is left behind."""

import gc
import sys
import threading
import weakref

import prong as torch
import pytest
from counting import counting_backend


def test_the_loop_of_the_second_text_is_unrolled():
    backend, graphs = counting_backend()

    @torch.compile(backend=backend)
    def loop_example(x, n):
        for i in range(1, n + 1):
            x = x * i
        return x

    x = torch.randn(5)
    assert loop_example(x, 4).tolist() == (x * 24).tolist()
    assert [line.strip() for line in graphs[0].code.splitlines()[1:]] == [
        "mul_1 = arg_1 * 1",
        "mul_2 = mul_1 * 2",
        "mul_3 = mul_2 * 3",
        "mul_4 = mul_3 * 4",
        "return (mul_4,)",
    ]


def test_nodes_tell_shape_dtype_and_line():
    backend, graphs = counting_backend()

    def f(x):
        return (x * 2).sum(0)

    torch.compile(f, backend=backend)(torch.ones(2, 3))
    first, second = [n for n in graphs[0].graph.nodes if n.op.startswith("call")]
    assert first.meta["shape"] == (2, 3) and first.meta["dtype"] is torch.float32
    assert second.meta["shape"] == (3,)
    assert first.meta["place"] == (__file__, f.__code__.co_firstlineno + 1)


def test_a_graph_can_be_edited():
    def backend(module, example_inputs):
        for node in module.graph.nodes:
            if node.target is torch.sin:
                node.target = torch.cos
        module.graph.lint()
        module.recompile()
        return module

    f = torch.compile(lambda x: torch.sin(x) + 1, backend=backend)
    x = torch.tensor([0.0, 1.0])
    assert f(x).tolist() == (torch.cos(x) + 1).tolist()


@pytest.mark.parametrize("backend", ["llvm", "interpreter", "eager"])
def test_second_calls_are_replayed(backend):
    @torch.compile(backend=backend)
    def f(x, y, scale=2.0):
        h = (x * scale + y).relu()
        return h, {"sum": h.sum()}, [scale]

    for _ in (1, 2):
        x, y = torch.randn(3, 4), torch.randn(3, 4)
        h, sums, scales = f(x, y)
        want = (x * 2.0 + y).relu()
        assert h.tolist() == want.tolist() and sums["sum"].item() == want.sum().item()
        assert scales == [2.0]
    assert f._counters()["replays"] == 1


def test_guards_see_globals_closures_attributes_and_defaults():
    class Thing:
        factor = 1

    thing, cell = Thing(), 2.0
    table = {"a": 3.0}

    @torch.compile
    def f(x, more=1.0):
        return x * thing.factor + cell + table["a"] + more

    x = torch.ones(2)
    assert f(x).tolist() == [7.0, 7.0]
    assert f(x).tolist() == [7.0, 7.0]
    thing.factor = 2
    assert f(x).tolist() == [8.0, 8.0]
    Thing.factor, thing.__dict__ = 5, {}
    assert f(x).tolist() == [11.0, 11.0]
    cell = 0.0
    assert f(x).tolist() == [9.0, 9.0]
    table["a"] = 0.0
    assert f(x).tolist() == [6.0, 6.0]
    assert f(x, 2.0).tolist() == [7.0, 7.0]
    assert f(x.double()).dtype is torch.float64


def test_a_changed_callee_is_seen():
    def helper(x):
        return x + 1

    @torch.compile
    def f(x):
        return helper(x)

    x = torch.ones(1)
    assert [f(x).item(), f(x).item()] == [2.0, 2.0]

    def other(x):
        return x + 10

    helper.__code__ = other.__code__
    assert f(x).item() == 11.0


def test_results_keep_the_identity_and_the_memory_of_arguments():
    @torch.compile
    def f(x):
        return x, x[0], x.t()

    for _ in range(3):
        x = torch.zeros(2, 3)
        same, row, turned = f(x)
        assert same is x
        row.fill_(1)
        assert x.sum().item() == 3.0 and turned.shape == (3, 2) and turned[0, 0].item() == 1.0


def test_writes_to_arguments_happen_each_time():
    @torch.compile
    def f(x, y):
        x.add_(y)
        x[0] = 5.0
        return x.sum()

    for n in range(1, 4):
        x, y = torch.zeros(3), torch.ones(3) * n
        assert f(x, y).item() == 5.0 + 2 * n
        assert x.tolist() == [5.0, n, n] and x._version == 2


def test_a_print_in_the_middle_is_one_break(capsys):
    def broken(x):
        y = x * 2
        print("hello")
        return y.relu() + 1

    report = torch._dynamo.explain(broken)(torch.ones(2))
    assert (report.graph_count, report.graph_break_count) == (2, 1)
    assert "print" in str(report.break_reasons[0])
    assert str(broken.__code__.co_firstlineno + 2) in str(report.break_reasons[0])
    with pytest.raises(torch._dynamo.exc.Unsupported, match="print"):
        torch.compile(broken, fullgraph=True)(torch.ones(2))


def test_errors_are_those_of_plain_python():
    def f(x, y):
        try:
            return x + y
        except RuntimeError as error:
            return str(error)

    x, y = torch.ones(2), torch.ones(3)
    assert torch.compile(f)(x, y) == f(x, y)

    @torch.compile
    def g(x):
        y = x * 2
        return [y][1]

    for _ in range(3):
        with pytest.raises(IndexError) as caught:
            g(x)
    assert caught.traceback[-1].name == "g"


def test_an_index_out_of_range_raises_where_it_is_used():
    @torch.compile
    def f(x, i):
        y = x * 2
        try:
            return y[i]
        except IndexError:
            return "out"

    x = torch.ones(3)
    assert f(x, torch.tensor([0])).tolist() == [2.0]
    assert f(x, torch.tensor([7])) == "out"
    assert f(x, torch.tensor([0])).tolist() == [2.0]


def test_disabled_functions_and_is_compiling():
    seen = []

    @torch.compiler.disable
    def outside(x):
        seen.append(torch.compiler.is_compiling())
        return x + 1

    @torch.compile
    def f(x):
        seen.append(torch.compiler.is_compiling())
        return outside(x * 2) * 3

    assert f(torch.ones(1)).item() == 9.0
    assert seen == [True, False]


def test_many_sizes_make_few_programs():
    @torch.compile
    def f(x):
        return (x * 2 - x.mean(dim=1, keepdim=True)).reshape(x.shape[0] * 2, 2).sum(1)

    for n in [*range(1, 30), 0]:
        x = torch.randn(n, 4)
        want = (x * 2 - x.mean(dim=1, keepdim=True)).reshape(n * 2, 2).sum(1)
        assert f(x).tolist() == want.tolist()
    assert f._counters()["programs"] <= 2


def test_threads_share_a_function():
    @torch.compile
    def f(x, n):
        for _ in range(n):
            x = x * 2
        return x

    wrong = []

    def work(n):
        for _ in range(50):
            if f(torch.ones(4), n).tolist() != [2.0**n] * 4:
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in (1, 2, 3, 4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_nothing_is_left_of_fresh_closures():
    def once(i):
        held = [i]

        @torch.compile(backend="interpreter")
        def f(x):
            return x * held[0]

        f(torch.ones(2))
        f(torch.ones(2))
        return weakref.ref(f)

    references = [once(i) for i in range(20)]
    gc.collect()
    assert [r() for r in references] == [None] * 20


def test_reference_counts_are_those_of_plain_python():
    class Thing:
        pass

    @torch.compile
    def f(x, thing, items):
        items.append(thing)
        y = x + 1
        for _each in items:
            y = y * 2
        return y, thing

    thing, items, x = Thing(), [], torch.ones(2)
    before = sys.getrefcount(thing)
    for _ in range(10):
        items.clear()
        f(x, thing, items)
        items.clear()
    torch._dynamo.reset()
    gc.collect()
    assert sys.getrefcount(thing) == before


def test_generators_and_finally():
    @torch.compile
    def f(x):
        log = []

        def values(n):
            try:
                for i in range(n):
                    yield x + i
            finally:
                log.append("closed")

        return sum(a * b for a, b in zip(values(2), values(3))), log

    total, log = f(torch.ones(2))
    assert total.tolist() == [5.0, 5.0] and log == ["closed", "closed"]


def test_modules_names_and_modes():
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    compiled = torch.compile(module)
    x = torch.randn(3, 2)
    with torch.no_grad():
        for _ in range(3):
            assert compiled(x).tolist() == module(x).tolist()
    assert list(compiled.state_dict()) == list(module.state_dict())

    @torch.compile
    def named(x):
        """Its text."""
        return x

    assert (named.__name__, named.__doc__) == ("named", "Its text.")
    with pytest.raises(RuntimeError, match="Unrecognized mode"):
        torch.compile(named, mode="fastest")
    with pytest.raises(RuntimeError, match="no back end named"):
        torch.compile(named, backend="nothing")


def test_the_checking_mode_tells_the_first_difference():
    def wrong(module, example_inputs):
        return lambda *args: [value + 1 for value in module(*args)]

    x = torch.ones(2)
    f = torch.compile(lambda x: (x * 2).relu(), mode="check")
    assert f(x).tolist() == [2.0, 2.0]
    g = torch.compile(lambda x: (x * 2).relu(), backend=wrong, mode="check")
    with pytest.raises(RuntimeError, match=r"mul_1 .*test_compile.py"):
        g(x)


def test_running_statistics_are_folded_at_each_call():
    def make():
        torch.manual_seed(0)
        return torch.nn.BatchNorm1d(3)

    def f(module, x):
        module(x)
        return module(x) + module.running_mean

    plain, captured = make(), make()
    g = torch.compile(f)
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(4, 3)
            assert g(captured, x).tolist() == f(plain, x).tolist()
            assert captured.running_mean.tolist() == plain.running_mean.tolist()


def test_a_result_that_is_a_view_of_an_argument_stays_one():
    @torch.compile(backend="interpreter")
    def turned(x):
        return torch.einsum("ij->ji", x)

    for _ in range(3):
        x = torch.zeros(2, 3)
        y = turned(x)
        assert y.stride() == (1, 3)
        y[0, 1] = 5.0
        assert x[1, 0].item() == 5


@pytest.mark.parametrize("op", [torch.remainder, torch.fmod, torch.floor_divide])
def test_long_kernels_of_one_number_are_compiled_in_time(op):
    y, x = torch.tensor(-0.9), torch.randn(40)
    f = torch.compile(lambda x, y: (op(y * 1, 2), op(y + 1, 0.7) * x, op(x, y * 2)))
    for got, want in zip(f(x, y), (op(y * 1, 2), op(y + 1, 0.7) * x, op(x, y * 2))):
        assert got.tolist() == want.tolist()
