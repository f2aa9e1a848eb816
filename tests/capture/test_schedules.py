"""Learning rates that change: one recording serves them all, in each part of a schedule."""

import math

import prong as torch
import pytest
import training_steps
from prong import nn
from training_steps import scheduled

STEPS = 16
S = torch.optim.lr_scheduler


def warm_up(step):
    if step < 5:
        return step / 5
    return max(0.0, 0.5 * (1 + math.cos(math.pi * (step - 5) / 20)))


# How many recordings: the first step where it makes the optimizer's state, and one a part.
SCHEDULES = {
    "OneCycleLR": (lambda o: S.OneCycleLR(o, max_lr=0.5, total_steps=40), 3),
    "OneCycleLR, three": (
        lambda o: S.OneCycleLR(
            o, 0.5, epochs=4, steps_per_epoch=10, anneal_strategy="linear", three_phase=True
        ),
        3,
    ),
    "CyclicLR": (lambda o: S.CyclicLR(o, 0.01, 0.1, step_size_up=4), 3),
    "CyclicLR, exp": (
        lambda o: S.CyclicLR(
            o, 0.01, 0.1, step_size_up=4, mode="exp_range", gamma=0.9, cycle_momentum=False
        ),
        3,
    ),
    "CyclicLR, half": (
        lambda o: S.CyclicLR(
            o, 0.01, 0.1, step_size_up=4, mode="triangular2", cycle_momentum=False
        ),
        3,
    ),
    "MultiStepLR": (lambda o: S.MultiStepLR(o, [5, 11], 0.5), 4),
    "CosineAnnealingWarmRestarts": (lambda o: S.CosineAnnealingWarmRestarts(o, 5, 2), 3),
    "LambdaLR": (lambda o: S.LambdaLR(o, lambda e: min(1.0, (e + 1) / 8)), 2),
    "LambdaLR, warm": (lambda o: S.LambdaLR(o, warm_up), 3),
    "MultiplicativeLR": (lambda o: S.MultiplicativeLR(o, lambda e: 0.95), 2),
    "SequentialLR": (
        lambda o: S.SequentialLR(
            o, [S.LinearLR(o, 0.1, total_iters=5), S.CosineAnnealingLR(o, 15)], milestones=[5]
        ),
        4,
    ),
    "LinearLR": (lambda o: S.LinearLR(o, 0.1, total_iters=8), 3),
    "PolynomialLR": (lambda o: S.PolynomialLR(o, total_iters=20, power=2.0), 2),
    "ExponentialLR": (lambda o: S.ExponentialLR(o, 0.9), 2),
}


def mlp():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("optimizer", ["momentum", "adam"])
def test_one_recording_a_part(schedule, optimizer):
    make_schedule, most = SCHEDULES[schedule]

    def make_optimizer(params):
        if optimizer == "adam":
            return torch.optim.Adam(params, lr=0.01)
        return torch.optim.SGD(params, lr=0.1, momentum=0.9)

    batches = [lambda: (torch.randn(4, 6), torch.randint(0, 3, (4,)))] * STEPS
    steps = [
        training_steps.run(mlp, make_optimizer, scheduled(make_schedule), batches, is_compiled)
        for is_compiled in (False, True)
    ]
    assert steps[0][0] == steps[1][0]
    assert steps[1][1]._counters()["graphs"] <= most


def same(function, calls):
    compiled = torch.compile(function)
    plain = [repr(function(*arguments)) for arguments in calls()]
    assert plain == [repr(compiled(*arguments)) for arguments in calls()]
    return compiled._counters()["replays"]


def test_numbers_through_zip_and_enumerate():
    def f(x, a, b):
        given = []
        for i, (p, q) in enumerate(zip((a, b, a * 2), [b, a, b + 1], strict=True), 1):
            given.append((x * p + q * i).tolist())
        return given

    assert same(f, lambda: [(torch.ones(2), i + 10, 20 - 2 * i) for i in range(8)]) == 7


def test_a_walk_that_builtin_code_goes_on_with():
    def f(x, a, b):
        walk = zip((a, b, a), (b, a, b), strict=True)
        first = next(walk)
        rest = list(walk)
        total = sum(p * q for p, q in zip((a, b), (b, 3), strict=True))
        return (x * first[0]).tolist(), rest, total, dict(zip("ab", (a, b), strict=True))

    same(f, lambda: [(torch.ones(2), i, j) for i in range(4) for j in (i, 1, 5)])


def test_numbers_in_containers():
    from collections import Counter

    class Owner:
        count = 0

    owner, milestones, listed = Owner(), Counter([2, 2, 4]), [1, 9]

    def f(x):
        owner.count += 1
        if owner.count in milestones:
            x = x * 2
        if owner.count not in listed:
            x = x + 1
        return x.tolist(), owner.count in (3, 5), owner.count in {4, 6}

    def calls():
        owner.count = 0
        listed[:] = [1, 9]
        milestones.clear()
        milestones.update([2, 2, 4])
        for i in range(14):
            if i == 6:
                milestones[9] = 1
            if i == 8:
                del milestones[9]
            if i == 9:
                listed.append(11)
            yield (torch.ones(2),)

    assert same(f, calls) >= 5


def test_a_tuple_of_floats_is_put_in_place_of_another():
    group = {}

    def f(x):
        try:
            first, second = group["betas"]
            group["betas"] = (first * 0.5, *group["betas"][1:])
            return (x * first + second).tolist(), group["betas"]
        except (TypeError, ValueError) as error:
            return repr(error)

    def calls():
        group["betas"] = (0.9, 0.99)
        for i in range(14):
            if i == 5:
                group["betas"] = (0.25, 0.5)
            if i == 8:
                group["betas"] = (0.1, 0.2, 0.3)
            if i == 9:
                group["betas"] = [0.5, 0.25]
            if i == 10:
                group["betas"] = (1, 0.25)
            yield (torch.ones(2),)

    assert same(f, calls) >= 7


def test_such_a_tuple_is_itself():
    held = {"betas": (0.5, 0.25)}

    def f(x):
        held["kept"] = held["betas"]
        return held["betas"], held["kept"] is held["betas"], (x * held["betas"][0]).tolist()

    compiled = torch.compile(f)
    for i in range(5):
        held["betas"] = (0.5 * i, 0.25)
        given, is_it, _ = compiled(torch.ones(2))
        assert given is held["betas"] and is_it


def test_least_and_greatest_of_a_fact_and_a_number():
    def f(x, n):
        return (x * min(1.0, n / 4)).tolist(), max(0.0, 1 - n / 3), pow(2, n)

    assert same(f, lambda: [(torch.ones(2), float(i)) for i in range(8)]) == 7
