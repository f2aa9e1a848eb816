"""Containers of nn against PyTorch's: what they hold, say and refuse."""

import collections
import importlib

import pytest

torch = pytest.importorskip("torch")
import prong  # noqa: E402

BOTH = (prong, torch)


def parameters(m):
    d = m.nn.ParameterDict({"b": m.ones(2), "a": m.nn.Parameter(m.zeros(1)), "n": 3})
    yield list(d), len(d), "a" in d, d["b"].requires_grad, repr(d)
    d.update([("c", m.ones(1))])
    d.setdefault("a", 5), d.setdefault("e", m.ones(1))
    yield list(d), list(reversed(d)), d.get("x", 4), [n for n, _ in d.named_parameters()]
    yield d.pop("c").tolist(), d.popitem()[0], list(d.copy())
    merged = d | m.nn.ParameterDict({"z": m.ones(1)})
    yield list(merged), list(m.nn.ParameterDict().fromkeys(["p", "q"], 2).items())
    merged.clear()
    yield len(merged), [tuple(v.shape) for v in d.values() if hasattr(v, "shape")]


def wrappers(m):
    net = m.nn.Sequential(m.nn.Linear(2, 3), m.nn.BatchNorm1d(3))
    wrapped = m.nn.DataParallel(net)
    yield repr(wrapped), list(wrapped.state_dict()), wrapped(m.ones(2, 2)).shape[1]
    importlib.import_module("torch.nn.attention")
    synced = m.nn.SyncBatchNorm.convert_sync_batchnorm(net)
    yield repr(synced), synced.eval()(m.ones(2, 2)).shape[1], synced[1].weight is net[1].weight
    with m.nn.attention.sdpa_kernel([m.nn.attention.SDPBackend.MATH]):
        yield m.nn.functional.scaled_dot_product_attention(*[m.ones(1, 1, 2, 2)] * 3).sum().item()


def lazy(m):
    net = m.nn.Sequential(
        m.nn.LazyConv2d(4, 3), m.nn.LazyBatchNorm2d(), m.nn.Flatten(), m.nn.LazyLinear(2)
    )
    yield repr(net), list(net.state_dict()), repr(net[0].weight), net[3].has_uninitialized_params()
    m.manual_seed(0)
    net(m.ones(2, 3, 5, 5))
    yield repr(net), [type(x).__name__ for x in net], net[3].weight.tolist(), net[0].bias.tolist()
    layer = m.nn.LazyLinear(3)
    layer.load_state_dict(m.nn.Linear(5, 3).state_dict())
    yield tuple(layer.weight.shape), type(layer).__name__
    layer(m.ones(1, 5))
    yield type(layer).__name__, layer.in_features
    yield bool(m.nn.LazyLinear(3).load_state_dict(m.nn.LazyLinear(3).state_dict()).missing_keys)


def lists(m):
    p = m.nn.ParameterList([m.ones(2, 3), m.nn.Parameter(m.zeros(1)), 3])
    yield repr(p), len(p), p[-1], [n for n, _ in p.named_parameters()]
    p += [m.ones(1)]
    p[0] = m.zeros(2)
    yield repr(p), p[1:].__len__(), [k for k in p.state_dict()]


def modules(m):
    s = m.nn.Sequential(m.nn.Linear(1, 2), m.nn.ReLU())
    yield repr(s * 2), repr(2 * s), len(s + s)
    s *= 2
    yield repr(s), s.pop(1).__class__.__name__, [n for n, _ in s.named_parameters()]
    s.insert(1, m.nn.Tanh()), s.append(m.nn.Identity())
    del s[0]
    yield repr(s), repr(s[1:])
    d = m.nn.ModuleDict({"b": m.nn.ReLU(), "a": m.nn.Linear(1, 1)})
    d.update(collections.OrderedDict(z=m.nn.Tanh()))
    yield repr(d), list(d.keys()), repr(d.pop("b")), [n for n, _ in d.named_modules()]
    many = m.nn.ModuleList([m.nn.Linear(2, 2) for _ in range(3)] + [m.nn.ReLU()])
    yield repr(many), repr(many[1:]), repr(many + [m.nn.Tanh()]), len(many)


@pytest.mark.parametrize("program", [parameters, lists, modules, wrappers, lazy])
def test_containers(program):
    assert list(program(prong)) == list(program(torch))


def test_paths_of_pytorchs_files():
    with prong_as_torch():
        from torch.nn.modules.batchnorm import _BatchNorm
        from torch.nn.modules.conv import _ConvNd
        from torch.nn.modules.utils import _pair, consume_prefix_in_state_dict_if_present

        assert _BatchNorm is prong.nn.normalization._BatchNorm
        assert _ConvNd is prong.nn.conv._ConvNd
        assert _pair(3) == (3, 3) and _pair([1, 2]) == (1, 2)
        state = {"module.a": 1, "b": 2}
        consume_prefix_in_state_dict_if_present(state, "module.")
        assert state == {"a": 1, "b": 2}


def prong_as_torch():
    from prong._alias import standing_in

    return standing_in()


FAULTS = {
    "times zero": lambda m: m.nn.Sequential(m.nn.ReLU()) * 0,
    "times a half": lambda m: m.nn.Sequential(m.nn.ReLU()) * 0.5,
    "a number as a key": lambda m: m.nn.ParameterDict({3: m.ones(1)}),
    "a missing key": lambda m: m.nn.ParameterDict()["a"],
    "a number for a dict": lambda m: m.nn.ParameterDict(3),
    "a tensor for a list": lambda m: m.nn.ParameterList().extend(m.ones(2)),
    "calling a list": lambda m: m.nn.ParameterList()(),
    "beyond the end": lambda m: m.nn.ParameterList([m.ones(1)])[1],
    "integers": lambda m: m.nn.ParameterList([m.arange(3)]),
    "a lazy state into a plain module": lambda m: m.nn.Linear(2, 3).load_state_dict(
        m.nn.LazyLinear(3).state_dict()
    ),
    "the shape of a lazy weight": lambda m: m.nn.LazyLinear(3).weight.shape,
    "a number as a module": lambda m: m.nn.ModuleList([3]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name):
    with pytest.raises(Exception) as theirs:
        FAULTS[name](torch)
    with pytest.raises(theirs.type):
        FAULTS[name](prong)
