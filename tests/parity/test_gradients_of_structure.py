"""Gradients, and gradients of gradients, of ops that are not pointwise, against PyTorch: products, convolutions,
reductions, orders, indexing, joins, views, padding, recurrent layers; each on contiguous and on strided leaves."""

import zlib

import numpy as np
import prong
import pytest

torch = pytest.importorskip("torch")

CASES = []


def case(name, function, *shapes, ties=False, second=True):
    """function(module, *tensors): float64 leaves of these shapes; ties: values that meet each other."""
    CASES.append(pytest.param(function, shapes, ties, second, id=name))


def fun(m):
    return m.nn.functional


def layers(m):
    return m._VF if m is torch else m


case("mm", lambda m, a, b: m.mm(a, b), (3, 4), (4, 5))
case("mm_t", lambda m, a, b: m.mm(a.t(), b.t()), (4, 3), (5, 4))
case("bmm", lambda m, a, b: m.bmm(a, b), (2, 3, 4), (2, 4, 5))
for sa, sb in [
    ((4,), (4,)),
    ((3, 4), (4,)),
    ((4,), (4, 5)),
    ((2, 3, 4), (4, 5)),
    ((2, 1, 3, 4), (5, 4, 2)),
    ((5, 3, 4), (4,)),
    ((4,), (5, 4, 3)),
    ((0, 4), (4, 3)),
    ((2, 3, 0), (0, 4)),
    ((3, 4), (2, 4, 5)),
    ((2, 3, 4), (2, 4, 5)),
]:
    case(f"matmul{sa}{sb}", lambda m, a, b: m.matmul(a, b), sa, sb)
