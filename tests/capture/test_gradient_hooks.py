"""Hooks that see gradients, in compiled training steps: of tensors, of leaves, of modules."""

import prong as torch
import pytest
from prong import nn
from test_steps_in_python import model, same_in_both
from training_steps import batches, sgd


def step_with(loss_of):
    def make(net, optimizer):
        def step(x, y):
            optimizer.zero_grad()
            loss = loss_of(net, x, y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    return make


def doubled(net, x, y):
    h = net[0](x)
    h.register_hook(lambda g: g * 2)
    return nn.functional.cross_entropy(net[1](h), y)


def looks_only(net, x, y):
    h = net[0](x)
    h.register_hook(lambda g: None)
    return nn.functional.cross_entropy(net[1](h), y)


def closes_over(net, x, y):
    h = net[0](x)
    weights = h.detach().sigmoid()
    h.register_hook(lambda g: g * weights + net[0].bias.detach())
    return nn.functional.cross_entropy(net[1](h), y)


def two_of_them(net, x, y):
    h = net[0](x)
    h.register_hook(lambda g: g * 2)
    h.register_hook(lambda g: g + 1)
    return nn.functional.cross_entropy(net[1](h), y)


def taken_away(net, x, y):
    h = net[0](x)
    handle = h.register_hook(lambda g: g * 2)
    h.register_hook(lambda g: g + 1)
    handle.remove()
    return nn.functional.cross_entropy(net[1](h), y)


def reads_gradients(net, x, y):
    """The second layer's gradients are there when the first's results get theirs."""
    h = net[0](x)
    h.register_hook(lambda g: g * net[1].weight.grad.sum())
    return nn.functional.cross_entropy(net[1](h), y)


def keeps(net, x, y):
    h, kept = net[0](x), []
    h.register_hook(kept.append)
    nn.functional.cross_entropy(net[1](h), y).backward()
    return nn.functional.cross_entropy(net[1](net[0](x) * kept[0].exp()), y)


def retained(net, x, y):
    h = net[0](x)
    h.retain_grad()
    nn.functional.cross_entropy(net[1](h), y).backward()
    return nn.functional.cross_entropy(net[1](net[0](x) * h.grad.exp()), y)


def of_own_leaf(net, x, y):
    x = x.clone().requires_grad_()
    x.register_hook(lambda g: g.sign())
    (g,) = torch.autograd.grad(nn.functional.cross_entropy(net(x), y), x)
    return nn.functional.cross_entropy(net(x.detach() + 0.1 * g), y)


STEPS = {
    f.__name__: f
    for f in [
        doubled,
        looks_only,
        closes_over,
        two_of_them,
        taken_away,
        reads_gradients,
        keeps,
        retained,
        of_own_leaf,
    ]
}


@pytest.mark.parametrize("name", STEPS)
def test_hooks_of_tensors(name):
    counters = same_in_both(step_with(STEPS[name]))
    assert counters["why_evaluated"] == ""
    assert counters["replays"] == 3


# ── hooks that were there before the call ──


def plain_loss(net, x, y):
    return nn.functional.cross_entropy(net(x), y)


class Clipping:
    def __init__(self, by):
        self.by = by

    def clip(self, g):
        return g.clamp(-self.by, self.by)


def with_leaf_hook(net):
    net[0].weight.register_hook(lambda g: g.clamp(-0.01, 0.01))


def with_method(net):
    net[0].weight.register_hook(Clipping(0.01).clip)


def with_two(net):
    net[0].weight.register_hook(lambda g: g * 2)
    net[0].weight.register_hook(lambda g: g + 1)
    net[1].bias.register_hook(lambda g: -g)


def after_accumulating(net):
    def halve(p):
        with torch.no_grad():
            p.grad.mul_(0.5)

    net[0].weight.register_post_accumulate_grad_hook(halve)


def of_module(net):
    net[1].register_full_backward_hook(lambda module, given, got: (given[0] * 2,))


def before_module(net):
    net[1].register_full_backward_pre_hook(lambda module, got: (got[0] * 2,))


def that_looks(net):
    net[1].register_full_backward_hook(lambda module, given, got: None)


PREPARED = {
    f.__name__: f
    for f in [
        with_leaf_hook,
        with_method,
        with_two,
        after_accumulating,
        of_module,
        before_module,
        that_looks,
    ]
}


@pytest.mark.parametrize("name", PREPARED)
def test_hooks_from_before_the_call(name):
    def make_model():
        net = model()
        PREPARED[name](net)
        return net

    counters = same_in_both(step_with(plain_loss), make_model=make_model)
    assert counters["why_evaluated"] == ""
    assert counters["replays"] == 3


def test_hooks_that_come_and_go_are_seen():
    def run(is_compiled):
        torch.manual_seed(5)
        net = model()
        step = step_with(plain_loss)(net, sgd(net.parameters()))
        if is_compiled:
            step = torch.compile(step)
        seen, handles = [], []
        for i, args in enumerate(batches((4,) * 12)):
            if i in (3, 6):
                handles.append(net[0].weight.register_hook(lambda g, i=i: g * (i + 1)))
            if i == 5:
                handles[0].remove()
            if i == 8:
                net[0].weight.register_post_accumulate_grad_hook(lambda p: p.grad.neg_())
            step(*args())
            seen.append([repr(p.tolist()) for p in net.parameters()])
        return seen, step

    wanted, _ = run(False)
    seen, step = run(True)
    assert seen == wanted
    assert step._counters()["replays"] > 0


def test_a_hook_that_the_call_leaves_behind_is_no_plan():
    def loss_of(net, x, y):
        net[0].weight.register_hook(lambda g: g * 0.5)
        return plain_loss(net, x, y)

    counters = same_in_both(step_with(loss_of))
    assert counters["replays"] == 0


def test_a_hook_that_raises():
    def run(is_compiled):
        torch.manual_seed(5)
        net = model()

        def refuse(g):
            if g.abs().sum() > 0.2:
                raise ValueError("too large")
            return g

        def loss_of(net, x, y):
            h = net[0](x)
            h.register_hook(refuse)
            return nn.functional.cross_entropy(net[1](h), y)

        step = step_with(loss_of)(net, sgd(net.parameters()))
        if is_compiled:
            step = torch.compile(step)
        seen = []
        for x, y in (args() for args in batches((4,) * 8)):
            for times in (1, 0.01):
                try:
                    seen.append(repr(step(x * times, y).tolist()))
                except ValueError as error:
                    seen.append(str(error))
                seen.append([repr(p.tolist()) for p in net.parameters()])
        return seen

    assert run(True) == run(False)


# ── gradients of gradients ──


def penalty(net, x, y):
    x = x.clone().requires_grad_()
    out = net(x)
    (g,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    return nn.functional.cross_entropy(out, y) + ((g.norm(2, dim=1) - 1) ** 2).mean()


def penalty_of_tanh(net, x, y):
    h = torch.tanh(net[0](x))
    out = net[1](h)
    (g,) = torch.autograd.grad(out.square().sum(), h, create_graph=True)
    return nn.functional.cross_entropy(out, y) + g.square().sum() / x.shape[0]


def twice(net, x, y):
    loss = nn.functional.cross_entropy(net(x).tanh(), y)
    grads = torch.autograd.grad(loss, list(net.parameters()), create_graph=True)
    return loss + 0.1 * sum(g.square().sum() for g in grads)


@pytest.mark.parametrize("loss_of", [penalty, penalty_of_tanh, twice], ids=lambda f: f.__name__)
def test_gradients_of_gradients(loss_of):
    counters = same_in_both(step_with(loss_of), sizes=(4, 4, 7, 4, 7, 3))
    assert counters["why_evaluated"] == ""
    assert counters["replays"] >= 2
