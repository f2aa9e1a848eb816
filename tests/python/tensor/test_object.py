"""Tensor as a Python object: identity, protocols, attributes, copies, pickles."""

import copy
import gc
import pickle
import weakref

import prong as torch
import pytest


def test_one_tensor_is_one_object():
    x = torch.ones(3)
    assert x.add_(1) is x
    assert x.contiguous() is x
    assert x.to(torch.float32) is x and x.float() is x and x.cpu() is x
    assert x.requires_grad_(False) is x


def test_iadd_keeps_the_object():
    x = torch.ones(3)
    before = x
    x += 1
    x *= 2
    assert x is before and x.tolist() == [4.0, 4.0, 4.0]


def test_hash_is_identity_and_eq_is_elementwise():
    x, y = torch.ones(2), torch.ones(2)
    assert len({x, y, x}) == 2
    assert (x == y).tolist() == [True, True]
    assert (x != None) is True and (x == None) is False  # noqa: E711


def test_weakrefs_and_dict():
    x = torch.ones(2)
    x.note = "mine"
    ref = weakref.ref(x)
    assert ref() is x and x.__dict__ == {"note": "mine"}
    del x
    gc.collect()
    assert ref() is None


def test_subclass():
    class Mine(torch.Tensor):
        @property
        def twice(self):
            return self * 2

    m = torch.ones(2).as_subclass(Mine)
    assert isinstance(m, Mine) and isinstance(m, torch.Tensor)
    assert m.twice.tolist() == [2.0, 2.0] and type(m.twice) is torch.Tensor
    assert type(pickle.loads(pickle.dumps(torch.ones(2)))) is torch.Tensor
    made = torch.Tensor._make_subclass(Mine, torch.ones(2), True)
    assert type(made) is Mine and made.requires_grad


def test_attributes():
    x = torch.zeros(2, 3, dtype=torch.float64)
    assert (
        x.shape == (2, 3)
        and isinstance(x.shape, torch.Size)
        and repr(x.shape) == "torch.Size([2, 3])"
    )
    assert x.size() == x.shape and x.size(-1) == 3 and x.size(dim=0) == 2
    assert (x.dim(), x.ndim, x.numel(), x.nelement(), len(x)) == (2, 2, 6, 6, 2)
    assert (x.element_size(), x.itemsize, x.nbytes) == (8, 8, 48)
    assert x.stride() == (3, 1) and x.stride(0) == 3 and x.t().stride() == (1, 3)
    assert (
        x.dtype is torch.float64 and x.device == torch.device("cpu") and x.layout is torch.strided
    )
    assert x.is_leaf and not x.requires_grad and x.grad is None and x.grad_fn is None
    assert not x.is_cuda and x.is_cpu and not x.is_sparse
    assert x.is_contiguous() and not x.t().is_contiguous()
    assert x[1].storage_offset() == 3
    assert x[1].data_ptr() == x.data_ptr() + 24


def test_size_is_a_tuple_that_stays_a_size():
    s = torch.Size([2, 3])
    assert isinstance(s, tuple) and s.numel() == 6 and hash(s) == hash((2, 3))
    for made in (s + (4,), s[1:], s * 2):
        assert isinstance(made, torch.Size)
    assert (1,) + s == (1, 2, 3)
    assert pickle.loads(pickle.dumps(s)) == s and copy.deepcopy(s) == s
    with pytest.raises(TypeError):
        torch.Size(["a"])


def test_version_counts_writes_through_any_view():
    x = torch.zeros(4)
    view = x[:2]
    before = x._version
    view.add_(1)
    assert x._version > before and view._version == x._version


def test_iteration_contains_reversed_format():
    x = torch.tensor([[1, 2], [3, 4]])
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    assert 3 in x and 7 not in x and torch.tensor(4) in x
    assert reversed(x).tolist() == [[3, 4], [1, 2]]
    assert f"{torch.tensor(1.5):.2f}" == "1.50" and f"{x[0, 0]:03d}" == "001"
    with pytest.raises(TypeError, match="0-d"):
        iter(torch.tensor(1))
    with pytest.raises(TypeError, match="0-d"):
        len(torch.tensor(1))


def test_numbers_from_tensors():
    assert (
        float(torch.tensor(2.5)) == 2.5
        and int(torch.tensor(2.5)) == 2
        and bool(torch.tensor([0.0])) is False
    )
    assert [10, 20, 30][torch.tensor(1)] == 20 and range(5)[torch.tensor(-1)] == 4
    assert torch.tensor([3]).item() == 3 and type(torch.tensor(True).item()) is bool
    with pytest.raises(RuntimeError, match="more than one value is ambiguous"):
        bool(torch.ones(2))
    with pytest.raises(RuntimeError, match="no values is ambiguous"):
        bool(torch.ones(0))
    for convert in (int, float):
        with pytest.raises(ValueError, match="only one element tensors"):
            convert(torch.ones(2))
    with pytest.raises(TypeError, match="converted to an index"):
        [1, 2][torch.tensor(1.0)]
    with pytest.raises(
        RuntimeError, match="a Tensor with 2 elements cannot be converted to Scalar"
    ):
        torch.ones(2).item()


def test_data_swaps_memory_under_the_object():
    x = torch.zeros(2)
    alias = x.data
    alias[0] = 5
    assert x.tolist() == [5.0, 0.0]
    x.data = torch.ones(3, dtype=torch.int64)
    assert x.shape == (3,) and x.dtype is torch.int64


