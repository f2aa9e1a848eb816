"""Steps of the tape that are written in Python (autograd.Function), in compiled training steps."""

import prong as torch
import pytest
import training_steps
from prong import nn

SIZES = (4, 4, 7, 4, 7, 4)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


class SavesResult(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y, None)
        return y

    @staticmethod
    def backward(ctx, g):
        y, nothing = ctx.saved_tensors
        assert nothing is None
        return g * y


class Scaled(torch.autograd.Function):
    """Attributes of the context, and arguments that are no tensors."""

    @staticmethod
    def forward(ctx, x, by, kind):
        ctx.by, ctx.kind = by, kind
        ctx.low = (x < 0).sum()
        return x * by

    @staticmethod
    def backward(ctx, g):
        assert ctx.kind == "scaled"
        return g * ctx.by + ctx.low, None, None


class Straight(torch.autograd.Function):
    """Saves nothing."""

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


class Asked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = g @ w.t() if ctx.needs_input_grad[0] else None
        gw = x.t() @ g if ctx.needs_input_grad[1] else None
        return gx, gw


class Several(torch.autograd.Function):
    """Two results, one of them without gradients; zeros for what nothing flowed into."""

    @staticmethod
    def forward(ctx, x):
        values, places = x.sort(dim=1)
        ctx.mark_non_differentiable(places)
        ctx.save_for_backward(places)
        return values, places, x * 3

    @staticmethod
    def backward(ctx, g, of_places, g3):
        (places,) = ctx.saved_tensors
        return torch.zeros_like(g).scatter(1, places, g) + g3 * 3


class Setup(torch.autograd.Function):
    @staticmethod
    def forward(x, by):
        return x * by

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.by = inputs[1]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.by, None


class SameBack(torch.autograd.Function):
    """Gives its argument as it is, and turns the gradient."""

    @staticmethod
    def forward(ctx, x, by):
        ctx.by = by
        return x

    @staticmethod
    def backward(ctx, g):
        return -ctx.by * g, None


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3)

    @staticmethod
    def backward(ctx, g):
        return g * 3


USES = {
    "saves": lambda h: Square.apply(h),
    "saves result": lambda h: SavesResult.apply(h),
    "attributes": lambda h: Scaled.apply(h, 0.5, "scaled"),
    "saves nothing": lambda h: Straight.apply(h) * h,
    "asked": lambda h: Asked.apply(h, h.t() @ h),
    "asked for one": lambda h: Asked.apply(h, torch.ones(5, 5)),
    "several": lambda h: Several.apply(h)[0] * Several.apply(h)[2],
    "some unused": lambda h: Several.apply(h)[0],
    "setup": lambda h: Setup.apply(h, 3),
    "as it is": lambda h: SameBack.apply(h, 2.0) * 2,
    "nested": lambda h: Square.apply(Straight.apply(h)) + SavesResult.apply(h),
    "in place": lambda h: InPlace.apply(h * 2),
}


def step_with(use):
    def make(model, optimizer):
        def step(x, y):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model[1](use(model[0](x))), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    return make


def model():
    return nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 3))


def same_in_both(make_step, sizes=SIZES, make_model=model):
    return training_steps.same_in_both(make_model, make_step, sizes)


@pytest.mark.parametrize("name", USES)
def test_steps_of_the_programs_own(name):
    counters = same_in_both(step_with(USES[name]))
    assert counters["why_evaluated"] == ""
    assert counters["plans"] == 3  # the first makes the optimizer's state; then one for each size
    assert counters["replays"] == 3
