"""Training steps of changing sizes: one recording, replayed for each, with the bits of plain Python's."""

import prong as torch
import pytest
from prong import nn
from training_steps import run, scheduled, snapshot

BATCHES = (8, 5, 1, 8, 2, 3, 64, 1, 33, *range(1, 65, 7), 2)


def check(make_model, make_optimizer, make_step, batches, plans=1, evaluated=3):
    plain, _ = run(make_model, make_optimizer, make_step, batches, False)
    seen, step = run(make_model, make_optimizer, make_step, batches, True)
    for i, (a, b) in enumerate(zip(plain, seen, strict=True)):
        assert a == b, f"call {i + 1}"
    counters = step._counters()
    assert counters["plans"] <= plans, (counters, step._guards())
    assert counters["replays"] >= len(batches) - evaluated, (counters, step._guards())
    return counters


def classes(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    return step


def regression(loss_of):
    def make(model, optimizer):
        def step(x, y):
            optimizer.zero_grad()
            loss = loss_of(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    return make


def labelled(*shape, classes=3):
    return [lambda n=n: (torch.randn(n, *shape), torch.randint(0, classes, (n,))) for n in BATCHES]


def mlp(*last):
    return lambda: nn.Sequential(
        nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 3), *last
    )


def sgd(ps):
    return torch.optim.SGD(ps, lr=0.1)


def adam(ps):
    return torch.optim.Adam(ps, lr=0.01)


@pytest.mark.parametrize("optimizer", [sgd, adam])
def test_a_perceptron_of_64_batch_sizes_is_one_recording(optimizer):
    check(mlp(), optimizer, classes, labelled(6))


def test_sizes_that_follow_are_inputs_from_the_first_recording():
    counters = check(mlp(), sgd, classes, labelled(6))
    assert counters["compiled"] <= counters["graphs"] <= 3


@pytest.mark.parametrize(
    "loss_of",
    [
        nn.functional.mse_loss,
        lambda out, y: (out - y).abs().mean(),
        lambda out, y: (out - y).pow(2).sum() / out.shape[0],
        lambda out, y: nn.functional.smooth_l1_loss(out, y, reduction="sum") / len(out),
        lambda out, y: (out * y.mean(1, keepdim=True)).var(),
    ],
)
def test_losses_that_divide_by_sizes(loss_of):
    batches = [lambda n=n: (torch.randn(n, 6), torch.randn(n, 3)) for n in BATCHES]
    check(mlp(), adam, regression(loss_of), batches)


def images():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 4, 3),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 3),
    )


