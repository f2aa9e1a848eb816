"""Creation, dtypes, rearranging, indexing and the tensor's own protocol beside array_api_strict."""

import inspect

import array_api_compat
import numpy as np
import prong
import pytest
from hypothesis import given
from hypothesis import strategies as st
from peer import (
    EVERY,
    FEW,
    FLOATS,
    INTEGERS,
    NUMBERS,
    REAL_NUMBERS,
    REALS,
    Named,
    arrays,
    call,
    check,
    dtype_name,
    find,
    same,
    spread,
    strict,
)
from prong import array_api as xp
from prong.array_api.data_types import KINDS


def test_the_namespace_of_a_tensor():
    x = prong.ones(2)
    assert x.__array_namespace__() is xp
    assert x.__array_namespace__(api_version="2023.12") is xp
    assert array_api_compat.array_namespace(x) is xp
    assert array_api_compat.array_namespace(x, prong.zeros(3), 1.0) is xp
    assert array_api_compat.is_array_api_obj(x)
    assert array_api_compat.device(x) == xp.__array_namespace_info__().default_device()
    assert array_api_compat.to_device(x, "cpu") is not None
    assert array_api_compat.size(x) == 2
    with pytest.raises(ValueError, match="2019.12"):
        x.__array_namespace__(api_version="2019.12")


def functions_of(namespace, prefix=""):
    for name in namespace.__all__:
        if callable(getattr(namespace, name)) and not name.startswith("__"):
            if not isinstance(getattr(namespace, name), (type, prong.dtype)):
                yield prefix + name


# What array_api_strict has that isn't the standard's, of this edition.
NOT_HERE = {
    "get_array_api_strict_flags",
    "set_array_api_strict_flags",
    "reset_array_api_strict_flags",
}
NOT_HERE |= {"ArrayAPIStrictFlags", "Device", "uint16", "uint32", "uint64", "broadcast_shapes"}
NOT_HERE |= {"isin", "linalg.eig", "linalg.eigvals"}  # of 2025.12


def test_every_name_of_the_standard_is_here():
    names = {n for n in dir(strict) if not n.startswith("_")} & set(strict.__all__)
    names |= {f"linalg.{n}" for n in strict.linalg.__all__} | {
        f"fft.{n}" for n in strict.fft.__all__
    }
    missing = {name for name in names - NOT_HERE if not has(xp, name)}
    assert not missing


def has(namespace, name: str) -> bool:
    try:
        find(namespace, name)
    except AttributeError:
        return False
    return True


FUNCTIONS = {*functions_of(xp), *functions_of(xp.linalg, "linalg."), *functions_of(xp.fft, "fft.")}


# array_api_strict lets expand_dims' axis be positional, the standard does not.
@pytest.mark.parametrize("name", sorted(FUNCTIONS - {"expand_dims"}))
def test_signatures(name):
    """Names, kinds and defaults of the parameters."""

    def shape(function):
        found = inspect.signature(function).parameters.values()
        return [(p.name, p.kind, None if p.default is strict.float64 else p.default) for p in found]

    ours, theirs = shape(find(xp, name)), shape(find(strict, name))
    unnamed = inspect.Parameter.POSITIONAL_ONLY
    plain = [
        [("" if kind is unnamed else n, kind) for n, kind, _ in side] for side in (ours, theirs)
    ]
    assert plain[0] == plain[1]


def test_the_version_and_what_it_can_do():
    info = xp.__array_namespace_info__()
    assert xp.__array_api_version__ == "2024.12"
    assert set(info.capabilities()) == {
        "boolean indexing",
        "data-dependent shapes",
        "max dimensions",
    }
    assert info.default_device() in info.devices()
    assert info.dtypes(kind="integral") == {n: getattr(prong, n) for n in INTEGERS}
    assert set(info.dtypes()) == set(EVERY)
    assert set(info.dtypes(kind=("bool", "real floating"))) == {"bool", *REALS}
    defaults = {kind: dtype_name(dtype) for kind, dtype in info.default_dtypes().items()}
    assert defaults == {
        "real floating": "float32",
        "complex floating": "complex64",
        "integral": "int64",
        "indexing": "int64",
    }