case("mv", lambda m, a, b: m.mv(a, b), (3, 4), (4,))
case("dot", lambda m, a, b: m.dot(a, b), (4,), (4,))
case("outer", lambda m, a, b: m.outer(a, b), (3,), (4,))
case("addmm", lambda m, c, a, b: m.addmm(c, a, b, beta=0.5, alpha=2), (5,), (3, 4), (4, 5))
case(
    "baddbmm",
    lambda m, c, a, b: m.baddbmm(c, a, b, beta=0.5, alpha=2),
    (3, 1),
    (2, 3, 4),
    (2, 4, 5),
)
case("linear", lambda m, x, w, b: fun(m).linear(x, w, b), (2, 3, 4), (5, 4), (5,))
case("linear1", lambda m, x, w, b: fun(m).linear(x, w, b), (4,), (5, 4), (5,))
case("linear_w1", lambda m, x, w: fun(m).linear(x, w), (3, 4), (4,))
case("linear0", lambda m, x, w, b: fun(m).linear(x, w, b), (0, 4), (5, 4), (5,))
case("einsum1", lambda m, a, b: m.einsum("b...i,...ij->b...j", a, b), (2, 3, 4), (3, 4, 5))
case("einsum2", lambda m, a: m.einsum("ii->i", a), (3, 3))
case("einsum3", lambda m, a, b, c: m.einsum("i,j,k->kij", a, b, c), (2,), (3,), (4,))
case("einsum4", lambda m, a, b: m.einsum("bhqd,bhkd->bhqk", a, b), (2, 2, 3, 4), (2, 2, 5, 4))
case("einsum5", lambda m, a: m.einsum("iij->ji", a), (3, 3, 2))
case("einsum6", lambda m, a, b: m.einsum("ij,ij->", a, b), (3, 2), (3, 2))
case(
    "conv2d", lambda m, x, w, b: fun(m).conv2d(x, w, b, padding=1), (2, 3, 6, 5), (4, 3, 3, 3), (4,)
)
case(
    "conv2d_g",
    lambda m, x, w, b: fun(m).conv2d(x, w, b, [2, 1], [1, 0], 1, 2),
    (2, 4, 7, 6),
    (6, 2, 3, 2),
    (6,),
)
case(
    "conv2d_d",
    lambda m, x, w: fun(m).conv2d(x, w, padding=2, dilation=2),
    (1, 2, 9, 9),
    (2, 2, 3, 3),
)
case("conv2d_s3", lambda m, x, w: fun(m).conv2d(x, w, stride=3), (2, 2, 10, 11), (3, 2, 3, 2))
case("conv2d_1", lambda m, x, w, b: fun(m).conv2d(x, w, b), (2, 3, 4, 5), (4, 3, 1, 1), (4,))
case("conv2d_u", lambda m, x, w, b: fun(m).conv2d(x, w, b), (3, 4, 5), (4, 3, 2, 2), (4,))
case("conv2d_pad5", lambda m, x, w: fun(m).conv2d(x, w, padding=4), (2, 2, 3, 3), (3, 2, 3, 3))
case("conv1d", lambda m, x, w, b: fun(m).conv1d(x, w, b, 2, 1, 2, 2), (2, 4, 8), (4, 2, 3), (4,))
case("conv1d_same", lambda m, x, w: fun(m).conv1d(x, w, padding="same"), (2, 3, 7), (4, 3, 4))
case(
    "conv3d",
    lambda m, x, w, b: fun(m).conv3d(x, w, b, padding=1, stride=[1, 2, 1]),
    (1, 2, 4, 5, 4),
    (3, 2, 2, 3, 2),
    (3,),
)
case("conv0", lambda m, x, w: fun(m).conv1d(x, w), (0, 3, 8), (4, 3, 3))
for d in [None, 0, 1, (0, 2)]:
    for k in (False, True):
        if d is None and k:
            continue
        kw = dict(dim=d, keepdim=k) if d is not None else {}
        case(f"sum{d}{k}", lambda m, x, kw=kw: m.sum(x, **kw), (2, 3, 4))
        case(f"mean{d}{k}", lambda m, x, kw=kw: m.mean(x, **kw), (2, 3, 4))
        case(f"nansum{d}{k}", lambda m, x, kw=kw: m.nansum(x, **kw), (2, 3, 4))
        case(f"var{d}{k}", lambda m, x, kw=kw: m.var(x, **kw), (2, 3, 4))
        case(f"std{d}{k}", lambda m, x, kw=kw: m.std(x, correction=0, **kw), (2, 3, 4))
        case(f"var_mean{d}{k}", lambda m, x, kw=kw: m.var_mean(x, **kw), (2, 3, 4))
        case(f"std_mean{d}{k}", lambda m, x, kw=kw: m.std_mean(x, **kw), (2, 3, 4))
        case(f"amax{d}{k}", lambda m, x, kw=kw: m.amax(x, **kw), (2, 3, 4), ties=True)
        case(f"amin{d}{k}", lambda m, x, kw=kw: m.amin(x, **kw), (2, 3, 4), ties=True)
        for p in (0, 1, 2, 3, 0.5, 1.5, float("inf"), -float("inf")):
            case(f"norm{d}{k}p{p}", lambda m, x, kw=kw, p=p: m.norm(x, p, **kw), (2, 3, 4))
for p in (0, 1, 2, 3, 0.5, 1.5, float("inf")):
    case(f"norm_zeros_p{p}", lambda m, x, p=p: m.norm(x * 0, p), (3,))
    if p:  # PyTorch raises
        case(f"dist{p}", lambda m, x, y, p=p: m.dist(x, y, p), (3, 4), (4,))
case("std_zero", lambda m, x: m.std(x * 0), (3,))
case("prod", lambda m, x: m.prod(x), (3, 4))
case("prod_z1", lambda m, x: m.prod(x * m.tensor([0.0, 1, 1, 1], dtype=m.float64)), (4,))
case("prod_z2", lambda m, x: m.prod(x * m.tensor([0.0, 1, 0, 1], dtype=m.float64)), (4,))
case("prod_dim", lambda m, x: m.prod(x * m.tensor([0.0, 1, 1, 1], dtype=m.float64), 1), (3, 4))
case("prod_dimk", lambda m, x: m.prod(x, 0, True), (3, 4))
case("prod0", lambda m, x: m.prod(x), ())
case("prod_dim0", lambda m, x: m.prod(x, 0), ())
for n in ("max", "min", "median", "nanmedian"):
    case(n, lambda m, x, n=n: getattr(m, n)(x), (3, 5), ties=True)
    case(n + "_dim", lambda m, x, n=n: getattr(m, n)(x, 1)[0], (3, 5))
    case(n + "_dimk", lambda m, x, n=n: getattr(m, n)(x, dim=0, keepdim=True)[0], (3, 5))
    case(n + "_0", lambda m, x, n=n: getattr(m, n)(x, 0)[0], ())
