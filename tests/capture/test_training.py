"""Whole training steps, compiled: the same bits as plain Python's, from one replayed program."""

import math

import prong as torch
import pytest
import random_training
import training_steps
from prong import nn
from training_steps import scheduled, snapshot, usual

STEPS = 20


def mlp():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 3))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(3, 5, batch_first=True), nn.Linear(5, 3)

    def forward(self, x):
        return self.out(self.lstm(x.reshape(-1, 2, 3))[0][:, -1])


def tied():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 6)
            self.b.weight = self.a.weight
            self.out = nn.Linear(6, 3)

        def forward(self, x):
            return self.out(self.b(self.a(x).relu()))

    return Tied()


def frozen():
    model = mlp()
    for p in model[0].parameters():
        p.requires_grad_(False)
    return model


MODELS = {
    "mlp": mlp,
    "tied": tied,
    "frozen": frozen,
    "dropout": lambda: nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.4), nn.Linear(8, 3)),
    "batch_norm": lambda: nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)),
    "lstm": Recurrent,
    "pooled": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 2, 3)),
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(4, 3),
    ),
    "layer_norm": lambda: nn.Sequential(
        nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3)
    ),
}
OPTIMIZERS = {
    "sgd": lambda ps: torch.optim.SGD(ps, lr=0.1),
    "momentum": lambda ps: torch.optim.SGD(ps, lr=0.1, momentum=0.9, weight_decay=0.01),
    "nesterov": lambda ps: torch.optim.SGD(ps, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda ps: torch.optim.Adam(ps, lr=0.01),
    "amsgrad": lambda ps: torch.optim.Adam(ps, lr=0.01, amsgrad=True),
    "adamw": lambda ps: torch.optim.AdamW(ps, lr=0.01),
    "rmsprop": lambda ps: torch.optim.RMSprop(ps, lr=0.01, momentum=0.5),
    "adagrad": lambda ps: torch.optim.Adagrad(ps, lr=0.05),
    "adamax": lambda ps: torch.optim.Adamax(ps, lr=0.01),
    "adadelta": lambda ps: torch.optim.Adadelta(ps),
    "nadam": lambda ps: torch.optim.NAdam(ps),
    "radam": lambda ps: torch.optim.RAdam(ps),
}


def run(make_model, make_optimizer, make_step, is_compiled, sizes=(4,) * STEPS):
    batches = [lambda n=n: (torch.randn(n, 6), torch.randint(0, 3, (n,))) for n in sizes]
    return training_steps.run(make_model, make_optimizer, make_step, batches, is_compiled)


def check(make_model, make_optimizer, make_step, least=STEPS - 3, **options):
    plain, _ = run(make_model, make_optimizer, make_step, False, **options)
    compiled, step = run(make_model, make_optimizer, make_step, True, **options)
    for i, (a, b) in enumerate(zip(plain, compiled, strict=True)):
        assert a == b, f"call {i + 1}"
    counters = step._counters()
    assert counters["replays"] >= least, counters
    assert counters["breaks"] == 0
    return counters


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizers(optimizer):
    counters = check(mlp, OPTIMIZERS[optimizer], usual)
    assert counters["graphs"] == STEPS - counters["replays"]


@pytest.mark.parametrize("model", MODELS)
def test_models(model):
    check(MODELS[model], OPTIMIZERS["momentum"], usual)
    check(MODELS[model], OPTIMIZERS["adam"], usual)


def test_the_loss_itself():
    def make(model, optimizer):
        def step(x, y):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return step

    check(mlp, OPTIMIZERS["adam"], make)
    _, step = run(mlp, OPTIMIZERS["adam"], make, True)
    before = step._counters()["replays"]
    loss = step(torch.ones(4, 6), torch.zeros(4, dtype=torch.int64))
    assert step._counters()["replays"] == before + 1
    with pytest.raises(RuntimeError, match="a second time"):
        loss.backward()
    assert loss.grad_fn.next_functions


def clipped(clip):
    def make(model, optimizer):
        def step(x, y):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            clip(model.parameters())
            optimizer.step()
            return loss.detach()

        return step

    return make


def test_clipping():
    check(mlp, OPTIMIZERS["adam"], clipped(lambda ps: nn.utils.clip_grad_norm_(ps, 0.1)))
    check(mlp, OPTIMIZERS["sgd"], clipped(lambda ps: nn.utils.clip_grad_value_(ps, 0.01)))


@pytest.mark.parametrize("set_to_none", [True, False])
def test_gradients_add_up_over_micro_batches(set_to_none):
    def make(model, optimizer):
        def step(x, y):
            optimizer.zero_grad(set_to_none=set_to_none)
            total = torch.zeros(())
            for part, target in ((x[:2], y[:2]), (x[2:], y[2:])):
                loss = nn.functional.cross_entropy(model(part), target) / 2
                loss.backward()
                total += loss.detach()
            optimizer.step()
            return total

        return step

    check(mlp, OPTIMIZERS["momentum"], make)


def test_gradients_add_up_over_calls():
    def make(model, optimizer):
        calls = {"count": 0}

        def step(x, y):
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            calls["count"] += 1
            if calls["count"] % 2 == 0:
                optimizer.step()
                optimizer.zero_grad()
            return loss.detach()

        return step

    check(mlp, OPTIMIZERS["adam"], make, least=STEPS - 8)


@pytest.mark.parametrize(
    "schedule",
    [
        lambda o: torch.optim.lr_scheduler.StepLR(o, 3, 0.5),
        lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9),
    ],
)
def test_a_scheduler(schedule):
    check(mlp, OPTIMIZERS["momentum"], scheduled(schedule), least=0)


