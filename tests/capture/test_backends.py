"""Back ends by name, by entry point and through other packages; the latter run where those are installed."""

import importlib.util
import subprocess
import sys

import prong as torch
import pytest
from prong import nn
from prong.bridge import packages


def needs(*names):
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"without {', '.join(missing)}")


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        weights = (q @ k.transpose(-2, -1) / 8**0.5).softmax(-1)
        return (weights @ v).sum(1, keepdim=True) + x[:, 0:1] * 2


def layers():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 10),
        nn.LayerNorm(10),
        nn.GELU(),
        nn.Softmax(-1),
    ).eval()


def many_ops(x, y):
    a = torch.cat([x, y], 0).reshape(2, -1)
    b = torch.where(a > 0, a, a * 0.5).to(torch.float64)
    c = torch.stack([b, b], 1).permute(1, 0, 2)
    return (
        c.mean(0),
        (b - b.amax(1, keepdim=True)).exp().sum(),
        x[:, None, 1:].tanh(),
        x != y,
        x.argmax(1),
        x.long() / 2,
        2 - x,
        x**2,
        x.clamp(-1, 0.5),
    )


def with_number(x, n):
    for i in range(3):
        x = x * (i + 1) + n
    return x.sin().flatten()


def agree(got, want):
    if isinstance(want, tuple):
        return len(got) == len(want) and all(map(agree, got, want))
    return (
        got.dtype is want.dtype
        and got.shape == want.shape
        and torch.allclose(got.double(), want.double(), atol=1e-5)
    )


def check(backend, function, *calls):
    compiled = torch.compile(function, backend=backend)
    with torch.no_grad():
        for args in calls:
            assert agree(compiled(*args), function(*args)), (backend, args)


ADAPTERS = [
    pytest.param("torchscript", marks=needs("torch")),
    pytest.param("onnxruntime", marks=needs("onnx", "onnxruntime")),
    pytest.param("tvm", marks=needs("onnx", "tvm")),
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("backend", ["llvm", "interpreter", "eager", *ADAPTERS])
def test_a_back_end_gives_what_eager_gives(backend):
    check(backend, layers(), (torch.randn(2, 3, 8, 8),), (torch.randn(5, 3, 8, 8),))
    check(backend, Attention(), (torch.randn(2, 5, 8),))
    check(backend, many_ops, (torch.randn(4, 3), torch.randn(4, 3)))
    check(backend, with_number, *((torch.ones(2, 2), n) for n in (1, 2, 3.5)))
    check(backend, with_number, *((torch.ones(2, 2), n) for n in (0.5, 3.5)))
    check(backend, with_number, *((torch.tensor([1, 2]), n) for n in (0.5, 3.5)))


@needs("torch")
@pytest.mark.timeout(300)  # it runs a C++ compiler
def test_inductor_is_pytorchs():
    check("inductor", with_number, (torch.ones(2, 2), 1))


@needs("torch")
def test_what_a_graph_writes_is_written_through_pytorch():
    @torch.compile(backend="torchscript")
    def f(x):
        x.add_(1)
        return x * 2

    x = torch.zeros(3)
    assert f(x).tolist() == [2.0] * 3 and x.tolist() == [1.0] * 3 and x._version == 1


@pytest.mark.parametrize("backend", ADAPTERS[1:])
def test_an_op_that_onnx_lacks_is_named(backend):
    def f(x):
        return torch.special.i0(x) * 2

    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="special_i0|i0"):
        torch.compile(f, backend=backend)(torch.ones(2))


@pytest.mark.parametrize("name", ["inductor", "torchscript", "onnxruntime", "tvm"])
def test_a_package_that_is_not_here_is_named(name, monkeypatch):
    monkeypatch.setattr(packages, "is_installed", lambda *names: False)
    with pytest.raises(RuntimeError, match=rf"{name}.*needs .*\(pip install .*'llvm'"):
        torch.compile(lambda x: x, backend=name)
    assert name not in torch.compiler.list_backends()


def test_where_torch_is_prong_inductor_says_so(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import torch\ntorch.compile(lambda x: x, backend='inductor')\n")
    done = subprocess.run(
        [sys.executable, "-m", "prong", program], capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0 and "the name torch means prong here" in done.stderr


def test_back_ends_are_found_by_entry_point(tmp_path, monkeypatch):
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[prong_backends]\nmine = a_back_end_of_mine:compiler\n")
    (tmp_path / "a_back_end_of_mine.py").write_text(
        "seen = []\ndef compiler(module, inputs):\n    seen.append(module.code)\n    return module\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert "mine" in torch.compiler.list_backends()
    assert torch.compile(lambda x: x * 2 + 1, backend="mine")(torch.ones(1)).item() == 3.0
    assert len(sys.modules["a_back_end_of_mine"].seen) == 1


def test_registered_names_options_and_the_default():
    seen = []

    @torch._dynamo.register_backend
    def noting(module, example_inputs, options=None, mode=None):
        seen.append((options, mode, [tuple(e.shape) for e in example_inputs]))
        return module

    def f(x):
        return x * 2 + 1

    x = torch.ones(2)
    torch.compile(f, backend="noting", options={"a": 1})(x)
    torch.compile(f, backend="noting", mode="max-autotune")(x)
    assert seen == [({"a": 1}, None, [(2,)]), (None, "max-autotune", [(2,)])]
    torch.compiler.set_default_backend("noting")
    try:
        torch.compile(f)(x)
    finally:
        torch.compiler.set_default_backend(None)
    assert len(seen) == 3 and torch.compiler.get_default_backend() != "noting"
    module_to_run = torch._dynamo.lookup_backend("eager")
    graphs = []
    torch.compile(f, backend=lambda module, inputs: graphs.append(module) or module)(x)
    assert module_to_run(graphs[0], [x])(x)[0].tolist() == [3.0, 3.0]