case("max_other", lambda m, x, y: m.max(x, y), (3, 4), (4,))
case("aminmax", lambda m, x: tuple(m.aminmax(x)), (3, 4))
case("aminmax_dim", lambda m, x: tuple(m.aminmax(x, dim=1)), (3, 4))
case("sort", lambda m, x: m.sort(x, 0)[0], (3, 4))
case("sortd", lambda m, x: m.sort(x, -1, True)[0], (3, 4))
case("msort", lambda m, x: m.msort(x), (3, 4))
case("topk", lambda m, x: m.topk(x, 2)[0], (3, 4))
case("topk0", lambda m, x: m.topk(x, 2, 0, False)[0], (3, 4))
case("kthvalue", lambda m, x: m.kthvalue(x, 2, 1)[0], (3, 4))
case("mode", lambda m, x: m.mode(x, 0, True)[0], (3, 4))
case("quantile", lambda m, x: m.quantile(x, 0.3), (3, 5))
case(
    "quantile2",
    lambda m, x: m.quantile(x, m.tensor([0.2, 0.75], dtype=m.float64), dim=1, keepdim=True),
    (3, 5),
)
case("index1", lambda m, x: x[m.tensor([0, 2, 0])], (4, 3))
case("index2", lambda m, x: x[:, m.tensor([[0, 2], [1, 1]])], (4, 3))
case("index3", lambda m, x: x[m.tensor([True, False, True, True])], (4, 3))
case("index4", lambda m, x: x[x > 0], (4, 3))
case("index5", lambda m, x: x[1:, None, ..., 0], (4, 3, 2))
case("index_put", lambda m, x, v: m.index_put(x, (m.tensor([0, 2]),), v), (4, 3), (3,))
case("index_put_acc", lambda m, x, v: m.index_put(x, (m.tensor([0, 0]),), v, True), (4, 3), (1, 3))


def setitem(m, x, v):
    y = x * 1
    y[m.tensor([1, 2])] = v
    return y


case("setitem", setitem, (4, 3), (3,))


def setslice(m, x, v):
    y = x * 1
    y[1:3, ::2] = v
    return y


case("setslice", setslice, (4, 4), (2, 2))
case("index_select", lambda m, x: m.index_select(x, 1, m.tensor([2, 0, 2])), (4, 3))
case(
    "index_add", lambda m, x, s: m.index_add(x, 0, m.tensor([2, 0, 2]), s, alpha=2), (4, 3), (3, 3)
)
case("index_copy", lambda m, x, s: m.index_copy(x, 0, m.tensor([2, 0]), s), (4, 3), (2, 3))
case("index_fill", lambda m, x: m.index_fill(x, 0, m.tensor([2, 0]), 1.5), (4, 3))
case("index_fill_t", lambda m, x, v: m.index_fill(x, 0, m.tensor([2, 0]), v), (4, 3), ())


def iadd(m, x, s):
    y = x * 2
    y.index_add_(0, m.tensor([2, 0, 2]), s)
    return y


