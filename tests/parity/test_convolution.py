"""Convolutions of every shape against PyTorch's in double precision: sizes, steps, groups, numbers that are hard."""

import itertools
import random

import numpy as np
import prong
import pytest

torch = pytest.importorskip("torch")


def numbers(*sizes, seed=0):
    return np.random.default_rng(seed).standard_normal(sizes).astype("float32")


def results(module, x, w, b, dy, options):
    """y and the gradients to x, w and b."""
    convolve = getattr(module.nn.functional, f"conv{x.ndim - 2}d")
    leaves = [module.tensor(a).requires_grad_() for a in (x, w, b) if a is not None]
    y = convolve(*leaves[:2], leaves[2] if b is not None else None, **options)
    if dy is None:
        dy = numbers(*y.shape, seed=1).astype(x.dtype)
    y.backward(module.tensor(dy))
    return dy, [y.detach().numpy(), *(leaf.grad.numpy() for leaf in leaves)]


def check(x, w, b=None, **options):
    double = [None if a is None else a.astype("float64") for a in (x, w, b)]
    dy, expected = results(torch, *double, None, options)
    _, given = results(prong, x, w, b, dy.astype("float32"), options)
    for a, e in zip(given, expected, strict=True):
        assert a.shape == e.shape and a.dtype == np.float32
        largest = np.abs(e).max() if e.size else 0
        np.testing.assert_allclose(a, e, rtol=0, atol=5e-6 * largest)


SHAPES = {
    "3x3": ((2, 64, 17, 23), (48, 64, 3, 3), {"padding": 1}),
    "many channels, few places": ((3, 130, 7, 7), (70, 130, 3, 3), {"padding": 1}),
    "1x1": ((3, 40, 9, 5), (33, 40, 1, 1), {}),
    "1x1 on one place": ((4, 64, 1, 1), (96, 64, 1, 1), {}),
    "1x1, stride 2": ((2, 48, 13, 12), (64, 48, 1, 1), {"stride": 2}),
    "stem": ((2, 3, 65, 70), (32, 3, 7, 7), {"stride": 2, "padding": 3}),
    "one channel": ((2, 1, 28, 28), (32, 1, 5, 5), {}),
    "stride 3, dilation 2": ((2, 20, 31, 29), (17, 20, 3, 2), {"stride": 3, "dilation": 2}),
    "patches": ((2, 3, 64, 48), (40, 3, 16, 16), {"stride": 16}),
    "wide padding": ((2, 16, 4, 3), (16, 16, 3, 3), {"padding": (5, 4)}),
    "kernel as large as the input": ((2, 32, 8, 9), (16, 32, 8, 9), {}),
    "groups": ((2, 64, 15, 14), (64, 8, 3, 3), {"groups": 8, "padding": 1}),
    "groups of one channel": ((2, 32, 20, 37), (32, 1, 3, 3), {"groups": 32, "padding": 1}),
    "groups of one channel, stride 2": (
        (2, 32, 21, 36),
        (64, 1, 5, 3),
        {"groups": 32, "padding": 1, "stride": 2},
    ),
    "1d": ((3, 24, 200), (40, 24, 9), {"padding": 4}),
    "1d causal": ((2, 32, 100), (32, 32, 3), {"padding": 8, "dilation": 8}),
    "3d": ((2, 8, 9, 10, 11), (16, 8, 3, 3, 3), {"padding": 1}),
    "3d, stride 2": ((1, 20, 8, 9, 10), (24, 20, 3, 2, 3), {"stride": 2, "padding": 1}),
    "3d 1x1": ((3, 40, 4, 5, 6), (32, 40, 1, 1, 1), {}),
    "large lines": ((1, 8, 3, 1500), (16, 8, 3, 3), {"padding": 1}),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name):
    x, w, options = SHAPES[name]
    check(numbers(*x), numbers(*w, seed=2), numbers(w[0], seed=3), **options)
    check(numbers(*x), numbers(*w, seed=2), **options)


def test_random_shapes():
    rng = random.Random(5)
    done = 0
    while done < 60:
        dims = rng.choice((1, 2, 2, 2, 3))
        pick = lambda *choices, n=dims: [rng.choice(choices) for _ in range(n)]  # noqa: B023, E731
        groups = rng.choice((1, 1, 1, 2, 4))
        channels, outputs = rng.choice((1, 2, 3, 8, 17, 32, 40)), rng.choice((1, 3, 16, 20, 48))
        kernel, dilation, padding = pick(1, 2, 3, 5), pick(1, 1, 2), pick(0, 1, 2, 3)
        size = pick(5, 7, 9, 14, 33) if dims < 3 else pick(4, 6, 9)
        reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
        if any(s + 2 * p < r for s, p, r in zip(size, padding, reach, strict=True)):
            continue
        check(
            numbers(rng.choice((1, 2, 3)), channels * groups, *size),
            numbers(outputs * groups, channels, *kernel, seed=2),
            stride=pick(1, 1, 2, 3),
            padding=padding,
            dilation=dilation,
            groups=groups,
        )
        done += 1


@pytest.mark.parametrize("seed", range(3))
def test_transposed(seed):
    x, w = numbers(2, 24, 9, 11), numbers(24, 16, 3, 4, seed=2)
    options = [
        {"stride": 2, "padding": 1, "output_padding": 1},
        {"dilation": 2},
        {"groups": 2, "stride": 3},
    ][seed]
    both = [
        m.nn.functional.conv_transpose2d(m.tensor(x).to(d), m.tensor(w).to(d), **options).numpy()
        for m, d in ((torch, torch.float64), (prong, prong.float32))
    ]
    np.testing.assert_allclose(both[1], both[0], rtol=0, atol=1e-5 * np.abs(both[0]).max())


