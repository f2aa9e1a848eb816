"""More nn modules and functions against PyTorch's: state, text, results, random numbers, faults."""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import prong  # noqa: E402

BOTH = (prong, torch)
f, i = "f", "i"  # a shape of normal numbers, or of indices


def mha(m, **options):
    return m.nn.MultiheadAttention(8, 2, **options)


def layer(m, **options):
    return m.nn.TransformerEncoderLayer(8, 2, 16, **{"dropout": 0.0, **options})


def quiet(make, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(*args, **kwargs)


# name: (module of a library, inputs as shapes)
MODULES = {
    "CELU": (lambda m: m.nn.CELU(0.7), [(3, 4)]),
    "RReLU": (lambda m: m.nn.RReLU(0.1, 0.4), [(3, 40)]),
    "Hardshrink": (lambda m: m.nn.Hardshrink(), [(3, 4)]),
    "Softshrink": (lambda m: m.nn.Softshrink(0.3), [(3, 4)]),
    "Softmax2d": (lambda m: m.nn.Softmax2d(), [(2, 3, 4, 5)]),
    "Hardtanh in place": (lambda m: m.nn.Hardtanh(-0.5, 0.2, inplace=True), [(3, 4)]),
    "SiLU in place": (lambda m: m.nn.SiLU(inplace=True), [(3, 4)]),
    "ReLU6 in place": (lambda m: m.nn.ReLU6(inplace=True), [(3, 4)]),
    "Threshold": (lambda m: m.nn.Threshold(0.1, 20), [(3, 4)]),
    "Dropout": (lambda m: m.nn.Dropout(0.4), [(30, 4)]),
    "Dropout1d": (lambda m: m.nn.Dropout1d(0.4), [(3, 4, 5)]),
    "Dropout2d": (lambda m: m.nn.Dropout2d(0.4), [(3, 4, 5, 2)]),
    "Dropout3d": (lambda m: m.nn.Dropout3d(0.4), [(3, 4, 5, 2, 2)]),
    "AlphaDropout": (lambda m: m.nn.AlphaDropout(0.4), [(30, 4)]),
    "FeatureAlphaDropout": (lambda m: m.nn.FeatureAlphaDropout(0.4), [(3, 4, 5)]),
    "Bilinear": (lambda m: m.nn.Bilinear(3, 4, 5), [(2, 6, 3), (2, 6, 4)]),
    "Bilinear no bias": (lambda m: m.nn.Bilinear(3, 4, 5, bias=False), [(3,), (4,)]),
    "PairwiseDistance": (lambda m: m.nn.PairwiseDistance(3.0, keepdim=True), [(5, 4), (5, 4)]),
    "CosineSimilarity": (lambda m: m.nn.CosineSimilarity(2), [(2, 3, 4), (2, 3, 4)]),
    "PixelShuffle": (lambda m: m.nn.PixelShuffle(2), [(2, 8, 3, 4)]),
    "PixelShuffle unbatched": (lambda m: m.nn.PixelShuffle(3), [(9, 2, 2)]),
    "PixelUnshuffle": (lambda m: m.nn.PixelUnshuffle(2), [(2, 3, 4, 6)]),
    "ChannelShuffle": (lambda m: m.nn.ChannelShuffle(3), [(2, 6, 3, 4)]),
    "InstanceNorm1d": (lambda m: m.nn.InstanceNorm1d(3), [(2, 3, 5)]),
    "InstanceNorm2d": (lambda m: m.nn.InstanceNorm2d(3, affine=True), [(3, 4, 5)]),
    "InstanceNorm2d tracking": (
        lambda m: m.nn.InstanceNorm2d(3, affine=True, track_running_stats=True), [(2, 3, 4, 5)],
    ),
    "InstanceNorm3d": (lambda m: m.nn.InstanceNorm3d(2), [(2, 2, 3, 2, 2)]),
    "LocalResponseNorm": (lambda m: m.nn.LocalResponseNorm(3, 0.1), [(2, 6, 4, 3)]),
    "LocalResponseNorm even": (lambda m: m.nn.LocalResponseNorm(2, 0.1), [(2, 6, 4)]),
    "EmbeddingBag": (lambda m: m.nn.EmbeddingBag(10, 3), [(i, 10, 4, 5)]),
    "EmbeddingBag sum": (lambda m: m.nn.EmbeddingBag(10, 3, mode="sum", padding_idx=2), [(i, 10, 4, 5)]),
    "EmbeddingBag max": (lambda m: m.nn.EmbeddingBag(10, 3, mode="max"), [(i, 10, 4, 5)]),
    "EmbeddingBag max_norm": (lambda m: m.nn.EmbeddingBag(10, 3, max_norm=0.5), [(i, 10, 4, 5)]),
    "Embedding": (lambda m: m.nn.Embedding(10, 3, padding_idx=-1), [(i, 10, 4, 5)]),
    "Embedding max_norm": (lambda m: m.nn.Embedding(10, 3, max_norm=0.5), [(i, 10, 4, 5)]),
    "AdaptiveLogSoftmaxWithLoss": (
        lambda m: m.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10], 2.0, head_bias=True),
        [(7, 16), (i, 20, 7)],
    ),
    "MultiheadAttention": (mha, [(5, 3, 8), (7, 3, 8), (7, 3, 8)]),
    "MultiheadAttention batch first": (lambda m: mha(m, batch_first=True), [(3, 5, 8)] * 3),
    "MultiheadAttention own sizes": (
        lambda m: mha(m, kdim=5, vdim=6, bias=False), [(4, 3, 8), (7, 3, 5), (7, 3, 6)],
    ),
    "MultiheadAttention more keys": (
        lambda m: mha(m, add_bias_kv=True, add_zero_attn=True), [(4, 3, 8)] * 3,
    ),
    "MultiheadAttention unbatched": (lambda m: mha(m), [(4, 8)] * 3),
    "TransformerEncoderLayer": (layer, [(5, 3, 8)]),
    "TransformerEncoderLayer norm first": (
        lambda m: layer(m, norm_first=True, batch_first=True, activation="gelu"), [(5, 3, 8)],
    ),
    "TransformerEncoder": (
        lambda m: quiet(m.nn.TransformerEncoder, layer(m), 2, m.nn.LayerNorm(8)), [(5, 3, 8)],
    ),
    "TransformerDecoder": (
        lambda m: m.nn.TransformerDecoder(m.nn.TransformerDecoderLayer(8, 2, 16, 0.0), 2),
        [(5, 3, 8), (6, 3, 8)],
    ),
    "Transformer": (
        lambda m: quiet(m.nn.Transformer, 8, 2, 1, 2, 16, 0.0, batch_first=True, norm_first=True),
        [(3, 5, 8), (3, 4, 8)],
    ),
    "ZeroPad2d": (lambda m: m.nn.ZeroPad2d((1, 2, 0, 1)), [(2, 3, 4, 5)]),
    "ConstantPad1d": (lambda m: m.nn.ConstantPad1d(2, 3.5), [(2, 3, 4)]),
    "ConstantPad3d": (lambda m: m.nn.ConstantPad3d(1, -1.0), [(2, 3, 4, 2)]),
    "ReflectionPad1d": (lambda m: m.nn.ReflectionPad1d((3, 1)), [(2, 3, 4)]),
    "ReflectionPad2d": (lambda m: m.nn.ReflectionPad2d(1), [(2, 3, 4, 5)]),
    "ReplicationPad2d": (lambda m: m.nn.ReplicationPad2d((1, 2, 3, 0)), [(2, 3, 4, 5)]),
    "ReplicationPad3d": (lambda m: m.nn.ReplicationPad3d(1), [(2, 3, 4, 5, 2)]),
    "CircularPad1d": (lambda m: m.nn.CircularPad1d((3, 1)), [(2, 3, 4)]),
    "CircularPad2d": (lambda m: m.nn.CircularPad2d((1, 1, 2, 2)), [(2, 3, 4, 5)]),
    "CircularPad3d": (lambda m: m.nn.CircularPad3d(1), [(2, 3, 4, 5, 2)]),
}  # fmt: skip


