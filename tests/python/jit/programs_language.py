"""Functions that give the same in Python and scripted; run by test_language.py.

Each entry of CASES: function, arguments.
"""

import math
import math as m
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch
import torch as t
import torch.nn.functional as F
from torch import Tensor

CASES = []


def case(*arguments):
    def add(function):
        CASES.append((function, arguments))
        return function

    return add


LIMIT = 7
NAMES = ["a", "b"]
SHAPE = (2, 3)


class Point(NamedTuple):
    x: int
    y: float = 0.5


class Pair(NamedTuple):
    first: Tensor
    second: Optional[Tensor]


def helper(x: int, scale: int = 2, *, shift: int = 0) -> int:
    return x * scale + shift


@case(5)
@case(-3)
def arithmetic(n: int):
    return (
        n // 2,
        n % 3,
        -n % 3,
        n / 2,
        n**2,
        2**-1,
        n << 2,
        n >> 1,
        n & 3,
        n | 8,
        n ^ 5,
        ~n,
        abs(n),
        divmod(n, 2),
        round(2.567, 1),
        round(2.5),
        +n,
    )


@case(2.5, 3)
def mixed(a: float, b: int):
    return (
        a + b,
        b - a,
        a * b,
        a / b,
        a // b,
        a % b,
        a**b,
        a < b,
        a == b,
        min(a, b),
        max(1, 2, 3),
        int(a),
        float(b),
        bool(b),
        str(a),
        str(b),
    )


@case()
def strings():
    s = "Hello, World"
    parts = s.split(", ")
    return (
        s.lower(),
        s.upper(),
        parts,
        "-".join(parts),
        s[1:4],
        s[::-1],
        s.replace("l", "L"),
        s.find("W"),
        s.startswith("He"),
        len(s),
        "{} and {}".format(1, "x"),
        "%d/%s/%.2f" % (3, "y", 1.5),
        f"{s!r:>16}|{3:05d}|{2.5:.1f}",
        "a" in "abc",
        "b" * 3,
        s.count("l"),
        "  x ".strip(),
        "7".zfill(3),
        s.endswith("ld"),
        ord("a"),
        chr(98),
        "a" < "b",
        s == "Hello, World",
        "it's",
        "tab\tx",
        r"raw\n",
    )


@case([3, 1, 2])
@case([1])
def lists(v: List[int]):
    w = v.copy()
    w.append(9)
    w.extend([7, 8])
    w.insert(0, -1)
    last = w.pop()
    first = w.pop(0)
    w.sort()
    u = sorted(v, reverse=True)
    w.reverse()
    w[0] = 100
    w[-1] += 5
    del w[1]
    return (
        w,
        last,
        first,
        u,
        v + [0],
        v * 2,
        len(w),
        sum(v),
        max(v),
        min(v),
        v[::2],
        v[-1],
        3 in v,
        v.index(1),
        v.count(1),
        list(range(3)),
        w == u,
        not v,
    )


@case({"a": 1, "b": 2})
def dicts(d: Dict[str, int]):
    e: Dict[str, int] = {}
    for k in d:
        e[k + k] = d[k]
    for k, v in d.items():
        e[k] = v * 10
    e["z"] = e.get("a", 0) + e.get("nope", 5)
    got = e.pop("aa")
    del e["bb"]
    e.update({"q": 3})
    missing = e.get("w")
    return (
        e,
        got,
        list(d.keys()),
        list(d.values()),
        "a" in d,
        "x" not in d,
        len(e),
        missing is None,
        {k: v for k, v in d.items() if v > 1},
    )


@case(3)
@case(0)
def loops(n: int):
    total = 0
    for i in range(n):
        for j in range(i, 10, 3):
            if j % 2 == 0:
                continue
            if j > 7:
                break
            total += i * j
        else:
            total += 1000
    k = 10
    while k > n:
        k -= 2
        if k == 4:
            break
    else:
        total -= 1
    for a, b in zip([1, 2, 3], [4, 5]):
        total += a * b
    for i, s in enumerate(["x", "yy"], 1):
        total += i * len(s)
    for c in "ab":
        total += ord(c)
    for v in reversed([1, 2, 3]):
        total = total * 2 + v
    return total, k


@case(0)
@case(4)
@case(20)
def early(n: int):
    if n == 0:
        return "zero"
    for i in range(n):
        if i == 3:
            with torch.no_grad():
                if n > 10:
                    return "deep"
            return "three"
    return "end"