def test_convolutions_with_batch_norm():
    check(images, adam, classes, labelled(1, 8, 8))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(3, 5, batch_first=True), nn.Linear(5, 3)

    def forward(self, x):
        return self.out(self.lstm(x)[0][:, -1])


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.put_in, self.qkv = nn.Linear(3, 8), nn.Linear(8, 24)
        self.norm, self.out = nn.LayerNorm(8), nn.Linear(8, 3)

    def forward(self, x):
        b, t, _ = x.shape
        h = self.put_in(x)
        q, k, v = (p.view(b, t, 2, 4).transpose(1, 2) for p in self.qkv(self.norm(h)).chunk(3, -1))
        scores = (q @ k.transpose(-2, -1)) * q.size(-1) ** -0.5
        mask = torch.ones(t, t, dtype=torch.bool).tril()
        y = scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v
        return self.out((h + y.transpose(1, 2).reshape(b, t, 8)).mean(1))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.put_in = nn.Linear(3, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.out = nn.Linear(8, 3)

    def forward(self, x):
        return self.out(self.layer(self.put_in(x))[:, 0])


@pytest.mark.parametrize("model", [Attention, Encoder, Recurrent])
def test_sequences_of_changing_lengths(model):
    lengths = [
        (4, 7),
        (4, 7),
        (4, 7),
        (3, 5),
        (2, 1),
        (1, 9),
        (4, 33),
        (7, 2),
        (1, 1),
        (5, 64),
        (4, 7),
    ]
    batches = [
        lambda n=n, t=t: (torch.randn(n, t, 3), torch.randint(0, 3, (n,))) for n, t in lengths
    ]
    check(model, adam, classes, batches)


def test_what_is_spread_along_a_batch_of_one():
    class Spread(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(1, 6))
            self.v = nn.Parameter(torch.ones(3, 6))

        def forward(self, x):
            return (x * self.w) @ self.v.T

    check(Spread, sgd, classes, labelled(6))


class Position(nn.Module):
    def __init__(self):
        super().__init__()
        self.at, self.out = nn.Parameter(torch.randn(1, 64, 6)), nn.Linear(6, 3)

    def forward(self, x):
        return self.out((x + self.at[:, : x.size(1)]).mean(1))


class FromTheMean(nn.Module):
    def __init__(self):
        super().__init__()
        self.put_in, self.out = nn.Linear(6, 4), nn.Linear(4, 3)

    def forward(self, x):
        h = self.put_in(x).flatten(0, 1)
        return self.out((h - h.mean(0, keepdim=True)).view(x.size(0), x.size(1), 4).sum(1))


class Pairs(nn.Module):
    def __init__(self):
        super().__init__()
        self.put_in, self.out = nn.Linear(6, 4), nn.Linear(4, 3)

    def forward(self, x):
        h = self.put_in(x)
        return self.out((h[:, None] - h[:, :, None]).tanh().mean((1, 2)))


@pytest.mark.parametrize("model", [Position, FromTheMean, Pairs])
@pytest.mark.parametrize("first", [(4, 7), (1, 1), (0, 3)])
def test_sizes_of_one_and_none_are_the_same_program(model, first):
    sizes = [first, first, (4, 7), (4, 7), (1, 7), (4, 1), (1, 1), (0, 5), (3, 0), (9, 33), (1, 2)]
    batches = [lambda n=n, t=t: (torch.randn(n, t, 6), torch.randint(0, 3, (n,))) for n, t in sizes]
    plans = 1 if min(first) > 1 else 2  # what is recorded with sizes of one does not sum
    check(model, adam, classes, batches, plans=plans, evaluated=1 + plans)


def test_a_zero_below_zero_keeps_its_sign_where_there_is_nothing_to_sum():
    weight = nn.Parameter(torch.ones(1, 3))
    factor = -torch.zeros(1, 3)

    def step(x):
        weight.grad = None
        (x * weight).sum().backward()
        return weight.grad.clone()

    compiled = torch.compile(step)
    for n in (4, 4, 1, 3, 1):
        x = factor.repeat(n, 1)
        assert repr(compiled(x).tolist()) == repr(step(x).tolist())
    assert compiled._counters()["plans"] == 1


@pytest.mark.parametrize(
    "loss_of",
    [
        lambda out, y: nn.functional.gaussian_nll_loss(out, y, out.exp()),
        lambda out, y: (out * y).sum() * (1.0 if (y * 0).sum().item() < 1 else 2.0),
    ],
)
def test_what_the_tape_saved_before_a_graph_ended_is_known(loss_of):
    batches = [lambda n=n: (torch.randn(n, 6), torch.randn(n, 3)) for n in BATCHES]
    check(mlp(), adam, regression(loss_of), batches)


def outcomes_of(make, sizes, is_compiled, spoil=lambda i, y: None):
    """Of training steps some of which raise, and the step."""
    torch.manual_seed(7)
    model = mlp()()
    optimizer = adam(model.parameters())
    step = make(model, optimizer)
    if is_compiled:
        step = torch.compile(step)
    seen = []
    for i, n in enumerate(sizes):
        torch.manual_seed(i)
        x, y = torch.randn(n, 6), torch.randint(0, 3, (n,))
        spoil(i, y)
        try:
            loss = step(x, y)
        except (RuntimeError, IndexError) as error:
            seen.append(str(error))
            loss = torch.zeros(())
        seen.append(snapshot(model, optimizer, loss))
    return seen, step


@pytest.mark.parametrize(
    "loss_of",
    [
        lambda out, y: out.gather(1, (y * y - y).clamp(max=9).unsqueeze(1)).mean(),
        lambda out, y: out.index_select(1, (y[:1] * 2 - y[:1])).pow(2).sum(),
        lambda out, y: (out * torch.zeros_like(out).masked_fill_((y > 0)[:, None], 2)).sum(),
    ],
)
def test_what_data_can_make_fail_stands_before_what_writes(loss_of):
    sizes = (4, 4, 4, 6, 6, 1, 7, 4, 9, 9, 1, 3)

    def spoil(i, y):
        if i in (4, 8):
            y[:] = 5

    plain, _ = outcomes_of(regression(loss_of), sizes, False, spoil)
    seen, step = outcomes_of(regression(loss_of), sizes, True, spoil)
    assert plain == seen
    assert step._counters()["plans"] <= 2 and step._counters()["replays"] >= 6, step._guards()


def test_stores_by_a_mask_are_part_of_one_plan():
    def store(out, y):
        kept = torch.zeros_like(out)
        kept[y > 0] = 1.0
        return (out * kept).sum()

    sizes = (8, 8, 8, 3, 5, 2, 9, 4)
    plain, _ = outcomes_of(regression(store), sizes, False)
    seen, step = outcomes_of(regression(store), sizes, True)
    assert plain == seen
    assert step._counters()["plans"] == 1, step._guards()


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(20, 8), nn.Embedding(64, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.out = nn.Linear(8, 20)

    def forward(self, x):
        t = x.size(1)
        mask = torch.triu(torch.full((t, t), float("-inf")), 1)
        return self.out(self.layer(self.words(x) + self.places(torch.arange(t)), src_mask=mask))


def test_a_language_model_with_its_mask():
    def make(model, optimizer):
        def step(x, y):
            optimizer.zero_grad()
            out = model(x)
            loss = nn.functional.cross_entropy(out.view(-1, out.size(-1)), y.reshape(-1))
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    sizes = [(4, 7), (4, 7), (4, 7), (3, 5), (2, 1), (1, 9), (4, 33), (1, 1), (5, 64), (4, 7)]
    batches = [
        lambda n=n, t=t: (torch.randint(0, 20, (n, t)), torch.randint(0, 20, (n, t)))
        for n, t in sizes
    ]
    check(Language, adam, make, batches)


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_recurrent_layer_of_all_lengths_is_one_recording(layer):
    net = layer(3, 5, batch_first=True)
    f = torch.compile(lambda x: net(x)[0][:, -1])
    for n, t in ((4, 7), (3, 5), (2, 1), (1, 9), (1, 1), (5, 64)):
        x = torch.randn(n, t, 3)
        assert repr(f(x).tolist()) == repr(net(x)[0][:, -1].tolist())
        f(x).sum().backward()
    assert f._counters()["plans"] == 1, f._guards()


def test_operands_that_spread_over_each_other():
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 4), nn.Linear(3, 4)

        def forward(self, x):
            left, right = x
            return self.a(left) * self.b(right)

    def make(model, optimizer):
        def step(x, y):
            optimizer.zero_grad()
            loss = model((x, y)).pow(2).mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    sizes = [(4, 4), (4, 4), (4, 4), (4, 1), (1, 4), (1, 1), (7, 7), (7, 1), (1, 9), (3, 1)]
    batches = [lambda n=n, m=m: (torch.randn(n, 3), torch.randn(m, 3)) for n, m in sizes]
    check(Pair, sgd, make, batches, plans=3, evaluated=5)


def test_labels_out_of_range_are_told_for_new_sizes_too():
    def spoil(i, y):
        if i in (4, 5, 8):
            y[1] = 5

    sizes = (4, 4, 4, 6, 6, 7, 7, 4, 9, 9)
    plain, _ = outcomes_of(classes, sizes, False, spoil)
    seen, _ = outcomes_of(classes, sizes, True, spoil)
    assert plain == seen


def test_a_counter_and_a_rate_that_change_with_the_sizes():
    def make(model, optimizer):
        state = {"count": 0}

        def step(x, y, rate):
            optimizer.param_groups[0]["lr"] = rate
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y) * 0.5
            loss.backward()
            optimizer.step()
            state["count"] += 1
            return loss.detach() + state["count"]

        return step

    batches = [
        lambda n=n, i=i: (torch.randn(n, 6), torch.randint(0, 3, (n,)), 0.1 * 0.9**i)
        for i, n in enumerate(BATCHES)
    ]
    check(mlp(), sgd, make, batches)


