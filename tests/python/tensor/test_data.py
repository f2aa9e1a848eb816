"""Tensors from Python data, NumPy, DLPack and buffers, and back."""

import array

import numpy as np
import prong as torch
import pytest


@pytest.mark.parametrize(
    "data, dtype, shape",
    [
        (1, torch.int64, ()),
        (1.5, torch.float32, ()),
        (True, torch.bool, ()),
        ([], torch.float32, (0,)),
        ([[]], torch.float32, (1, 0)),
        ([1, 2], torch.int64, (2,)),
        ([1, 2.5], torch.float32, (2,)),
        ([True, 2], torch.int64, (2,)),
        ([[1, 2], [3, 4]], torch.int64, (2, 2)),
        (
            (
                1,
                (2),
            ),
            torch.int64,
            (2,),
        ),
        ([np.float64(1), 2], torch.float32, (2,)),
        (np.float64(1.5), torch.float32, ()),
        (np.arange(3, dtype=np.int16), torch.int16, (3,)),
        ([np.arange(3), np.arange(3)], torch.int64, (2, 3)),
        ([np.ones(3), np.ones(3)], torch.float64, (2, 3)),
        ([np.int32(1), np.int32(2)], torch.int32, (2,)),
        ([np.array(1.5), 2], torch.float64, (2,)),
        ([torch.tensor(1.5), 2], torch.float32, (2,)),
        (range(3), torch.int64, (3,)),
    ],
    ids=repr,
)
def test_tensor(data, dtype, shape):
    x = torch.tensor(data)
    assert x.dtype is dtype and tuple(x.shape) == shape
    np.testing.assert_allclose(x.numpy(), np.array(torch.tensor(data).tolist()))


def test_tensor_values_and_options():
    assert torch.tensor([1, 0], dtype=torch.bool).tolist() == [True, False]
    assert torch.tensor([1.9, -1.9], dtype=torch.int32).tolist() == [1, -1]
    assert torch.tensor(2**63 - 1).item() == 2**63 - 1
    assert torch.tensor(1.0, requires_grad=True).requires_grad
    assert torch.tensor([1, 2], device="cpu").device.type == "cpu"


@pytest.mark.parametrize(
    "data, error, text",
    [
        ([[1], [1, 2]], ValueError, "expected sequence of length 1 at dim 1 \\(got 2\\)"),
        ("a", TypeError, "Could not infer dtype of str"),
        ([None], (TypeError, RuntimeError), "NoneType"),
        ([1, "a"], TypeError, "str"),
        ({}, (TypeError, RuntimeError), "dict"),
        ([[1], 2], TypeError, "not a sequence"),
        (2**64, ValueError, "Overflow"),
        ([1, -(2**70)], ValueError, "Overflow"),
    ],
    ids=repr,
)
def test_bad_data(data, error, text):
    with pytest.raises(error, match=text):
        torch.tensor(data)


def test_overflow_into_a_small_dtype():
    with pytest.raises(RuntimeError, match="overflow"):
        torch.tensor(300, dtype=torch.uint8)


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]
)
def test_numpy_shares_memory_both_ways(dtype):
    a = np.zeros((2, 3), dtype)
    x = torch.from_numpy(a)
    assert repr(x.dtype) == f"torch.{dtype}" and x.data_ptr() == a.__array_interface__["data"][0]
    x[0, 0] = 1
    assert a[0, 0] == 1
    back = x.t().numpy()
    assert back.dtype == a.dtype and back.shape == (3, 2)
    back[0, 1] = 1
    assert x[1, 0] == 1
    del x, a
    assert back[0, 1] == 1  # the memory lives on