case("index_add_", iadd, (4, 3), (3, 3))
case("take", lambda m, x: m.take(x, m.tensor([[0, 11], [-1, 0]])), (4, 3))
case("embedding", lambda m, w: fun(m).embedding(m.tensor([[0, 4], [2, 2]]), w), (5, 3))
case(
    "embedding_p",
    lambda m, w: fun(m).embedding(m.tensor([[0, 4], [2, 2]]), w, padding_idx=2),
    (5, 3),
)
case(
    "embedding_f",
    lambda m, w: fun(m).embedding(m.tensor([[0, 4], [2, 2]]), w, scale_grad_by_freq=True),
    (5, 3),
    second=False,
)
case("gather", lambda m, x: m.gather(x, 1, m.tensor([[0, 2], [1, 1]])), (2, 3))
case("scatter", lambda m, x, s: m.scatter(x, 1, m.tensor([[0, 2], [1, 0]]), s), (2, 3), (2, 2))
case("scatter_v", lambda m, x: m.scatter(x, 1, m.tensor([[0, 2], [1, 0]]), 1.5), (2, 3))
case(
    "scatter_add",
    lambda m, x, s: m.scatter_add(x, 1, m.tensor([[0, 0], [1, 0]]), s),
    (2, 3),
    (2, 2),
)
for red in ("sum", "prod", "mean", "amax", "amin"):
    for inc in (True, False):
        case(
            f"scatter_reduce_{red}_{inc}",
            lambda m, x, s, red=red, inc=inc: m.scatter_reduce(
                x, 1, m.tensor([[0, 0], [1, 0]]), s, red, include_self=inc
            ),
            (2, 3),
            (2, 2),
            ties=True,
        )
case(
    "scatter_reduce_prod_zero",
    lambda m, x, s: m.scatter_reduce(
        x, 0, m.tensor([0, 0, 1, 1, 1]), s * m.tensor([0.0, 1, 0, 0, 1], dtype=m.float64), "prod"
    ),
    (3,),
    (5,),
    second=False,
)


def scat_(m, x, s):
    y = x * 2
    y.scatter_(1, m.tensor([[0, 2], [1, 0]]), s)
    return y


case("scatter_", scat_, (2, 3), (2, 2))
case("take_along_dim", lambda m, x: m.take_along_dim(x, m.tensor([[2], [0]]), 1), (2, 3))
case("take_along_flat", lambda m, x: m.take_along_dim(x, m.tensor([5, 0])), (2, 3))
case("masked_select", lambda m, x: m.masked_select(x, m.tensor([True, False, True])), (2, 3))
case(
    "masked_scatter",
    lambda m, x, s: m.masked_scatter(x, m.tensor([[True, False, True], [False, True, False]]), s),
    (2, 3),
    (6,),
)
case("cat", lambda m, a, b: m.cat([a, b], 1), (2, 3), (2, 1))
case("cat_same", lambda m, a: m.cat([a, a * 2], 0), (2, 3))
case("stack", lambda m, a, b: m.stack([a, b], -1), (2, 3), (2, 3))
case("hstack", lambda m, a, b: m.hstack([a, b]), (2,), (3,))
case("vstack", lambda m, a, b: m.vstack([a, b]), (3,), (2, 3))
case("repeat", lambda m, a: a.repeat(2, 1, 3), (2, 3))
case("repeat0", lambda m, a: a.repeat(0, 1), (2, 3))
case("tile", lambda m, a: m.tile(a, (2,)), (2, 3))
case("repint", lambda m, a: m.repeat_interleave(a, 2), (2, 3))
case("repint1", lambda m, a: m.repeat_interleave(a, 3, -1), (2, 3))
case("repintT", lambda m, a: m.repeat_interleave(a, m.tensor([1, 0, 2]), 0), (3, 2))
case("flip", lambda m, a: m.flip(a, [0, -1]), (2, 3))
case("fliplr", lambda m, a: m.fliplr(a), (2, 3))
case("flipud", lambda m, a: m.flipud(a), (2, 3))
case("roll", lambda m, a: m.roll(a, [1, -1], [0, 1]), (2, 3))
case("roll1", lambda m, a: m.roll(a, 2), (2, 3))
case("rot90", lambda m, a: m.rot90(a, -1), (2, 3))
case("tril", lambda m, a: m.tril(a, -1), (4, 3))
case("triu", lambda m, a: m.triu(a, 1), (2, 3, 3))
case("diag", lambda m, a: m.diag(a, 1), (3,))
case("diag2", lambda m, a: m.diag(a, -1), (3, 4))
case("diag_embed", lambda m, a: m.diag_embed(a, 1), (2, 3))
for mode in ("constant", "reflect", "replicate", "circular"):
    case("pad_" + mode, lambda m, a, mode=mode: fun(m).pad(a, [1, 2, 3, 0], mode), (1, 2, 4, 5))