def test_a_weight_of_the_loss_that_changes():
    def make(model, optimizer):
        def step(x, y, weight):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y) * weight
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    batches = [
        lambda n=n, i=i: (torch.randn(n, 6), torch.randint(0, 3, (n,)), 0.5 + i)
        for i, n in enumerate(BATCHES)
    ]
    check(mlp(), sgd, make, batches)


def test_gradients_that_are_returned():
    def make(model, optimizer):
        parameters = list(model.parameters())

        def step(x, y):
            loss = nn.functional.cross_entropy(model(x), y)
            grads = torch.autograd.grad(loss, parameters)
            with torch.no_grad():
                for p, g in zip(parameters, grads):
                    p.sub_(g, alpha=0.1)
            return loss.detach()

        return step

    check(mlp(), sgd, make, labelled(6))


def test_composite_ops_on_the_tape_work_out_their_numbers_for_each_size():
    weight = nn.Parameter(torch.randn(5, 7))
    last = -torch.ones(1, 7).long()
    for f in (
        lambda x: (x @ weight).take_along_dim(last, 0),
        lambda x: (x @ weight).quantile(0.5, 0),
    ):
        compiled = torch.compile(f)
        for n in (8, 6, 4, 10, 1, 8):
            x = torch.randn(n, 5)
            plain, fast = f(x), compiled(x)
            assert plain.tolist() == fast.tolist()
            grads = [torch.autograd.grad(y.sum(), weight)[0].tolist() for y in (plain, fast)]
            assert grads[0] == grads[1]


@pytest.mark.parametrize(
    "schedule",
    [
        lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9),
        lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda k: 0.9**k),
        lambda o: torch.optim.lr_scheduler.LinearLR(o, total_iters=5),
        lambda o: torch.optim.lr_scheduler.StepLR(o, 3, 0.5),
    ],
)
def test_rates_of_a_schedule_are_inputs(schedule):
    check(mlp(), sgd, scheduled(schedule), labelled(6), plans=3, evaluated=3)
