"""Tensors that a program keeps in attributes, variables and dicts, and replaces: one plan, whichever is there."""

import prong as torch
import pytest

STATE = None


class Cell(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.map = torch.nn.Linear(4, 4)
        self.register_buffer("mean", torch.zeros(4))
        self.hidden = torch.zeros(4)
        self.memory = {"last": torch.zeros(4)}

    def forward(self, x):
        return x


class Recurrent(Cell):
    def forward(self, x):
        self.hidden = torch.tanh(self.map(x) + self.hidden).detach()
        return self.hidden * 2


class Buffered(Cell):
    def forward(self, x):
        before = self.mean
        self.mean = self.mean * 0.9 + x.detach() * 0.1
        return x - self.mean, before


class InDict(Cell):
    def forward(self, x):
        last = self.memory["last"]
        self.memory["last"] = x + last
        return last * 2 + self.memory["last"]


class Growing(Cell):
    def forward(self, x):
        self.hidden = torch.cat([self.hidden, x])
        return self.hidden.sum() + self.hidden.shape[0]


class InPlace(Cell):
    def forward(self, x):
        self.hidden.mul_(0.5).add_(x)
        out = self.hidden * 1
        self.hidden = x.clone()
        return out


class WithHistory(Cell):
    def forward(self, x):
        self.hidden = torch.tanh(self.map(x) * self.hidden)
        return self.hidden.sum()


def enclosing():
    state = torch.ones(4)

    def step(x):
        nonlocal state
        state = state * 0.5 + x
        return state + 1

    return step, lambda: state


def state_of(cell):
    return [cell.mean.tolist(), cell.hidden.tolist(), cell.memory["last"].tolist()]


def values(result):
    return [r.tolist() for r in result] if isinstance(result, tuple) else result.tolist()


@pytest.mark.parametrize("kind", [Recurrent, Buffered, InDict, Growing, InPlace, WithHistory])
def test_state_that_a_call_replaces_is_an_input(kind):
    plain, own = kind(), kind()
    compiled = torch.compile(own.forward)
    for i in range(7):
        x = torch.arange(4.0) * (i + 1)
        assert values(compiled(x)) == values(plain(x)), i
        assert state_of(own) == state_of(plain)
    counters = compiled._counters()
    assert (counters["plans"], counters["replays"]) == (2, 5), counters


@pytest.mark.parametrize("kind", [Recurrent, Buffered, InDict, InPlace])
def test_what_a_program_puts_there_between_calls(kind):
    """Other tensors, other dtypes and lengths, the argument itself, one tensor in two places, nothing."""
    plain, own = kind(), kind()
    compiled = torch.compile(own.forward)

    def both(x, change=None):
        outcomes = []
        for cell, function in ((plain, plain.forward), (own, compiled)):
            given = x.clone()
            if change:
                change(cell, given)
            try:
                outcomes.append((values(function(given)), state_of(cell), given.tolist()))
            except (TypeError, RuntimeError, AttributeError) as error:
                outcomes.append((type(error), str(error)))
        assert outcomes[0] == outcomes[1]

    def put(tensor):
        def change(cell, _):
            cell.hidden = tensor.clone()
            cell.memory["last"] = tensor.clone()
            cell.mean = tensor.clone()

        return change

    def put_argument(cell, x):
        cell.hidden = cell.memory["last"] = cell.mean = x

    def put_one(cell, _):
        cell.hidden = cell.memory["last"] = torch.ones(4)
        cell.mean = cell.hidden

    def put_weight(cell, _):
        cell.hidden = cell.memory["last"] = cell.map.weight.detach()[0]

    def put_none(cell, _):
        cell.hidden = None
        cell.memory["last"] = None

    x = torch.arange(4.0)
    for change in (
        None,
        None,
        None,
        put(torch.ones(4)),
        put(torch.ones(4, dtype=torch.float64)),
        None,
        put(torch.ones(1)),
        put(torch.ones(4).half()),
        put_argument,
        None,
        put_one,
        put_weight,
        put_none,
        put(torch.ones(4)),
        None,
    ):
        both(x, change)


def test_variables_of_enclosing_functions_and_globals():
    def run(compile):
        global STATE
        STATE = torch.ones(4)

        def globally(x):
            global STATE
            STATE = STATE * 0.5 + x
            return STATE * 2

        step, state = enclosing()
        functions = [compile(step), compile(globally)]
        seen = []
        for i in range(6):
            x = torch.ones(4) * i
            seen.append([f(x).tolist() for f in functions] + [state().tolist(), STATE.tolist()])
        return seen, functions

    plain, _ = run(lambda f: f)
    seen, functions = run(torch.compile)
    assert seen == plain
    for function in functions:
        assert function._counters()["replays"] == 4, function._counters()


def test_training_with_state_that_is_replaced():
    def run(compile):
        cell = Recurrent()
        optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            loss = (cell(x) - 1).square().mean() + torch.tanh(cell.map(x)).sum()
            loss.backward()
            optimizer.step()
            return loss.item()

        step = compile(step)
        return [step(torch.ones(4) * i) for i in range(6)] + [cell.map.weight.tolist()], step

    plain, _ = run(lambda f: f)
    losses, step = run(torch.compile)
    assert losses == plain
    assert step._counters()["replays"] >= 3, step._counters()