def test_requires_grad():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    assert y.requires_grad and not y.is_leaf and "MulBackward" in repr(y)
    assert repr(x) == "tensor([1., 1.], requires_grad=True)"
    assert not x.detach().requires_grad and x.detach().data_ptr() == x.data_ptr()
    with torch.no_grad():
        assert not (x * 2).requires_grad
    with pytest.raises(RuntimeError, match="leaf"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="leaf"):
        x[0] = 1
    with pytest.raises(RuntimeError, match="floating point"):
        torch.ones(2, dtype=torch.int64).requires_grad_()
    with pytest.raises(RuntimeError, match="leaf"):
        y.requires_grad = False


def test_grad_attribute():
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.full((2,), 3.0)
    assert x.grad.tolist() == [3.0, 3.0]
    x.grad = None
    assert x.grad is None
    with pytest.raises(TypeError):
        x.grad = 3
    with pytest.raises(RuntimeError, match="size"):
        x.grad = torch.ones(3)


def test_deepcopy_and_pickle_keep_sharing():
    base = torch.arange(6.0).reshape(2, 3)
    pair = {"base": base, "view": base.t(), "row": base[1]}
    for made in (copy.deepcopy(pair), pickle.loads(pickle.dumps(pair))):
        made["base"][1, 0] = 99
        assert made["view"][0, 1] == 99 and made["row"][0] == 99 and made["view"].stride() == (1, 3)
    assert base[1, 0] == 3
    assert copy.copy(base).data_ptr() == base.data_ptr()


@pytest.mark.parametrize(
    "dtype",
    [
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
    ],
)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_of_each_dtype(dtype, protocol):
    x = torch.tensor([0, 1, 1]).to(getattr(torch, dtype))
    y = pickle.loads(pickle.dumps(x, protocol))
    assert y.dtype is x.dtype and y.tolist() == x.tolist()


def test_pickle_keeps_requires_grad_and_attributes():
    x = torch.ones(2, requires_grad=True)
    x.note = [1]
    y = pickle.loads(pickle.dumps(x))
    assert y.requires_grad and y.note == [1]
    assert copy.deepcopy(x).note is not x.note
    with pytest.raises(RuntimeError, match="leaves"):
        copy.deepcopy(x * 2)


def test_constants_are_singletons():
    for constant in (torch.float32, torch.strided, torch.contiguous_format):
        assert copy.copy(constant) is constant and pickle.loads(pickle.dumps(constant)) is constant
    assert (
        torch.float is torch.float32
        and torch.long is torch.int64
        and repr(torch.half) == "torch.float16"
    )
    assert (
        torch.bfloat16.is_floating_point and torch.int8.itemsize == 1 and not torch.uint8.is_signed
    )


def test_device():
    d = torch.device("cuda", 1)
    assert (d.type, d.index, str(d)) == ("cuda", 1, "cuda:1") and d == torch.device("cuda:1")
    assert repr(torch.device("cpu")) == "device(type='cpu')" and hash(d) == hash(
        torch.device("cuda:1")
    )
    assert pickle.loads(pickle.dumps(d)) == d
    with pytest.raises(RuntimeError, match="Expected one of cpu"):
        torch.device("toaster")
    with pytest.raises(AssertionError, match="CUDA"):
        torch.ones(2, device="cuda")
    with pytest.raises(AssertionError, match="CUDA"):
        torch.ones(2).cuda()
    assert torch.ones(2, device=torch.device("cpu")).to("cpu").device.type == "cpu"


def test_limits():
    assert torch.finfo(torch.float32).eps == 2**-23 and torch.finfo().dtype == "float32"
    assert torch.finfo(torch.float16).max == 65504 and torch.finfo(torch.bfloat16).bits == 16
    assert (torch.iinfo(torch.int8).min, torch.iinfo(torch.uint8).max) == (-128, 255)
    with pytest.raises(TypeError, match="iinfo"):
        torch.finfo(torch.int32)


def test_typed_constructors():
    assert torch.LongTensor([1, 2]).dtype is torch.int64 and torch.FloatTensor(2, 3).shape == (2, 3)
    assert isinstance(torch.ones(1), torch.FloatTensor) and not isinstance(
        torch.ones(1), torch.LongTensor
    )
    assert torch.Tensor([1, 2]).tolist() == [1.0, 2.0] and torch.Tensor(2, 3).shape == (2, 3)
    assert torch.Tensor(torch.Size([4])).shape == (4,) and torch.Tensor().shape == (0,)
    assert (
        torch.ones(1).type() == "torch.FloatTensor"
        and torch.ones(1).type(torch.int64).dtype is torch.int64
    )
    assert torch.ones(1).type("torch.DoubleTensor").dtype is torch.float64


def test_conversions():
    x = torch.tensor([1.5, -2.5])
    assert (
        x.to(torch.int64).tolist() == [1, -2]
        and x.long().dtype is torch.int64
        and x.half().dtype is torch.float16
    )
    assert (
        x.to("cpu", torch.float64).dtype is torch.float64
        and x.to(torch.ones(1, dtype=torch.int8)).dtype is torch.int8
    )
    assert x.to(dtype=torch.float64, non_blocking=True).dtype is torch.float64
    assert x.to(torch.float32, copy=True) is not x
    assert x.type_as(torch.ones(1).double()).dtype is torch.float64
    assert x.double().to(x).dtype is torch.float32
    with pytest.raises(TypeError, match="unexpected keyword"):
        x.to("cpu", wrong=1)
    with pytest.raises(TypeError):
        x.to(3.5)


def test_later_and_missing_names():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'frobnicate'$"):
        x.frobnicate  # noqa: B018
    with pytest.raises(AttributeError, match="prong has no torch.segment_reduce yet"):
        torch.segment_reduce  # noqa: B018
    with pytest.raises(ImportError, match="prong has no torch.segment_reduce yet"):
        from prong import segment_reduce  # noqa: F401
    assert not hasattr(torch, "frobnicate")
