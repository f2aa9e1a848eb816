"""t[index] and t[index] = value against NumPy, and what is not an index."""

import numpy as np
import prong as torch
import pytest

X = np.arange(60).reshape(3, 4, 5)
MASK = X % 3 == 0
ROWS = np.array([0, 2, 1])

INDICES = [
    0, -1, (1, 2), (1, 2, 3), slice(None), slice(1, None), slice(None, 2), slice(0, 3, 2),
    (slice(None), 1), (slice(None), slice(1, 3), slice(None, None, 2)), ..., (..., 0), (0, ...),
    (1, ..., 2), None, (None, 1), (..., None), (slice(None), None, 2), (0, None, slice(1, 3)),
    ROWS, (ROWS,), (slice(None), ROWS), (ROWS, ROWS), (ROWS, 0), (0, ROWS), (ROWS, slice(None),
    ROWS), (slice(None), ROWS, ROWS), (ROWS[:, None], ROWS[None, :]), ([0, 1],), ([0, 1], [1,
    2]), MASK, (MASK[:, 0, 0],), (slice(None), MASK[0, :, 0]), (MASK[:, :, 0],), (MASK[:, :, 0],
    1), (..., ROWS), (None, ROWS), np.array([], dtype=np.int64), np.int64(1), (np.array(1),
    slice(None)), True, False, (slice(5, 9),), (slice(-2, None), -1), range(2),
]  # fmt: skip


def as_prong(index):
    """The same index with tensors for arrays."""
    if isinstance(index, tuple):
        return tuple(map(as_prong, index))
    return torch.from_numpy(index.copy()) if isinstance(index, np.ndarray) else index


def numpy_index(index):
    return list(index) if isinstance(index, range) else index


@pytest.mark.parametrize("index", INDICES, ids=repr)
@pytest.mark.parametrize("layout", ["contiguous", "transposed"])
def test_get(index, layout):
    x = torch.from_numpy(X.copy())
    if layout == "transposed":
        x = torch.from_numpy(X.transpose(2, 1, 0).copy()).permute(2, 1, 0)
    want = X[numpy_index(index)]
    got = x[as_prong(index)]
    assert tuple(got.shape) == np.shape(want)
    np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("index", INDICES, ids=repr)
@pytest.mark.parametrize("value", ["number", "tensor", "row"])
def test_set(index, value):
    x, y = torch.from_numpy(X.copy()), X.copy()
    index, np_index = as_prong(index), numpy_index(index)
    target = y[np_index]
    if value == "number":
        x[index] = -7
        y[np_index] = -7
    else:
        shape = np.shape(target) if value == "tensor" else np.shape(target)[-1:]
        new = -1 - np.arange(int(np.prod(shape))).reshape(shape)
        x[index] = torch.from_numpy(np.ascontiguousarray(new).reshape(shape))
        y[np_index] = new
    np.testing.assert_array_equal(x.numpy(), y)


def test_basic_indexing_gives_views():
    x = torch.zeros(3, 4)
    x[1][2] = 5
    x[:, 0].fill_(1)
    assert x[1, 2] == 5 and x[:, 0].tolist() == [1, 1, 1]
    view = x[:]
    assert view is not x and view.data_ptr() == x.data_ptr()


def test_advanced_indexing_copies():
    x = torch.zeros(3)
    x[torch.tensor([0, 1])][0] = 5
    assert x.tolist() == [0, 0, 0]


def test_values_convert_and_broadcast():
    x = torch.zeros(2, 3)
    x[0] = torch.tensor([1, 2, 3])
    x[1] = torch.ones(1, 1, 3, dtype=torch.float64) * 4
    assert x.tolist() == [[1, 2, 3], [4, 4, 4]]
    x[:, 1] += 10
    assert x.tolist() == [[1, 12, 3], [4, 14, 4]]
    x[x > 10] = 0
    assert x.tolist() == [[1, 0, 3], [4, 0, 4]]
    i = torch.zeros(2, dtype=torch.int64)
    i[0] = 2.7
    i[1] = True
    assert i.tolist() == [2, 1]


@pytest.mark.parametrize(
    "index, error, text",
    [
        (3, IndexError, "out of"),
        (-4, IndexError, "out of"),
        ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
        ("a", IndexError, "only integers, slices"),
        (1.5, IndexError, "only integers, slices"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (slice(None, None, 0), ValueError, "step"),
        (torch.tensor([1.0]), IndexError, "must be long, int, byte or bool"),
        (torch.tensor([7]), IndexError, "out of bounds"),
        (torch.tensor([True, False]), IndexError, "mask"),
        (([0, 1], [0, 1, 2]), IndexError, "broadcast"),
    ],
)
def test_bad_indices(index, error, text):
    x = torch.zeros(3, 4)
    with pytest.raises(error, match=text):
        x[index]
    with pytest.raises(error, match=text):
        x[index] = 0


def test_bad_assignments():
    x = torch.zeros(3)
    with pytest.raises(TypeError, match="can't assign a str"):
        x[0] = "a"
    with pytest.raises(TypeError, match="can't assign a list"):
        x[0] = [1]
    with pytest.raises(RuntimeError, match="size|expand|shape"):
        x[:] = torch.ones(2)
    with pytest.raises(TypeError, match="delet"):
        del x[0]
    with pytest.raises(IndexError, match="0-dim"):
        torch.tensor(1)[0]
