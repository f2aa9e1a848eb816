"""Schedules of learning rates against PyTorch's: rates, momenta and state after each of many steps."""

import warnings

import pytest

torch = pytest.importorskip("torch")
import prong  # noqa: E402
from prong.optim import lr_scheduler as ours_module  # noqa: E402

theirs_module = torch.optim.lr_scheduler


class Half:
    """A callable object: its attributes belong to the state."""

    def __init__(self, base):
        self.base = base

    def __call__(self, step):
        return self.base**step


def chain(m, o):
    return m.ChainedScheduler(
        [m.LinearLR(o, 0.2, total_iters=4), m.ExponentialLR(o, 0.9)], optimizer=o
    )


def sequence(m, o):
    first = m.LinearLR(o, start_factor=0.1, total_iters=5)
    return m.SequentialLR(o, [first, m.CosineAnnealingLR(o, 10), m.ConstantLR(o, 0.5)], [5, 12])


SCHEDULES = {
    "LambdaLR": lambda m, o: m.LambdaLR(o, lambda step: 0.95**step),
    "LambdaLR of objects": lambda m, o: m.LambdaLR(o, [Half(0.5), Half(0.9)]),
    "MultiplicativeLR": lambda m, o: m.MultiplicativeLR(o, lambda step: 0.9 + 0.01 * step),
    "StepLR": lambda m, o: m.StepLR(o, 3, 0.5),
    "MultiStepLR": lambda m, o: m.MultiStepLR(o, [2, 5, 5, 9], 0.3),
    "ConstantLR": lambda m, o: m.ConstantLR(o, 0.25, 4),
    "LinearLR": lambda m, o: m.LinearLR(o, 0.3, 0.8, 7),
    "ExponentialLR": lambda m, o: m.ExponentialLR(o, 0.8),
    "PolynomialLR": lambda m, o: m.PolynomialLR(o, 9, 2.0),
    "CosineAnnealingLR": lambda m, o: m.CosineAnnealingLR(o, 6, 0.01),
    "CosineAnnealingWarmRestarts": lambda m, o: m.CosineAnnealingWarmRestarts(o, 3, 2, 0.001),
    "CyclicLR": lambda m, o: m.CyclicLR(o, 0.01, [0.1, 0.2], 4, 3, mode="triangular2"),
    "CyclicLR of a function": lambda m, o: m.CyclicLR(
        o, 0.01, 0.1, 4, scale_fn=Half(0.9), scale_mode="iterations", cycle_momentum=False
    ),
    "CyclicLR exp_range": lambda m, o: m.CyclicLR(o, 0.01, 0.1, 4, mode="exp_range", gamma=0.97),
    "OneCycleLR": lambda m, o: m.OneCycleLR(o, 0.5, total_steps=25),
    "OneCycleLR of three phases": lambda m, o: m.OneCycleLR(
        o, [0.5, 0.1], epochs=5, steps_per_epoch=5, three_phase=True, anneal_strategy="linear"
    ),
    "ChainedScheduler": chain,
    "SequentialLR": sequence,
}


def optimizer(module, kind="SGD"):
    m = prong if module is ours_module else torch
    groups = [{"params": [m.zeros(2)], "lr": 0.1}, {"params": [m.zeros(3)], "lr": 0.5}]
    return getattr(m.optim, kind)(groups, **({"momentum": 0.9} if kind == "SGD" else {}))


def rates(o):
    keys = ("lr", "initial_lr", "momentum", "betas", "max_momentum", "min_lr")
    return [{k: g[k] for k in keys if k in g} for g in o.param_groups]


def plain(state):
    """A state without what is no data: partial objects and functions."""
    if isinstance(state, dict):
        return {k: plain(v) for k, v in state.items() if k not in ("_scale_fn_ref",)}
    return [plain(v) for v in state] if isinstance(state, list) else state


def run(module, name, kind, steps=20):
    o = optimizer(module, kind)
    scheduler = SCHEDULES[name](module, o)
    seen = [rates(o)]
    for _ in range(steps):
        o.step()
        scheduler.step()
        seen.append(rates(o))
    return scheduler, seen


