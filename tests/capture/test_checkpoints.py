"""torch.utils.checkpoint in compiled training steps: what is computed again is part of the plan."""

import prong as torch
import pytest
import training_steps
from prong import nn
from prong.utils.checkpoint import checkpoint, checkpoint_sequential

SIZES = (4, 4, 7, 4, 7, 4)


class Checkpointed(nn.Module):
    def __init__(self, dropout=0.0, **options):
        super().__init__()
        self.first = nn.Linear(6, 5)
        parts = [nn.Linear(5, 8), nn.GELU(), nn.Linear(8, 5), nn.Tanh()]
        if dropout:
            parts.insert(2, nn.Dropout(dropout))
        self.block = nn.Sequential(*parts)
        self.last = nn.Linear(5, 3)
        self.options = options

    def forward(self, x):
        h = self.first(x)
        h = h + checkpoint(self.block, h, **self.options)
        return self.last(checkpoint(self.inner, h, 2.0, **self.options))

    def inner(self, h, by):
        return torch.sin(self.block(h) * by) + h


class InParts(nn.Module):
    def __init__(self, is_reentrant):
        super().__init__()
        self.parts = nn.Sequential(*[nn.Linear(6, 6), nn.ReLU()] * 2, nn.Linear(6, 3))
        self.is_reentrant = is_reentrant

    def forward(self, x):
        if self.is_reentrant:
            x = x.detach().requires_grad_()
        return checkpoint_sequential(self.parts, 2, x, use_reentrant=self.is_reentrant)


def same_in_both(make_model, sizes=SIZES):
    return training_steps.same_in_both(make_model, training_steps.usual, sizes)


MODELS = {
    "as saved tensors": lambda: Checkpointed(use_reentrant=False),
    "as one step": lambda: Checkpointed(use_reentrant=True),
    "all of it": lambda: Checkpointed(use_reentrant=False, early_stop=False),
    "without random state": lambda: Checkpointed(use_reentrant=True, preserve_rng_state=False),
    "in parts": lambda: InParts(False),
    "in parts as steps": lambda: InParts(True),
}


@pytest.mark.parametrize("name", MODELS)
def test_what_is_computed_again_is_part_of_the_plan(name):
    counters = same_in_both(MODELS[name])
    assert counters["why_evaluated"] == ""
    assert counters["plans"] == 3  # the first makes the optimizer's state; then one for each size
    assert counters["replays"] == 3


@pytest.mark.parametrize("is_reentrant", [False, True])
def test_random_numbers_are_drawn_again(is_reentrant):
    counters = same_in_both(lambda: Checkpointed(0.3, use_reentrant=is_reentrant))
    assert "random numbers" in counters["why_evaluated"]
