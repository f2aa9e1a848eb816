"""What was saved and loaded gives the same, and its parameters are live."""

import copy
import io

import prong as torch
import pytest
from prong import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(2, 3)
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Tanh()])
        self.register_buffer("seen", torch.zeros(1))
        self.scale = 2.0

    def forward(self, x, twice: bool = False):
        job = torch.jit.fork(self.lstm, x)
        y = job.wait()[0]
        for layer in self.layers:
            y = layer(y)
        self.seen += 1
        return y * self.scale if twice else y


def reload(scripted):
    file = io.BytesIO()
    torch.jit.save(scripted, file)
    file.seek(0)
    return torch.jit.load(file)


def test_module():
    module = Net().eval()
    scripted = torch.jit.script(module)
    loaded = reload(scripted)
    x = torch.randn(4, 1, 2)
    assert torch.equal(loaded(x), module(x)) and torch.equal(loaded(x, twice=True), module(x, True))
    assert list(loaded.state_dict()) == list(module.state_dict())
    assert isinstance(loaded.layers[0].weight, nn.Parameter) and not loaded.training
    with torch.no_grad():
        loaded.layers[0].bias.fill_(5)
    assert not torch.equal(loaded(x), module(x))
    assert loaded.seen.item() == 3
    again = copy.deepcopy(loaded)
    assert torch.equal(again(x), loaded(x))


def test_function_keeps_defaults():
    def scaled(x, k: int = 3, *, shift: float = 0.5):
        return x * k + shift

    loaded = reload(torch.jit.script(scaled))
    assert loaded(torch.ones(1)).item() == 3.5
    assert loaded(x=torch.ones(1), k=2, shift=1).item() == 3.0
    with pytest.raises(RuntimeError, match="unknown argument 'nope'"):
        loaded(torch.ones(1), nope=1)


def test_freeze():
    module = Net().eval()
    scripted = torch.jit.script(module)
    frozen = torch.jit.freeze(scripted)
    x = torch.randn(4, 1, 2)
    before = scripted(x)
    with torch.no_grad():
        module.layers[0].bias.fill_(5)
    assert torch.equal(frozen(x), before) and not torch.equal(scripted(x), before)
    with pytest.raises(RuntimeError, match="eval mode"):
        torch.jit.freeze(torch.jit.script(Net()))


def test_files(tmp_path):
    path = tmp_path / "f.pt"
    torch.jit.save(torch.jit.script(Net()), path, _extra_files={"note": "kept"})
    extra = {"note": ""}
    torch.jit.load(path, _extra_files=extra)
    assert extra == {"note": b"kept"}
    with pytest.raises(FileNotFoundError):
        torch.jit.load(tmp_path / "missing.pt")
    (tmp_path / "bad.pt").write_bytes(b"no archive")
    with pytest.raises(RuntimeError):
        torch.jit.load(tmp_path / "bad.pt")
    with pytest.raises(RuntimeError, match="torch.jit.save takes"):
        torch.jit.save(3, path)