def to_prong(t):
    return prong.from_numpy(t.detach().numpy().copy())


def flat(result):
    if isinstance(result, (tuple, list)):
        return [t for part in result for t in flat(part)]
    return [result]


def made(name, count=None):
    result = []
    for m in BOTH:
        m.manual_seed(3)
        result.append(MODULES[name][0](m))
    return result


def inputs(shapes):
    torch.manual_seed(5)
    given = []
    for shape in shapes:
        if shape[0] == i:
            given.append(torch.randint(0, shape[1], shape[2:]))
        else:
            given.append(torch.randn(shape))
    return [to_prong(x) for x in given], given


@pytest.mark.parametrize("name", MODULES)
def test_state_and_text(name):
    ours, theirs = made(name)
    a, b = ours.state_dict(), theirs.state_dict()
    assert list(a) == list(b)
    for key in a:
        np.testing.assert_allclose(
            a[key].numpy(), b[key].numpy(), rtol=1e-6, atol=1e-7, err_msg=key
        )
    assert repr(ours) == repr(theirs)
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", MODULES)
def test_results(name, training):
    ours, theirs = made(name)
    mine, want = inputs(MODULES[name][1])
    for m in BOTH:
        m.manual_seed(9)
    got = flat(ours.train(training)(*mine))
    want = flat(theirs.train(training)(*want))
    assert len(got) == len(want)
    for a, b in zip(got, want):
        assert tuple(a.shape) == tuple(b.shape)
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=2e-5, atol=3e-6)
    assert prong.rand(2).tolist() == torch.rand(2).tolist()
    for (key, a), b in zip(ours.state_dict().items(), theirs.state_dict().values()):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6, err_msg=key)


