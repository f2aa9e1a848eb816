"""Runs of training steps that are compared with plain Python's. Used by the tests of capture."""

import prong as torch
from prong import nn


def snapshot(model, optimizer, loss):
    """All that the step can have changed; numbers as text, so that their signs and NaNs count."""
    state = [
        sorted((k, v.tolist() if isinstance(v, torch.Tensor) else v) for k, v in s.items())
        for s in optimizer.state.values()
    ]
    return (
        repr(loss.tolist()),
        loss.requires_grad,
        type(loss.grad_fn).__name__ if loss.grad_fn is None else loss.grad_fn.name(),
        [repr(p.tolist()) for p in model.parameters()],
        [p._version for p in model.parameters()],
        [None if p.grad is None else repr(p.grad.tolist()) for p in model.parameters()],
        [repr(b.tolist()) for b in model.buffers()],
        repr(state),
        [group["lr"] for group in optimizer.param_groups],
        torch.rand(1).item(),
    )


def run(make_model, make_optimizer, make_step, batches, is_compiled):
    """What each step leaves, and the step. `batches`: callables that make its arguments."""
    torch.manual_seed(7)
    model = make_model()
    optimizer = make_optimizer([p for p in model.parameters() if p.requires_grad])
    step = make_step(model, optimizer)
    if is_compiled:
        step = torch.compile(step)
    seen = []
    for i, args in enumerate(batches):
        torch.manual_seed(100 + i)
        seen.append(snapshot(model, optimizer, step(*args())))
    return seen, step


def batches(sizes):
    """Six numbers and a class a row."""

    def make(i, n):
        def args():
            x = torch.rand(n, 6, generator=torch.Generator().manual_seed(i))
            return x, torch.arange(n) % 3

        return args

    return [make(i, n) for i, n in enumerate(sizes)]


def usual(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def same_in_both(make_model, make_step, sizes):
    """Plain and compiled steps over batches of these sizes do the same; gives the counters."""
    wanted, _ = run(make_model, sgd, make_step, batches(sizes), False)
    seen, step = run(make_model, sgd, make_step, batches(sizes), True)
    assert seen == wanted
    return step._counters()


def scheduled(schedule):
    """Makes a step with the scheduler that `schedule` gives for an optimizer inside."""

    def make(model, optimizer):
        scheduler = schedule(optimizer)

        def step(x, y):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            scheduler.step()
            return loss.detach()

        return step

    return make
