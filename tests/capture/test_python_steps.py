"""Calls that others see (print, logging, files, clocks) in compiled functions: plans make them again, in their place,
and what they are given and give is that of the call.
"""

import builtins
import contextlib
import io
import logging
import random
import sys
import time
import traceback
import warnings

import prong as torch
import pytest


def written_and_given(function, *args):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            result = function(*args)
        except Exception as error:
            result = type(error), str(error)
    return out.getvalue(), result if isinstance(result, tuple) else result.tolist()


def replays_like(function, arguments, calls=5, plans=1):
    compiled = torch.compile(function)
    for i in range(calls):
        assert written_and_given(compiled, *arguments(i)) == written_and_given(
            function, *arguments(i)
        )
    counters = compiled._counters()
    assert (counters["plans"], counters["replays"]) == (plans, calls - plans), counters


def ones(i):
    return (torch.ones(3) * (i + 1),)


def prints_between_ops(x):
    y = x * 2
    print("doubled", flush=True)
    return y + 1


PERCENT, BRACES = "%s: %.2f", "{:>8.1f}!"


def prints_values(x):
    loss = (x * x).sum()
    print(f"loss {loss.item():.3f}", x.shape[0], sep=" | ")
    print(PERCENT % ("mean", x.mean().item()), end=";\n")
    print(BRACES.format(loss.item()) + str(x.max().item()), f"{loss:.4f} {loss.item()!r:>9}")
    return loss * 2


def prints_tensors(x):
    print(x, [x * 2, x.shape], {"sum": x.sum()}, (None, True))
    return x - 1


def prints_in_a_loop(x):
    for k in range(3):
        print(k, (x * k).sum().item())
        x = x + k
    return x


def prints_without_gradients(x):
    with torch.no_grad():
        y = x * 2
        print(y.sum().item())
    return y + 1


def prints_where_errors_are_handled(x):
    try:
        print("in", x.sum().item())
        y = x * 2
    except OSError:
        y = x
    finally:
        print("out")
    return y


@pytest.mark.parametrize(
    "function",
    [
        prints_between_ops,
        prints_values,
        prints_tensors,
        prints_in_a_loop,
        prints_without_gradients,
        prints_where_errors_are_handled,
    ],
)
def test_prints_are_made_again_with_the_values_of_the_call(function):
    replays_like(function, ones)