# ── dtypes ──


@pytest.mark.parametrize("one", EVERY)
def test_dtypes(one):
    for other in EVERY:
        try:
            theirs = dtype_name(strict.result_type(getattr(strict, one), getattr(strict, other)))
        except TypeError:
            continue  # not promoted together
        pair = getattr(xp, one), getattr(xp, other)
        assert dtype_name(xp.result_type(*pair)) == theirs
        assert xp.can_cast(*pair) == strict.can_cast(getattr(strict, one), getattr(strict, other))
        assert xp.can_cast(xp.zeros(1, dtype=pair[0]), pair[1]) == xp.can_cast(*pair)
    for kind in [*KINDS, ("integral", "bool")]:
        assert xp.isdtype(getattr(xp, one), kind) == strict.isdtype(getattr(strict, one), kind)
    assert xp.isdtype(getattr(xp, one), getattr(xp, one))
    with pytest.raises(ValueError, match="no kind"):
        xp.isdtype(getattr(xp, one), "number")


def test_limits():
    for name in FLOATS:
        ours, theirs = xp.finfo(getattr(xp, name)), strict.finfo(getattr(strict, name))
        for field in ("bits", "eps", "max", "min", "smallest_normal"):
            assert getattr(ours, field) == getattr(theirs, field), (name, field)
            assert type(getattr(ours, field)) is (int if field == "bits" else float)
        assert dtype_name(ours.dtype) == dtype_name(theirs.dtype)
    for name in INTEGERS:
        ours, theirs = xp.iinfo(getattr(xp, name)), strict.iinfo(getattr(strict, name))
        assert (ours.bits, ours.max, ours.min) == (theirs.bits, theirs.max, theirs.min)
        assert ours.dtype == getattr(xp, name)
    assert xp.finfo(xp.ones(2)) == xp.finfo(xp.float32)


@pytest.mark.parametrize("one", EVERY)
@pytest.mark.parametrize("other", EVERY)
def test_astype(one, other):
    x = np.abs(spread(one)).astype(one) if one in REAL_NUMBERS else spread(one)
    if one.startswith("complex") and not other.startswith("complex"):
        if other != "bool":
            with pytest.raises(TypeError, match="real"):
                xp.astype(xp.asarray(x), getattr(xp, other))
        return
    check("astype", x, Named(other))
    tensor = xp.asarray(x)
    same_memory = xp.astype(tensor, getattr(xp, other), copy=False) is tensor
    assert same_memory == (one == other)
    assert xp.astype(tensor, getattr(xp, other)) is not tensor


# ── creation ──

SIZES = [(), (0,), (3,), 4, (2, 3), (2, 0, 3)]


@pytest.mark.parametrize("dtype", EVERY)
def test_filled(dtype):
    for shape in SIZES:
        for name in ("zeros", "ones"):
            check(name, shape, dtype=Named(dtype))
        check("full", shape, 1, dtype=Named(dtype)) if dtype != "bool" else None
        assert tuple(xp.empty(shape, dtype=getattr(xp, dtype)).shape) == tuple(
            np.empty(shape).shape
        )
    x = spread(dtype)
    for name in ("zeros_like", "ones_like"):
        check(name, x)
        check(name, x, dtype=Named("float64"))
    check("full_like", x, True if dtype == "bool" else 3)
    assert xp.empty_like(xp.asarray(x)).dtype == getattr(xp, dtype)
    for value in (True, 2, 0.5, 1j):
        made = xp.full((2,), value)
        kind = {bool: "bool", int: "int64", float: "float32", complex: "complex64"}[type(value)]
        assert dtype_name(made.dtype) == kind


@pytest.mark.parametrize("dtype", NUMBERS)
def test_eye_and_triangles(dtype):
    for rows, columns in ((3, None), (2, 4), (4, 2), (0, 3)):
        for k in (-5, -1, 0, 2, 5):
            check("eye", rows, columns, k=k, dtype=Named(dtype))
    for k in (-2, -1, 0, 1, 3):
        check("tril", spread(dtype, (2, 3, 4)), k=k)
        check("triu", spread(dtype, (2, 3, 4)), k=k)


