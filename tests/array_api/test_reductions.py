"""Statistics, cumulative functions, searching, sorting and sets beside array_api_strict."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from peer import (
    EVERY,
    FEW,
    NUMBERS,
    REAL_NUMBERS,
    REALS,
    Named,
    arrays,
    check,
    plain,
    spread,
)
from prong import array_api as xp

SHAPES = [(), (0,), (4,), (3, 4), (2, 3, 4), (2, 0, 3)]
INEXACT = {"rtol": 1e-5, "signs": False}


def axes_of(shape):
    """None, each dim from either end, none at all, and pairs."""
    n = len(shape)
    yield None
    yield ()
    yield from range(-n, n)
    if n > 1:
        yield (0, -1)
        yield tuple(range(n))


def reductions(name, dtype, shapes=SHAPES, **options):
    for shape in shapes:
        x = spread(dtype, shape)
        for axis in axes_of(shape):
            for keepdims in (False, True):
                yield name, x, {"axis": axis, "keepdims": keepdims, **options}


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("name", ["sum", "prod"])
def test_sums_and_products(name, dtype):
    for f, x, options in reductions(name, dtype):
        check(f, x, **options, **INEXACT)
    check(name, spread(dtype), dtype=Named("float64" if dtype in REAL_NUMBERS else "complex128"))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
def test_a_given_integer_dtype_is_the_results(name, dtype):
    """Sums of integers are int64 only where no dtype is given; a narrow one wraps round."""
    x = np.asarray([100, 100, 3], dtype="int8")
    check(name, x, dtype=Named(dtype))
    check(name, x.astype(dtype), dtype=Named(dtype))
    check(name, x, axis=0, dtype=Named(dtype))
    if "cumulative" not in name:
        check(name, x, axis=(), dtype=Named(dtype))


@pytest.mark.parametrize("dtype", REAL_NUMBERS)
@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes(name, dtype):
    for f, x, options in reductions(name, dtype, [(), (4,), (3, 4), (2, 3, 4)]):
        check(f, x, **options)
    for namespace_error in (np.zeros((0,), dtype), np.zeros((0, 2), dtype)):
        with pytest.raises((ValueError, RuntimeError, IndexError)):
            getattr(xp, name)(xp.asarray(namespace_error))


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_moments(name, dtype):
    for f, x, options in reductions(name, dtype, [(), (4,), (3, 4), (2, 3, 4)]):
        check(f, x, **options, **INEXACT)
        if name != "mean" and options["axis"] != () and x.ndim:
            check(f, x, **options, correction=1, **INEXACT)
            check(f, x, **options, correction=0.5, **INEXACT)


@pytest.mark.parametrize("dtype", ("complex64", "complex128"))
def test_mean_of_complex_numbers(dtype):
    for f, x, options in reductions("mean", dtype, [(4,), (3, 4)]):
        check(f, x, **options, **INEXACT)


@pytest.mark.parametrize("dtype", EVERY)
@pytest.mark.parametrize("name", ["all", "any", "count_nonzero"])
def test_truth(name, dtype):
    for f, x, options in reductions(name, dtype):
        if not (name == "count_nonzero" and options["axis"] == ()):  # NumPy counts along every dim
            check(f, x, **options)

    @FEW
    @given(arrays(dtype))
    def drawn(x):
        check(name, x)

    drawn()


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_cumulative(name, dtype):
    for shape in [(0,), (5,), (3, 4), (2, 0, 3), (2, 3, 4)]:
        x = spread(dtype, shape)
        for axis in range(-len(shape), len(shape)):
            check(name, x, axis=axis, **INEXACT)
            check(name, x, axis=axis, include_initial=True, **INEXACT)
    check(name, spread(dtype, 5), **INEXACT)
    check(name, spread(dtype, 5), dtype=Named("complex128"), include_initial=True, **INEXACT)
    with pytest.raises(ValueError, match="axis must be given"):
        getattr(xp, name)(xp.asarray(spread(dtype)))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_diff(dtype):
    x = spread(dtype, (4, 5))
    for axis in (-1, 0, 1):
        for n in (0, 1, 2, 4):
            check("diff", x, axis=axis, n=n, **INEXACT)
    edge = spread(dtype, (4, 2), seed=1)
    check("diff", x, prepend=edge, append=edge, **INEXACT)


@pytest.mark.parametrize("dtype", REAL_NUMBERS)
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places_of_extremes(name, dtype):
    for shape in [(), (4,), (3, 4), (2, 3, 4)]:
        x = spread(dtype, shape)
        for axis in [None, *range(-len(shape), len(shape))]:
            check(name, x, axis=axis)
            check(name, x, axis=axis, keepdims=True)


@pytest.mark.parametrize("dtype", REAL_NUMBERS)
@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_order(name, dtype):
    @FEW
    @given(arrays(dtype, small=True, min_dims=1), st.booleans(), st.data())
    def drawn(x, descending, data):
        axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
        if descending and name == "argsort":  # NumPy turns the line round: equal ones too
            x = np.argsort(np.argsort(x, axis=axis), axis=axis).astype(dtype)
        check(name, x, axis=axis, descending=descending)

    drawn()
    for x in (spread(dtype, (0,)), spread(dtype, (3, 0)), spread(dtype, 1)):
        check(name, x)
    even = np.zeros(9, dtype)
    assert plain(xp.argsort(xp.asarray(even), descending=True)).tolist() == list(range(9))


@pytest.mark.parametrize("dtype", EVERY)
def test_nonzero_and_where(dtype):
    @FEW
    @given(arrays(dtype, min_dims=1, small=True), st.data())
    def drawn(x, data):
        check("nonzero", x)
        condition = data.draw(arrays("bool", shape=x.shape))
        check("where", condition, x, data.draw(arrays(dtype, shape=x.shape)))

    drawn()
    with pytest.raises(ValueError, match="nonzero"):
        xp.nonzero(xp.asarray(np.zeros((), dtype)))


@pytest.mark.parametrize("dtype", REAL_NUMBERS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(dtype, side):
    line = spread(dtype, 9)
    for wanted in (spread(dtype, 5, seed=1), spread(dtype, (2, 3), seed=2)):
        check("searchsorted", np.sort(line), wanted, side=side)
        check("searchsorted", line, wanted, side=side, sorter=np.argsort(line, kind="stable"))


@pytest.mark.parametrize("dtype", EVERY)
@pytest.mark.parametrize("indices", ("int8", "int16", "int32", "int64", "uint8"))
def test_take(dtype, indices):
    x = spread(dtype, (3, 4, 2))
    low = 0 if indices == "uint8" else -2
    for axis, size in ((0, 3), (1, 4), (-1, 2)):
        where = np.random.default_rng(1).integers(low, size, 5).astype(indices)
        check("take", x, where, axis=axis)
    check("take", x[:, 0, 0], np.array([2, 0], indices))
    if indices in ("int32", "int64"):
        places = np.random.default_rng(2).integers(-2, 2, (3, 6, 2)).astype(indices)
        check("take_along_axis", x, places, axis=1)
        check("take_along_axis", x, places[:, :4, :1], axis=-1)


@pytest.mark.parametrize("dtype", EVERY)
def test_sets(dtype):
    @FEW
    @given(arrays(dtype, small=True))
    def drawn(x):
        check("unique_values", x)
        check("unique_counts", x)
        check("unique_inverse", x)
        made = check("unique_all", x)
        assert made._fields == ("values", "indices", "inverse_indices", "counts")

    drawn()


@pytest.mark.parametrize("dtype", REALS)
def test_each_nan_is_an_element_of_its_own(dtype):
    made = xp.unique_all(xp.asarray([np.nan, 1.0, np.nan, 1.0], dtype=getattr(xp, dtype)))
    assert plain(made.counts).tolist() == [2, 1, 1]
    assert plain(made.indices).tolist() == [1, 0, 2]
    assert plain(made.inverse_indices).tolist() == [1, 0, 2, 0]