@pytest.mark.parametrize("kind", ["SGD", "AdamW"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_rates(name, kind):
    ours, got = run(ours_module, name, kind)
    theirs, want = run(theirs_module, name, kind)
    assert _near(got, want)
    assert _near(ours.get_last_lr(), theirs.get_last_lr())


def _near(a, b):
    if isinstance(a, dict):
        return set(a) == set(b) and all(_near(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_near, a, b))
    if isinstance(a, float):
        return a == b or abs(a - b) <= 1e-14 + 1e-12 * abs(b)
    return a == b


@pytest.mark.parametrize("name", SCHEDULES)
def test_state_goes_both_ways(name):
    ours, _ = run(ours_module, name, "SGD", 7)
    theirs, _ = run(theirs_module, name, "SGD", 7)
    a, b = plain(ours.state_dict()), plain(theirs.state_dict())
    assert set(a) == set(b)
    assert all(_near(a[k], b[k]) for k in a if k != "_schedulers")
    fresh = SCHEDULES[name](ours_module, optimizer(ours_module))
    fresh.load_state_dict(theirs.state_dict())
    for key, value in ours.state_dict().items():
        if key not in ("_schedulers", "_scale_fn_ref", "_scale_fn_custom", "lr_lambdas"):
            assert _near(vars(fresh)[key], value), key
    SCHEDULES[name](theirs_module, optimizer(theirs_module)).load_state_dict(ours.state_dict())


@pytest.mark.parametrize(
    "options",
    [
        {"patience": 1},
        {"mode": "max", "threshold_mode": "abs", "threshold": 0.1, "patience": 0},
        {"cooldown": 2, "patience": 0, "min_lr": [0.01, 0.2]},
    ],
)
def test_plateau(options):
    seen = []
    for module in (ours_module, theirs_module):
        o = optimizer(module)
        scheduler = module.ReduceLROnPlateau(o, **options)
        for figure in [3.0, 2.0, 2.0, 2.1, 1.0, 1.0, 1.0, 1.0, 0.99, 1.5, 1.5, 1.5]:
            scheduler.step(figure)
            seen.append((module, rates(o), scheduler.num_bad_epochs))
        state = scheduler.state_dict()
        seen.append((module, {k: v for k, v in state.items()}, 0))
    half = len(seen) // 2
    assert all(_near(a[1:], b[1:]) for a, b in zip(seen[:half], seen[half:]))


@pytest.mark.parametrize("name", ["StepLR", "LinearLR", "PolynomialLR", "CosineAnnealingLR"])
def test_a_step_to_an_epoch_takes_the_closed_form(name):
    got = []
    for module in (ours_module, theirs_module):
        o = optimizer(module)
        scheduler = SCHEDULES[name](module, o)
        o.step()
        with pytest.warns(UserWarning):
            scheduler.step(5)
        got.append(rates(o))
    assert _near(*got)


def test_a_scheduler_ahead_of_its_optimizer_warns():
    scheduler = ours_module.StepLR(optimizer(ours_module), 2)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        scheduler.step()
    o = optimizer(ours_module)
    scheduler = ours_module.StepLR(o, 2)
    o.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler.step()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda m, o: m.StepLR(3, 2),
        lambda m, o: m.LambdaLR(o, [lambda s: s]),
        lambda m, o: m.ConstantLR(o, 2.0),
        lambda m, o: m.LinearLR(o, 0.0),
        lambda m, o: m.OneCycleLR(o, 0.1),
        lambda m, o: m.CosineAnnealingWarmRestarts(o, 0),
        lambda m, o: m.CyclicLR(o, 0.1, 0.2, mode="square"),
        lambda m, o: m.SequentialLR(o, [m.StepLR(o, 2)], [3]),
        lambda m, o: m.ChainedScheduler([m.ReduceLROnPlateau(o)]),
        lambda m, o: m.ReduceLROnPlateau(o, factor=1.0),
        lambda m, o: m.StepLR(o, 2, last_epoch=3),
    ],
)
def test_faults(wrong):
    with pytest.raises(Exception) as theirs:
        wrong(theirs_module, optimizer(theirs_module))
    with pytest.raises(theirs.type):
        wrong(ours_module, optimizer(ours_module))
