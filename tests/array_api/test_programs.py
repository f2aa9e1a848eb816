"""Programs that know only the standard: the same numbers from NumPy, array_api_strict and Prong."""

import json
import subprocess
import sys
from pathlib import Path

import array_api_strict as strict
import numpy as np
import prong
import pytest
from array_api_compat import array_namespace
from peer import plain
from prong import array_api as xp

NAMESPACES = {"prong": xp, "array_api_strict": strict}


def data(namespace, *arrays):
    return [namespace.asarray(each.copy()) for each in arrays]


def points(n=60, dims=3):
    draw = np.random.default_rng(3)
    centres = draw.uniform(-8, 8, (4, dims))
    return (centres[draw.integers(0, 4, n)] + draw.normal(size=(n, dims))).astype("float64")


def k_means(x, centres, steps=10):
    """Lloyd's iterations: distances, nearest centres, means."""
    np_ = array_namespace(x)
    for _ in range(steps):
        away = np_.sum((x[:, None, :] - centres[None, :, :]) ** 2, axis=-1)
        nearest = np_.argmin(away, axis=1)
        mine = np_.astype(nearest[:, None] == np_.arange(centres.shape[0])[None, :], x.dtype)
        counts = np_.sum(mine, axis=0)
        centres = (mine.mT @ x) / np_.where(counts == 0, np_.ones_like(counts), counts)[:, None]
    return centres, nearest, np_.sqrt(np_.min(away, axis=1))


def principal_components(x, kept=2):
    """Standardised, decomposed, projected; signs fixed by the largest loading."""
    np_ = array_namespace(x)
    centred = (x - np_.mean(x, axis=0)) / np_.std(x, axis=0, correction=1)
    _, sizes, axes = np_.linalg.svd(centred, full_matrices=False)
    places = np_.argmax(np_.abs(axes), axis=1, keepdims=True)
    axes = axes * np_.sign(np_.take_along_axis(axes, places, axis=1))
    shares = sizes**2 / np_.sum(sizes**2)
    return centred @ axes[:kept, :].mT, shares, np_.cumulative_sum(shares)


def logistic_regression(x, steps=25):
    """Newton's method with a ridge, labels from a sum's sign."""
    np_ = array_namespace(x)
    y = np_.astype(np_.sum(x, axis=1) > 0, x.dtype)
    x = np_.concat([np_.ones((x.shape[0], 1), dtype=x.dtype), x], axis=1)
    w = np_.zeros(x.shape[1], dtype=x.dtype)
    for _ in range(steps):
        p = 1 / (1 + np_.exp(-np_.clip(x @ w, -30, 30)))
        hessian = (x * (p * (1 - p))[:, None]).mT @ x + np_.eye(w.shape[0], dtype=x.dtype)
        w = w + np_.linalg.solve(hessian, x.mT @ (y - p) - w)
    return w, np_.linalg.vector_norm(w), np_.linalg.slogdet(hessian).logabsdet


def spectrum(x):
    """The loudest frequencies of a sum of waves, and the signal without the others."""
    np_ = array_namespace(x)
    time = np_.arange(0, 1, 1 / 64, dtype=x.dtype)
    wave = np_.sin(2 * np_.pi * 5 * time) + 0.5 * np_.cos(2 * np_.pi * 12 * time)
    turned = np_.fft.rfft(wave)
    loud = np_.abs(turned) > 4
    places = np_.fft.rfftfreq(64, d=1 / 64, dtype=x.dtype)[loud]
    kept = np_.where(loud, turned, np_.zeros_like(turned))
    return places, np_.fft.irfft(kept, n=64)


def table(x):
    """Ranks, distinct values with their counts, running sums, a histogram by bisection."""
    np_ = array_namespace(x)
    whole = np_.astype(np_.round(x[:, 0]), np_.int64)
    values, counts = np_.unique_counts(whole)
    order = np_.argsort(x[:, 1])
    ranks = np_.argsort(order)
    edges = np_.linspace(-12.0, 12.0, 7, dtype=x.dtype)
    cells = np_.searchsorted(edges, x[:, 2])
    histogram = np_.sum(np_.astype(cells[:, None] == np_.arange(8), np_.int64), axis=0)
    return (
        values,
        counts,
        ranks,
        np_.take(x, order[:5], axis=0),
        histogram,
        np_.diff(np_.sort(x[:, 0])),
    )


@pytest.mark.parametrize("name", NAMESPACES)
@pytest.mark.parametrize(
    "program", [k_means, principal_components, logistic_regression, spectrum, table]
)
def test_the_numbers_are_numpys(program, name):
    x = points()
    extra = (x[:4],) if program is k_means else ()
    expected = program(*data(np, x, *extra))
    made = program(*data(NAMESPACES[name], x, *extra))
    for ours, theirs in zip(made, expected, strict=True):
        found = plain(ours)
        assert found.dtype == theirs.dtype
        np.testing.assert_allclose(found, theirs, rtol=1e-9, atol=1e-9)


def test_a_kernel_matrix():
    x = xp.asarray(points())
    names = array_namespace(x, x)
    assert names is xp
    kernel = names.exp(-0.5 * names.linalg.vector_norm(x[:, None] - x[None], axis=-1) ** 2)
    np.testing.assert_allclose(plain(kernel), plain(kernel.mT))
    assert bool(names.all(names.linalg.eigvalsh(kernel) > -1e-9))


def test_gradients_go_through_the_namespace():
    x = xp.asarray(points())
    x.requires_grad_()
    xp.sum(xp.linalg.vector_norm(x, axis=-1) ** 2).backward()
    np.testing.assert_allclose(plain(x.grad), 2 * plain(x.detach()))


@pytest.mark.parametrize("library", ["scipy", "sklearn"])
def test_other_libraries_compute_with_our_tensors(library):
    """Their generic code finds the namespace; results are tensors, with the numbers of NumPy's."""
    command = [sys.executable, str(Path(__file__).with_name("other_libraries.py")), library]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout)
    assert len(outcomes) > 12
    assert {name: text for name, text in outcomes.items() if text != "same"} == {}


def test_compiled_and_batched():
    """The namespace's functions in a compiled function, and under vmap."""

    def spread_of(x):
        names = array_namespace(x)
        return names.std(names.tanh(x), axis=-1, correction=1) + names.max(x, axis=-1)

    x = xp.asarray(points())
    expected = plain(spread_of(x))
    np.testing.assert_array_equal(plain(prong.compile(spread_of)(x)), expected)
    np.testing.assert_allclose(plain(prong.vmap(spread_of)(x)), expected)
