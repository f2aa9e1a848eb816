"""Training steps with a GradScaler, compiled: finite gradients are one plan, others another."""

import math

import prong as torch
import pytest
from prong import nn

# So many rows, and what they are multiplied with.
BATCHES = (
    (4, 1),
    (4, 1),
    (4, 1),
    (7, 1),
    (4, 1),
    (7, math.inf),
    (4, 1),
    (4, math.inf),
    (4, 1),
    (7, 1),
)


def clipped(scaler, optimizer, model):
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)


OPTIONS = {
    "plain": {},
    "grows": {"growth_interval": 2},
    "clipped": {"between": clipped},
    "adam": {"optimizer": torch.optim.Adam},
    "too large": {"init_scale": 1e38, "growth_interval": 1},
}


def run(is_compiled, between=None, optimizer=torch.optim.SGD, init_scale=1024.0, **options):
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))
    steps = optimizer(model.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler("cpu", init_scale=init_scale, **options)

    def step(x, y):
        steps.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        if between:
            between(scaler, steps, model)
        scaler.step(steps)
        scaler.update()
        return loss.detach()

    if is_compiled:
        step = torch.compile(step)
    seen = []
    for i, (n, times) in enumerate(BATCHES):
        x = torch.rand(n, 6, generator=torch.Generator().manual_seed(i)) * times
        loss = step(x, torch.arange(n) % 3)
        seen.append(
            (
                repr(loss.tolist()),
                [repr(p.tolist()) for p in model.parameters()],
                [repr(p.grad.tolist()) for p in model.parameters()],
                [sorted((k, repr(v)) for k, v in s.items()) for s in steps.state.values()],
                scaler.state_dict(),
                scaler._per_optimizer_states,
            )
        )
    return seen, step


@pytest.mark.parametrize("name", OPTIONS)
def test_steps_give_what_plain_ones_do(name):
    wanted, _ = run(False, **OPTIONS[name])
    seen, step = run(True, **OPTIONS[name])
    assert seen == wanted
    counters = step._counters()
    # The first step makes the scale. Then, for each size (autocast pins them), one plan for finite
    # gradients, one for others, and one to grow.
    assert counters["plans"] <= 7
    assert counters["replays"] >= 3
    assert counters["plans"] + counters["replays"] >= len(BATCHES) - 1


def test_two_optimizers_share_a_scaler():
    a, b = nn.Linear(3, 3), nn.Linear(3, 3)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    first, second = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (a, b))
    scaler.scale(a(torch.ones(2, 3)).sum() + b(torch.ones(2, 3)).sum()).backward()
    scaler.unscale_(second)
    scaler.step(first)
    assert scaler._per_optimizer_states[id(first)] == {"stage": "STEPPED", "found_inf": False}
    assert scaler._per_optimizer_states[id(second)] == {"stage": "UNSCALED", "found_inf": False}
    with pytest.raises(RuntimeError, match="already been called since the last update"):
        scaler.step(first)
    scaler.step(second)
    scaler.update()
    assert scaler._per_optimizer_states == {}
