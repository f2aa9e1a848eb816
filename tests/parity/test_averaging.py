"""optim.swa_utils against PyTorch's: averages of models, their batch norms, their schedule."""

import pytest

torch = pytest.importorskip("torch")
from importlib import import_module  # noqa: E402

import prong  # noqa: E402

BOTH = (prong, torch)


def parts(m):
    return import_module(f"{m.__name__}.optim.swa_utils")


def averages(m, **options):
    swa = parts(m)
    kind = options.pop("kind", None)
    if kind is not None:
        name, arguments = kind
        place = "multi_avg_fn" if "multi" in name else "avg_fn"
        options[place] = getattr(swa, name)(*arguments)
    net = m.nn.Sequential(m.nn.Linear(2, 2), m.nn.BatchNorm1d(2))
    average = swa.AveragedModel(net, **options)
    for step in range(4):
        with m.no_grad():
            for i, p in enumerate([*net.parameters(), *net.buffers()]):
                p.fill_(step * (i + 1) + i)
        average.update_parameters(net)
        yield {k: v.tolist() for k, v in average.state_dict().items()}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_buffers": True},
        {"kind": ("get_ema_avg_fn", (0.9,))},
        {"kind": ("get_swa_avg_fn", ())},
        {"kind": ("get_ema_multi_avg_fn", (0.5,)), "use_buffers": True},
        {"kind": ("get_swa_multi_avg_fn", ())},
    ],
    ids=str,
)
def test_averages(options):
    for a, b in zip(averages(prong, **options), averages(torch, **options), strict=True):
        assert list(a) == list(b)
        for key, value in b.items():
            flat_a, flat_b = str(a[key]), str(value)
            assert flat_a == flat_b or prong.allclose(
                prong.tensor(a[key]).double(), prong.tensor(value).double(), rtol=1e-5
            ), key


def test_update_bn():
    seen = []
    for m in BOTH:
        m.manual_seed(0)
        net = m.nn.Sequential(m.nn.Linear(2, 2), m.nn.BatchNorm1d(2)).eval()
        batches = [(m.randn(4, 2), 0) for _ in range(3)]
        parts(m).update_bn(batches, net)
        seen.append([net[1].running_mean.tolist(), net[1].running_var.tolist()])
        assert not net.training and net[1].momentum == 0.1
    for a, b in zip(*seen):
        assert a == pytest.approx(b, rel=1e-5)


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("epochs", [0, 4])
def test_schedule(strategy, epochs):
    seen = []
    for m in BOTH:
        groups = [{"params": [torch.zeros(1)], "lr": 0.5}, {"params": [torch.zeros(1)], "lr": 0.1}]
        optimizer = torch.optim.SGD(groups)
        scheduler = parts(m).SWALR(optimizer, [0.05, 0.2], epochs, strategy)
        rates = []
        for _ in range(7):
            optimizer.step()
            scheduler.step()
            rates.append([g["lr"] for g in optimizer.param_groups])
        seen.append((rates, set(scheduler.state_dict())))
        parts(m).SWALR(optimizer, 0.05).load_state_dict(scheduler.state_dict())
    assert [x for r in seen[0][0] for x in r] == pytest.approx([x for r in seen[1][0] for x in r])
    assert seen[0][1] == seen[1][1]


@pytest.mark.parametrize(
    "fault",
    [
        lambda s, m: s.get_ema_avg_fn(1.5),
        lambda s, m: s.AveragedModel(m.nn.ReLU(), avg_fn=min, multi_avg_fn=max),
        lambda s, m: s.SWALR(torch.optim.SGD([torch.zeros(1)]), 0.1, anneal_strategy="up"),
        lambda s, m: s.SWALR(torch.optim.SGD([torch.zeros(1)]), 0.1, anneal_epochs=-1),
    ],
)
def test_faults(fault):
    with pytest.raises(Exception) as theirs:
        fault(parts(torch), torch)
    with pytest.raises(theirs.type):
        fault(parts(prong), prong)
