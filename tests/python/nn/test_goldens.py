"""What PyTorch gives for fixed seeds, kept in goldens.json, so that it is checked where PyTorch is not installed.

`python tests/python/nn/test_goldens.py` with PyTorch writes the file anew.
"""

import base64
import importlib
import io
import json
import pathlib

import prong
import pytest

FILE = pathlib.Path(__file__).with_name("goldens.json")


def modules(m):
    m.manual_seed(0)
    x = m.linspace(-1, 1, 48).reshape(2, 3, 8)
    yield "MultiheadAttention", m.nn.MultiheadAttention(8, 2, batch_first=True)(x, x, x)[0]
    yield "TransformerEncoderLayer", m.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)(x)
    yield "LSTM", m.nn.LSTM(8, 4, 2, bidirectional=True, dropout=0.3)(x)[0]
    yield (
        "GRU of packed sequences",
        m.nn.GRU(8, 4)(m.nn.utils.rnn.pack_sequence([x[0], x[1, :2]]))[0].data,
    )
    yield "Conv1d", m.nn.Conv1d(3, 4, 3, padding=1, groups=1)(x)
    yield "BatchNorm1d", m.nn.BatchNorm1d(3)(x)
    yield "Embedding", m.nn.Embedding(5, 3)(m.arange(5))
    yield "Bilinear", m.nn.Bilinear(8, 8, 3)(x, x)
    yield "AlphaDropout", m.nn.AlphaDropout(0.4)(x)
    yield "RReLU", m.nn.RReLU()(x)
    yield "trunc_normal_", m.nn.init.trunc_normal_(m.empty(9), std=2.0)
    yield "weight_norm", m.nn.utils.parametrizations.weight_norm(m.nn.Linear(8, 2))(x)
    yield "spectral_norm", m.nn.utils.parametrizations.spectral_norm(m.nn.Linear(8, 2))(x)


def losses(m):
    m.manual_seed(1)
    x, y, c = m.randn(4, 5), m.rand(4, 5), m.arange(4)
    for name in ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "SoftMarginLoss", "KLDivLoss"):
        yield name, getattr(m.nn, name)(reduction="sum")(x, y)
    for name in ("CrossEntropyLoss", "NLLLoss", "MultiMarginLoss"):
        yield name, getattr(m.nn, name)()(x, c)
    yield (
        "CTCLoss",
        m.nn.CTCLoss()(
            x.reshape(4, 1, 5).log_softmax(2), m.tensor([[1, 2]]), m.tensor([4]), m.tensor([2])
        ),
    )
    yield "TripletMarginLoss", m.nn.TripletMarginLoss()(x, y, y.flip(0))


def data(m):
    d = m.utils.data
    m.manual_seed(2)
    yield "shuffled", m.tensor([b.tolist() for b in d.DataLoader(range(10), 5, shuffle=True)])
    yield "RandomSampler", m.tensor(list(d.RandomSampler(range(7), True, 40)))
    yield "WeightedRandomSampler", m.tensor(list(d.WeightedRandomSampler([1, 2, 3.0], 9)))
    yield "random_split", m.tensor(d.random_split(range(9), [0.5, 0.5])[0].indices)
    yield "SubsetRandomSampler", m.tensor(list(d.SubsetRandomSampler([5, 3, 1])))
    yield "DistributedSampler", m.tensor(list(d.DistributedSampler(range(9), 2, 1)))


def autocast(m):
    x = m.linspace(0, 1, 16).reshape(4, 4)
    with m.autocast("cpu"):
        yield "product", (x @ x).float()
        yield "loss", m.nn.functional.mse_loss((x @ x), x)


PROGRAMS = {"modules": modules, "losses": losses, "data": data, "autocast": autocast}


def values(m, program):
    with m.no_grad():
        return {name: t.detach().flatten().tolist() for name, t in PROGRAMS[program](m)}


@pytest.mark.parametrize("program", PROGRAMS)
def test_values(program):
    want, got = json.loads(FILE.read_text())[program], values(prong, program)
    assert list(got) == list(want)
    for name, numbers in want.items():
        assert got[name] == pytest.approx(numbers, rel=1e-4, abs=1e-6), name


def saved(m):
    m.manual_seed(3)
    net = m.nn.Sequential(m.nn.Linear(2, 3), m.nn.BatchNorm1d(3))
    whole = m.arange(6.0)
    return {
        "state": net.state_dict(),
        "parts": [whole, whole[2:4], whole.reshape(2, 3).t()],
        "low": m.ones(3).to(m.bfloat16),
        "count": 3,
    }


def test_a_file_of_pytorch():
    file = io.BytesIO(base64.b64decode(json.loads(FILE.read_text())["file"]))
    got, want = prong.load(file), saved(prong)
    assert list(got) == list(want) and got["count"] == 3
    for (name, a), b in zip(got["state"].items(), want["state"].values(), strict=True):
        assert a.tolist() == b.tolist(), name
    got["parts"][0][2] = 9.0
    assert got["parts"][1].tolist() == [9, 3] and got["parts"][2].tolist() == [
        [0, 3],
        [1, 4],
        [9, 5],
    ]
    assert got["low"].dtype is prong.bfloat16 and got["low"].tolist() == [1, 1, 1]


def main():
    torch = importlib.import_module("torch")
    goldens = {program: values(torch, program) for program in PROGRAMS}
    file = io.BytesIO()
    torch.save(saved(torch), file)
    goldens["file"] = base64.b64encode(file.getvalue()).decode()
    FILE.write_text(json.dumps(goldens, indent=1) + "\n")


if __name__ == "__main__":
    main()
