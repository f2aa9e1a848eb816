"""Modules, scripted classes, marks and futures in scripts."""

from typing import List, Optional, Tuple

import prong as torch
import prong.nn.functional as F
import pytest
from prong import Tensor, nn


class Lin(nn.Module):
    def __init__(self, n, bias=True):
        super().__init__()
        self.fc = nn.Linear(n, n, bias=bias)
        self.act = nn.ReLU()
        self.scale = 2.0
        self.names = ["a", "b"]
        self.register_buffer("count", torch.zeros(1))
        self.calls = 0
        self.f = F.relu
        self.opt: Optional[int] = None

    def helper(self, x, k: int = 2):
        return x * k

    def forward(self, x):
        self.calls += 1
        self.count += 1
        y = self.act(self.fc(x)) * self.scale
        if self.training:
            y = y + 1
        if self.opt is not None:
            y = y * self.opt
        return self.helper(y, k=3), len(self.names), self.f(-x)

    @torch.jit.export
    def extra(self, n: int) -> int:
        return n + self.calls

    @torch.jit.ignore
    def py(self, x: int) -> int:
        return x

    @property
    def twice(self) -> float:
        return self.scale * 2


def test_module_basic():
    m = Lin(2)
    s = torch.jit.script(m)
    x = torch.ones(1, 2)
    a, b = m(x), s(x)
    assert torch.equal(a[0], b[0]) and a[1] == b[1], (a, b)
    assert (s.calls, s.count.item(), s.extra(5), s.scale, s.twice) == (1, 2.0, 6, 2.0, 4.0)
    s.eval()
    assert not s.training
    assert torch.equal(s(x)[0], (m.eval()(x))[0])
    with torch.no_grad():
        m.fc.weight.fill_(1.0)
    assert torch.equal(s(x)[0], m(x)[0])
    assert list(s.state_dict()) == list(m.state_dict())
    assert [n for n, _ in s.named_parameters()] == ["fc.weight", "fc.bias"]
    s.opt = 2
    assert torch.equal(s(x)[0], 2 * m(x)[0])
    s.to(torch.float64)
    assert s(x.double())[0].dtype == torch.float64


class Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.seq = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2))
        self.d = nn.ModuleDict({"x": nn.Linear(2, 2), "y": nn.ReLU()})
        self.l = nn.ModuleList([nn.Linear(2, 2), nn.Sigmoid()])
        self.drop = nn.Dropout(0.5)
        self.ln = nn.LayerNorm(2)
        self.bn = nn.BatchNorm1d(2)
        self.emb = nn.Embedding(5, 2)

    def forward(self, x):
        x = self.seq(x)
        for _k, m in self.d.items():
            x = m(x)
        for m in self.l:
            x = m(x)
        for i, m in enumerate(self.l):
            x = m(x) + i
        x = self.d["x"](x)
        x = self.l[0](x)
        x = self.ln(self.drop(x))
        x = self.bn(x)
        return x + self.emb(torch.tensor([1]))


def test_containers():
    m = Seq().eval()
    s = torch.jit.script(m)
    x = torch.randn(3, 2)
    assert torch.equal(m(x), s(x))
    m.train()
    s.train()


class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = nn.GRU(2, 3, batch_first=True)
        self.cell = nn.LSTMCell(2, 3)
        self.conv = nn.Conv1d(2, 2, 3, padding=1)
        self.conv2 = nn.Conv2d(1, 2, 3)
        self.loss = nn.MSELoss()
        self.pool = nn.MaxPool2d(2) if hasattr(nn, "MaxPool2d") else nn.Identity()

    def forward(self, x):
        o, h = self.g(x)
        h2, c2 = self.cell(x[:, 0])
        z = self.conv(x.transpose(1, 2))
        w = self.conv2(torch.ones(1, 1, 5, 5))
        return o.sum() + h.sum() + h2.sum() + z.sum() + self.loss(x, x * 2) + w.sum()


def test_rnn():
    m = Gru()
    s = torch.jit.script(m)
    x = torch.randn(2, 4, 2)
    assert torch.allclose(m(x), s(x)), (m(x), s(x))


@torch.jit.script
class Counter:
    def __init__(self, start: int = 0):
        self.n = start
        self.log: List[int] = []

    def add(self, k: int) -> "Counter":
        self.n += k
        self.log.append(k)
        return self

    def __len__(self) -> int:
        return len(self.log)

    def __add__(self, other: "Counter") -> int:
        return self.n + other.n

    def __enter__(self):
        self.n = 100
        return self

    def __exit__(self, a, b, c):
        self.n += 1


def test_classes():
    def f(k: int):
        c = Counter(1)
        c.add(k).add(2)
        d = Counter()
        with c as e:
            z = e.n
            c.add(5)
        return c.n, len(c), c + d, c.log, z

    s = torch.jit.script(f)
    assert s(3) == f(3), (s(3), f(3))

    def g():
        return Counter(7)

    r = torch.jit.script(g)()
    assert (r.n, len(r.log), r.add(1).n) == (7, 0, 8)

    def h(c: Counter):
        return c.n + 1

    assert (torch.jit.script(h)(r), torch.jit.script(h)(Counter(4))) == (9, 5)


class Base(nn.Module):
    def forward(self, x):
        return x + 1