@case(5)
def find(n: int):
    i = 0
    while True:
        i += 1
        if i * i > n:
            return i


@case(torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
def indexing(x):
    y = x.clone()
    y[0] = 0
    y[:, 1] = 7
    y[1, -1] += 2
    y[..., 0] *= 3
    i = torch.tensor([1, 0])
    z = x[i]
    w = x[x > 2]
    y[y > 20] = -1.0
    q = x[:, None, ::2]
    return (
        y,
        z,
        w,
        q,
        x[-1],
        x[0, 1:],
        x[1][2],
        x[[0, 1], [2, 0]],
        x[..., -1],
        x[None].shape,
        x[i, 1:],
    )


@case(torch.arange(6.0).reshape(2, 3))
def tensors(x):
    a, b = x.shape
    c, d = x
    total = torch.zeros(a, dtype=torch.float32)
    for row in x:
        total = total + row.sum()
    values, where = x.max(dim=1)
    best = torch.max(x, 1)
    return (
        x.T,
        x + 1,
        2 - x,
        1 / (x + 1),
        x @ x.T,
        -x,
        x**2,
        x % 2,
        x // 2,
        x > 1,
        x == 2,
        ~(x > 1),
        a,
        b,
        c,
        d,
        total,
        values,
        where,
        best.indices,
        x.size(0),
        x.dim(),
        x.numel(),
        x.view(3, 2),
        x.permute(1, 0),
        x.sum(dim=0, keepdim=True),
        len(x),
        x.mean(),
        x.reshape(-1),
        x.dtype == torch.float32,
    )


@case(torch.tensor([1.0, -2.0]))
def functions(x):
    return (
        torch.relu(x),
        F.relu(x),
        F.softmax(x, dim=0),
        t.cat([x, x]),
        torch.stack((x, x), 0),
        torch.where(x > 0, x, -x),
        torch.clamp(x, min=-1, max=0.5),
        x.clamp(min=0),
        torch.full((2,), 3.0),
        torch.arange(3),
        torch.tensor([[1, 2], [3, 4]]),
        torch.tensor(2.5),
        torch.tensor([1.0, 2.0], dtype=torch.float64),
        torch.ones(2, 2, dtype=torch.int64),
        torch.ones_like(x),
        x.to(torch.float64),
        x.long(),
        x.unsqueeze(0).squeeze(),
        torch.zeros([2, 3]).shape,
    )


@case(2.0)
def maths(x: float):
    return (
        math.sqrt(x),
        m.pi,
        math.floor(2.7),
        math.ceil(x),
        math.exp(x),
        math.log(x),
        math.inf > 1,
        math.isnan(math.nan),
        math.pow(x, 3),
        math.fabs(-x),
    )


@case(None)
@case(torch.tensor([1.0]))
def optional(x: Optional[Tensor]):
    y = torch.zeros(1) if x is None else x
    if x is not None and x.numel() > 0:
        y = x * 2
    elif x is None:
        y = y - 1
    z: Optional[int] = None
    if y.sum() > 0:
        z = 3
    if z is None:
        z = 4
    return y, z + 1


@case(3)
@case(None)
def default_or(x: Optional[int] = None):
    y = x or 8
    assert y > 0, f"got {y}"
    return y, x if x is not None else -1


@case(4)
def tuples(n: int):
    p = (n, "s", [1, 2])
    a, b, c = p
    q = p + (3.5,)
    (d, e), f = (1, 2), 3
    head, *rest = [n, n + 1, n + 2]
    *front, back = rest
    return (
        p[0],
        p[-1],
        q[3],
        p[1:],
        a,
        b,
        c,
        d,
        e,
        f,
        head,
        rest,
        front,
        back,
        len(p),
        (1, 2) == (1, 2),
        2 in (1, 2, 3),
    )


@case(2)
def named(n: int):
    p = Point(n)
    q = Point(x=1, y=n * 2.0)
    x, y = q
    return p, q.y, p.x + q.x, p[1], x, y


@case(torch.ones(2))
def named_optional(x):
    p = Pair(x, None)
    s = p.second
    if s is None:
        s = x * 3
    return p.first + s


@case(3)
def calls(n: int):
    return (
        helper(n),
        helper(n, 5),
        helper(n, shift=1),
        helper(scale=3, x=n),
        helper(*(n, 4)),
        LIMIT + n,
        len(NAMES),
        SHAPE[1],
        NAMES[0],
    )


@case([1, 2, 3, 4])
def comprehensions(v: List[int]):
    a = [x * 2 for x in v]
    b = [x for x in v if x % 2 == 0 if x > 2]
    c = {str(x): x for x in v}
    d = [[i * j for j in range(2)] for i in range(3)]
    e = [x + y for x in v for y in range(2)]
    f = sum(x * x for x in v)
    g = any(x > 3 for x in v)
    h = all([x > 0 for x in v])
    i = [(k, w) for k, w in enumerate(v)]
    j = max(x for x in v)
    return a, b, c, d, e, f, g, h, i, j, [x for x in range(0)]


@case(1)
def chained(n: int):
    a = b = n + 1
    c, d = a, b
    c, d = d + 5, c
    return (
        0 < n < 3,
        1 <= n <= 0,
        n == 1 == a - 1,
        not n > 5,
        n > 0 and a > 1 or False,
        (n > 5) == False,
        a,
        b,
        c,
        d,
    )


@case(4)
def unannotated_lists(n: int):
    xs = []
    ys = []
    for i in range(n):
        xs.append(i)
        ys.append((i, str(i)))
    d = {}
    d["k"] = 2.5
    zs = [[] for _ in range(2)]
    zs[0].append(1)
    return xs, ys, d, zs


@case(torch.tensor(3))
def conversions(x):
    return (
        int(x),
        float(x),
        bool(x),
        x.item() + 1,
        int(2.9),
        int("12"),
        float("1.5"),
        str(True),
        bool([]),
        bool("a"),
    )


@case(1)
@case("s")
@case(2.5)
def any_type(x: Any):
    if isinstance(x, int):
        return x + 1
    if isinstance(x, str):
        return len(x)
    return -1


@case(1)
@case([1, 2])
@case({"a": 1})
def any_container(x: Any):
    if isinstance(x, list):
        return len(x)
    if isinstance(x, (str, dict)):
        return -1
    return 0


@case([1, 2], (1, 2.0), None)
@case([1, 2], (1, 2.0), [3])
def bare_containers(x: List[int], y: Tuple[int, float], z: Optional[List[int]]):
    n = 0
    if isinstance(z, list):
        n += len(z)
    return isinstance(x, list), isinstance(x, (tuple, dict)), isinstance(y, tuple), n


@case(torch.tensor([2.0]))
def accumulate(x):
    total = 0
    for i in range(3):
        total = total + x * i
    y = sum([x, x, x])
    best = 0.0
    for k in range(3):
        best = max(best, float(x) * k)
    return total, y, best


@case(6)
def fibonacci(n: int):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


@case(3)
def nested_ifs(n: int):
    s = ""
    if n > 5:
        s += "big"
    elif n > 2:
        s += "mid"
        if n == 3:
            s += "!"
        else:
            return s
    else:
        s = "small"
    return s


@case(2)
def ternaries(n: int):
    return (1 if n > 1 else 2), (n if n > 5 else 0.5), ("a" if n else "b"), [1, 2][n > 5]


def untyped_comment(x, n):
    # type: (Tensor, int) -> Tuple[Tensor, int]
    out = []  # type: List[Tensor]
    for _ in range(n):
        out.append(x)
    return torch.stack(out), n


case(torch.ones(1), 2)(untyped_comment)


@case([1.5, 2.5], 2)
def union_types(
    xs: list[float], n: int | None, d: dict[str, int] | None = None
) -> tuple[float, int]:
    k = 0 if n is None else n
    return sum(xs), k


@case(torch.ones(2, 2))
def in_place(x):
    x = x.clone()
    y = x
    y += 1
    x.mul_(3)
    x -= y * 0.5
    z = x.t()
    z.add_(1)
    return x, y


@case(10)
def walrus(n: int):
    out = []
    while (n := n - 3) > 0:
        out.append(n)
    return out


@case(3)
def deletes(n: int):
    x = [1, 2, 3]
    y = n
    del x[0], y
    return x


@case(torch.tensor([[1, 2], [3, 4]]))
def while_tensor(x):
    n = 0
    while x.sum() < 100:
        x = x * 2
        n += 1
    return x, n


@case(True)
@case(False)
def booleans(b: bool):
    c = b and not b
    return c, b or c, b ^ True, b & True, b + 1, b == True, int(b), b is True if b else None
