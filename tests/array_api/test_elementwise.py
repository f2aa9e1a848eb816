"""Every elementwise function, in every dtype that the standard has it for, beside array_api_strict."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from peer import (
    BOOL,
    COMPLEX,
    CORNERS,
    EVERY,
    FEW,
    FLOATS,
    INTEGERS,
    NUMBERS,
    REAL_NUMBERS,
    REALS,
    arrays,
    check,
    same,
    spread,
    strict,
)
from prong import array_api as xp

UNARY = {
    NUMBERS: "abs isfinite isinf isnan negative positive round sign square",
    REAL_NUMBERS: "ceil floor trunc",
    FLOATS: "acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 reciprocal "
    "sin sinh sqrt tan tanh conj real",
    REALS: "signbit",
    COMPLEX: "imag",
    BOOL + INTEGERS: "bitwise_invert",
    BOOL: "logical_not",
}
BINARY = {
    NUMBERS: "add subtract multiply pow",
    EVERY: "equal not_equal",
    REAL_NUMBERS: "less less_equal greater greater_equal maximum minimum floor_divide remainder",
    FLOATS: "divide",
    REALS: "atan2 copysign hypot logaddexp nextafter",
    BOOL + INTEGERS: "bitwise_and bitwise_or bitwise_xor",
    BOOL: "logical_and logical_or logical_xor",
    INTEGERS: "bitwise_left_shift bitwise_right_shift",
}


def cases(table):
    return [
        pytest.param(name, dtype, id=f"{name}-{dtype}")
        for dtypes, names in table.items()
        for name in names.split()
        for dtype in dtypes
    ]


def test_every_function_of_the_chapter_is_tested():
    tested = {
        name for table in (UNARY, BINARY) for names in table.values() for name in names.split()
    }
    assert tested | {"clip"} == set(xp._elementwise.__all__)


def corners(dtype: str) -> np.ndarray:
    line = np.array(CORNERS)
    if np.dtype(dtype).kind == "c":
        finite = line[np.abs(line) < 1e20]
        return (finite[:, None] + 1j * finite).reshape(-1).astype(dtype)
    if np.dtype(dtype).kind == "f":
        return line.astype(dtype)
    if dtype == "bool":
        return np.array([False, True])
    limits = np.iinfo(dtype)
    return np.unique(np.array([limits.min, max(limits.min, -3), 0, 1, 2, 3, limits.max], dtype))


@pytest.mark.parametrize("name,dtype", cases(UNARY))
def test_unary(name, dtype):
    def usable_one(x):
        if dtype in COMPLEX and name == "reciprocal":
            return np.where(x == 0, np.ones_like(x), x)
        if dtype in COMPLEX and name == "log1p":  # NumPy adds 1 first, which loses small numbers
            return np.where(np.abs(x) < 0.1, np.zeros_like(x), x)
        return x

    check(name, usable_one(corners(dtype)))
    for shape in ((0, 3), (), (5, 2, 3)):
        check(name, spread(dtype, shape))

    @FEW
    @given(arrays(dtype))
    def drawn(x):
        check(name, usable_one(x))

    drawn()


def usable(name: str, x1: np.ndarray, x2: np.ndarray):
    """The operands without what the standard leaves open: integers and complex numbers over zero,
    shifts past the width, integers to a negative power."""
    if x1.dtype.kind in "iub":
        if name in ("floor_divide", "remainder"):
            x2 = np.where(x2 == 0, np.ones_like(x2), x2)
            x1 = np.where(x1 == np.iinfo(x1.dtype).min, np.zeros_like(x1), x1)
        elif "shift" in name:
            x2 = np.abs(x2.astype("int64") % (8 * x2.dtype.itemsize)).astype(x2.dtype)
        elif name == "pow":
            x2 = (np.abs(x2.astype("int64")) % 5).astype(x2.dtype)
    elif name == "divide" and x2.dtype.kind == "c":
        x2 = np.where(x2 == 0, np.ones_like(x2), x2)
    return x1, x2


@pytest.mark.parametrize("name,dtype", cases(BINARY))
def test_binary(name, dtype):
    line = corners(dtype)
    if np.dtype(dtype).kind == "c" and name == "pow":
        line = spread(dtype, 12)
    x1, x2 = np.meshgrid(line, line)
    check(name, *usable(name, x1, x2))
    for first, second in (((0, 3), (3,)), ((), (2, 2)), ((4, 1), (1, 3)), ((), ())):
        check(name, *usable(name, spread(dtype, first), spread(dtype, second, seed=1)))


@pytest.mark.parametrize("name,dtype", cases(BINARY))
def test_binary_drawn(name, dtype):
    complex_power = np.dtype(dtype).kind == "c" and name == "pow"

    @FEW
    @given(st.data())
    def drawn(data):
        x1 = data.draw(arrays(dtype, small=complex_power))
        x2 = data.draw(arrays(dtype, shape=x1.shape, small=complex_power))
        if complex_power:
            x1, x2 = x1 + 0.25, x2 / 4
        check(name, *usable(name, x1, x2))

    drawn()


# An integer with a float is left open.
PROMOTED = [(a, b) for kind in (INTEGERS, FLOATS) for a in kind for b in kind]


@pytest.mark.parametrize("one,other", PROMOTED)
@pytest.mark.parametrize("shapes", [((3,), (3,)), ((), (3,)), ((3,), ()), ((), ())])
def test_promotion(one, other, shapes):
    """A tensor without dims counts as any other; PyTorch lets it give way."""
    x1, x2 = spread(one, shapes[0]), spread(other, shapes[1], seed=1)
    for name in ("add", "multiply", "not_equal"):
        check(name, x1, x2)
    check("where", spread("bool", 3), x1, x2)
    check("concat", [x1.reshape(-1), x2.reshape(-1)])


NUMBERS_OF_KIND = {"b": [True], "i": [2], "u": [2], "f": [2, 0.5], "c": [2, 0.5, 1.5j]}


@pytest.mark.parametrize("dtype", EVERY)
@pytest.mark.parametrize("shape", [(3,), ()])
def test_python_numbers_take_the_dtype_of_the_tensor(dtype, shape):
    x = spread(dtype, shape)
    for number in NUMBERS_OF_KIND[np.dtype(dtype).kind]:
        for name in ("equal",) if dtype == "bool" else ("add", "multiply", "subtract"):
            check(name, x, number)
            check(name, number, x)
        check("where", spread("bool", shape), x, number)
    assert xp.result_type(xp.asarray(x), NUMBERS_OF_KIND[np.dtype(dtype).kind][0]) == getattr(
        xp, dtype
    )


@pytest.mark.parametrize("dtype", REAL_NUMBERS)
def test_clip(dtype):
    x = spread(dtype, (4, 5))
    for bounds in ((1, 3), (None, 2), (1, None), (None, None)):
        check("clip", x, *bounds)
    low, high = spread(dtype, (5,), seed=1), spread(dtype, (4, 1), seed=2) + np.array(8, dtype)
    for bounds in ((low, high), (low, None), (None, high), (low, 4), (1, high)):
        check("clip", x, *bounds)
    check("clip", np.array([np.inf, -np.inf, np.nan, 0]).astype("float32"), -1.0, 1.0)


OPERATORS = {
    "__add__ __sub__ __mul__": NUMBERS,
    "__truediv__": FLOATS,
    "__floordiv__ __mod__": REAL_NUMBERS,
    "__lt__ __le__ __gt__ __ge__": REAL_NUMBERS,
    "__eq__ __ne__": EVERY,
    "__and__ __or__ __xor__": BOOL + INTEGERS,
    "__lshift__ __rshift__": INTEGERS,
    "__pow__": REAL_NUMBERS,
}


@pytest.mark.parametrize(
    "name,dtype", [(n, d) for names, ds in OPERATORS.items() for n in names.split() for d in ds]
)
def test_operators(name, dtype):
    x1, x2 = usable(
        {"__floordiv__": "floor_divide", "__mod__": "remainder", "__pow__": "pow"}.get(
            name, name.strip("_").replace("lshift", "shift").replace("rshift", "shift")
        ),
        spread(dtype, (4, 5)),
        spread(dtype, (4, 5), seed=1),
    )
    with np.errstate(all="ignore"):
        sides = [(n.asarray(x1), n.asarray(x2)) for n in (xp, strict)]
        same(*(getattr(a, name)(b) for a, b in sides))
        if name[2:4] not in ("lt", "le", "gt", "ge", "eq", "ne"):
            other = f"__r{name[2:]}"
            same(*(getattr(b, other)(a) for a, b in sides))
            inplace = f"__i{name[2:]}"
            same(*(getattr(a, inplace)(b) for a, b in sides))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_unary_operators(dtype):
    x = spread(dtype, (3, 4))
    for operator in ("__neg__", "__pos__", "__abs__"):
        same(*(getattr(n.asarray(x), operator)() for n in (xp, strict)))
    if dtype in INTEGERS:
        same(*(n.asarray(x).__invert__() for n in (xp, strict)))


@pytest.mark.parametrize("name", ["cos", "sin", "tan"])
def test_angles_of_any_width(name):
    """Beyond 2^50, where prong's own functions of float32 give NaN."""
    x = np.asarray([1e8, -1e15, 1.2e15, 1e18, -1e25, 3e38, 1.0], dtype="float32")
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x.astype("float64"))
    np.testing.assert_allclose(getattr(xp, name)(xp.asarray(x)).numpy(), expected, rtol=1e-5)
