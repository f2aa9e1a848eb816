"""repr of random tensors, against PyTorch."""

import numpy as np
import prong
import pytest

torch = pytest.importorskip("torch")

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
]
OPTIONS = [
    {},
    {"precision": 2},
    {"sci_mode": True},
    {"threshold": 5, "edgeitems": 2},
    {"linewidth": 40},
    {"profile": "short"},
    {"profile": "full"},
]


def _array(random):
    rank = random.randint(0, 5)
    shape = tuple(
        random.choice([0, 1, 2, 3, 5, 8, 30], p=[0.03, 0.2, 0.2, 0.2, 0.17, 0.15, 0.05], size=rank)
    )
    values = random.standard_normal(shape) * 10.0 ** random.randint(-6, 9)
    kind = random.randint(0, 4)
    if kind == 0:
        values = np.round(values)
    if kind == 1:
        values = np.asarray(values) * (random.rand(*shape) < 0.5)
    if kind == 2:
        special = random.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], size=shape)
        values = np.where(random.rand(*shape) < 0.3, special, values)
    return np.asarray(values)


@pytest.mark.parametrize("seed", range(60))
def test_repr(seed):
    random = np.random.RandomState(seed)
    options = OPTIONS[seed % len(OPTIONS)]
    try:
        for module in (torch, prong):
            module.set_printoptions(profile="default")
            module.set_printoptions(**options)
        for _ in range(12):
            array, dtype = _array(random), DTYPES[random.randint(0, len(DTYPES))]
            if dtype not in ("float16", "bfloat16", "float32", "float64"):
                array = np.asarray(np.nan_to_num(array, nan=0, posinf=7, neginf=-7).clip(-100, 100))
            array = np.array(array)
            a = torch.from_numpy(array.copy()).to(getattr(torch, dtype))
            b = prong.from_numpy(array.copy()).to(getattr(prong, dtype))
            assert repr(b) == repr(a)
            assert str(b) == str(a)
    finally:
        for module in (torch, prong):
            module.set_printoptions(profile="default")