def test_a_step_comes_after_what_stood_before_it_and_before_what_follows():
    order = []
    out = io.StringIO()

    class Seen(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.count = 0

        def forward(self, x):
            x.add_(1)
            out.write(f"{x.sum().item()} ")
            x.mul_(2)
            out.write(f"{x.sum().item()};")
            self.count += 1
            return x

    module = Seen()
    compiled = torch.compile(module)
    x = torch.ones(2)
    for _ in range(4):
        compiled(x)
    order = out.getvalue().split(";")
    assert order[:4] == ["4.0 8.0", "10.0 20.0", "22.0 44.0", "46.0 92.0"]
    assert module.count == 4
    assert compiled._orig_mod is module


def test_clocks_are_asked_in_each_replay():
    def timed(x):
        start = time.perf_counter()
        y = x * 2
        return y, time.perf_counter() - start, time.time()

    compiled = torch.compile(timed)
    seen = []
    for i in range(4):
        before = time.time()
        y, took, now = compiled(*ones(i))
        assert y.tolist() == [2.0 * (i + 1)] * 3
        assert 0 <= took < 60 and before <= now <= time.time()
        seen.append((took, now))
    assert len(set(seen)) == 4
    assert compiled._counters()["replays"] == 3


def test_random_numbers_are_drawn_in_their_order():
    def noisy(x):
        return x * random.random() + random.randint(1, 6) + random.uniform(0, 1)

    compiled = torch.compile(noisy)
    for i in range(5):
        random.seed(i)
        expected = noisy(*ones(i)), random.random()
        random.seed(i)
        got = compiled(*ones(i)), random.random()
        assert got[0].tolist() == expected[0].tolist() and got[1] == expected[1]
    assert compiled._counters()["plans"] == 1
    assert compiled._counters()["replays"] == 4


def test_branches_on_random_numbers_draw_once_and_get_a_plan_for_each_way():
    def layers(x):
        for k in range(3):
            if random.random() < 0.5:
                x = x * (k + 2)
        return x

    compiled = torch.compile(layers)
    for i in range(40):
        random.seed(i)
        expected = layers(*ones(i)).tolist(), random.random()
        random.seed(i)
        assert (compiled(*ones(i)).tolist(), random.random()) == expected
    counters = compiled._counters()
    assert counters["plans"] == 8 and counters["replays"] == 32


def test_a_print_before_a_branch_that_goes_the_other_way_is_not_made_twice():
    def chosen(x):
        print("sum", x.sum().item())
        if x.sum() > 6:
            print("large")
            return x * 2
        return x + 1

    replays_like(chosen, lambda i: (torch.ones(3) * (4 if i % 3 else 1),), calls=9, plans=2)


def test_a_print_before_an_op_that_fails_is_not_made_twice():
    def looked_up(x, index):
        print("at", index.tolist()[0])
        return x[index]

    compiled = torch.compile(looked_up)
    for i in (0, 1, 2, 7, 1):
        args = torch.arange(3.0), torch.tensor([i])
        assert written_and_given(compiled, *args) == written_and_given(looked_up, *args)


def logger_into(stream, name="test_python_steps"):
    logger = logging.getLogger(name)
    logger.propagate, logger.handlers[:] = False, []
    logger.setLevel(logging.INFO)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s %(funcName)s:%(lineno)d %(message)s"))
    logger.addHandler(handler)
    return logger


def test_log_records_tell_the_line_of_the_program():
    out = io.StringIO()
    logger = logger_into(out)

    def told(value):
        logger.warning("sum %.1f of %s", value.sum().item(), "x")

    def logs(x):
        y = x * 2
        logger.info("doubled")
        told(y)
        return y

    texts = []
    compiled = torch.compile(logs)
    for f in (logs, compiled, compiled, compiled):
        out.seek(0)
        out.truncate()
        f(*ones(1))
        texts.append(out.getvalue())
    assert texts[0].splitlines()[0].startswith("INFO logs:")
    assert texts[0].splitlines()[1].startswith("WARNING told:")
    assert len(set(texts)) == 1
    assert compiled._counters()["plans"] == 1
    assert compiled._counters()["replays"] == 2


def test_a_logger_that_is_silent_breaks_no_graph():
    out = io.StringIO()
    logger = logger_into(out)
    logger.setLevel(logging.ERROR)

    def logs(x):
        y = x * 2
        logger.debug("doubled %s", y.shape)
        return y + 1

    compiled = torch.compile(logs, fullgraph=True)
    for i in range(4):
        assert compiled(*ones(i)).tolist() == logs(*ones(i)).tolist()
    assert compiled._counters()["replays"] == 3 and compiled._counters()["graphs"] == 1
    logger.setLevel(logging.DEBUG)
    torch.compile(logs)(*ones(0))
    assert "doubled" in out.getvalue()


def test_a_handler_of_the_programs_own_is_no_part_of_a_plan():
    seen = []
    settings = {"scale": 2}

    class Changing(logging.Handler):
        def emit(self, record):
            seen.append(record.getMessage())
            settings["scale"] += 1

    logger = logging.Logger("own")
    logger.addHandler(Changing())

    def logs(x):
        logger.warning("scaled by %d", settings["scale"])
        return x * settings["scale"]

    compiled = torch.compile(logs)
    assert [compiled(torch.ones(1)).item() for _ in range(4)] == [3, 4, 5, 6]
    assert seen == [f"scaled by {k}" for k in (2, 3, 4, 5)]
    assert compiled._counters()["plans"] == 0


def test_a_stream_of_the_programs_own_that_comes_later_is_asked():
    class Shouting(io.StringIO):
        def write(self, text):
            return super().write(text.upper())

    compiled = torch.compile(prints_between_ops)
    for _ in range(3):
        written_and_given(compiled, *ones(0))
    assert compiled._counters()["replays"] == 2
    with contextlib.redirect_stdout(Shouting()) as out:
        compiled(*ones(0))
    assert out.getvalue() == "DOUBLED\n"
    assert compiled._counters()["replays"] == 2


def test_warnings_are_given_at_the_line_of_the_program():
    def warns(x):
        y = x * 2
        warnings.warn(f"sum is {y.sum().item()}", stacklevel=1)
        return y

    compiled = torch.compile(warns)

    def told(f, i):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            f(*ones(i))
        return [(str(w.message), w.category, w.lineno, w.filename) for w in caught]

    for i in range(4):
        assert told(compiled, i) == told(warns, i)
    assert compiled._counters()["replays"] == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="sum is 12.0") as raised:
            compiled(*ones(1))
    lines = traceback.extract_tb(raised.value.__traceback__)
    assert [line.name for line in lines][-1] == "warns"


class Failing(io.StringIO):
    pass