case("pad_neg", lambda m, a: fun(m).pad(a, [-1, -2]), (2, 5))
case("pad_mixed", lambda m, a: fun(m).pad(a, [-1, 2], "reflect"), (1, 2, 5))
case("meshgrid", lambda m, a, b: tuple(m.meshgrid(a, b, indexing="xy")), (2,), (3,))
case("transpose", lambda m, a: a.transpose(0, -1), (2, 3, 4))
case("T", lambda m, a: a.T, (2, 3))
case("mT", lambda m, a: a.mT, (2, 3, 4))
case("permute", lambda m, a: a.permute(2, 0, -2), (2, 3, 4))
case("movedim", lambda m, a: m.movedim(a, [0, 1], [1, 2]), (2, 3, 4))
case("unsqueeze", lambda m, a: a.unsqueeze(-1), (2, 3))
case("squeeze", lambda m, a: a.squeeze(), (1, 3, 1))
case("squeeze0", lambda m, a: a.squeeze(0), (1, 3, 1))
case("expand", lambda m, a: a.expand(2, -1, 4), (3, 1))
case("broadcast_to", lambda m, a: m.broadcast_to(a, (2, 3, 4)), (3, 1))
case("select", lambda m, a: a.select(-1, -2), (2, 3))
case("slice", lambda m, a: a[1:-1:2], (6, 3))
case("narrow", lambda m, a: a.narrow(0, -3, 2), (5, 3))
case("split", lambda m, a: tuple(a.split(2)), (5, 2))
case("split_one", lambda m, a: a.split(2)[1], (5, 2))
case("split_sizes", lambda m, a: tuple(a.split([2, 0, 4], 1)), (2, 6))
case("chunk", lambda m, a: tuple(a.chunk(4, 1)), (2, 6))
case("tensor_split", lambda m, a: tuple(m.tensor_split(a, 3)), (5, 2))
case("tensor_split_at", lambda m, a: tuple(m.tensor_split(a, (1, 3))), (5, 2))
case("unbind", lambda m, a: tuple(a.unbind(-1)), (3, 2))
case("unbind_one", lambda m, a: a.unbind(0)[1], (3, 2))
case("diagonal", lambda m, a: a.diagonal(1, 1, 2), (2, 3, 4))
case("as_strided", lambda m, a: a.as_strided((3, 2), (1, 1), 1), (3, 4))
case("as_strided_t", lambda m, a: a.t().as_strided((3, 2), (2, 1), 1), (3, 4))
case("as_strided_e", lambda m, a: a.expand(2, 3).as_strided((2, 2), (1, 1), 0), (3,), second=False)
case("unfold", lambda m, a: a.unfold(0, 3, 2), (7, 2))
case("unfold1", lambda m, a: a.unfold(-1, 2, 1), (3, 9))
case("flatten", lambda m, a: m.flatten(a, 1), (2, 3, 4))
case("unflatten", lambda m, a: a.unflatten(1, (2, -1)), (2, 6))
case("reshape", lambda m, a: a.t().reshape(-1), (2, 3))
case("view", lambda m, a: a.view(3, 2), (2, 3))
case("contiguous", lambda m, a: a.t().contiguous(), (2, 3))
case("atleast", lambda m, a: m.atleast_2d(a), (3,))
case(
    "lstm",
    lambda m, x, h, c, *p: tuple(
        layers(m).lstm(x, [h, c], list(p), True, 1, 0.0, False, False, False)
    ),
    (3, 2, 4),
    (1, 2, 5),
    (1, 2, 5),
    (20, 4),
    (20, 5),
    (20,),
    (20,),
)
case(
    "lstm_bi",
    lambda m, x, h, c, *p: tuple(
        layers(m).lstm(x, [h, c], list(p), False, 2, 0.0, False, True, True)
    ),
    (2, 3, 4),
    (4, 2, 3),
    (4, 2, 3),
    (12, 4),
    (12, 3),
    (12, 4),
    (12, 3),
    (12, 6),
    (12, 3),
    (12, 6),
    (12, 3),
)
case(
    "gru",
    lambda m, x, h, *p: tuple(layers(m).gru(x, h, list(p), True, 1, 0.0, False, False, False)),
    (3, 2, 4),
    (1, 2, 5),
    (15, 4),
    (15, 5),
    (15,),
    (15,),
)
case(
    "gru_bi",
    lambda m, x, h, *p: tuple(layers(m).gru(x, h, list(p), False, 2, 0.0, False, True, True)),
    (2, 3, 4),
    (4, 2, 3),
    (9, 4),
    (9, 3),
    (9, 4),
    (9, 3),
    (9, 6),
    (9, 3),
    (9, 6),
    (9, 3),
)
case(
    "rnn_tanh",
    lambda m, x, h, *p: tuple(layers(m).rnn_tanh(x, h, list(p), True, 1, 0.0, False, False, False)),
    (3, 2, 4),
    (1, 2, 5),
    (5, 4),
    (5, 5),
    (5,),
    (5,),
)
case(
    "rnn_relu",
    lambda m, x, h, *p: tuple(layers(m).rnn_relu(x, h, list(p), True, 1, 0.0, False, True, False)),
    (3, 2, 4),
    (2, 2, 5),
    (5, 4),
    (5, 5),
    (5,),
    (5,),
    (5, 4),
    (5, 5),
    (5,),
    (5,),
)