class Derived(Base):
    def forward(self, x):
        return super().forward(x) * 2


def test_inherit():
    m = Derived()
    assert torch.equal(torch.jit.script(m)(torch.ones(1)), m(torch.ones(1)))


class Const(nn.Module):
    __constants__ = ["k"]
    z: torch.jit.Final[int]

    def __init__(self):
        super().__init__()
        self.k = 3
        self.z = 4
        self.act = torch.relu
        self.opt = None
        self.p = nn.Parameter(torch.ones(2))
        self.register_parameter("q", None)

    def forward(self, x: Tensor, y: Optional[Tensor] = None):
        for i in range(self.k):
            x = x + i
        if self.opt is not None:
            x = self.opt(x)
        if self.q is not None:
            x = x + self.q
        if y is not None:
            x = x + y
        return self.act(x) * self.z + self.p


def test_consts():
    m = Const()
    s = torch.jit.script(m)
    assert torch.equal(m(torch.ones(2)), s(torch.ones(2)))
    assert torch.equal(m(torch.ones(2), torch.ones(2)), s(torch.ones(2), y=torch.ones(2)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.ms = nn.ModuleList([Lin(2) for _ in range(3)])
        self.n = 3

    def forward(self, x):
        fs: List[torch.jit.Future[Tuple[Tensor, int, Tensor]]] = []
        for i in range(self.n):
            fs.append(torch.jit.fork(self.ms[i], x))
        out = []
        for f in fs:
            out.append(torch.jit.wait(f)[0])
        g = torch.jit.fork(self.ms[0].extra, 3)
        return torch.stack(out), g.wait()


def test_dynamic_list():
    m = Net().eval()
    s = torch.jit.script(m)
    a, b = m(torch.ones(1, 2)), s(torch.ones(1, 2))
    assert torch.equal(a[0], b[0])
    assert (a[1], b[1]) == (4, 4)


class MyErr(Exception):
    pass


@pytest.mark.parametrize(
    ("n", "kind", "text"),
    [
        (1, MyErr, "one"),
        (2, KeyError, "two"),
        (3, ValueError, "three 3"),
        (4, AssertionError, "small"),
        (11, KeyError, "b"),
    ],
)
def test_errors_keep_their_class(n, kind, text):
    def f(x: int):
        if x == 1:
            raise MyErr("one")
        if x == 2:
            raise KeyError("two")
        if x == 3:
            raise ValueError(f"three {x}")
        assert x > 10, "small"
        d = {"a": 1}
        return d["b"]

    def task(x: int):
        return torch.jit.wait(torch.jit.fork(f, x))

    for g in (f, torch.jit.script(f), task, torch.jit.script(task)):
        with pytest.raises(kind, match=text):
            g(n)


def test_decorators():
    @torch.jit.unused
    def nope(x: int) -> int:
        raise ValueError

    @torch.jit.ignore
    def py(x: int, s: str = "a") -> List[int]:
        return [x, len(s)]

    def f(x: int):
        if torch.jit.is_scripting():
            return py(x), 1
        else:
            return [nope(x)], 2

    assert torch.jit.script(f)(3) == ([3, 1], 1)

    def g(x: int):
        return nope(x)

    with pytest.raises(RuntimeError, match="marked @torch.jit.unused"):
        torch.jit.script(g)(3)


def test_prints(capsys):
    def f(x, n: int):
        print("hi", n, x, [1, 2], (1, "a"), {"k": 2.5}, None, True)
        print(f"{n:>4}", end="!\n")

    f(torch.ones(2), 3)
    expected = capsys.readouterr().out
    torch.jit.script(f)(torch.ones(2), 3)
    assert capsys.readouterr().out == expected


def test_futures():
    def work(x, k: int = 1):
        return x + k

    def f(x):
        a = torch.jit.fork(work, x)
        b = a.then(lambda_like)
        c = torch.futures.collect_all([a, a])
        return b.wait(), [q.wait() for q in c.wait()], a.done(), a.value()

    a, b, c, d = torch.jit.script(f)(torch.ones(1))
    assert (a.item(), [t.item() for t in b], c, d.item()) == (20.0, [2.0, 2.0], True, 2.0)


def lambda_like(f: torch.jit.Future[Tensor]):
    return f.value() * 10


def test_grads():
    def f(x):
        with torch.no_grad():
            y = x * 2
        with torch.enable_grad():
            z = x * 3
        torch.set_grad_enabled(False)
        w = x * 4
        torch.set_grad_enabled(True)
        with torch.set_grad_enabled(False):
            v = x * 1
        with torch.inference_mode():
            u = x * 1
        return (
            y.requires_grad,
            z.requires_grad,
            w.requires_grad,
            v.requires_grad,
            u.requires_grad,
            torch.is_grad_enabled(),
        )

    x = torch.ones(1, requires_grad=True)
    a = torch.jit.script(f)(x)
    assert a == f(x), a


def test_with_forward_hooks_and_module_in_tuple():
    class A(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(2, 2)
            self.b = nn.ReLU()

        def forward(self, x):
            for m in (self.a, self.b):
                x = m(x)
            pair = (self.a, x)
            return pair[0](pair[1])

    m = A()
    s = torch.jit.script(m)
    x = torch.ones(1, 2)
    assert torch.equal(m(x), s(x))