@pytest.mark.parametrize("dtype", REAL_NUMBERS)
def test_ranges(dtype):
    for given_ in ((5,), (2, 7), (2, 9, 3), (9, 2, -2), (5, 2), (2, 5, -1), (0,), (3, 3)):
        if dtype != "uint8" or min(given_) >= 0:
            check("arange", *given_, dtype=Named(dtype))
    if dtype in REALS:
        for endpoint in (True, False):
            for num in (0, 1, 2, 7):
                options = {"dtype": Named(dtype), "endpoint": endpoint}
                check("linspace", -1.0, 2.5, num, rtol=1e-6, **options)
                check("linspace", 3, 3, num, rtol=1e-6, **options)
        check("arange", 0.0, 1.0, 0.25, dtype=Named(dtype))
    for dtype in ("complex64", "complex128"):
        for endpoint in (True, False):
            given_ = {"dtype": Named(dtype), "endpoint": endpoint, "rtol": 1e-6, "signs": False}
            check("linspace", 1.0, 2 - 3j, 4, **given_)
    assert dtype_name(xp.linspace(0, 1j, 3).dtype) == "complex64"
    assert dtype_name(xp.arange(3).dtype) == "int64"
    assert dtype_name(xp.arange(3.0).dtype) == dtype_name(xp.arange(5.0, 3).dtype) == "float32"


@pytest.mark.parametrize("dtype", EVERY)
def test_meshgrid(dtype):
    lines = [spread(dtype, n, seed=n) for n in (2, 3, 4)]
    for indexing in ("xy", "ij"):
        for n in (1, 2, 3):
            check("meshgrid", *lines[:n], indexing=indexing)


def test_asarray():
    for given_ in (
        True,
        3,
        2.5,
        1j,
        [1, 2],
        [[1.0, 2], [3, 4]],
        (True, False),
        [],
        [[]],
        [1, 2.5j],
    ):
        made, theirs = xp.asarray(given_), strict.asarray(given_)
        names = {"float64": "float32", "complex128": "complex64"}
        assert dtype_name(made.dtype) == names.get(
            dtype_name(theirs.dtype), dtype_name(theirs.dtype)
        )
        assert tuple(made.shape) == theirs.shape
    x = xp.asarray([1.0, 2.0])
    assert xp.asarray(x) is x and xp.asarray(x, copy=False) is x
    copied = xp.asarray(x, copy=True)
    copied[0] = 5.0
    assert float(x[0]) == 1.0
    with pytest.raises(ValueError, match="copy"):
        xp.asarray(x, dtype=xp.float64, copy=False)
    stacked = xp.asarray([xp.asarray(1.0), xp.asarray(2.0)])
    assert stacked.tolist() == [1.0, 2.0]
    array = np.arange(3.0)
    xp.from_dlpack(array)[0] = 7.0
    assert array[0] == 7.0
    assert np.from_dlpack(x).tolist() == [1.0, 2.0]
    assert x.__dlpack_device__() == (1, 0)


# ── rearranging ──


@pytest.mark.parametrize("dtype", EVERY)
def test_rearranging(dtype):
    x, y = spread(dtype, (2, 3, 4)), spread(dtype, (2, 3, 4), seed=1)
    for axis in (0, 1, -1):
        check("concat", [x, y, x], axis=axis)
        check("flip", x, axis=axis)
        check("unstack", x, axis=axis)
        check("roll", x, 2, axis=axis)
        check("repeat", x, 2, axis=axis)
    for axis in range(-4, 4):
        check("expand_dims", x, axis=axis)
        check("stack", [x, y], axis=axis)
    check("concat", [x, y[0]], axis=None)
    check("flip", x)
    check("flip", x, axis=(0, -1))
    check("roll", x, 5)
    check("roll", x, (1, -2), axis=(0, 2))
    check("repeat", x, 3)
    for counts in INTEGERS:
        check("repeat", x, np.array([1, 0, 2], counts), axis=1)
    check("permute_dims", x, (2, 0, 1))
    check("moveaxis", x, 0, -1)
    check("moveaxis", x, (0, 1), (-1, 0))
    check("broadcast_to", x[0], (5, 3, 4))
    check("broadcast_arrays", x, y[0], y[0, 0])
    check("tile", x, (2,))
    check("tile", x[0], (2, 1, 3))
    check("matrix_transpose", x)
    for shape in ((24,), (4, -1), (2, 3, 4), (1, 24), -1):
        if shape != -1:
            check("reshape", x, shape)
            check("reshape", x, shape, copy=True)
    check("squeeze", x[:, :1], 1)
    check("squeeze", x[:1, :1], (0, -2))
    with pytest.raises(ValueError, match="size 3"):
        xp.squeeze(xp.asarray(x), 1)
    with pytest.raises(ValueError, match="copy=False"):
        xp.reshape(xp.asarray(x).mT, (24,), copy=False)


