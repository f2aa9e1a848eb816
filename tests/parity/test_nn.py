"""nn modules against PyTorch's: names, order and initial numbers of the state, text, results in train and eval mode."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import prong  # noqa: E402

MODULES = {
    "Linear": ("Linear", (5, 3), {}, [(4, 5)]),
    "Linear no bias": ("Linear", (5, 3), {"bias": False}, [(2, 4, 5)]),
    "LSTM": ("LSTM", (5, 3), {}, [(4, 2, 5)]),
    "LSTM deep": (
        "LSTM",
        (5, 3),
        {"num_layers": 2, "bidirectional": True, "batch_first": True},
        [(2, 4, 5)],
    ),
    "LSTM no bias, no batch": ("LSTM", (5, 3), {"bias": False}, [(4, 5)]),
    "GRU": ("GRU", (5, 3), {"num_layers": 2}, [(4, 2, 5)]),
    "GRU both ways": ("GRU", (5, 3), {"bidirectional": True}, [(4, 2, 5)]),
    "RNN": ("RNN", (5, 3), {}, [(4, 2, 5)]),
    "RNN relu": ("RNN", (5, 3), {"nonlinearity": "relu", "num_layers": 2}, [(4, 2, 5)]),
    "LSTMCell": ("LSTMCell", (5, 3), {}, [(2, 5)]),
    "GRUCell": ("GRUCell", (5, 3), {}, [(2, 5)]),
    "RNNCell": ("RNNCell", (5, 3), {"nonlinearity": "relu"}, [(5,)]),
    "LayerNorm": ("LayerNorm", (5,), {}, [(3, 5)]),
    "LayerNorm 2d": ("LayerNorm", ([4, 5],), {"elementwise_affine": False}, [(3, 4, 5)]),
    "RMSNorm": ("RMSNorm", (5,), {}, [(3, 5)]),
    "GroupNorm": ("GroupNorm", (2, 6), {}, [(3, 6, 4)]),
    "BatchNorm1d": ("BatchNorm1d", (5,), {}, [(6, 5)]),
    "BatchNorm2d": ("BatchNorm2d", (3,), {"momentum": None}, [(4, 3, 2, 5)]),
    "BatchNorm3d": ("BatchNorm3d", (3,), {"affine": False}, [(4, 3, 2, 2, 2)]),
    "Conv1d": ("Conv1d", (4, 6, 3), {"padding": 1, "groups": 2}, [(2, 4, 9)]),
    "Conv2d": ("Conv2d", (3, 4, (3, 2)), {"stride": 2, "dilation": (1, 2)}, [(2, 3, 9, 8)]),
    "Conv2d same": ("Conv2d", (3, 4, 3), {"padding": "same", "bias": False}, [(2, 3, 5, 6)]),
    "Conv2d reflect": (
        "Conv2d",
        (3, 4, 3),
        {"padding": 1, "padding_mode": "reflect"},
        [(2, 3, 5, 6)],
    ),
    "Conv3d": ("Conv3d", (2, 3, 2), {}, [(1, 2, 4, 5, 3)]),
    "ReLU": ("ReLU", (), {}, [(3, 4)]),
    "GELU": ("GELU", (), {"approximate": "tanh"}, [(3, 4)]),
    "SiLU": ("SiLU", (), {}, [(3, 4)]),
    "ELU": ("ELU", (0.7,), {}, [(3, 4)]),
    "LeakyReLU": ("LeakyReLU", (0.2,), {}, [(3, 4)]),
    "PReLU": ("PReLU", (4,), {}, [(3, 4)]),
    "Softplus": ("Softplus", (), {"beta": 2.0}, [(3, 4)]),
    "Hardtanh": ("Hardtanh", (), {}, [(3, 4)]),
    "Softmax": ("Softmax", (), {"dim": 1}, [(3, 4)]),
    "LogSoftmax": ("LogSoftmax", (), {"dim": 0}, [(3, 4)]),
    "GLU": ("GLU", (), {}, [(3, 4)]),
    "Flatten": ("Flatten", (), {}, [(3, 4, 2)]),
    "Unflatten": ("Unflatten", (1, (2, 2)), {}, [(3, 4)]),
    "Identity": ("Identity", (), {}, [(3, 4)]),
    "Dropout in eval": ("Dropout", (0.3,), {}, None),
}


def to_prong(t):
    return prong.from_numpy(t.detach().numpy().copy())


def flat(result):
    if isinstance(result, tuple):
        return [t for part in result for t in flat(part)]
    return [result]


def pair(name):
    kind, args, kwargs, shapes = MODULES[name]
    torch.manual_seed(3)
    theirs = getattr(torch.nn, kind)(*args, **kwargs)
    prong.manual_seed(3)
    ours = getattr(prong.nn, kind)(*args, **kwargs)
    return ours, theirs, shapes


@pytest.mark.parametrize("name", MODULES)
def test_state_from_one_seed(name):
    ours, theirs, _ = pair(name)
    a, b = ours.state_dict(), theirs.state_dict()
    assert list(a) == list(b)
    for key in a:
        assert tuple(a[key].shape) == tuple(b[key].shape), key
        np.testing.assert_allclose(
            a[key].numpy(), b[key].numpy(), rtol=1e-6, atol=1e-7, err_msg=key
        )
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]


@pytest.mark.parametrize("name", MODULES)
def test_text(name):
    ours, theirs, _ = pair(name)
    assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", [n for n in MODULES if MODULES[n][3]])
def test_results(name, training):
    ours, theirs, shapes = pair(name)
    ours.load_state_dict({k: to_prong(v) for k, v in theirs.state_dict().items()})
    ours.train(training), theirs.train(training)
    torch.manual_seed(5)
    inputs = [torch.randn(s) for s in shapes]
    got, want = flat(ours(*map(to_prong, inputs))), flat(theirs(*inputs))
    assert len(got) == len(want)
    for a, b in zip(got, want):
        assert tuple(a.shape) == tuple(b.shape)
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=2e-5, atol=2e-6)
    for (key, a), b in zip(ours.state_dict().items(), theirs.state_dict().values()):
        np.testing.assert_allclose(
            a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6, err_msg=f"{key} after the call"
        )


LOSSES = {
    "MSELoss": ({}, "regression"), "L1Loss": ({"reduction": "sum"}, "regression"),
    "SmoothL1Loss": ({"beta": 0.5}, "regression"),
    "HuberLoss": ({"delta": 0.5, "reduction": "none"}, "regression"), "BCEWithLogitsLoss": ({}, "unit"),
    "CrossEntropyLoss": ({"label_smoothing": 0.1, "ignore_index": 1}, "classes"),
    "NLLLoss": ({"reduction": "sum"}, "classes"),
    "KLDivLoss": ({"reduction": "batchmean"}, "unit"),
}  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    kwargs, kind = LOSSES[name]
    torch.manual_seed(7)
    x = torch.randn(6, 5)
    y = {
        "regression": torch.randn(6, 5),
        "unit": torch.rand(6, 5),
        "classes": torch.randint(0, 5, (6,)),
    }[kind]
    got = getattr(prong.nn, name)(**kwargs)(to_prong(x), to_prong(y))
    want = getattr(torch.nn, name)(**kwargs)(x, y)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


FAULTS = {
    "a state of the wrong size": lambda t: t.nn.LSTM(3, 4)(
        t.ones(2, 5, 3), (t.zeros(1, 5, 5), t.zeros(1, 5, 4))
    ),
    "an input of the wrong size": lambda t: t.nn.Linear(3, 4)(t.ones(2, 5)),
    "too many channels": lambda t: t.nn.Conv2d(3, 4, 3)(t.ones(1, 2, 5, 5)),
    "a batch of one": lambda t: t.nn.BatchNorm1d(3)(t.ones(1, 3)),
    "a class out of range": lambda t: t.nn.CrossEntropyLoss()(t.ones(2, 3), t.tensor([0, 3])),
    "a missing key": lambda t: t.nn.Linear(2, 2).load_state_dict({}),
    "an unexpected key": lambda t: t.nn.ReLU().load_state_dict({"weight": t.ones(2)}),
    "a wrong shape": lambda t: t.nn.Linear(2, 2, bias=False).load_state_dict(
        {"weight": t.ones(3, 3)}
    ),
    "a number as a parameter": lambda t: setattr(t.nn.Linear(2, 2), "weight", 3),
    "no super().__init__": lambda t: type(
        "M", (t.nn.Module,), {"__init__": lambda self: setattr(self, "p", t.nn.Linear(1, 1))}
    )(),
    "a dot in a name": lambda t: t.nn.Module().add_module("a.b", t.nn.ReLU()),
    "no forward": lambda t: t.nn.Module()(1),
    "a bad dropout": lambda t: t.nn.Dropout(1.5),
    "an index out of range": lambda t: t.nn.ModuleList([t.nn.ReLU()])[3],
    "a buffer that is no tensor": lambda t: t.nn.Module().register_buffer("b", 3),
    "an index beyond an embedding": lambda t: t.nn.Embedding(3, 2)(t.tensor([3])),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_have_pytorchs_class(name):
    with pytest.raises(Exception) as theirs:
        FAULTS[name](torch)
    with pytest.raises(theirs.type) as ours:
        FAULTS[name](prong)
    assert str(ours.value), "an error without a text"