def test_numpy_strided_and_empty():
    a = np.arange(24).reshape(4, 6)
    np.testing.assert_array_equal(torch.from_numpy(a[::2, 1::2]).numpy(), a[::2, 1::2])
    assert torch.from_numpy(np.zeros((0, 3))).shape == (0, 3)
    assert torch.from_numpy(np.array(3.0)).shape == ()
    with pytest.raises(ValueError, match="negative"):
        torch.from_numpy(a[::-1])
    with pytest.raises(TypeError, match="expected np.ndarray"):
        torch.from_numpy([1])
    with pytest.raises(TypeError, match="supported types"):
        torch.from_numpy(np.array(["a"]))
    with pytest.raises(TypeError, match="BFloat16"):
        torch.ones(1, dtype=torch.bfloat16).numpy()
    with pytest.raises(RuntimeError, match="requires grad"):
        torch.ones(1, requires_grad=True).numpy()
    assert torch.ones(1, requires_grad=True).numpy(force=True).tolist() == [1.0]


def test_read_only_arrays_warn():
    a = np.zeros(3)
    a.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        torch.from_numpy(a)


def test_numpy_functions_take_tensors():
    x = torch.arange(4.0)
    assert np.asarray(x).tolist() == [0, 1, 2, 3] and np.sum(np.array(x)) == 6
    assert np.array(x, dtype=np.int32).dtype == np.int32
    assert (np.float32(2) * x).tolist() == [0, 2, 4, 6]
    assert (x * np.float64(2)).dtype is torch.float32
    assert (x + np.int64(1)).tolist() == [1, 2, 3, 4]


def test_as_tensor_and_asarray():
    a = np.zeros(3, np.float32)
    assert torch.as_tensor(a).data_ptr() == a.__array_interface__["data"][0]
    x = torch.ones(2)
    assert torch.as_tensor(x) is x and torch.asarray(x) is x
    assert torch.as_tensor(x, dtype=torch.float64).dtype is torch.float64
    assert torch.asarray([1, 2]).tolist() == [1, 2]
    assert torch.asarray(x, copy=True) is not x
    with pytest.raises(ValueError):
        torch.asarray([1, 2], copy=False)


def test_dlpack_both_ways():
    x = torch.arange(6.0).reshape(2, 3).t()
    a = np.from_dlpack(x)
    assert a.shape == (3, 2) and a.strides == (4, 12)
    y = torch.from_dlpack(np.arange(4))
    assert y.tolist() == [0, 1, 2, 3] and y.dtype is torch.int64
    z = torch.from_dlpack(x)
    assert z.data_ptr() == x.data_ptr() and z.stride() == x.stride()
    capsule = torch.utils.dlpack.to_dlpack(x)
    assert torch.from_dlpack(capsule).data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="consumed only once"):
        torch.from_dlpack(capsule)
    assert x.__dlpack_device__() == (1, 0)


@pytest.mark.needs_torch
def test_dlpack_with_pytorch():
    pytorch = pytest.importorskip("torch")
    x = torch.arange(6, dtype=torch.bfloat16)
    assert pytorch.from_dlpack(x).dtype is pytorch.bfloat16
    assert torch.from_dlpack(pytorch.ones(2, 2).t()).tolist() == [[1, 1], [1, 1]]


def test_frombuffer():
    data = bytearray(array.array("f", [1, 2, 3, 4]).tobytes())
    x = torch.frombuffer(data, dtype=torch.float32)
    x[0] = 9
    assert torch.frombuffer(data, dtype=torch.float32, count=2, offset=0).tolist() == [9, 2]
    assert torch.frombuffer(data, dtype=torch.float32, offset=8).tolist() == [3, 4]
    with pytest.raises(ValueError, match="multiple"):
        torch.frombuffer(data, dtype=torch.float32, offset=3)
    with pytest.raises(ValueError):
        torch.frombuffer(b"", dtype=torch.uint8)


def test_tolist():
    assert torch.tensor([[1.5, 2], [3, 4]]).t().tolist() == [[1.5, 3], [2, 4]]
    assert torch.tensor(3).tolist() == 3 and torch.ones(0, 2).tolist() == []
    assert torch.tensor([True]).tolist() == [True]
