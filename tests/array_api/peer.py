"""One call on prong.array_api and on array_api_strict, and how their results compare."""

import array_api_strict as strict
import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from prong import Tensor
from prong import array_api as xp

BOOL = ("bool",)
INTEGERS = ("int8", "int16", "int32", "int64", "uint8")
REALS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
FLOATS = REALS + COMPLEX
REAL_NUMBERS = INTEGERS + REALS
NUMBERS = INTEGERS + FLOATS
EVERY = BOOL + NUMBERS

# The same examples in each run; what they cost is bounded by their number.
FEW = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)

# Ends and corners of the number line, in every pairing.
CORNERS = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.0, -2.5, 3.0, -3.0, 1e-30, 1e30, -1e30]
CORNERS += [np.inf, -np.inf, np.nan]

_TOLERANCES = {"float32": 2e-6, "complex64": 4e-6, "float64": 4e-15, "complex128": 1e-14}


class Named(str):
    """A dtype by name: each side has its own."""


def _given(value, namespace):
    if isinstance(value, Named):
        return getattr(namespace, value)
    if isinstance(value, (np.ndarray, np.generic)):
        return namespace.asarray(np.array(value))  # a copy: neither side sees what the other writes
    if isinstance(value, (list, tuple)):
        return type(value)(_given(each, namespace) for each in value)
    return value


def find(namespace, name: str):
    for part in name.split("."):
        namespace = getattr(namespace, part)
    return namespace


def call(namespace, name: str, args, kwargs):
    given = [_given(each, namespace) for each in args]
    return find(namespace, name)(*given, **{k: _given(v, namespace) for k, v in kwargs.items()})


def dtype_name(dtype) -> str:
    return str(dtype).rpartition(".")[2]


def plain(array) -> np.ndarray:
    """Its numbers as NumPy's, whichever side's it is."""
    return array.numpy() if isinstance(array, Tensor) else np.asarray(array._array)


def same(ours, theirs, rtol: float | None = None, signs: bool = True) -> None:
    """Dtype, shape and numbers; zeros' signs too, unless they are sums'."""
    if isinstance(theirs, (list, tuple)):
        assert type(ours) is tuple or isinstance(ours, (list, tuple))
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs):
            same(one, other, rtol, signs)
        return
    assert isinstance(ours, Tensor), f"{type(ours)} is no tensor"
    expected = plain(theirs)
    # No tensor here is uint64: what would be one, a sum over uint8, is int64.
    name = "int64" if expected.dtype == np.uint64 else expected.dtype.name
    assert dtype_name(ours.dtype) == name
    assert tuple(ours.shape) == expected.shape
    alike(plain(ours), expected, _TOLERANCES.get(name, 0.0) if rtol is None else rtol, signs)


def alike(ours: np.ndarray, expected: np.ndarray, rtol: float, signs: bool) -> None:
    if np.iscomplexobj(expected):
        scale = np.abs(expected)
        with np.errstate(invalid="ignore"):
            scale = np.where(np.isfinite(scale), scale, 0.0)
        for part in ("real", "imag"):
            got, wanted = getattr(ours, part), getattr(expected, part)
            _near(got, wanted, rtol * np.maximum(scale, np.abs(np.nan_to_num(wanted))))
        return
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(ours, expected)
        return
    _near(ours, expected, rtol * np.abs(np.nan_to_num(expected)))
    if signs:
        np.testing.assert_array_equal(np.signbit(ours[ours == 0]), np.signbit(expected[ours == 0]))


def _near(got, wanted, slack) -> None:
    tiny = np.finfo(wanted.dtype).smallest_normal
    with np.errstate(invalid="ignore"):
        close = np.abs(got - wanted) <= slack + tiny
        equal = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    bad = ~(close | equal)
    assert not bad.any(), f"{got[bad][:5]} instead of {wanted[bad][:5]}, in {bad.sum()} places"


def check(name: str, *args, rtol: float | None = None, signs: bool = True, **kwargs):
    """The same call on both; gives ours. Theirs raising fails the test: it compares nothing then."""
    with np.errstate(all="ignore"):
        theirs = call(strict, name, args, kwargs)
    ours = call(xp, name, args, kwargs)
    same(ours, theirs, rtol, signs)
    return ours


def elements(dtype: str, small: bool = False):
    """Numbers of a dtype: all there are, or small whole ones, whose sums are exact."""
    kind = np.dtype(dtype)
    if dtype == "bool":
        return st.booleans()
    if small:
        low = 0 if dtype == "uint8" else -9
        whole = st.integers(low, 9)
        return st.builds(complex, whole, whole) if kind.kind == "c" else whole
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        return st.integers(int(limits.min), int(limits.max))
    width = {"float32": 32, "float64": 64, "complex64": 64, "complex128": 128}[dtype]
    if kind.kind == "f":
        return st.floats(width=width, allow_subnormal=False)
    return st.complex_numbers(width=width, allow_subnormal=False, max_magnitude=1e6)


def arrays(dtype: str, shape=None, small: bool = False, min_dims=0, max_dims=3, min_side=0):
    shapes = shape or hnp.array_shapes(
        min_dims=min_dims, max_dims=max_dims, min_side=min_side, max_side=4
    )
    return hnp.arrays(dtype, shapes, elements=elements(dtype, small))


def spread(dtype: str, shape=(3, 4), seed: int = 0) -> np.ndarray:
    """Plain numbers between -4 and 4 for what needs no corners."""
    draw = np.random.default_rng(seed)
    if dtype == "bool":
        return draw.integers(0, 2, shape).astype(bool)
    low = 0 if dtype == "uint8" else -4
    if np.dtype(dtype).kind in "iu":
        return draw.integers(low, 5, shape).astype(dtype)
    made = draw.uniform(low, 4, shape)
    if np.dtype(dtype).kind == "c":
        made = made + 1j * draw.uniform(low, 4, shape)
    return made.astype(dtype)
