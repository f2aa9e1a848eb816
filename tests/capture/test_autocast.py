"""autocast inside of compiled functions and around them: plain Python's bits, and plans."""

import prong as torch
import pytest
from prong import nn


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def outcome(value):
    return value.dtype, value.requires_grad, repr(value.tolist())


def compare(make, inputs, least):
    """What `make()` gives is called plainly and compiled with all `inputs`, which are called too."""
    plain, compiled = make(), torch.compile(make())
    for arguments in inputs:
        assert outcome(plain(*arguments)) == outcome(compiled(*arguments))
        assert not torch.is_autocast_enabled("cpu")
    assert compiled._counters()["replays"] >= least


BATCHES = [(torch.randn(n, 6),) for n in (4, 4, 7, 4, 1, 7)]


def block(m):
    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return m(x)

    return f


def nested(m):
    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            a = m[0](x)
            with torch.autocast("cpu", enabled=False):
                b = m[1](a.float())
            return m[2](b)

    return f


def shared(m):
    region = torch.autocast("cpu", dtype=torch.float16)

    def f(x):
        with region:
            y = m[0](x)
            with region:
                return m[2](y)

    return f


FORMS = {
    "block": block,
    "amp": lambda m: torch.amp.autocast("cpu")(lambda x: m(x)),
    "old name": lambda m: torch.cpu.amp.autocast()(lambda x: m(x)),
    "nested": nested,
    "shared": shared,
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form):
    compare(lambda: FORMS[form](model()), BATCHES, len(BATCHES) - 1)


def test_first_use_is_recorded():
    """The name torch.autocast is loaded by the first program that asks for it."""
    torch.__dict__.pop("autocast", None)
    compare(lambda: block(model()), BATCHES[:2], 1)


def test_around():
    m = model()
    compiled = torch.compile(lambda x: m(x) * 2)
    for i in range(12):
        x = torch.randn(4, 6)
        with torch.autocast(
            "cpu", enabled=i % 3 != 0, dtype=(torch.bfloat16, torch.float16)[i % 2]
        ):
            assert outcome(m(x) * 2) == outcome(compiled(x))
    assert compiled._counters()["replays"] == 8


def test_questions():
    @torch.compile
    def f(x):
        before = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
        with torch.autocast("cpu", dtype=torch.float16):
            inside = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
            return before, inside, (x @ x).dtype

    for is_on in (False, False, True, True):
        with torch.autocast("cpu", enabled=is_on):
            assert f(torch.ones(2, 2)) == (
                (is_on, torch.bfloat16),
                (True, torch.float16),
                torch.float16,
            )
    assert f._counters()["replays"] == 2


def test_errors_leave_it():
    @torch.compile
    def f(x, wrong):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
            if wrong:
                raise ValueError("wrong")
        return y.dtype

    for i in range(9):
        if i % 3 == 2:
            with pytest.raises(ValueError, match="wrong"):
                f(torch.ones(2, 2), True)
        else:
            assert f(torch.ones(2, 2), False) == torch.bfloat16
        assert not torch.is_autocast_enabled("cpu")
    assert f._counters()["replays"] >= 4


@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
def test_training_steps(optimizer):
    def run(is_compiled):
        m = model()
        o = getattr(torch.optim, optimizer)(m.parameters(), lr=0.05)

        def step(x, y):
            o.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(m(x), y)
            loss.backward()
            o.step()
            return loss.detach()

        if is_compiled:
            step = torch.compile(step)
        seen = []
        for i, n in enumerate((4, 4, 4, 4, 7, 7, 4, 1, 1, 7)):
            torch.manual_seed(i)
            loss = step(torch.randn(n, 6), torch.randint(0, 3, (n,)))
            seen.append((outcome(loss), [outcome(p) for p in m.parameters()]))
        return seen, step

    compiled, step = run(True)
    assert compiled == run(False)[0]
    assert step._counters()["replays"] >= 5