def masks(m, x, attention):
    inf = float("inf")
    square = m.nn.Transformer.generate_square_subsequent_mask(5)
    padding = m.tensor([[False] * 5, [False] * 3 + [True] * 2, [False] * 4 + [True]])
    floats = m.zeros(3, 5).masked_fill(padding, -inf)
    yield attention(x, x, x, attn_mask=square)
    yield attention(x, x, x, attn_mask=square < 0, need_weights=False)
    yield attention(x, x, x, key_padding_mask=padding, average_attn_weights=False)
    yield attention(x, x, x, attn_mask=square, key_padding_mask=floats)
    yield attention(x, x, x, attn_mask=square, is_causal=True, need_weights=False)
    yield attention(x, x, x, attn_mask=square.repeat(6, 1, 1))


def test_masks_of_attention():
    a, b = (mha(m, batch_first=True).eval() for m in BOTH)
    b.load_state_dict({k: torch.from_numpy(v.numpy()) for k, v in a.state_dict().items()})
    x = torch.randn(3, 5, 8)
    for got, want in zip(masks(prong, to_prong(x), a), masks(torch, x, b), strict=True):
        np.testing.assert_allclose(
            got[0].detach().numpy(), want[0].detach().numpy(), rtol=2e-5, atol=2e-6
        )
        assert (got[1] is None) == (want[1] is None)
        if got[1] is not None:
            np.testing.assert_allclose(
                got[1].detach().numpy(), want[1].detach().numpy(), rtol=2e-5, atol=2e-6
            )


def test_masks_of_transformers():
    a, b = (quiet(m.nn.Transformer, 8, 2, 1, 1, 16, batch_first=True).eval() for m in BOTH)
    b.load_state_dict({k: torch.from_numpy(v.numpy()) for k, v in a.state_dict().items()})
    x, y = torch.randn(3, 5, 8), torch.randn(3, 5, 8)

    def run(m, net, src, tgt):
        square = net.generate_square_subsequent_mask(5)
        padding = m.tensor([[False] * 5, [False] * 3 + [True] * 2, [False] * 4 + [True]])
        return net(src, tgt, tgt_mask=square, src_key_padding_mask=padding,
                   memory_key_padding_mask=padding)  # fmt: skip

    got = run(prong, a, to_prong(x), to_prong(y))
    want = quiet(run, torch, b, x, y)
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=2e-5, atol=3e-6)


CLASSES = {"x": (6, 5), "unit": (6, 5), "sign": (6, 5), "class": (i, 5, 6)}
LOSSES = {
    "PoissonNLLLoss": ({"full": True}, "x", "unit"),
    "PoissonNLLLoss counts": ({"log_input": False}, "unit", "unit"),
    "HingeEmbeddingLoss": ({"margin": 0.7}, "x", "sign"),
    "MultiLabelMarginLoss": ({}, "x", "labels"),
    "SoftMarginLoss": ({}, "x", "sign"),
    "MultiLabelSoftMarginLoss": ({}, "x", "unit"),
    "MultiMarginLoss": ({"margin": 0.5}, "x", "class"),
    "MultiMarginLoss squared": ({"p": 2}, "x", "class"),
    "MSELoss": ({}, "x", "x"),
    "CrossEntropyLoss": ({}, "x", "class"),
}