def leaves(m, arrays, strided):
    """The leaves, and what the function is given: they themselves, or every second element of them."""
    made, given = [], []
    for array in arrays:
        t = m.tensor(array.tolist(), dtype=m.float64).reshape(array.shape)
        if strided and array.ndim:
            t = m.stack([t, t], -1)
        made.append(t.requires_grad_(True))
        given.append(t.select(-1, 0) if strided and array.ndim else t)
    return made, given


def draws(m, like, seed):
    rng = np.random.RandomState(seed)
    return [
        m.tensor(np.asarray(rng.randn(*t.shape)).tolist(), dtype=m.float64).reshape(tuple(t.shape))
        for t in like
    ]


def gradients(m, function, arrays, second, strided):
    """The results, the gradients, and the gradients of those, as arrays; None where nothing flows."""
    made, given = leaves(m, arrays, strided)
    results = function(m, *given)
    results = [
        r
        for r in (results if isinstance(results, (tuple, list)) else [results])
        if r.is_floating_point()
    ]
    back = [g.requires_grad_(True) for g in draws(m, results, 1)]
    first = m.autograd.grad(results, made, back, create_graph=second, allow_unused=True)
    out = [*results, *first]
    again = [g for g in first if g is not None and g.requires_grad]
    if second and again:
        out += m.autograd.grad(again, made + back, draws(m, again, 2), allow_unused=True)
    return [None if t is None else np.asarray((t.detach() + 0).tolist()) for t in out]


def same(a, b):
    if a is None or b is None:  # PyTorch sometimes says zeros, where nothing flows
        given = b if a is None else a
        return given is None or not np.any(given)
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=1e-10, equal_nan=True)


@pytest.mark.parametrize("strided", [False, True], ids=["contiguous", "strided"])
@pytest.mark.parametrize(("function", "shapes", "ties", "second"), CASES)
def test_gradients(function, shapes, ties, second, strided):
    rng = np.random.RandomState(zlib.crc32(repr(shapes).encode()) % 1000)
    arrays = [np.asarray(rng.randn(*shape)) for shape in shapes]
    if ties:
        arrays = [np.round(a * 2) / 2 for a in arrays]
    expected = gradients(torch, function, arrays, second, strided)
    found = gradients(prong, function, arrays, second, strided)
    assert len(found) == len(expected)
    for i, (a, b) in enumerate(zip(expected, found, strict=True)):
        assert same(a, b), f"number {i}: expected {a}, but got {b}"
