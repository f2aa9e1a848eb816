"""Hooks of modules against PyTorch's: what they see, when, and what they may change."""

import warnings

import pytest

torch = pytest.importorskip("torch")
import prong  # noqa: E402

BOTH = (prong, torch)


def shown(value):
    if isinstance(value, (tuple, list)):
        return tuple(map(shown, value))
    return value.tolist() if hasattr(value, "tolist") else value


def net(m):
    layer = m.nn.Linear(2, 2)
    with m.no_grad():
        layer.weight.copy_(m.tensor([[1.0, 2.0], [3.0, 4.0]]))
        layer.bias.zero_()
    return layer


def run(m, layer, x):
    out = layer(x)
    (out * m.tensor([[1.0, 10.0]])).sum().backward()
    return out


def watching(m):
    seen = []
    layer = net(m)
    layer.register_full_backward_hook(lambda mod, gi, go: seen.append((shown(gi), shown(go))))
    x = m.ones(1, 2, requires_grad=True)
    run(m, layer, x)
    run(m, layer, m.ones(1, 2))  # no input requires a gradient
    with m.no_grad():
        layer(x)
    return seen, x.grad.tolist(), layer.weight.grad.tolist()


def changing(m):
    layer = net(m)
    layer.register_full_backward_hook(lambda mod, gi, go: (gi[0] * 2,))
    layer.register_full_backward_hook(lambda mod, gi, go: (gi[0] + 1,))
    layer.register_full_backward_pre_hook(lambda mod, go: (go[0] * 3,))
    x = m.ones(1, 2, requires_grad=True)
    run(m, layer, x)
    return x.grad.tolist(), layer.weight.grad.tolist()


def several(m):
    seen = []

    class Two(m.nn.Module):
        def forward(self, a, k, b, scale=1.0):
            return a * b * scale, "text", a + b

    two = Two()
    handle = two.register_full_backward_hook(
        lambda mod, gi, go: seen.append((shown(gi), shown(go)))
    )
    a, b = m.tensor([2.0], requires_grad=True), m.tensor([3.0])
    first, _, second = two(a, 5, b, scale=2.0)
    (first + 4 * second).sum().backward()
    handle.remove()
    two(a, 5, b)[0].sum().backward()
    return seen, a.grad.tolist()


def order(m):
    seen = []
    model = m.nn.Sequential(net(m), m.nn.Tanh(), net(m))
    for i, layer in enumerate(model):
        layer.register_full_backward_hook(lambda mod, gi, go, i=i: seen.append(i))
        layer.register_full_backward_pre_hook(lambda mod, go, i=i: seen.append(-i))
    model.register_full_backward_hook(lambda mod, gi, go: seen.append("all"))
    run(m, model, m.ones(1, 2, requires_grad=True))
    return seen


def everywhere(m):
    seen = []
    hooks = m.nn.modules.module
    handles = [
        hooks.register_module_full_backward_hook(
            lambda mod, gi, go: seen.append(type(mod).__name__)
        ),
        hooks.register_module_full_backward_pre_hook(lambda mod, go: seen.append("pre")),
        hooks.register_module_forward_hook(lambda mod, args, out: seen.append("forward")),
        hooks.register_module_forward_pre_hook(lambda mod, args: seen.append("before")),
    ]
    run(m, net(m), m.ones(1, 2, requires_grad=True))
    for handle in handles:
        handle.remove()
    run(m, net(m), m.ones(1, 2, requires_grad=True))
    return seen


def registering(m):
    seen = []
    hooks = m.nn.modules.module
    handles = [
        hooks.register_module_parameter_registration_hook(lambda mod, n, p: seen.append(("p", n))),
        hooks.register_module_buffer_registration_hook(lambda mod, n, b: seen.append(("b", n))),
        hooks.register_module_module_registration_hook(lambda mod, n, s: seen.append(("m", n))),
    ]
    model = m.nn.Sequential(m.nn.Linear(1, 1), m.nn.BatchNorm1d(1))
    model.extra = m.nn.ReLU()
    for handle in handles:
        handle.remove()
    m.nn.Linear(1, 1)
    return seen


def old_kind(m):
    seen = []
    layer = m.nn.ReLU()
    layer.register_backward_hook(lambda mod, gi, go: seen.append((shown(gi), shown(go))))
    x = m.tensor([1.0, -1.0], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer(x).sum().backward()
    return seen


@pytest.mark.parametrize(
    "program", [watching, changing, several, order, everywhere, registering, old_kind]
)
def test_hooks(program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert program(prong) == program(torch)


def both_kinds(m):
    layer = m.nn.ReLU()
    layer.register_full_backward_hook(lambda *a: None)
    layer.register_backward_hook(lambda *a: None)


def wrong_count(m):
    layer = m.nn.ReLU()
    layer.register_full_backward_hook(lambda mod, gi, go: (gi[0], gi[0]))
    layer(m.ones(1, requires_grad=True)).sum().backward()


def gradient_for_nothing(m):
    layer = net(m)
    layer.register_full_backward_hook(lambda mod, gi, go: (m.ones(1, 2),))
    run(m, layer, m.ones(1, 2))


@pytest.mark.parametrize("fault", [both_kinds, wrong_count, gradient_for_nothing])
def test_faults(fault):
    with pytest.raises(Exception) as theirs:
        fault(torch)
    with pytest.raises(theirs.type):
        fault(prong)
