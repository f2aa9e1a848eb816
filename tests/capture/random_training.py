"""Random training programs, plain and compiled: models, optimizers, schedules, ways to step. Run as a
script: ``python random_training.py FIRST COUNT``."""

import io
import random
import sys

import prong as torch
from prong import nn
from prong.utils.checkpoint import checkpoint

LAYERS = (
    nn.ReLU,
    nn.Tanh,
    nn.Sigmoid,
    nn.GELU,
    lambda: nn.LayerNorm(4),
    lambda: nn.BatchNorm1d(4),
    lambda: nn.Dropout(0.3),
    lambda: nn.Linear(4, 4),
)
OPTIMIZERS = {
    "SGD": lambda ps: torch.optim.SGD(ps, lr=0.1),
    "momentum": lambda ps: torch.optim.SGD(ps, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda ps: torch.optim.Adam(ps, lr=0.01),
    "AdamW": lambda ps: torch.optim.AdamW(ps, lr=0.01),
    "RMSprop": lambda ps: torch.optim.RMSprop(ps, lr=0.01),
    "Adagrad": lambda ps: torch.optim.Adagrad(ps, lr=0.05),
}
SCHEDULES = (
    None,
    None,
    lambda o: torch.optim.lr_scheduler.StepLR(o, 2, 0.5),
    lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 5),
)
LOSSES = {
    "mse": lambda out, y, t: nn.functional.mse_loss(out, y),
    "cross entropy": lambda out, y, t: nn.functional.cross_entropy(out, t),
    "l1": lambda out, y, t: (out - y).abs().mean(),
    "spread": lambda out, y, t: (out - y.mean(0, keepdim=True)).abs().sum() * (1.0 / len(out)),
    "weighted": lambda out, y, t: nn.functional.mse_loss(out, y, reduction="sum") / y.numel(),
    "product": lambda out, y, t: (out * y[:1]).var(0).sum() + out.softmax(0).square().mean(),
    "plain": lambda out, y, t: out.pow(2).sum() / out.shape[0],
}


class Cubed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


class Softened(torch.autograd.Function):
    """What it saves is its result; the number is the program's."""

    @staticmethod
    def forward(ctx, x, by):
        y = torch.tanh(x * by)
        ctx.save_for_backward(y)
        ctx.by = by
        return y, (y > 0).sum()

    @staticmethod
    def backward(ctx, g, of_count):
        (y,) = ctx.saved_tensors
        return g * (1 - y * y) * ctx.by, None


def hooked(r, h):
    kind = r.choice(("double", "look", "two", "retain"))
    if kind == "retain":
        h.retain_grad()
    else:
        h.register_hook((lambda g: g * 2) if kind != "look" else (lambda g: None))
    if kind == "two":
        h.register_hook(lambda g: g + h.detach())
    return h


# What stands around a model's second half: steps and hooks that Python has on the tape.
AROUND = (
    lambda r, part: lambda h: part(Cubed.apply(h)),
    lambda r, part: lambda h: part(Softened.apply(h, 0.5)[0]),
    lambda r, part: lambda h: checkpoint(part, h, use_reentrant=False),
    lambda r, part: lambda h: checkpoint(part, h, use_reentrant=True),
    lambda r, part: lambda h: checkpoint(lambda v: part(v) * 2, h, use_reentrant=False),
    lambda r, part: lambda h: part(hooked(random.Random(part.seed), h)),
)


class Around(nn.Module):
    def __init__(self, r, model):
        super().__init__()
        self.first, self.rest = model[0], model[1:]
        self.rest.seed = r.randint(0, 9)
        self.run = r.choice(AROUND)(r, self.rest)

    def __getitem__(self, i):
        return [self.first, *self.rest][i]

    def forward(self, x):
        return self.run(self.first(x))


def hook_parameters(r, model):
    """Hooks that are there before the first call."""
    kind = r.choice(("leaf", "after", "module"))
    if kind == "leaf":
        model[0].bias.register_hook(lambda g: g.clamp(-0.1, 0.1))
    elif kind == "after":

        def halve(p):
            with torch.no_grad():
                p.grad.mul_(0.5)

        model[0].bias.register_post_accumulate_grad_hook(halve)
    else:
        model[-1].register_full_backward_hook(lambda m, given, got: (given[0] * 2,))


def make_model(r):
    layers = [nn.Linear(3, 4)] + [r.choice(LAYERS)() for _ in range(r.randint(0, 2))]
    model = nn.Sequential(*layers, nn.Linear(4, 2))
    if r.random() < 0.2:
        model[0].weight.requires_grad_(False)
    if r.random() < 0.15:
        hook_parameters(r, model)
    return Around(r, model) if r.random() < 0.3 else model