def test_an_error_of_a_step_is_raised_in_the_programs_frames():
    def inner(x):
        print("now", file=out)
        return x + 1

    def outer(x):
        return inner(x * 2)

    compiled = torch.compile(outer)
    out = io.StringIO()
    compiled(*ones(0))
    compiled(*ones(0))
    assert compiled._counters()["replays"] == 1
    out.close()
    with pytest.raises(ValueError, match="closed file") as expected:
        outer(*ones(0))
    with pytest.raises(ValueError, match="closed file") as raised:
        compiled(*ones(0))
    names = [line.name for line in traceback.extract_tb(raised.value.__traceback__)]
    assert names[-2:] == ["outer", "inner"]
    lines = [line.lineno for line in traceback.extract_tb(raised.value.__traceback__)]
    expected_lines = [line.lineno for line in traceback.extract_tb(expected.value.__traceback__)]
    assert lines[-2:] == expected_lines[-2:]


def test_an_error_of_a_step_after_a_write_leaves_the_write():
    def counted(x, state):
        state.add_(1)
        print("now", file=out)
        state.add_(10)
        return x + state

    compiled = torch.compile(counted)
    out = io.StringIO()
    state = torch.zeros(3)
    for _ in range(3):
        compiled(*ones(0), state)
    assert compiled._counters()["replays"] == 2
    out.close()
    with pytest.raises(ValueError, match="closed file") as raised:
        compiled(*ones(0), state)
    assert state.tolist() == [34.0] * 3
    assert traceback.extract_tb(raised.value.__traceback__)[-1].name == "counted"


def test_an_error_of_a_step_after_a_training_step_leaves_one_step():
    """Native programs are counted as done, too."""

    def run(is_compiled):
        torch.manual_seed(0)
        model, out = torch.nn.Linear(3, 2), io.StringIO()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            print(f"{loss.item():.5f}", file=out)

        if is_compiled:
            step = torch.compile(step)
        seen = []
        for i in range(8):
            if i == 5:
                out.close()
            try:
                step(torch.ones(4, 3) * i)
            except ValueError as error:
                seen.append(str(error))
            seen.append([(p._version, p.tolist()) for p in model.parameters()])
        return seen

    assert run(True) == run(False)


def test_an_error_of_a_step_is_handled_by_the_program():
    def guarded(x):
        y = x * 2
        try:
            print(y.sum().item(), file=out)
        except ValueError:
            y = y + 100
        return y

    compiled = torch.compile(guarded)
    out = io.StringIO()
    for i in range(3):
        assert compiled(*ones(i)).tolist() == [2.0 * (i + 1)] * 3
    assert compiled._counters()["replays"] == 2
    out.close()
    assert compiled(*ones(0)).tolist() == [102.0] * 3


def test_a_training_step_that_prints_its_loss():
    def trained(compiles):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def step(x, y):
            start = time.perf_counter()
            opt.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            opt.step()
            print(f"loss {loss.item():.5f}", time.perf_counter() >= start)
            return loss.detach()

        run = torch.compile(step) if compiles else step
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            for i in range(6):
                run(torch.ones(4, 3) * (i % 3), torch.ones(4, 1))
        return out.getvalue(), model.weight.tolist(), run

    plain, compiled = trained(False), trained(True)
    assert compiled[:2] == plain[:2]
    assert compiled[2]._counters()["replays"] >= 3


def test_fullgraph_still_refuses_a_print():
    with pytest.raises(torch._dynamo.exc.Unsupported, match="calls print"):
        torch.compile(prints_between_ops, fullgraph=True)(*ones(0))


def test_numbers_that_a_generator_gives_to_builtin_code_are_those_of_the_call():
    def scaled(x):
        return x * sum(n * 2 for n in (x.shape[0], 3)), ",".join(str(n) for n in x.tolist())

    compiled = torch.compile(scaled)
    for n in (2, 3, 4):
        got, expected = compiled(torch.ones(n) * n), scaled(torch.ones(n) * n)
        assert got[0].tolist() == expected[0].tolist() and got[1] == expected[1]


def test_nothing_is_replayed_to_a_tracer():
    compiled = torch.compile(prints_between_ops)
    for _ in range(2):
        written_and_given(compiled, *ones(0))
    seen = []
    sys.settrace(lambda frame, event, arg: seen.append(frame.f_code.co_name))
    try:
        written_and_given(compiled, *ones(0))
    finally:
        sys.settrace(None)
    assert "prints_between_ops" in seen


def test_conversions_of_strings_do_not_go_by_names(monkeypatch):
    """f"{n!r}" is of C, whatever stands under the names `repr` and `ascii`."""

    def shows(x):
        return x + 1, f"{x.sum().item()!r} {x.max().item()!a}"

    monkeypatch.setattr(builtins, "repr", lambda value: "mine")
    monkeypatch.setattr(builtins, "ascii", lambda value: "mine")
    compiled = torch.compile(shows)
    for i in range(3):
        x = torch.ones(3) * (i + 0.5)
        assert compiled(x)[1] == shows(x)[1] == f"{3 * i + 1.5} {i + 0.5}"
