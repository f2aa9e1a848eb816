"""Calling ops from Python: overloads, keywords, out=, named results, texts of TypeErrors."""

import copy
import pickle
import threading

import prong as torch
import pytest


def same(a, b):
    return a.tolist() == b.tolist()


x = torch.arange(6.0).reshape(2, 3)


def test_ints_as_separate_arguments():
    assert (
        x.view(3, 2).shape
        == x.view((3, 2)).shape
        == x.view([3, 2]).shape
        == x.view(torch.Size([3, 2])).shape
    )
    assert (
        x.permute(1, 0).shape == (3, 2)
        and x.reshape(-1).shape == (6,)
        and torch.zeros(2, 3).shape == (2, 3)
    )
    assert (
        torch.zeros(()).shape == ()
        and torch.zeros([]).shape == ()
        and torch.ones(2, dtype=torch.int64).sum() == 2
    )
    assert x.expand(2, 2, 3).shape == (2, 2, 3) and x.repeat(2, 1).shape == (4, 3)
    assert x.view(torch.tensor(3), 2).shape == (3, 2)  # a zero-dim integer tensor is an int


def test_keyword_aliases_of_numpy():
    assert same(x.sum(axis=1), x.sum(dim=1))
    assert x.sum(1, keepdims=True).shape == (2, 1)
    assert same(torch.cat([x, x], axis=0), torch.cat((x, x), dim=0))


def test_overloads_are_chosen_by_types():
    values, indices = x.max(1)
    assert values.tolist() == [2, 5] and indices.tolist() == [2, 2]
    assert x.max().item() == 5 and torch.max(x, x + 1).tolist() == (x + 1).tolist()
    assert torch.where(x > 2, 1.0, 0.0).tolist() == [[0, 0, 0], [1, 1, 1]]
    assert x.split(2, dim=1)[1].shape == (2, 1) and x.split([1, 2], 1)[1].shape == (2, 2)
    assert (
        torch.add(1, x).tolist() == (x + 1).tolist()
        and torch.add(x, 1, alpha=2).tolist() == (x + 2).tolist()
    )


def test_named_results():
    result = x.max(dim=1)
    assert result.values is result[0] and result.indices is result[1] and len(result) == 2
    assert type(result) is torch.return_types.max
    assert repr(result).startswith(
        "torch.return_types.max(\nvalues=tensor([2., 5.]),\nindices=tensor("
    )
    again = pickle.loads(pickle.dumps(result))
    assert type(again) is type(result) and same(again.values, result.values)


def test_out():
    out = torch.empty(0)
    assert torch.add(x, 1, out=out) is out and out.shape == (2, 3)
    with pytest.warns(UserWarning, match="another shape"):
        torch.cat([x, x], out=out)
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
    got = torch.max(x, 1, out=(values, indices))
    assert got[0] is values and indices.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.add(x, 1, out=torch.empty(0, dtype=torch.int64))
    with pytest.raises(TypeError, match="out"):
        torch.add(x, 1, out=3)


def test_factory_options():
    assert torch.zeros(2, requires_grad=True).requires_grad
    assert torch.zeros(2, device="cpu", layout=torch.strided, pin_memory=False).shape == (2,)
    assert torch.zeros_like(x, memory_format=torch.preserve_format).shape == x.shape
    assert (
        x.new_zeros(2, 2).dtype is x.dtype
        and x.new_ones((1,), dtype=torch.int8).dtype is torch.int8
    )
    assert x.clone(memory_format=torch.contiguous_format).shape == x.shape
    assert x.contiguous(memory_format=torch.channels_last).shape == x.shape
    with pytest.raises(NotImplementedError, match="pinned"):
        torch.zeros(2, pin_memory=True)
    with pytest.raises(NotImplementedError, match="sparse_coo"):
        torch.zeros(2, layout=torch.sparse_coo)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: x.add("s"), r"add\(\): argument 'other' \(position 1\) must be Tensor, not str"),
        (
            lambda: torch.add(x, "s"),
            r"add\(\): argument 'other' \(position 2\) must be Tensor, not str",
        ),
        (lambda: torch.add(x), r"add\(\) missing 1 required positional arguments: \"other\""),
        (lambda: torch.neg(x, 3), r"neg\(\) takes 1 positional argument but 2 were given"),
        (lambda: x.neg(3), r"neg\(\) takes 0 positional arguments but 1 was given"),
        (lambda: torch.neg(x, wrong=1), r"neg\(\) got an unexpected keyword argument 'wrong'"),
        (lambda: torch.neg(x, input=x), r"neg\(\) got multiple values for argument 'input'"),
        (lambda: torch.neg(1), r"neg\(\): argument 'input' \(position 1\) must be Tensor, not int"),
        (
            lambda: torch.ones("a"),
            r"ones\(\): argument 'size' \(position 1\) must be tuple of ints, not str",
        ),
        (lambda: torch.ones([2, 1.5]), r"found element of type float at pos 1"),
        (
            lambda: torch.zeros(2, dtype=3),
            r"zeros\(\): argument 'dtype' must be torch.dtype, not int",
        ),
        (
            lambda: torch.stack([x, 1]),
            r"argument 'tensors' \(position 1\).*element of type int at pos 1",
        ),
        (
            lambda: torch.cat(x),
            r"argument 'tensors' \(position 1\) must be tuple of Tensors, not Tensor",
        ),
        (
            lambda: x.max("a"),
            r"max\(\) received an invalid combination of arguments - got \(str\), but exp",
        ),
        (lambda: x + "s", r"unsupported operand type"),
        (lambda: x < "s", r"'<' not supported"),
        (lambda: torch.Tensor.add(3, 4), r"needs a Tensor"),
        (lambda: x.unsqueeze(True), r"must be int, not bool"),
        (lambda: x.unsqueeze(1.0), r"must be int, not float"),
    ],
)
def test_type_errors(call, text):
    with pytest.raises(TypeError, match=text):
        call()