def make_step(r, model, optimizer, schedule, sink):
    loss_of = LOSSES[r.choice(list(LOSSES))]
    clip = r.choice((None, None, "norm", "value"))
    set_none = r.random() < 0.5
    every = r.choice((1, 1, 1, 2))
    gives = r.choice(("detached", "loss", "both", "nothing"))
    micro = r.random() < 0.2
    penalty = r.random() < 0.1
    tells = [where for where in ("before", "between", "after", "after") if r.random() < 0.06]
    seen = {"count": 0}

    def step(x, y, t):
        if seen["count"] % every == 0:
            optimizer.zero_grad(set_to_none=set_none)
        out = model(x)
        loss = loss_of(out, y, t)
        if penalty:
            weights = [p for p in model.parameters() if p.requires_grad]
            grads = torch.autograd.grad(loss, weights, create_graph=True, allow_unused=True)
            loss = loss + 0.1 * sum(g.square().sum() for g in grads if g is not None)
        if "before" in tells:
            print(f"loss {loss.item():.6f}", x.shape[0], file=sink)
        loss.backward()
        if micro:
            loss_of(model(x * 0.5), y, t).backward()
        if clip == "norm":
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        elif clip == "value":
            nn.utils.clip_grad_value_(model.parameters(), 0.1)
        if "between" in tells:
            print(seen["count"], loss.item(), file=sink)
        seen["count"] += 1
        if seen["count"] % every == 0:
            optimizer.step()
            if schedule is not None:
                schedule.step()
        for _ in range(tells.count("after")):
            print(f"{loss.item():.5f}", seen["count"], file=sink)
        if gives == "nothing":
            return None
        if gives == "both":
            return loss.detach(), out.detach()
        return loss if gives == "loss" else loss.detach()

    step.adds_to_gradients = penalty
    return step


def text(value):
    if isinstance(value, torch.Tensor):
        name = value.grad_fn.name() if value.grad_fn is not None else None
        return repr(value.tolist()), value.requires_grad, name, value._version
    if isinstance(value, tuple):
        return [text(v) for v in value]
    return repr(value)


def run(seed, backend, tally):
    """What each call gave and left behind."""
    r = random.Random(seed)
    torch.manual_seed(seed)
    model = make_model(r)
    optimizer = OPTIMIZERS[r.choice(list(OPTIMIZERS))](
        [p for p in model.parameters() if p.requires_grad]
    )
    schedule = r.choice(SCHEDULES)
    sink = io.StringIO()
    step = make_step(r, model, optimizer, schedule and schedule(optimizer), sink)
    told = -1 if step.adds_to_gradients else None  # in plans their versions differ then
    if backend:
        step = torch.compile(step, backend=backend)
    sizes = r.choice(
        ((4,), (4, 4, 4, 2), (8, 8, 3, 1), range(1, 65), (5, 1, 2, 70), (6, 1, 0, 3), (1, 1, 0, 2))
    )
    seen = []
    for i in range(10):
        torch.manual_seed(seed * 100 + i)
        n = r.choice(sizes)
        x, y, t = torch.randn(n, 3), torch.randn(n, 2), torch.randint(0, 2, (n,))
        chance = r.random()
        if chance < 0.05:
            optimizer.param_groups[0]["lr"] *= 0.5
        elif chance < 0.08:
            model.train(not model.training)
        elif chance < 0.11:
            t[:1] = 7
        elif chance < 0.13:
            model[0].bias.grad = None
        elif chance < 0.15:
            x = torch.randn(n, 5)
        elif chance < 0.17:
            sink.close()
        try:
            given = text(step(x, y, t))
        except (RuntimeError, IndexError, ValueError, TypeError, ZeroDivisionError) as error:
            given = type(error).__name__, str(error)
        seen.append(
            (
                given,
                [text(p) for p in model.parameters()],
                [text(b) for b in model.buffers()],
                [p.grad is None or text(p.grad)[:told] for p in model.parameters()],
                [sorted((k, text(v)) for k, v in s.items()) for s in optimizer.state.values()],
                optimizer.param_groups[0]["lr"],
                torch.rand(1).item(),
                "" if sink.closed else sink.getvalue(),
            )
        )
    if backend:
        tally["calls"] += len(seen)
        tally["replays"] += step._counters()["replays"]
    return seen


def compare(seed, backend, tally):
    """None, or what differs first."""
    plain, compiled = run(seed, None, tally), run(seed, backend, tally)
    for call, (a, b) in enumerate(zip(plain, compiled, strict=True), 1):
        for part, (p, c) in enumerate(zip(a, b, strict=True)):
            if p != c:
                return f"seed {seed}, call {call}, part {part}:\n{p}\n{c}"
    return None


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2])
    totals = {"calls": 0, "replays": 0}
    for each in range(first, first + count):
        difference = compare(each, "llvm" if each % 4 == 0 else "interpreter", totals)
        if difference:
            print(difference, flush=True)
    print(totals)
