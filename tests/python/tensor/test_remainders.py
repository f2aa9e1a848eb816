"""fmod, remainder and floor division of floats against NumPy and C, bit for bit, and compiled."""

import math

import numpy as np
import prong
import pytest

AWKWARD = [0.0, -0.0, 1.0, -1.5, 3.0, 1e-45, -1e-38, 3.4e38, math.inf, -math.inf, math.nan]


def pairs() -> tuple[np.ndarray, np.ndarray]:
    """Numbers of all sizes: quotients from far below one to beyond what an integer holds."""
    random = np.random.RandomState(0)
    bits = random.randint(0, 2**32, 20000, dtype=np.uint32)
    x = np.concatenate([bits.view(np.float32), np.repeat(np.float32(AWKWARD), len(AWKWARD))])
    y = np.concatenate(
        [random.permutation(bits).view(np.float32), np.tile(np.float32(AWKWARD), 11)]
    )
    near = x.copy()  # quotients next to whole numbers
    whole = random.randint(1, 1000, len(x)).astype(np.float32)
    with np.errstate(all="ignore"):
        return np.concatenate([x, near * whole]), np.concatenate([y, near])


def same(result: prong.Tensor, expected: np.ndarray) -> None:
    result = result.numpy()
    wrong = result.view(np.uint32) != expected.view(np.uint32)
    wrong &= ~(np.isnan(result) & np.isnan(expected))
    assert not wrong.any(), (result[wrong][:5], expected[wrong][:5])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_fmod_is_exact():
    x, y = pairs()
    same(prong.fmod(prong.from_numpy(x), prong.from_numpy(y)), np.fmod(x, y))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_remainder_has_the_divisors_sign():
    x, y = pairs()
    x, y = x[y != 0], y[y != 0]
    remainder = np.fmod(x, y)
    remainder = np.where((remainder != 0) & ((remainder < 0) != (y < 0)), remainder + y, remainder)
    same(prong.remainder(prong.from_numpy(x), prong.from_numpy(y)), remainder)


@pytest.mark.parametrize("shape", [(), (5,)])
@pytest.mark.parametrize("op", [prong.fmod, prong.remainder, prong.floor_divide])
def test_compiled_as_eager(op, shape):
    x = prong.full(shape, -0.98) * 3
    assert prong.equal(prong.compile(lambda t: op(t * 1, 2))(x), op(x, 2))


@pytest.mark.parametrize(
    "dtype", [prong.float32, prong.float64, prong.int16, prong.uint8, prong.bool]
)
def test_choices_keep_all_bits(dtype):
    size = prong.empty((), dtype=dtype).element_size()
    bits = np.random.RandomState(1).bytes(1001 * size)
    x = prong.frombuffer(bytearray(bits), dtype=prong.uint8)
    if dtype is prong.bool:
        x = x & 1
    x = x.view(dtype)
    y, mask = x.flip(0), prong.arange(1001) % 3 == 0
    chosen = prong.where(mask, x, y).view(prong.uint8).reshape(1001, size)
    bytes_of = [t.contiguous().view(prong.uint8).reshape(1001, size).numpy() for t in (x, y)]
    assert (chosen.numpy() == np.where(mask.numpy()[:, None], *bytes_of)).all()
