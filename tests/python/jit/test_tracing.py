"""jit.trace: what a call did to tensors, as a function or module of its own."""

import io
import warnings

import prong
import pytest
from prong import nn


def traced(function, *inputs, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return prong.jit.trace(function, inputs, **options)


def test_a_function_keeps_its_ops_and_takes_other_values():
    def f(x, y):
        z = x * y + 1
        z.add_(2)
        first, second = prong.chunk(z, 2)
        return first.sum(), {"tail": second}["tail"]

    t = traced(f, prong.rand(4), prong.rand(4))
    x, y = prong.arange(6.0), prong.arange(6.0)
    assert t(x, y)[0] == f(x, y)[0]
    assert prong.equal(t(x, y)[1], f(x, y)[1])
    assert "mul(x, y)" in t.code and "chunk" in str(t.graph)


def test_containers_go_in_and_out():
    def f(pair, named):
        return [pair[0] + named["a"], pair[1]], (named["a"], (pair[0],))

    example = ((prong.ones(2), prong.zeros(3)), {"a": prong.ones(2)})
    t = traced(f, *example, strict=False)
    given = ((prong.full((2,), 5.0), prong.ones(3)), {"a": prong.full((2,), 7.0)})
    assert repr(t(*given)) == repr(f(*given))
    with pytest.raises(RuntimeError, match="strict=False"):
        prong.jit.trace(lambda x: [x], prong.ones(2))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.BatchNorm1d(4))
        self.register_buffer("calls", prong.zeros(1))

    def forward(self, x):
        self.calls.add_(1)
        later = prong.jit.fork(self.body, x * 2)
        return self.body(x), prong.jit.wait(later)

    def head(self, x):
        return self.body[0](x) / 2


def test_a_module_reads_its_state_and_keeps_its_forks():
    net = Net().eval()
    t = traced(net, prong.rand(2, 3))
    x = prong.rand(5, 3)
    assert all(prong.equal(a, b) for a, b in zip(t(x), net(x)))
    assert "fork" in str(t.graph) and "wait" in str(t.graph)
    assert [n for n, _ in t.named_parameters()] == [n for n, _ in net.named_parameters()]
    with prong.no_grad():
        net.body[0].weight.zero_()
    assert all(prong.equal(a, b) for a, b in zip(t(x), net(x)))
    before = net.calls.item()
    t(x)
    assert net.calls.item() == before + 1

    file = io.BytesIO()
    prong.jit.save(t, file)
    file.seek(0)
    assert prong.equal(prong.jit.load(file)(x)[1], net(x)[1])


def test_several_methods():
    net = Net().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        t = prong.jit.trace_module(net, {"forward": prong.rand(2, 3), "head": prong.rand(2, 3)})
    x = prong.rand(4, 3)
    assert prong.equal(t.head(x), net.head(x))
    assert prong.equal(prong.jit.trace(net.head, x)(x), net.head(x))


@prong.jit.script
def repeated(x, n: int):
    for _ in range(n):
        x = x + 1
    return x


@prong.jit.script_if_tracing
def while_positive(x):
    while bool(x.sum() > 0):
        x = x - 1
    return x


def test_compiled_functions_keep_their_control_flow():
    t = traced(lambda x: repeated(x, 3) * while_positive(x), prong.ones(2))
    assert "call[repeated]" in t.code
    x = prong.full((2,), 4.0)
    assert prong.equal(t(x), repeated(x, 3) * while_positive(x))


def test_written_constants_are_made_anew_in_each_call():
    def f(x):
        total = prong.tensor([1.0, 2.0])
        total.add_(x)
        return total

    t = traced(f, prong.ones(2))
    assert t(prong.ones(2)).tolist() == [2.0, 3.0]
    assert t(prong.ones(2)).tolist() == [2.0, 3.0]


def test_it_says_what_became_constant():
    with pytest.warns(prong.jit.TracerWarning, match="constants"):
        prong.jit.trace(lambda x: x * 2 if x.sum() > 0 else x, prong.ones(2))
    with pytest.warns(prong.jit.TracerWarning, match="size"):
        prong.jit.trace(lambda x: x / x.size(0), prong.ones(2))


def test_what_cannot_be_traced_says_so():
    weight = nn.Parameter(prong.ones(2))
    with pytest.raises(RuntimeError, match="requires grad as a constant"):
        prong.jit.trace(lambda x: x * weight, prong.ones(2))
    with pytest.raises(RuntimeError, match="input 'n' is or holds 3"):
        prong.jit.trace(lambda x, n: x * n, (prong.ones(2), 3))
    with pytest.raises(RuntimeError, match="the result"):
        prong.jit.trace(lambda x: None, prong.ones(2))

    def leaks(x):
        kept = []
        prong.jit.fork(lambda: kept.append(x + 1))
        return kept[0] * 2

    with pytest.raises(RuntimeError, match="without waiting"):
        prong.jit.trace(leaks, prong.ones(2))
    assert not prong.jit.is_tracing()
    assert prong.add(prong.ones(1), 1).item() == 2


def test_gradients_flow_through_a_traced_module():
    layer = nn.Linear(3, 2)
    t = traced(layer, prong.rand(4, 3))
    assert t(prong.rand(4, 3)).requires_grad


def test_is_tracing():
    seen = []
    traced(lambda x: seen.append(prong.jit.is_tracing()) or x + 1, prong.ones(2), check_trace=False)
    assert seen == [True]
