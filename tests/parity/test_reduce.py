"""Reductions, orders and counts against PyTorch: dtypes, dims, layouts, NaN, empty tensors, messages."""

import prong
import pytest
import torch
from test_pointwise import numbers, ours, theirs

ALL = [
    "sum",
    "mean",
    "prod",
    "max",
    "min",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "any",
    "all",
    "var",
    "std",
    "norm",
    "median",
    "nansum",
    "count_nonzero",
    "unique",
    "msort",
]
BY_DIM = [
    "sum",
    "mean",
    "prod",
    "max",
    "min",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "any",
    "all",
    "var",
    "std",
    "logsumexp",
    "softmax",
    "log_softmax",
    "cumsum",
    "cumprod",
    "cummax",
    "cummin",
    "median",
    "mode",
    "nanmedian",
    "sort",
    "argsort",
    "count_nonzero",
]
SHAPES = [(), (1,), (5,), (3, 4), (2, 3, 4), (70, 3), (3, 130), (2, 150, 3), (1, 5, 1)]


def compare(name, want, got):
    if isinstance(want, tuple):
        assert len(want) == len(got)
        for w, g in zip(want, got):
            compare(name, w, g)
        return
    back = theirs(got)
    assert back.dtype == want.dtype and back.shape == want.shape, (
        name,
        back.dtype,
        want.dtype,
        back.shape,
        want.shape,
    )
    tolerance = {
        torch.float16: 2e-3,
        torch.bfloat16: 2e-2,
        torch.float32: 2e-6,
        torch.float64: 1e-13,
    }.get(want.dtype, 0)
    torch.testing.assert_close(back, want, rtol=tolerance * 4, atol=tolerance * 10, equal_nan=True)


def check(name, *args, **kwargs):
    """Both run name(*args): same result, or errors of the same type and first line."""
    try:
        want = getattr(torch, name)(*args, **kwargs)
    except Exception as error:
        want = error
    mine = [ours(a) if isinstance(a, torch.Tensor) else a for a in args]
    kwargs = {k: ours(v) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}
    if isinstance(want, Exception):
        with pytest.raises(Exception) as got:
            getattr(prong, name)(*mine, **kwargs)
        return want, got.value
    compare(name, want, getattr(prong, name)(*mine, **kwargs))
    return None


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
)
@pytest.mark.parametrize("name", ALL)
def test_of_all(name, dtype):
    for shape in SHAPES[:6]:
        x = numbers(dtype, 1, shape)
        if name in ("max", "min", "argmax", "argmin") and dtype not in (
            "float32",
            "float64",
            "int64",
        ):
            x = x.float().to(x.dtype)
        if name == "msort" and not shape:
            continue
        check(name, x)


def check_mode(x, dim):
    """Which of several places is given is open, but the value stands there."""
    try:
        want = torch.mode(x, dim=dim).values
    except Exception as error:
        with pytest.raises(type(error)):
            prong.mode(ours(x), dim=dim)
        return
    got = prong.mode(ours(x), dim=dim)
    compare("mode", want, got.values)
    if x.dim():
        there = theirs(got.indices).unsqueeze(dim)
        assert torch.equal(x.gather(dim, there).squeeze(dim), want)


@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("name", BY_DIM)
def test_by_dim(name, dtype):
    for shape in SHAPES:
        for dim in range(-len(shape), max(1, len(shape))):
            x = numbers(dtype, 2, shape)
            if dtype in ("float32", "float64") and name in (
                "median",
                "mode",
                "sort",
                "argsort",
                "argmax",
                "argmin",
                "max",
                "min",
                "nanmedian",
            ):
                x = x + torch.arange(x.numel()).reshape(shape).to(x.dtype) * 0.01  # no ties
            elif name in ("median", "mode", "nanmedian") or (
                name in ("sort", "argsort", "max", "min", "argmax", "argmin") and dtype != "bool"
            ):
                x = torch.randperm(x.numel()).reshape(shape).to(x.dtype)
            if (name, dtype) == ("mode", "bool"):
                check_mode(x, dim)
                continue
            kwargs = {"stable": True} if name in ("sort", "argsort") else {}
            check(name, x, dim=dim, **kwargs)
            if name not in (
                "softmax",
                "log_softmax",
                "cumsum",
                "cumprod",
                "cummax",
                "cummin",
                "sort",
                "argsort",
                "count_nonzero",
            ):
                check(name, x, dim=dim, keepdim=True)


@pytest.mark.parametrize(
    "name", ["sum", "mean", "amax", "var", "std", "logsumexp", "any", "all", "norm", "nansum"]
)
def test_lists_of_dims_and_views(name):
    x = torch.randn(4, 5, 6, 7)
    for t in (x, x.permute(3, 1, 0, 2), x[:, ::2, :, 1:], x.transpose(1, 2)):
        p = ours(x)
        q = {0: p, 1: p.permute(3, 1, 0, 2), 2: p[:, ::2, :, 1:], 3: p.transpose(1, 2)}[
            [x.shape, (7, 5, 4, 6), (4, 3, 6, 6), (4, 6, 5, 7)].index(tuple(t.shape))
            if t is not x
            else 0
        ]
        for dim in [(0, 1), (1, 3), (0, 2), (-1, 0, 1), (0, 1, 2, 3), [2]]:
            if name == "norm" and len(dim) > 2:
                continue  # PyTorch takes this for a matrix norm
            for keepdim in (False, True):
                compare(
                    name,
                    getattr(torch, name)(t, dim=dim, keepdim=keepdim),
                    getattr(prong, name)(q, dim=dim, keepdim=keepdim),
                )