@pytest.mark.parametrize("dtype", ("bool", "int64", "float32", "complex64"))
def test_indexing(dtype):
    @FEW
    @given(arrays(dtype, min_dims=1, min_side=1), st.data())
    def drawn(x, data):
        dims = data.draw(st.integers(0, x.ndim))
        key = [one_index(data, size) for size in x.shape[:dims]]
        if data.draw(st.booleans()):
            key.insert(data.draw(st.integers(0, len(key))), None)
        key = (*key, ...) if dims < x.ndim else tuple(key)
        ours, theirs = xp.asarray(x.copy()), strict.asarray(x.copy())
        same(ours[key], theirs[key])
        if None not in key:
            value = True if dtype == "bool" else 3
            ours[key], theirs[key] = value, value
            same(ours, theirs)

    drawn()
    x = spread(dtype, (3, 4))
    mask = spread("bool", (3, 4))
    ours, theirs = xp.asarray(x), strict.asarray(x)
    same(ours[xp.asarray(mask)], theirs[strict.asarray(mask)])
    rows = np.array([[0, -1], [2, 1]])
    same(
        ours[xp.asarray(rows), xp.asarray(rows)], theirs[strict.asarray(rows), strict.asarray(rows)]
    )


def one_index(data, size: int):
    if data.draw(st.booleans()):
        return data.draw(st.integers(-size, size - 1))
    bound = st.one_of(st.none(), st.integers(0, size))
    return slice(data.draw(bound), data.draw(bound), data.draw(st.sampled_from([None, 1, 2])))


# ── the tensor's own ──


def test_attributes_and_conversions():
    x = xp.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert x.ndim == 2 and isinstance(x.shape, tuple) and x.shape == (2, 3)
    assert tuple(x.T.shape) == tuple(x.mT.shape) == (3, 2)
    assert x.to_device(x.device) is x and isinstance(hash(x.device), int)
    with pytest.raises(ValueError, match="streams"):
        x.to_device("cpu", stream=1)
    assert float(xp.asarray(2.5)) == 2.5 and int(xp.asarray(3)) == 3 and bool(xp.asarray(True))
    assert complex(xp.asarray(1 + 2j)) == 1 + 2j and [7, 8][xp.asarray(1)] == 8
    for wrong in (lambda: float(x), lambda: bool(x), lambda: [7, 8][xp.asarray(1.0)]):
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            wrong()


def test_the_matrix_operator():
    a, b = spread("float64", (2, 3)), spread("float64", (3, 4))
    sides = [(n.asarray(a), n.asarray(b)) for n in (xp, strict)]
    same(*(one @ other for one, other in sides), rtol=1e-12)
    same(*(other.__rmatmul__(one) for one, other in sides), rtol=1e-12)


def test_a_call_on_both_is_compared():
    with pytest.raises(AssertionError):
        same(call(xp, "asarray", [1.0], {}), call(strict, "asarray", [2.0], {}))
    with pytest.raises(AssertionError):
        same(xp.asarray([1.0], dtype=xp.float64), strict.asarray([1.0], dtype=strict.float32))
    with pytest.raises(AssertionError):
        same(xp.asarray([-0.0], dtype=xp.float64), strict.asarray([0.0]))
