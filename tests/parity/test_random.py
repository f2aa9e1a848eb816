"""Random numbers: the same as PyTorch's for the same seed, in the same order, with the same state afterwards."""

import numpy as np
import prong
import pytest

torch = pytest.importorskip("torch")

SIZES = [1, 5, 15, 16, 17, 40, 1000, 4099]
FLOATS = ["float32", "float64", "float16", "bfloat16"]
# Box-Muller goes through logarithms and cosines, of which PyTorch has approximations of its own.
CLOSE = {"float32": 2e-6, "float64": 1e-14, "float16": 2e-3, "bfloat16": 1.6e-2}


def both(draw, seed=7):
    results = []
    for module in (torch, prong):
        module.manual_seed(seed)
        results.append(draw(module))
    return results


def check(draw, tolerance=0.0, seed=7):
    a, b = both(draw, seed)
    assert str(a.dtype) == str(b.dtype).replace("prong", "torch") and tuple(a.shape) == tuple(
        b.shape
    )
    x, y = np.array(a.double().tolist()), np.array(b.double().tolist())
    if tolerance == 0:
        np.testing.assert_array_equal(y, x)
    else:
        np.testing.assert_allclose(y, x, rtol=tolerance, atol=tolerance)
    # Both drew equally often.
    assert torch.get_rng_state().tolist()[:5016] == prong.get_rng_state().tolist()[:5016]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", FLOATS)
class TestFloats:
    def test_rand(self, dtype, size):
        check(lambda m: m.rand(size, dtype=getattr(m, dtype)))

    def test_randn(self, dtype, size):
        check(lambda m: m.randn(size, dtype=getattr(m, dtype)), CLOSE[dtype])

    def test_uniform(self, dtype, size):
        check(lambda m: m.empty(size, dtype=getattr(m, dtype)).uniform_(-3, 0.1))

    def test_normal(self, dtype, size):
        check(lambda m: m.empty(size, dtype=getattr(m, dtype)).normal_(2, 3), 3 * CLOSE[dtype])

    def test_bernoulli(self, dtype, size):
        check(lambda m: m.empty(size, dtype=getattr(m, dtype)).bernoulli_(0.3))
        check(lambda m: m.bernoulli(m.full((size,), 0.25, dtype=getattr(m, dtype))))

    def test_exponential(self, dtype, size):
        check(lambda m: m.empty(size, dtype=getattr(m, dtype)).exponential_(2.0), 1e-7)

    def test_random(self, dtype, size):
        check(lambda m: m.empty(size, dtype=getattr(m, dtype)).random_())


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64"])
def test_integers(dtype):
    check(lambda m: m.empty(1000, dtype=getattr(m, dtype)).random_())
    if dtype != "bool":
        check(lambda m: m.randint(5, 100, (1000,), dtype=getattr(m, dtype)))
        check(lambda m: m.empty(1000, dtype=getattr(m, dtype)).bernoulli_(0.3))


@pytest.mark.parametrize(
    "draw",
    [
        lambda m: m.randint(10, (3, 4)),
        lambda m: m.randint(-5, 2**28, (50,)),
        lambda m: m.randint(0, 2**28 - 1, (50,)),
        lambda m: m.randint(-5, 2**40, (50,)),
        lambda m: m.randint(0, 10, (5,), dtype=m.float32),
        lambda m: m.randint_like(m.zeros(2, 3), 9),
        lambda m: m.randperm(1000),
        lambda m: m.randperm(1),
        lambda m: m.randperm(10, dtype=m.int32),
        lambda m: m.empty(3, 4).t().uniform_(),
        lambda m: m.empty(10, 4)[:, ::2].uniform_(),
        lambda m: m.empty(7, 4)[:, 1].bernoulli_(0.5),
        lambda m: m.rand(2, 3).bernoulli(),
        lambda m: m.multinomial(m.linspace(0.1, 2, 10), 4),
        lambda m: m.multinomial(m.linspace(0.1, 2, 20).view(2, 10), 30, replacement=True),
        lambda m: m.multinomial(m.linspace(0.1, 2, 10), 1, replacement=True),
        lambda m: m.nn.functional.dropout(m.ones(40), 0.3),
        lambda m: m.nn.functional.dropout(m.ones(4, 10, dtype=m.float64), 0.7),
        lambda m: m.empty(9).geometric_(0.3),
    ],
)
def test_exact(draw):
    check(draw)