def test_special_numbers():
    inf, nan = float("inf"), float("nan")
    rows = torch.tensor(
        [[1.0, nan, 3], [inf, 1, 2], [-inf, -inf, -inf], [inf, -inf, 0], [nan, nan, 1]]
    )
    for name in [
        "sum",
        "mean",
        "max",
        "min",
        "amax",
        "argmax",
        "argmin",
        "softmax",
        "log_softmax",
        "logsumexp",
        "median",
        "cummax",
        "any",
        "var",
        "nansum",
        "nanmedian",
    ]:
        check(name, rows, dim=1)
    check("sort", rows, dim=1)
    check("sort", rows, dim=1, descending=True)


@pytest.mark.parametrize("p", [0, 1, 2, 3, 0.5, float("inf"), float("-inf"), "fro"])
def test_norms(p):
    x = torch.randn(4, 100)
    check("norm", x, p)
    check("norm", x, p, dim=1)
    check("norm", x, p, dim=(0, 1), keepdim=True)
    check("dist", x, x.roll(1), p if p != "fro" else 2)


def test_forms():
    x = torch.randn(3, 40)
    for kwargs in [
        dict(unbiased=False),
        dict(dim=1, unbiased=False),
        dict(dim=0, correction=0),
        dict(dim=(0, 1), correction=2, keepdim=True),
    ]:
        for name in ["var", "std"]:
            check(name, x, **kwargs)
    check("var_mean", x, dim=1)
    check("std_mean", x)
    compare("sum", x.sum(1, dtype=torch.float64), ours(x).sum(1, dtype=prong.float64))
    compare("sum", (x > 0).sum(), (ours(x) > 0).sum())
    compare("mean", (x > 0).float().mean(), (ours(x) > 0).float().mean())
    compare(
        "softmax",
        x.half().softmax(-1, dtype=torch.float32),
        ours(x).half().softmax(-1, dtype=prong.float32),
    )
    check("max", x, x.roll(1))
    check("aminmax", x, dim=1)
    check("topk", x, 5)
    check("topk", x, 2, dim=0, largest=False)
    check("kthvalue", x, 3)
    check("quantile", x, 0.3)
    check("quantile", x, torch.tensor([0.1, 0.9]), dim=1)
    for how in ["lower", "higher", "midpoint", "nearest"]:
        check("quantile", x, 0.37, dim=1, interpolation=how)
    check("diff", x, n=2)
    check("diff", x, dim=0)
    n = torch.randint(0, 6, (4, 30))
    check("bincount", n[0], minlength=9)
    check("bincount", n[0], weights=x[0][:30])
    check("histc", x, 10, -1, 1)
    check("histc", x, bins=7)
    check("unique", n, return_inverse=True, return_counts=True)
    check("unique", n % 2, dim=1)
    check("unique_consecutive", n[0] // 2, return_counts=True)
    check("isin", n, torch.tensor([1, 3]))
    check("isclose", x, x + 1e-6)
    assert prong.equal(ours(x), ours(x)) is True and prong.equal(ours(x), ours(x[:, 1:])) is False
    assert prong.allclose(ours(x), ours(x) + 1e-9) is True


@pytest.mark.parametrize(
    "shape, dim", [((0,), None), ((0, 3), None), ((0, 3), 0), ((0, 3), 1), ((3, 0), 1)]
)
@pytest.mark.parametrize(
    "name",
    [
        "sum",
        "mean",
        "prod",
        "max",
        "argmax",
        "amax",
        "any",
        "all",
        "var",
        "logsumexp",
        "softmax",
        "median",
        "norm",
    ],
)
def test_empty(name, shape, dim):
    if dim is None and name in ("logsumexp", "softmax"):
        return
    errors = (
        check(name, torch.zeros(shape)) if dim is None else check(name, torch.zeros(shape), dim=dim)
    )
    if errors:
        want, got = errors
        assert isinstance(got, type(want)), (want, got)
        assert str(got).splitlines()[0] == str(want).splitlines()[0]


@pytest.mark.parametrize(
    "text",
    [
        "T.ones(2, dtype=T.int64).mean()",
        "T.ones(2, 3).sum(dim=2)",
        "T.ones(2, 3).sum(dim=(0, 0))",
        "T.ones(2, 3).max(dim=5)",
        "T.ones(2, dtype=T.int64).softmax(0)",
        "T.ones(2).topk(3)",
        "T.ones(2).kthvalue(3)",
        "T.ones(2, dtype=T.int64).var()",
        "T.tensor([-1]).bincount()",
        "T.ones(2, dtype=T.int64).quantile(0.5)",
        "T.ones(2).isclose(T.ones(2, dtype=T.float64))",
    ],
)
def test_errors(text):
    with pytest.raises(Exception) as want:
        eval(text, {"T": torch})
    with pytest.raises(Exception) as got:
        eval(text, {"T": prong})
    assert isinstance(got.value, type(want.value)), (want.value, got.value)
    assert str(got.value).splitlines()[0] == str(want.value).splitlines()[0]