def test_ops_are_objects():
    assert torch.add.__name__ == "add" and "add(input: Tensor" in torch.add.__doc__
    assert (
        pickle.loads(pickle.dumps(torch.add)) is torch.add and copy.deepcopy(torch.add) is torch.add
    )
    assert torch.Tensor.add(x, 1).tolist() == (x + 1).tolist()
    bound = x.add
    assert bound(1).tolist() == (x + 1).tolist()
    assert list(map(torch.Tensor.sum, [x, x]))[0] == 15
    assert "add" in dir(torch) and "add_" in dir(x)


def test_numbers_on_either_side():
    assert (
        (1 - x)[0].tolist() == [1, 0, -1]
        and (2**x)[0].tolist() == [1, 2, 4]
        and (6 / (x + 1))[0, 2] == 2
    )
    assert (7 // torch.tensor(2)).item() == 3 and (7 % torch.tensor(4)).item() == 3
    assert (1 << torch.tensor(3)).item() == 8 and (5 & torch.tensor(3)).item() == 1
    assert (
        (~torch.tensor([True, False])).tolist() == [False, True]
        and abs(-x)[0, 1] == 1
        and (+x) is not None
    )
    assert (x @ x.t()).shape == (2, 2)
    assert (torch.tensor([1, 2]) + 1.5).dtype is torch.float32 and (
        torch.tensor([1]) * True
    ).dtype is torch.int64


def test_operators_leave_other_types_to_answer():
    class Other:
        def __radd__(self, other):
            return "radd"

        def __eq__(self, other):
            return "eq"

    assert x + Other() == "radd"
    assert (x == Other()) == "eq"


def test_many_threads_call_ops():
    def work():
        for _ in range(200):
            y = torch.ones(100, 50)
            results.append((y + 1).sum().item())

    results = []
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [10000.0] * 800


def test_promotion_queries():
    assert torch.promote_types(torch.uint8, torch.int8) is torch.int16
    assert torch.result_type(torch.ones(1, dtype=torch.int8), 1.5) is torch.float32
    assert torch.can_cast(torch.int64, torch.float32) and not torch.can_cast(
        torch.float32, torch.int64
    )


def test_a_number_that_is_too_big_is_an_overflow():
    x = torch.ones(2)
    for call in (lambda: x * 10**20, lambda: 2**63 + x, lambda: x.fill_(-(10**20))):
        with pytest.raises(OverflowError, match="too big"):
            call()


def test_several_tensors_come_as_a_tuple():
    x = torch.arange(6.0).view(3, 2)
    for parts in (x.split(2), x.chunk(2), x.unbind(0), torch.split(x, [1, 2]), x.tensor_split(2)):
        assert type(parts) is tuple
    assert len(x.chunk(3) + (x,)) == 4
    for f in (lambda x: x.chunk(3) + (x,), lambda x: x.unbind(0)):
        compiled = torch.compile(f)
        for _ in range(3):
            assert type(compiled(x)) is tuple and repr(compiled(x)) == repr(f(x))


def test_out_tensors_come_with_the_names_of_results():
    x = torch.tensor([[1.0, 5.0], [3.0, 2.0]])
    out = (torch.empty(2), torch.empty(2, dtype=torch.int64))
    best = torch.max(x, 0, out=out)
    assert best.values is out[0] and best.indices is out[1]
    assert best.values.tolist() == [3.0, 5.0] and best.indices.tolist() == [1, 0]


def test_bounds_that_a_dtype_does_not_hold_are_refused():
    x = torch.tensor([1.0, 2.0])
    for t, low, high in ((x, -3.4e39, None), (x.half(), None, 70000.0), (x.byte(), 0, 300)):
        with pytest.raises(RuntimeError, match="without overflow"):
            t.clamp(low, high)
    assert x.clamp(float("-inf"), 1.5).tolist() == [1.0, 1.5]
    assert all(v != v for v in x.clamp(float("nan"), 1e40).tolist())
    with pytest.raises(RuntimeError, match="without overflow"):
        x.clamp_min(-3.4e39)


def test_ldexp_promotes_as_other_pairs_do():
    half, whole = torch.tensor([0.5, 1.5]).half(), torch.tensor([1, 2])
    assert torch.ldexp(half, whole).dtype is torch.float16
    assert torch.ldexp(whole, half).dtype is torch.float16
    assert torch.ldexp(whole, whole).dtype is torch.float32
    assert torch.ldexp(half, whole).tolist() == [1.0, 6.0]


def test_what_is_refused_says_so_as_elsewhere():
    with pytest.raises(NotImplementedError, match="not implemented for 'Byte'"):
        torch.logcumsumexp(torch.tensor(0, dtype=torch.uint8), 0)
    with pytest.raises(NotImplementedError, match="not implemented for 'Int'"):
        torch.nn.functional.layer_norm(torch.tensor([1], dtype=torch.int32), (1,))
    with pytest.raises(RuntimeError, match="index -1 is out of bounds for dimension 0 with size 4"):
        torch.zeros(4, 3).index_add(0, torch.tensor([0, -1]), torch.ones(2, 3))
    with pytest.raises(IndexError, match="index out of range in self"):
        torch.zeros(4).index_add(0, torch.tensor([4]), torch.ones(1))
    for write in (lambda x: x[1:].copy_(x[:-1]), lambda x: x.copy_(x[0])):
        with pytest.raises(RuntimeError, match="single memory location"):
            write(torch.arange(4.0))