@pytest.mark.parametrize(
    "draw",
    [
        lambda m: m.empty(8, 5).t().normal_(),
        lambda m: m.randn_like(m.zeros(3, 4)),
        lambda m: m.normal(1.0, 2.0, (20,)),
        lambda m: m.normal(m.arange(20.0), m.arange(20.0) + 1),
        lambda m: m.normal(m.arange(20.0), 2.0),
        lambda m: m.normal(1.0, m.arange(20.0) + 1),
        lambda m: m.empty(9).log_normal_(),
        lambda m: m.empty(9).cauchy_(),
        lambda m: m.nn.Linear(20, 30).weight.detach(),
        lambda m: m.nn.LSTM(5, 8, bidirectional=True).weight_hh_l0_reverse.detach(),
        lambda m: m.nn.Conv2d(3, 8, 3).bias.detach(),
        lambda m: m.nn.Embedding(10, 7).weight.detach(),
        lambda m: m.nn.init.kaiming_normal_(m.empty(10, 20)),
        lambda m: m.nn.init.xavier_uniform_(m.empty(10, 20)),
        lambda m: m.nn.init.trunc_normal_(m.empty(10, 20)),
        lambda m: m.nn.init.trunc_normal_(m.empty(10, 20), std=0.02),
        lambda m: m.nn.init.trunc_normal_(m.empty(10, 20), 0.0, 1.0, 1.0, 1.2),
    ],
)
def test_close(draw):
    check(draw, 1e-5)


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**32 + 5, 2**63, -1, 67280421310721])
def test_seeds(seed):
    a, b = both(lambda m: m.rand(3), seed)
    assert a.tolist() == b.tolist()
    assert torch.initial_seed() == prong.initial_seed()


def test_state_is_pytorchs():
    torch.manual_seed(3)
    torch.randn(3, dtype=torch.float64)
    state = torch.get_rng_state()
    prong.set_rng_state(prong.tensor(state.tolist(), dtype=prong.uint8))
    assert prong.get_rng_state().tolist() == state.tolist()
    # The second half of a pair of normals is part of the state.
    np.testing.assert_allclose(prong.randn(5).tolist(), torch.randn(5).tolist(), rtol=1e-6)


def test_generators_are_independent():
    for module in (torch, prong):
        module.manual_seed(1)
    a, b = torch.Generator().manual_seed(5), prong.Generator().manual_seed(5)
    assert torch.rand(3, generator=a).tolist() == prong.rand(3, generator=b).tolist()
    assert torch.rand(3).tolist() == prong.rand(3).tolist()
    assert torch.randperm(5, generator=a).tolist() == prong.randperm(5, generator=b).tolist()


ERRORS = [
    lambda m: m.rand(2, dtype=m.long),
    lambda m: m.randn(2, dtype=m.long),
    lambda m: m.randint(5, 5, (2,)),
    lambda m: m.randint(-1, (2,)),
    lambda m: m.randint(0, 300, (2,), dtype=m.uint8),
    lambda m: m.zeros(2).normal_(0, -1),
    lambda m: m.zeros(2).uniform_(3, 1),
    lambda m: m.zeros(2).bernoulli_(1.5),
    lambda m: m.zeros(2).exponential_(-1),
    lambda m: m.zeros(2).geometric_(0),
    lambda m: m.bernoulli(m.tensor([1])),
    lambda m: m.multinomial(m.tensor([1.0, 2]), 3),
    lambda m: m.multinomial(m.tensor([-1.0, 2]), 1),
    lambda m: m.multinomial(m.tensor([0.0, 0]), 1),
    lambda m: m.multinomial(m.tensor([1, 2]), 1),
    lambda m: m.multinomial(m.tensor([1.0, 2]), 0),
    lambda m: m.randperm(-1),
    lambda m: m.randperm(300, dtype=m.uint8),
    lambda m: m.zeros(2).random_(5, 3),
]


@pytest.mark.parametrize("draw", ERRORS)
def test_errors(draw):
    with pytest.raises(Exception) as expected:
        draw(torch)
    with pytest.raises(Exception) as got:
        draw(prong)
    assert type(got.value).__name__ == type(expected.value).__name__
    assert str(got.value) == str(expected.value)