def data(kind):
    torch.manual_seed(len(kind))
    if kind == "class":
        return torch.randint(0, 5, (6,))
    if kind == "labels":
        return torch.tensor([[0, 2, -1, 1, 1], [4, -1, 0, 0, 0], [-1] * 5, [1, 2, 3, 4, 0],
                             [3, 3, -1, -1, -1], [2, 1, 0, -1, 4]])  # fmt: skip
    x = torch.randn(6, 5)
    return {"x": x, "unit": x.abs() * 2, "sign": x.sign()}[kind]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses(name, reduction):
    options, x, y = LOSSES[name]
    kind = name.partition(" ")[0]
    x, y = data(x), data(y)
    got = getattr(prong.nn, kind)(reduction=reduction, **options)(to_prong(x), to_prong(y))
    want = getattr(torch.nn, kind)(reduction=reduction, **options)(x, y)
    assert tuple(got.shape) == tuple(want.shape)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_of_three(reduction):
    x = [torch.randn(6, 5) for _ in range(3)]
    side = torch.tensor([1.0, -1, 1, 1, -1, -1])

    def run(m, a, b, c, s):
        r = {"reduction": reduction}
        yield m.nn.CosineEmbeddingLoss(0.1, **r)(a, b, s)
        yield m.nn.MarginRankingLoss(0.2, **r)(a[:, 0], b[:, 0], s)
        yield m.nn.TripletMarginLoss(0.8, 3.0, swap=True, **r)(a, b, c)
        yield m.nn.TripletMarginWithDistanceLoss(**r)(a, b, c)
        yield m.nn.TripletMarginWithDistanceLoss(
            distance_function=lambda p, q: (p - q).abs().max(1)[0], swap=True, **r)(a, b, c)  # fmt: skip
        yield m.nn.GaussianNLLLoss(full=True, **r)(a, b, c.abs())
        yield m.nn.GaussianNLLLoss(**r)(a, b, c[:, :1].abs())
        yield m.nn.functional.mse_loss(a, b, weight=c.abs(), **r)
        yield m.nn.functional.binary_cross_entropy(a.sigmoid(), b.sigmoid(), **r)

    for got, want in zip(run(prong, *map(to_prong, [*x, side])), run(torch, *x, side), strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


CTC = {
    "table": ([[1, 2, 3], [2, 2, 0], [4, 0, 0]], [10, 9, 7], [3, 2, 1]),
    "joined": ([1, 2, 3, 2, 2, 4], [10, 9, 7], [3, 2, 1]),
    "empty text": ([[1, 2], [0, 0], [3, 3]], [10, 10, 10], [2, 0, 2]),
    "impossible": ([[1, 1, 1, 1], [2, 3, 1, 1], [1, 2, 3, 4]], [4, 10, 10], [4, 2, 4]),
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("name", CTC)
def test_ctc(name, zero, reduction):
    targets, frames, lengths = CTC[name]
    logs = torch.randn(10, 3, 6).log_softmax(2)

    def run(m, x):
        loss = m.nn.CTCLoss(zero_infinity=zero, reduction=reduction)
        return loss(x, m.tensor(targets), m.tensor(frames), m.tensor(lengths))

    got, want = run(prong, to_prong(logs)), run(torch, logs)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


def test_bags():
    weight = torch.randn(10, 3)
    flat_input, offsets = torch.tensor([1, 2, 2, 5, 9, 0, 1]), torch.tensor([0, 2, 2, 6])
    per_sample = torch.rand(7)

    def run(F, w, x, o, p):
        for mode in ("sum", "mean", "max"):
            yield F.embedding_bag(x, w, o, mode=mode)
            yield F.embedding_bag(x, w, o, mode=mode, padding_idx=2)
            yield F.embedding_bag(x[:6], w, o, mode=mode, include_last_offset=True)
        yield F.embedding_bag(x, w, o, mode="sum", per_sample_weights=p)

    ours = run(prong.nn.functional, *map(to_prong, (weight, flat_input, offsets, per_sample)))
    theirs = run(torch.nn.functional, weight, flat_input, offsets, per_sample)
    for got, want in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


LAYOUTS = {
    "turned": lambda m: m.ones(3, 4, 5).permute(2, 0, 1),
    "turned back": lambda m: m.ones(3, 4, 5).transpose(1, 2),
    "with gaps": lambda m: m.ones(6, 4)[::2],
    "turned with gaps": lambda m: m.ones(6, 4)[::2].t(),
    "expanded": lambda m: m.ones(1, 4).expand(3, 4),
    "turned, expanded": lambda m: m.ones(4, 1, 2).expand(4, 3, 2).permute(2, 1, 0),
    "sizes of one": lambda m: m.ones(4, 1, 3).permute(2, 1, 0),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_numbers_are_drawn_in_the_order_of_memory(name):
    seen = []
    for m in BOTH:
        x = LAYOUTS[name](m)
        m.manual_seed(0)
        drawn = [m.nn.functional.dropout(x, 0.5), m.rand_like(x), m.randn_like(x)]
        seen.append([t.tolist() for t in drawn] + [m.empty_like(x).stride()])
    assert seen[0][:3] == seen[1][:3]
    ones = [n == 1 for n in LAYOUTS[name](torch).shape]
    strides = [[s for s, one in zip(k[3], ones) if not one] for k in seen]
    assert strides[0] == strides[1]


def test_gumbel_softmax():
    x = torch.randn(4, 5)
    for hard in (False, True):
        for m in BOTH:
            m.manual_seed(4)
        got = prong.nn.functional.gumbel_softmax(to_prong(x), 0.7, hard)
        want = torch.nn.functional.gumbel_softmax(x, 0.7, hard)
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


FAULTS = {
    "heads that don't divide": lambda t: t.nn.MultiheadAttention(8, 3),
    "no heads": lambda t: t.nn.MultiheadAttention(8, 0),
    "a mask of integers": lambda t: mha(t)(*[t.ones(4, 2, 8)] * 3, attn_mask=t.ones(4, 4).long()),
    "a mask of the wrong size": lambda t: mha(t)(*[t.ones(4, 2, 8)] * 3, attn_mask=t.ones(4, 3)),
    "causal without mask": lambda t: mha(t)(*[t.ones(4, 2, 8)] * 3, is_causal=True),
    "an unknown activation": lambda t: layer(t, activation="tanh"),
    "sizes of src and tgt": lambda t: t.nn.Transformer(8, 2, 1, 1, 8)(
        t.ones(4, 2, 8), t.ones(4, 3, 8)
    ),
    "channels that don't divide": lambda t: t.nn.PixelShuffle(2)(t.ones(1, 3, 2, 2)),
    "groups that don't divide": lambda t: t.nn.ChannelShuffle(2)(t.ones(1, 3, 2, 2)),
    "instance norm of a matrix": lambda t: t.nn.InstanceNorm2d(3)(t.ones(3, 3)),
    "offsets of a table": lambda t: t.nn.EmbeddingBag(4, 2)(t.tensor([[1, 2]]), t.tensor([0])),
    "offsets missing": lambda t: t.nn.EmbeddingBag(4, 2)(t.tensor([1, 2])),
    "cutoffs not sorted": lambda t: t.nn.AdaptiveLogSoftmaxWithLoss(4, 10, [5, 3]),
    "a class too large": lambda t: t.nn.AdaptiveLogSoftmaxWithLoss(4, 10, [5])(
        t.ones(1, 4), t.tensor([10])
    ),
    "an odd p": lambda t: t.nn.MultiMarginLoss(p=3),
    "a negative margin": lambda t: t.nn.TripletMarginLoss(margin=-1.0),
    "a negative variance": lambda t: t.nn.GaussianNLLLoss()(t.ones(2), t.ones(2), -t.ones(2)),
    "a bad reduction": lambda t: t.nn.functional.mse_loss(t.ones(2), t.ones(2), reduction="max"),
    "circular padding of a matrix": lambda t: t.nn.CircularPad2d(1)(t.ones(3, 3)),
    "bounds the wrong way": lambda t: t.nn.functional.rrelu(t.ones(2), 0.5, 0.1),
    "a probability of two": lambda t: t.nn.functional.alpha_dropout(t.ones(2), 2.0),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as theirs:
            FAULTS[name](torch)
        with pytest.raises(theirs.type) as ours:
            FAULTS[name](prong)
    assert str(ours.value)
