"""What compile() tells of itself: logs, explain(), guard callbacks, stances and settings."""

import logging
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import prong as torch
import pytest

SRC = Path(__file__).parents[2] / "src"

PROGRAM = """
import prong as torch
scale = 2.0

class Thing:
    factor = 1.5

thing = Thing()

@torch.compile(backend="interpreter")
def f(x, n):
    y = x * (scale if scale > 2 else 1.0) + n
    return y * (thing.factor if n == 1 else 2)

@torch.compile(backend="interpreter")
def broken(x):
    y = x * 2
    print("hello")
    return y + 1

f(torch.ones(2), 1.0)
scale = 3.0
f(torch.ones(2), 1.0)
f(torch.ones(2).double(), 1.0)
f(torch.ones(2), "no number") if False else None
thing.factor = 4.0
f(torch.ones(2), 1.0)
broken(torch.ones(2))
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    program = tmp_path_factory.mktemp("log") / "program.py"
    program.write_text(PROGRAM)
    environment = dict(os.environ, PRONG_LOG="capture,guards,recompiles")
    environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, program], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def line_of(text):
    return 1 + PROGRAM.split("\n").index(text)


def test_the_log_tells_what_was_compiled_where_and_how_long_it_took(log):
    first = next(line for line in log.splitlines() if "graph 1" in line)
    low = line_of("    y = x * (scale if scale > 2 else 1.0) + n")
    assert re.search(
        rf"\[capture\] f: graph 1, 3 ops, 1 input, 1 output, from .*program\.py:{low}-{low + 1}; compiled by "
        r"interpreter at \d\d:\d\d:\d\d\.\d{3} in [\d.e+-]+ ms",
        first,
    )


def test_the_log_tells_breaks_with_line_reason_and_hint(log):
    line = line_of('    print("hello")')
    assert re.search(
        rf"\[capture\] broken: break 1 at .*program\.py:{line}: calls print, in broken \[C001\]",
        log,
    )
    assert "[capture]   hint: " in log


def test_the_log_tells_failed_guards_with_both_values_and_the_line(log):
    line = line_of("    y = x * (scale if scale > 2 else 1.0) + n")
    assert re.search(
        r"\[guards\] plan 1: global 'scale' of module __main__ > 2 was False, is True "
        rf"\(read at .*program\.py:{line} in f\)",
        log,
    )
    assert "[guards] plan 2: dtype of argument 'x' was float32, is float64" in log
    assert re.search(
        rf"attribute 'factor' of a Thing was absent, is 4\.0 \(read at .*program\.py:{line + 1} in f\)",
        log,
    )
    assert re.search(r"\[recompiles\] f: plan 2 was recorded, since no other fits", log)


def test_the_log_lists_the_guards_of_a_plan(log):
    assert "[guards] f: plan 1 holds while" in log
    assert "[guards]   argument 'x' is a float32 tensor of 1 dimension" in log
    assert "[guards]   argument 'n' == 1 is True" in log
    assert "[guards]   argument 'n' is any float, an input" in log


def test_explain_lists_graphs_breaks_and_guards():
    held = [2.0]

    def whole(x, n):
        return (x * held[0]).relu() + n

    report = torch._dynamo.explain(whole)(torch.ones(3), 1.0)
    text = str(report)
    assert "graph 1:" in text and "mul_1" in text and "compiled 1 graphs" in text
    names = [guard.name for guard in report.out_guards]
    assert "argument 'x'" in names and "variable 'held' of an enclosing function" in names
    guard = next(g for g in report.out_guards if "held" in g.name)
    assert guard.place[:2] == (__file__, whole.__code__.co_firstlineno + 1)

    def broken(x):
        y = x * 2
        n = y.sum().item()
        return y + n

    report = torch._dynamo.explain(broken)(torch.ones(3))
    (each,) = report.break_reasons
    assert each.id == "C002" and "torch.where" in each.hint
    assert f"break 1: {each}" in str(report) and "hint: " in str(report)


def test_fullgraph_raises_the_first_break_with_its_text():
    def broken(x):
        y = x * 2
        print(end="")
        return y + 1

    with pytest.raises(torch._dynamo.exc.Unsupported) as caught:
        torch.compile(broken, fullgraph=True)(torch.ones(2))
    line = broken.__code__.co_firstlineno + 2
    assert f"test_reports.py:{line}: calls print" in str(caught.value)
    assert "[C001]" in str(caught.value) and "hint: " in str(caught.value)


def test_every_reason_for_a_break_is_in_the_table():
    table = re.findall(
        r'PRONG_BREAK\("(C\d+)", "([^"]+)"', (SRC / "capture/breaks.def").read_text()
    )
    ids = [id for id, _ in table]
    assert ids == sorted(set(ids))
    reasons = []
    for path in [*(SRC / "capture").glob("*.cpp"), *(SRC / "bindings").glob("*.cpp")]:
        text = path.read_text()
        reasons += re.findall(r'settle\(\s*"([^"]+)"', text)
        reasons += re.findall(r'run_now\([^;"]*"([^"]+)"', text)
    assert reasons
    missing = [r for r in reasons if not any(r.startswith(words) for _, words in table)]
    assert missing == []


def test_guard_callbacks_are_called():
    failed, exported = [], []
    scale = "2.0"

    def f(x):
        return x * float(scale)

    g = torch._dynamo.optimize(
        "eager", guard_fail_fn=failed.append, guard_export_fn=exported.append
    )(f)
    g(torch.ones(2))
    scale = "3.0"
    g(torch.ones(2))
    assert "variable 'scale'" in failed[0].reason and "was '2.0', is '3.0'" in failed[0].reason
    assert failed[0].orig_code is f.__code__
    assert len(exported) == 2 and any("scale" in guard.name for guard in exported[0])


def test_stances():
    seen = []

    @torch.compile(backend="eager")
    def f(x):
        seen.append(torch.compiler.is_compiling())
        return x * 2

    @torch.compile(backend="eager")
    def pure(x):
        return x * 2

    with torch.compiler.set_stance("force_eager"):
        f(torch.ones(2))
    f(torch.ones(2))
    assert seen == [False, True]
    with torch.compiler.set_stance("fail_on_recompile"):
        with pytest.raises(RuntimeError, match="fail_on_recompile"):
            pure(torch.ones(2))
    pure(torch.ones(2))
    with torch.compiler.set_stance("fail_on_recompile"):
        assert pure(torch.ones(5)).tolist() == [2.0] * 5
        with pytest.raises(RuntimeError, match="dtype of argument 'x' was float32, is float64"):
            pure(torch.ones(2).double())
    with torch.compiler.set_stance("eager_on_recompile"):
        assert pure(torch.ones(2).double()).tolist() == [2.0, 2.0]
    assert pure._counters()["plans"] == 1

    @torch.compiler.set_stance("force_eager")
    def plainly(x):
        return f(x)

    seen.clear()
    plainly(torch.ones(2))
    f(torch.ones(2))
    assert seen == [False, True]
    with pytest.raises(RuntimeError, match="invalid torch.compile stance"):
        torch.compiler.set_stance("never")


def test_settings_work_or_say_that_they_do_not(caplog):
    config = torch._dynamo.config

    def calls(n):
        @torch.compile(backend="eager")
        def f(x, word):
            return x + len(word)

        for i in range(n):
            assert f(torch.ones(1), "a" * i).item() == 1 + i
        return f._counters()["plans"]

    with config.patch(recompile_limit=2), caplog.at_level(logging.WARNING, "prong"):
        assert calls(5) == 2
        assert config.cache_size_limit == 2
    assert config.recompile_limit == 8
    assert "recompile_limit allows" in caplog.text and "argument 'word' was" in caplog.text

    with (
        config.patch("error_on_recompile", True),
        pytest.raises(RuntimeError, match="argument 'word'"),
    ):
        calls(2)

    with pytest.warns(UserWarning, match="dynamic_shapes has no effect"):
        config.dynamic_shapes = False
    assert config.dynamic_shapes is True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config.dynamic_shapes = True
    with pytest.raises(AttributeError, match="does not exist"):
        config.no_such_thing = 1
    with pytest.warns(UserWarning, match="belong to PyTorch's inductor"):
        torch.compile(lambda x: x, options={"epilogue_fusion": True})


def test_a_back_end_that_raises_may_be_left_out():
    def wrong(module, example_inputs):
        raise ValueError("cannot")

    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="wrong.*cannot"):
        torch.compile(lambda x: x * 2 + 1, backend=wrong)(torch.ones(1))
    with torch._dynamo.config.patch(suppress_errors=True):
        assert torch.compile(lambda x: x * 2 + 1, backend=wrong)(torch.ones(1)).item() == 3.0


def test_names_that_mean_nothing_on_a_cpu_are_taken():
    torch.compiler.cudagraph_mark_step_begin()
    x = torch.ones(2)
    torch._dynamo.mark_dynamic(x, 0)
    torch._dynamo.mark_static(x, 0)
    torch._dynamo.maybe_mark_dynamic(x, 0)
    for mode in ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"):
        assert torch.compile(lambda x: x + 1, mode=mode, dynamic=True)(x).tolist() == [2.0, 2.0]
    assert torch.compiler.allow_in_graph(len) is len


def test_functions_kept_out_of_graphs():
    @torch._dynamo.disallow_in_graph
    def aside(x):
        return x + 1

    def f(x):
        return aside(x * 2) * 3

    report = torch._dynamo.explain(f)(torch.ones(1))
    assert (report.graph_count, report.break_reasons[0].id) == (2, "C011")
    with pytest.raises(torch._dynamo.exc.Unsupported, match="disabled function"):
        torch._dynamo.optimize_assert("eager")(f)(torch.ones(1))

    @torch._dynamo.forbid_in_graph
    def outside(x):
        return x + 1

    assert outside(torch.ones(1)).item() == 2.0
    with pytest.raises(torch._dynamo.exc.Unsupported, match="outside must not be called"):
        torch.compile(lambda x: outside(x * 2))(torch.ones(1))


def test_explain_does_not_disturb_what_it_tells_of():
    def branches(x):
        y = x * 2
        return y.exp() if y.sum() > 0 else y

    report = torch._dynamo.explain(branches)(torch.ones(2))
    assert report.graph_count == 2 and [b.id for b in report.break_reasons] == ["C002"]
    assert report.why_evaluated == "" and report.out_guards


def broken_by(what):
    def f(x):
        y = x * 2
        what(y)
        return y + 1

    return f


@pytest.mark.parametrize(
    "what, id",
    [
        (lambda y: torch.equal(y, y), "C004"),
        (lambda y: y.t_(), "C006"),
        (lambda y: y.sum().item(), "C002"),
        (lambda y: y[y > 1], "C007"),
        (lambda y: y.data_ptr(), "C009"),
        (lambda y: torch._dynamo.graph_break(), "C012"),
        (lambda y: torch.manual_seed(1), "C015"),
    ],
)
def test_each_kind_of_break_is_told_and_refused_unless_it_only_reads(what, id):
    report = torch._dynamo.explain(broken_by(what))(torch.ones(3))
    assert [b.id for b in report.break_reasons] == [id] and report.break_reasons[0].hint
    if id in ("C002", "C007", "C009"):
        assert torch.compile(broken_by(what), fullgraph=True)(torch.ones(3)).tolist() == [3.0] * 3
        return
    with pytest.raises(torch._dynamo.exc.Unsupported, match=rf"\[{id}\]"):
        torch.compile(broken_by(what), fullgraph=True)(torch.ones(3))


@pytest.mark.parametrize(
    "what, id",
    [
        (lambda: print(end=""), "C001"),
        (lambda: torch._dynamo.graph_break(), "C012"),
        (torch.compiler.disable(lambda: None), "C011"),
    ],
)
def test_one_graph_refuses_what_asks_for_a_break_wherever_it_stands(what, id):
    def first(x):
        what()
        return x + 1

    def last(x):
        y = x + 1
        what()
        return y

    for f in (first, last):
        for _ in range(2):
            with pytest.raises(torch._dynamo.exc.Unsupported, match=rf"\[{id}\]"):
                torch.compile(f, fullgraph=True)(torch.ones(3))
    assert torch.compile(first)(torch.ones(1)).item() == 2


def by_item(x):
    y = x * 2
    if y.sum().item() > 4:
        return y + 1
    return y


def by_computed_item(x):
    y = x * 2
    n = int(y.sum()) - 3
    while n > 0:
        y, n = y + 1, n - 1
    return y


def by_tensor(x):
    y = x * 2
    return y if (y > 0).all() else -y


@pytest.mark.parametrize("choice", [by_item, by_computed_item, by_tensor])
def test_one_graph_refuses_a_branch_that_data_choose(choice):
    compiled = torch.compile(choice, fullgraph=True)
    for _ in range(2):
        with pytest.raises(torch._dynamo.exc.Unsupported, match=r"\[C002\]"):
            compiled(torch.ones(3))
    assert torch.compile(choice)(torch.ones(3)).tolist() == choice(torch.ones(3)).tolist()


@pytest.mark.parametrize(
    "reads",
    [
        lambda y: y * y.sum().item(),
        lambda y: y[: int(y.sum()) - 5],
        lambda y: y[y > 2] + 1,
        lambda y: y.nonzero() * 2,
        lambda y: torch.tensor([y[0], y[1]]) * 2,
        lambda y: y.repeat_interleave(torch.tensor([1, 2, 1])) + 1,
    ],
)
def test_one_graph_may_read_numbers_and_have_shapes_of_data(reads):
    plain = {}  # pytest would rewrite the assert
    exec("def asserts(y):\n    assert y.sum() > 0, 'too small'\n", plain)

    def f(x):
        y = x * 2
        plain["asserts"](y)
        return reads(y)

    compiled = torch.compile(f, fullgraph=True)
    for start in (1.0, 1.0, 2.0, 0.5):
        x = torch.arange(3.0) + start
        assert compiled(x).tolist() == f(x).tolist()
    with pytest.raises(AssertionError, match="too small"):
        compiled(torch.zeros(3))
