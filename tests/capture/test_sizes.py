"""Sizes, numbers and values of tensors that Python reads: one recording serves all of them, save where a branch goes
another way."""

import math

import prong as torch
import prong.nn.functional as F
import pytest
from prong import nn


def filled(*shape):
    return torch.sin(torch.arange(float(math.prod(shape)))).reshape(*shape)


def shown(value):
    if isinstance(value, torch.Tensor):
        return value.dtype, tuple(value.shape), repr(value.tolist())
    if isinstance(value, (list, tuple)):
        return type(value), [shown(v) for v in value]
    return type(value), repr(value)


def same_in_plans(f, calls, plans=1, **settings):
    compiled = torch.compile(f, **settings)
    for args in calls:
        assert shown(compiled(*args)) == shown(f(*args)), args
    counters = compiled._counters()
    assert counters["plans"] == plans, compiled._guards()
    assert counters["replays"] == len(calls) - plans, counters
    return compiled


WEIGHT = filled(8, 8)


def attention(x):
    b, t, c = x.shape
    q = (x @ WEIGHT).view(b, t, 2, c // 2).transpose(1, 2)
    scores = q @ q.transpose(-2, -1) * (1.0 / math.sqrt(q.size(-1)))
    mask = torch.tril(torch.ones(t, t)).view(1, 1, t, t)
    y = F.softmax(scores.masked_fill(mask == 0, float("-inf")), dim=-1) @ q
    return y.transpose(1, 2).contiguous().view(b, t, c)


@pytest.mark.parametrize("backend", ["llvm", "interpreter"])
def test_attention_is_one_recording_for_all_batch_sizes_and_lengths(backend):
    sizes = [(b, 5) for b in (3, *range(1, 65), 0)] + [(2, t) for t in (4, 1, 9, 33, 1, 0)]
    same_in_plans(attention, [(filled(b, t, 8),) for b, t in sizes], backend=backend)


def test_sizes_one_and_zero_need_no_recording_of_their_own():
    def turned(x):
        return (x.T + 1).contiguous().view(-1) * x.size(0), x.contiguous(), x.float()

    for first in ((4, 3), (1, 3), (0, 3), (1, 1)):
        sizes = [first, (4, 3), (1, 3), (3, 1), (0, 3), (1, 1), (5, 0)]
        same_in_plans(turned, [(filled(*s),) for s in sizes])


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(8, 8), nn.LayerNorm(8)
        self.heads, self.scale = 2, 0.5

    def forward(self, x):
        b, t, c = x.size()
        y = self.linear(x).view(b, t, self.heads, c // self.heads).transpose(1, 2)
        y = y.reshape(b, self.heads, t, -1).transpose(1, 2).reshape(b, t, c)
        return self.norm(x + y * self.scale)


@pytest.mark.parametrize("grad", [False, True])
def test_sizes_of_computed_tensors_are_found_ahead_of_the_programs(grad):
    net = nn.Sequential(Block(), Block(), Block())
    calls = [(filled(b, t, 8),) for b, t in ((2, 3), (1, 4), (4, 1), (7, 6), (2, 3), (1, 1))]
    with torch.set_grad_enabled(grad):
        same_in_plans(lambda x: net(x), calls)


def test_masks_paddings_positions_and_last_elements():
    table = filled(20, 3)

    def of_lengths(x, n):
        t = x.size(1)
        mask = torch.arange(t) < n
        padded = F.pad(x, (0, 0, 0, 20 - t))
        return x * mask[None, :, None], padded, x + table[:t].unsqueeze(0), x[:, -1], x[:, t - 1]

    lengths = [(4, 2), (5, 5), (1, 0), (20, 7), (4, 9)]
    same_in_plans(of_lengths, [(filled(2, t, 3), n) for t, n in lengths])


def test_what_is_made_of_a_shape_is_followed():
    def shapes(x):
        *lead, last = x.shape
        made = (
            torch.zeros(x.shape[:-1] + (2,)),
            torch.ones(*lead, 1),
            x.new_full(x.size(), x.numel()),
        )
        return made, x.shape, x.shape.numel(), len(x), tuple(x.shape), list(x.shape), max(x.shape)

    same_in_plans(shapes, [(filled(k, 2),) for k in (3, 1, 2, 7, 0, 2)])


def test_python_arithmetic_on_sizes_is_done_again():
    def arithmetic(x, k):
        n = x.shape[0]
        half, rest = divmod(n, 2)
        parts = x[:half], x[half:], x[n - 1 :: 2]
        numbers = [round(n / 3, 2), abs(-n), min(n, k), float(n), int(n * 0.7), -n, ~n, n**2]
        return parts, numbers, math.isqrt(n), rest, math.ceil(n / 2), x * math.exp(-n) + n % k

    same_in_plans(arithmetic, [(filled(n, 2), k) for n, k in ((4, 2), (1, 5), (0, 3), (9, 7))])


def test_a_branch_on_a_size_guards_its_outcome():
    def branches(x, n):
        if x.shape[0] > 4:
            x = x * 2
        return x + n if n else x

    sizes = [(2, 1), (3, 2), (5, 1), (9, 3), (4, 0), (2, 0), (6, 0), (8, 0), (3, 4)]
    same_in_plans(branches, [(filled(s), n) for s, n in sizes], plans=4)


def test_shapes_are_compared():
    def compared(x, y):
        return x + y if x.shape == y.shape else x

    shapes = [
        ((3, 2), (3, 2)),
        ((1, 4), (1, 4)),
        ((3, 2), (3, 1)),
        ((5, 4), (5, 1)),
        ((2, 2), (2, 2)),
    ]
    same_in_plans(compared, [(filled(*a), filled(*b)) for a, b in shapes], plans=2)


def test_numbers_are_inputs_from_the_first_recording():
    class Settings:
        rate, steps = 0.5, 1

    settings, table, scale = Settings(), {"decay": 0.9}, 2.0
    settings.rate = 0.5

    def step(x, k):
        return x * settings.rate + table["decay"] * k - scale, k * settings.rate

    compiled = torch.compile(step)
    for i in range(1, 12):
        settings.rate, table["decay"], scale = 0.5 / i, 0.9**i, float(i)
        x = filled(3)
        assert shown(compiled(x, i)) == shown(step(x, i))
    assert compiled._counters()["plans"] == 1 and compiled._counters()["replays"] == 10


def test_a_key_that_is_gone_is_seen():
    def has(x, options):
        return x + 1 if "a" in options else x - 1

    compiled = torch.compile(has)
    options = {"a": 1}
    for change in (
        lambda: None,
        lambda: options.update(a=2),
        options.clear,
        lambda: options.update(a=3),
    ):
        change()
        assert shown(compiled(filled(2), options)) == shown(has(filled(2), options))


def test_an_error_in_arithmetic_that_nobody_needs_is_raised():
    def ignored(x, k):
        int(k)
        1 / k
        return x * 2

    compiled = torch.compile(ignored)
    for k in (1.0, 2.0, 5.0):
        compiled(filled(2), k)
    with pytest.raises(ValueError, match="NaN"):
        compiled(filled(2), float("nan"))
    with pytest.raises(ZeroDivisionError):
        compiled(filled(2), 0.0)


def test_values_of_tensors_are_numbers_of_the_plan():
    def items(x, n):
        total = (x * 2).sum().item()
        kept = x[: n.item()] * total
        return kept, total, float(x.max()), int(x.sum()), [v + 1 for v in n.reshape(1).tolist()]

    calls = [(filled(4) * k, torch.tensor(n)) for k, n in ((1, 2), (2, 4), (3, 0), (0, 3))]
    same_in_plans(items, calls)


def test_a_branch_on_a_value_has_a_plan_each_way():
    def branch(x):
        loss = (x * x).sum()
        return loss.item() if loss.item() > 1 else -x

    values = [0.1, 3.0, 0.2, 4.0, 5.0, 0.3]
    same_in_plans(branch, [(filled(3) * v,) for v in values], plans=2)


def test_the_value_of_a_loss_is_read_after_a_write():
    def step(w, x, lr):
        loss = (w * x).sum()
        w.sub_(x * lr)
        return loss.item(), w.sum().item()

    compiled, w, v = torch.compile(step), filled(3), filled(3)
    for i in range(1, 6):
        assert compiled(w, filled(3), 0.1 / i) == step(v, filled(3), 0.1 / i)
        assert w.tolist() == v.tolist()
    assert compiled._counters()["plans"] == 1 and compiled._counters()["replays"] == 4


def test_a_branch_on_a_value_after_a_write_is_taken_anew():
    def step(w):
        w.add_(1)
        if w.sum().item() > 5:
            w.zero_()
        return w * 2

    compiled, w, v = torch.compile(step), torch.zeros(2), torch.zeros(2)
    for _ in range(8):
        assert compiled(w).tolist() == step(v).tolist() and w.tolist() == v.tolist()


def test_dynamic_false_records_each_size():
    def f(x):
        return x * x.size(0)

    compiled = torch.compile(f, dynamic=False)
    for n in (2, 3, 2, 4, 3):
        assert compiled(filled(n)).tolist() == f(filled(n)).tolist()
    assert compiled._counters()["plans"] == 3
    assert torch.compile(f, dynamic=True)(filled(2)).tolist() == f(filled(2)).tolist()


def test_reports_tell_inputs_and_what_is_pinned_by_which_line():
    def f(x, n):
        x = x.reshape(-1, x.size(0)) * n
        return x if n > 2 else x + 1

    report = torch._dynamo.explain(f)(filled(4, 3), 1)
    told = {g.name: (g.value, g.place and g.place[1]) for g in report.out_guards}
    line = f.__code__.co_firstlineno
    assert told["argument 'n'"][0] == "any int, an input"
    assert told["size 0 of argument 'x'"][0] == "any int, an input"
    assert told["argument 'n' > 2"] == ("False", line + 2)


def test_how_many_dimensions_squeeze_leaves_follows_from_sizes():
    def f(x):
        y = x.squeeze()
        z = x.squeeze(0)
        return y.dim(), y.shape, y.sum(-1), z.ndim, z.t(), len(y.shape), z.mean(0)

    compiled = torch.compile(f)
    for shape in [(2, 3), (1, 3), (3, 2), (3, 1), (1, 1), (4, 4), (1, 5)] * 2:
        assert shown(compiled(filled(*shape))) == shown(f(filled(*shape))), shape