def test_a_rate_that_the_program_changes():
    def make(model, optimizer):
        inner = torch.compile(usual(model, optimizer))

        def step(x, y):
            optimizer.param_groups[0]["lr"] *= 0.9
            return inner(x, y)

        step._counters = inner._counters
        return step

    torch.manual_seed(7)
    model = mlp()
    optimizer = OPTIMIZERS["sgd"](list(model.parameters()))
    step = make(model, optimizer)
    for _ in range(STEPS):
        step(torch.randn(4, 6), torch.randint(0, 3, (4,)))
    assert step._counters()["replays"] >= STEPS - 5


def test_by_hand():
    def make(model, optimizer):
        def step(x, y):
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.1 * p.grad
                    p.grad = None
            return loss.detach()

        return step

    check(mlp, OPTIMIZERS["sgd"], make)


def test_autograd_grad():
    def make(model, optimizer):
        params = list(model.parameters())

        def step(x, y):
            loss = nn.functional.cross_entropy(model(x), y)
            grads = torch.autograd.grad(loss, params)
            with torch.no_grad():
                for p, g in zip(params, grads):
                    p.sub_(g, alpha=0.1)
            return loss

        return step

    check(mlp, OPTIMIZERS["sgd"], make)


def test_a_smaller_last_batch():
    sizes = (4, 4, 4, 4, 2) * 4
    check(mlp, OPTIMIZERS["adam"], usual, least=STEPS - 5, sizes=sizes)


def test_a_wrong_batch_changes_what_plain_python_changes():
    def outcomes(is_compiled):
        torch.manual_seed(7)
        model = MODELS["batch_norm"]()
        optimizer = OPTIMIZERS["adam"](list(model.parameters()))
        step = usual(model, optimizer)
        if is_compiled:
            step = torch.compile(step)
        seen = []
        for i in range(12):
            x, y = torch.randn(4, 6), torch.randint(0, 3, (4,))
            if i == 6:
                y[1] = 5
            if i == 8:
                x = torch.randn(4, 5)
            try:
                loss = step(x, y)
            except (RuntimeError, IndexError) as error:
                loss = torch.tensor(float(len(str(error))))
                seen.append(str(error))
            seen.append(snapshot(model, optimizer, loss))
        return seen

    assert outcomes(False) == outcomes(True)


def test_hooks_are_called():
    calls = []

    def outcomes(is_compiled):
        torch.manual_seed(7)
        model = mlp()
        optimizer = OPTIMIZERS["sgd"](list(model.parameters()))
        step = usual(model, optimizer)
        if is_compiled:
            step = torch.compile(step)
        seen = []
        for i in range(10):
            if i == 5:
                handle = model[0].weight.register_hook(
                    lambda g: calls.append(g.sum().item()) or g * 2
                )
            if i == 8:
                handle.remove()
            loss = step(torch.ones(4, 6) * i, torch.zeros(4, dtype=torch.int64))
            seen.append(snapshot(model, optimizer, loss))
        return seen

    plain = outcomes(False)
    plain_calls = list(calls)
    calls.clear()
    assert outcomes(True) == plain
    assert calls == plain_calls and len(calls) == 3


def test_what_the_call_made_is_gone():
    model = mlp()
    optimizer = OPTIMIZERS["adam"](list(model.parameters()))
    step = torch.compile(usual(model, optimizer))
    for _ in range(6):
        loss = step(torch.randn(4, 6), torch.randint(0, 3, (4,)))
        assert math.isfinite(loss.item()) and not loss.requires_grad


def test_random_training_programs_agree():
    tally = {"calls": 0, "replays": 0}
    for seed in range(40):
        text = random_training.compare(seed, "llvm" if seed % 4 == 0 else "interpreter", tally)
        assert text is None, text
    assert tally["replays"] > tally["calls"] / 3


def test_a_leaf_that_a_factory_makes_is_a_leaf_in_each_call():
    @torch.compile
    def f(n):
        z = torch.full((n,), 2.0, requires_grad=True)
        return z, z * 3

    for n in (2, 3, 2, 2):
        z, y = f(n)
        y.sum().backward()
        assert z.is_leaf and y.requires_grad and z.grad.tolist() == [3.0] * n