@pytest.mark.parametrize("name", ["3x3", "stem", "groups of one channel", "1x1, stride 2", "3d"])
def test_bits_do_not_depend_on_threads(name):
    x, w, options = SHAPES[name]
    x, w = numbers(*x), numbers(*w, seed=2)
    threads = prong.get_num_threads()
    try:
        found = []
        for n in (1, 2, 5):
            prong.set_num_threads(n)
            found.append(results(prong, x, w, None, None, options)[1])
    finally:
        prong.set_num_threads(threads)
    for a, b in itertools.product(found[:1], found[1:]):
        for one, other in zip(a, b, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38, 1e-42])
@pytest.mark.parametrize("name", ["3x3", "1x1", "stem", "groups of one channel"])
def test_hard_numbers(name, value):
    """One of them reaches the results that PyTorch's reaches, and no others."""
    shape, w, options = SHAPES[name]
    x, w = numbers(*shape), numbers(*w, seed=2)
    x[1, 0, 1, 2] = value
    given = prong.conv2d(prong.tensor(x), prong.tensor(w), **options).numpy()
    expected = torch.conv2d(torch.tensor(x), torch.tensor(w), **options).numpy()
    np.testing.assert_array_equal(np.isnan(given), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(given), np.isinf(expected))
    finite = np.isfinite(expected)
    largest = np.abs(expected[finite]).max()
    np.testing.assert_allclose(given[finite], expected[finite], rtol=0, atol=1e-5 * largest)


def test_hard_numbers_in_the_weight_and_the_gradient():
    x, w = numbers(2, 32, 9, 9), numbers(16, 32, 3, 3, seed=2)
    w[3, 2, 1, 1] = np.inf
    y = prong.conv2d(prong.tensor(x), prong.tensor(w)).numpy()
    assert np.isinf(y[:, 3]).all() and np.isfinite(y[:, [0, 1, 2, 4]]).all()
    w[3, 2, 1, 1] = 0
    dy = numbers(2, 16, 7, 7, seed=1)
    dy[1, 5, 0, 0] = np.nan
    _, (_, dx, dw) = results(prong, x, w, None, dy, {})
    assert np.isfinite(dx[0]).all() and np.isnan(dx[1, :, :3, :3]).all()
    assert np.isfinite(dx[1, :, 3:]).all()
    assert np.isnan(dw[5]).all() and np.isfinite(dw[:5]).all()


@pytest.mark.parametrize("name", ["3x3", "groups of one channel"])
def test_infinity_in_the_input_reaches_the_weights_it_meets(name):
    shape, w, options = SHAPES[name]
    x, w = numbers(*shape), numbers(*w, seed=2)
    x[1, 3, 0, 0] = np.inf
    dy, (_, _, expected) = results(torch, x, w, None, None, options)
    _, (_, _, given) = results(prong, x, w, None, dy, options)
    np.testing.assert_array_equal(np.isfinite(given), np.isfinite(expected))
    np.testing.assert_array_equal(np.isnan(given), np.isnan(expected))
    assert np.isfinite(expected).any() and not np.isfinite(expected).all()


def test_small_numbers_keep_their_digits():
    x, w = numbers(1, 32, 12, 12) * np.float32(1e-30), numbers(32, 32, 3, 3, seed=2)
    check(x, w)


def test_empty():
    w = prong.randn(16, 32, 3, 3)
    assert prong.conv2d(prong.randn(0, 32, 9, 9), w).shape == (0, 16, 7, 7)
    x = prong.randn(0, 32, 9, 9, requires_grad=True)
    w.requires_grad_()
    prong.conv2d(x, w).sum().backward()
    assert x.grad.shape == (0, 32, 9, 9) and not w.grad.any()


def test_layouts():
    x, w = numbers(2, 32, 11, 13), numbers(24, 32, 3, 3, seed=2)
    expected = prong.conv2d(prong.tensor(x), prong.tensor(w), padding=1).numpy()
    turned = prong.tensor(np.ascontiguousarray(x.transpose(0, 2, 3, 1))).permute(0, 3, 1, 2)
    weight = prong.tensor(np.ascontiguousarray(w.transpose(3, 2, 1, 0))).permute(3, 2, 1, 0)
    assert not turned.is_contiguous()
    np.testing.assert_array_equal(prong.conv2d(turned, weight, padding=1).numpy(), expected)
    part = prong.tensor(numbers(4, 32, 11, 13))
    np.testing.assert_array_equal(
        prong.conv2d(part[1::2], weight, padding=1).numpy(),
        prong.conv2d(part[1::2].clone(), weight, padding=1).numpy(),
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_types_are_summed_in_float(dtype):
    x, w = numbers(2, 64, 9, 9), numbers(8, 64, 3, 3, seed=2)
    given = prong.conv2d(
        prong.tensor(x).to(getattr(prong, dtype)), prong.tensor(w).to(getattr(prong, dtype))
    )
    expected = torch.conv2d(
        torch.tensor(x).to(getattr(torch, dtype)).double(),
        torch.tensor(w).to(getattr(torch, dtype)).double(),
    ).to(getattr(torch, dtype))
    assert given.dtype == getattr(prong, dtype)
    difference = (given.float().numpy() - expected.float().numpy()).__abs__()
    assert difference.max() <= np.abs(expected.float().numpy()).max() * 2.0**-8
