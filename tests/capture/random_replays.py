"""Random functions that capture can follow to the end, called many times while what they read changes. Replayed or
evaluated, a call must do what plain Python does. By hand: `random_programs.py --kind replays` runs these.
"""

import random

from random_functions import Choices
from random_programs import outcome, run_source, shared_scope

PRELUDE = """
import collections, contextlib, dataclasses, functools, io, itertools, logging, operator, random, time, warnings
sink, dice, logger = io.StringIO(), random.Random(7), logging.Logger('program')
logger.addHandler(logging.StreamHandler(sink))
logger.handlers[0].setFormatter(logging.Formatter('%(levelname)s %(funcName)s:%(lineno)d %(message)s'))
G = {'g': 1, 'h': 2.5}
scale, steps = 2.0, 1
class O:
    limit = 3
    def __init__(self): self.scale, self.count, self.parts, self.inner = 2, 0, [1, 2.0], None
    def apply(self, t): return t * self.scale
    def more(self, t, by): return t + by * self.limit
    @property
    def doubled(self): return self.scale * 2
class Other(O):
    def apply(self, t): return t - self.scale
o, p = O(), O()
o.inner = p
net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
def helper(t, v): return t + v
def chooser(t, n):
    if n > 2: return t * 2
    return t - n
def pair(t, v): return t, v
class Box:
    size = 2
    def __init__(self, held, by=3): self.held, self.by, self.log = held, by, []
    @property
    def grown(self): return self.held * self.by
    def __add__(self, other): return Box(self.held + other.held, self.by)
    def __len__(self): return self.size
class Deep(Box):
    def __init__(self, held): super().__init__(held, 2); self.extra = 1
@dataclasses.dataclass
class Record:
    a: object
    b: float = 2
    def total(self): return self.a * self.b
class Slotted:
    __slots__ = ('a', 'b')
    def __init__(self, a, b): self.a, self.b = a, b
    def __repr__(self): return f'Slotted({self.a.tolist()}, {self.b})'
class Guarded:
    def __init__(self, swallows): self.swallows = swallows
    def __enter__(self): return self
    def __exit__(self, kind, error, trace): return self.swallows
Named = collections.namedtuple('Named', 'a b')
def walked(t, n):
    for i in range(n): yield t + i
@contextlib.contextmanager
def managed(v): yield v
def told(t, n):
    logger.warning('told %s of %d', n, t.dim())
    return t + n
def make(cell):
    def set_cell(value):
        nonlocal cell
        cell = value
"""


class Writer:
    """Writes one function; all choices come from its seed."""

    def __init__(self, seed):
        self.r = Choices(seed)
        self.lines, self.depth, self.budget = [], 2, self.r.randint(3, 9)
        self.tensors, self.numbers, self.count = ["x", "y"], ["n", "k"], 0
        self.kept, self.names = [], set()

    def emit(self, text):
        self.lines.append("    " * self.depth + text)

    def fresh(self, stem):
        self.count += 1
        return f"{stem}{self.count}"

    def number(self):
        r, n, t = self.r, self.r.choice(self.numbers), self.r.choice(self.tensors)
        return self.r.choice(
            (
                *[n] * 4,
                str(self.r.randint(-2, 4)),
                "2.5",
                "cell",
                "scale",
                "steps",
                "o.scale",
                "o.limit",
                "o.doubled",
                "o.inner.scale",
                "o.parts[0]",
                "G['g']",
                "opts.get('a', 2)",
                "len(items)",
                "len(opts)",
                f"{t}.shape[0]",
                f"{t}.dim()",
                f"{t}.numel()",
                f"{t}.size(-1)",
                f"len({t}.shape)",
                f"max({t}.shape, default=0)",
                f"{t}.sum().item()",
                f"int({t}.sum() * 0.5)",
                f"float({t}.mean())",
                f"divmod({t}.numel(), 3)[{r.randint(0, 1)}]",
                f"round({n} * 0.7)",
                f"min({n}, {t}.numel())",
                f"({t}.shape[0] // 2)",
                f"{t}.reshape(-1)[:3].tolist()[-1]",
                f"({n} + 1)",
                f"({n} % 3)",
                f"({n} // 2)",
                f"-{n}",
                f"abs({n})",
                f"max({n}, 1)",
                f"int({n})",
                f"(1 if flag else {n})",
                "rec.b",
                "dice.random()",
                "dice.randint(0, 3)",
                f"sum(q * 2 for q in ({n}, {t}.numel()))",
                f"len(f'{{{t}.sum().item():.1f}}')",
            )
        )

    def tensor(self):
        r, t, u = self.r, self.r.choice(self.tensors), self.r.choice(self.tensors)
        return r.choice(
            (
                *[f"{t} {r.choice('+-*')} {self.number()}"] * 3,
                *[f"{t} {r.choice('+-*')} {u}"] * 2,
                f"{self.number()} {r.choice('+-*')} {t}",
                f"{t}.{r.choice(('relu', 'tanh', 'abs', 'sum', 'exp', 'mean', 'clone', 'contiguous', 'detach'))}()",
                f"torch.{r.choice(('sin', 'sigmoid', 'zeros_like'))}({t})",
                f"{t}.reshape(-1)",
                f"{t}[..., :1]",
                f"{t}[{r.randint(-1, 1)}]",
                f"{t}[:{self.number()}]",
                f"{t}[{self.number()}:]",
                f"{t}[{t}.shape[0] - 1]",
                f"{t}.view({t}.shape)",
                f"{t}.reshape({t}.numel())",
                f"{t}.reshape(*{t}.shape[:-1], -1)",
                f"{t}.expand(2, *{u}.shape)",
                f"torch.zeros({t}.shape[:1] + (2,)) + {self.number()}",
                f"{t} * (torch.arange({t}.size(-1)) < {self.number()})",
                f"{t}.new_full({t}.size(), {self.number()})",
                f"torch.nn.functional.pad({t}, (0, {u}.size(-1)))",
                f"{t}.T.contiguous()",
                f"{t}.narrow(0, 0, 1)",
                f"torch.where({t} > {self.number()}, {t}, {t} * 2)",
                f"torch.stack([{t}, {t}])",
                f"torch.cat([{t}.flatten(), {u}.flatten()])",
                f"helper({t}, {self.number()})",
                f"chooser({t}, {self.number()})",
                f"o.apply({t})",
                f"o.more({t}, {self.number()})",
                f"o.inner.apply({t})",
                f"{t}.to(torch.float64)",
                f"{t}.unsqueeze(0)",
                f"{t}.expand(2, *{t}.shape)",
                f"pair({t}, {self.number()})[0]",
                f"torch.full((2,), {self.number()})",
                f"torch.ones({self.r.randint(1, 3)}) * {self.number()}",
                f"torch.arange({self.number()})",
                f"net(torch.ones(2, 3)) * {self.number()}",
                f"({t} if flag else {u})",
                f"{t}.softmax(-1)",
                f"{t} * items[0]",
                "opts['t'] * 2 if 't' in opts else x",
                "rec.a * 2",
                f"rec.a + {t}",
                f"told({t}, {self.number()})",
                "rec.total()",
            )
        )

    def condition(self):
        r, t = self.r, self.r.choice(self.tensors)
        return r.choice(
            (
                f"{self.number()} {r.choice(('<', '==', '>=', '!='))} {self.number()}",
                f"{self.number()} > 2",
                "flag",
                "not flag",
                "'a' in opts",
                "opts",
                "items",
                f"{t}.dim() > 1",
                f"{t}.shape == y.shape",
                f"{t}.shape[:1] != (3,)",
                f"{t}.sum().item() > {self.number()}",
                f"not {self.number()}",
                f"{t}.sum() > {self.number()}",
                f"{t}.dtype is torch.float64",
                f"{t}.requires_grad",
                "isinstance(n, int)",
                "n and k",
                "o.inner is p",
                "cell is None or flag",
                "len(items) > 2",
                "dice.random() < 0.5",
                "rec.b > 1",
                "rec.a is x",
            )
        )

    def statement(self):
        self.budget -= 1
        simple = [*[self.assign] * 5, self.assign_number, self.in_place, self.store, self.unpack]
        simple += [self.made, self.closure, self.more_made, self.objects, self.fork_]
        simple += [self.step, self.step, self.outer_store]
        deep = [self.if_, self.if_, self.for_, self.leave, self.try_, self.with_, self.match]
        self.r.choice(simple + deep if self.budget > 0 and self.depth < 5 else simple)()

    def block(self):
        self.depth += 1
        known = list(self.tensors), list(self.numbers)
        for _ in range(self.r.randint(1, 2)):
            self.statement()
        self.tensors, self.numbers = known
        self.depth -= 1

    def assign(self):
        name = self.r.choice(self.tensors) if self.r.random() < 0.35 else self.fresh("t")
        self.emit(f"{name} = {self.tensor()}")
        if name not in self.tensors:
            self.tensors.append(name)

    def assign_number(self):
        name = self.r.choice(self.numbers) if self.r.random() < 0.3 else self.fresh("v")
        self.emit(f"{name} = {self.number()} {self.r.choice('+-*')} {self.number()}")
        if name not in self.numbers:
            self.numbers.append(name)

    def in_place(self):
        t = self.r.choice(self.tensors)
        self.emit(
            self.r.choice(
                (
                    f"{t} += {self.number()}",
                    f"{t}.mul_({self.number()})",
                    f"{t}.add_({self.r.choice(self.tensors)})",
                    f"{t}[0] = {self.number()}",
                    f"{t}[..., :1] += 1",
                    f"{t}.flatten()[:1].add_(1)",
                    f"{t}.zero_()",
                )
            )
        )

    def store(self):
        self.emit(
            self.r.choice(
                (
                    "o.count += 1",
                    f"if len(o.parts) < 9: o.parts.append({self.number()} * 0.5)",
                    f"if len(items) < 9: items.append(len(items)); {self.r.choice(self.tensors)}.sum()",
                    f"o.seen = {self.r.choice(self.tensors)}",
                    f"o.last = {self.number()}",
                    f"p.scale = {self.number()}",
                    f"opts['made'] = {self.r.choice(self.tensors)}",
                )
            )
        )

    def step(self):
        """What others see, at its place."""
        t, n, m = self.r.choice(self.tensors), self.number(), self.number()
        text = n.replace("'", '"')
        self.emit(
            self.r.choice(
                (
                    f"print({n}, {t}.sum().item(), {t}.shape, file=sink)",
                    f"print(f'{{{text}}} {{{t}.sum().item():.2f}} {{len(items)!r:>4}}', file=sink, end=';')",
                    f"print('%s %.3f' % ({n}, {t}.sum().item()), '{{:.1f}}'.format({m}), file=sink)",
                    f"print({t}, [{t}, {n}], sep='|', file=sink)",
                    f"sink.write(str({n}) + ';')",
                    f"logger.info('%s and %.2f', {n}, {t}.sum().item())",
                    f"logger.debug('sum %s', {t})",
                    f"with torch.no_grad(): print({n}, file=sink)",
                    f"print(','.join([str(v) for v in {t}.flatten()[:2].tolist()]), file=sink)",
                    f"time.perf_counter(); {t}.sum()",
                    "if o.scale == 3: sink.write(1)",
                )
            )
        )

    def outer_store(self):
        name = self.r.choice(("cell", "steps", "rec.b", "rec.a", "rec.c", "rec.b"))
        if name in ("cell", "steps"):
            self.names.add(name)
        value = self.tensor() if name == "rec.a" else self.number()
        self.emit(self.r.choice((f"{name} = {value}", f"{name} += {self.number()}")))

    def unpack(self):
        t, v = self.fresh("t"), self.fresh("v")
        self.emit(f"{t}, {v} = pair({self.tensor()}, {self.number()})")
        self.tensors.append(t)
        self.numbers.append(v)

    def made(self):
        """Containers that the call makes, and reads."""
        c, t = self.fresh("c"), self.fresh("t")
        self.emit(
            self.r.choice(
                (
                    f"{c} = [{self.tensor()}, {self.number()}]; {c}.append({self.tensor()})",
                    f"{c} = ({self.tensor()}, {self.number()}, {self.r.choice(self.tensors)})",
                    f"{c} = [q * {self.number()} for q in ({self.r.choice(self.tensors)}, {self.tensor()})]",
                    f"{c} = [{self.r.choice(self.tensors)} + i for i in range(2)]",
                    f"{c} = [*({self.tensor()}, 1), {self.r.choice(self.tensors)}]",
                    f"{c} = list({{'a': {self.tensor()}, 'b': {self.number()}}}.values())",
                )
            )
        )
        self.emit(f"{t} = {c}[0] * len({c}) + {c}[{self.r.choice((0, -1, 1))}]")
        self.tensors.append(t)

    def more_made(self):
        """What builtin code does with containers of the call."""
        c, t = self.fresh("c"), self.fresh("t")
        a, b, n = self.r.choice(self.tensors), self.tensor(), self.number()
        text = n.replace("'", '"')
        lines = self.r.choice(
            (
                (
                    f"{c} = {{k: {a} * v for k, v in zip('ab', (1, {n}))}}",
                    f"{c}.update(z={b})",
                    f"{t} = {c}.pop('a') + {c}.get('q', {n})",
                ),
                (
                    f"{c} = [{a}, {n}, {b}]",
                    f"{c}.insert(1, {c}.pop())",
                    f"{c}.reverse()",
                    f"{t} = {c}[0] * len({c}[1:]) + {c}[-1]",
                ),
                (
                    f"{c} = sorted([{n}, 2, {self.number()}], key=lambda v: -v)",
                    f"{t} = {a} * {c}[0] + max({c}) + len({{1, 2}} | {{3}})",
                ),
                (
                    f"{t} = sum(q * i for i, q in enumerate([{a}, {n}, {self.number()}]))",
                    f"{t} = {t} + {a}",
                ),
                (f"{t} = functools.reduce(lambda p, q: p * q, [{a}, {n}, {self.number()}])",),
                (
                    f"{t} = {a}",
                    f"for q in itertools.chain([{n}], reversed((1, {self.number()}))): {t} = {t} + q",
                ),
                (
                    f"{t} = {a}",
                    f"for q, w in map(lambda z: (z, z + 1), range(2)): {t} = {t} * w + q",
                ),
                (f"{c}, *{t} = walked({a}, 3)", f"{t} = {c} + {t}[0] * len({t})"),
                (f"{t} = {a} * len(f'{{{text}}}-{{len(items)}}') + len('ab' * 2)",),
                (
                    f"{c} = [0] * 2 + [{n}]",
                    f"{c}[0] += {n}",
                    f"{c}[1:] = [{a}]",
                    f"{t} = {c}[1] * {c}[0]",
                ),
                (f"{c} = next(walked({a}, 2))", f"{t} = {c} + next(iter([{n}]))"),
            )
        )
        for line in lines:
            self.emit(line)
        self.tensors.append(t)

    def objects(self):
        o, t = self.fresh("b"), self.fresh("t")
        a, n = self.r.choice(self.tensors), self.number()
        lines = self.r.choice(
            (
                (f"{o} = Box({a}, {n})", f"{o}.by += 1", f"{t} = {o}.grown + len({o})"),
                (
                    f"{o} = Deep({a}) + Box({a})",
                    f"{o}.log.append({n})",
                    f"{t} = {o}.held * {o}.log[0]",
                ),
                (f"{o} = Record({a}, {n})", f"{t} = {o}.total()"),
                (f"{o} = Named({a}, {n})", f"{t} = {o}.a + {o}[1]"),
                (f"{o} = Box({n})", f"{t} = {a} * getattr({o}, 'none', 2) + hasattr({o}, 'by')"),
            )
        )
        for line in lines:
            self.emit(line)
        self.tensors.append(t)
        if self.depth == 2:
            self.kept.append(o)

    def try_(self):
        t = self.r.choice(self.tensors)
        self.emit("try:")
        self.depth += 1
        self.emit(f"if {self.condition()}: raise ValueError({self.number()})")
        self.emit(
            self.r.choice(
                (
                    f"{t} = {t} + opts['a']",
                    f"{t} = {t} + items[1]",
                    f"a, b = items; {t} = {t} * a",
                    f"{t} = {t} + {{'x': 1}}['y']",
                    f"{t} = {t}[1]",
                )
            )
        )
        self.depth -= 1
        kinds = self.r.choice(("LookupError", "(ValueError, KeyError)", "Exception"))
        self.emit(f"except {kinds} as e: {t} = {t} * 2 + len(e.args)")
        if self.r.random() < 0.3:
            self.emit(f"finally: {t} = {t} - 1")

    def with_(self):
        manager = self.r.choice(
            ("Guarded(True)", "Guarded(False)", "managed(2)", "contextlib.nullcontext(1)")
        )
        self.emit(f"with {manager} as w:")
        self.block()
        if "True" in manager and self.r.random() < 0.5:
            self.emit("    raise KeyError('inside')")

    def match(self):
        t = self.r.choice(self.tensors)
        self.emit(f"match ({self.number()}, flag, [1, {self.number()}], opts):")
        for case in (
            f"(1, *rest): {t} = {t} + len(rest)",
            f"(_, True, [1, q], _): {t} = {t} * q",
            f"(int() as q, _, _, {{'a': v}}): {t} = {t} + q * v",
            f"_: {t} = {t} - 1",
        ):
            self.emit(f"    case {case}")

    def closure(self):
        f, t = self.fresh("f"), self.fresh("t")
        caught = self.r.choice(self.tensors)
        self.emit(f"def {f}(a, *rest): return a {self.r.choice('+*')} {self.number()} + {caught}")
        self.emit(
            self.r.choice(
                (
                    f"{t} = {f}({self.tensor()})",
                    f"{t} = {f}({self.tensor()}, {self.number()}, 2)",
                    f"{t} = {f}({self.tensor()}) if {self.condition()} else {f}({self.number()})",
                    f"{t} = (lambda q: q - {self.number()})({self.tensor()})",
                )
            )
        )
        self.tensors.append(t)

    def fork_(self):
        """Bodies may run side by side, so they draw nothing from `dice`."""
        known = len(self.lines)
        self.fork_body()
        if any("dice" in line or "told" in line for line in self.lines[known:]):
            self.lines[known:] = ["    " * self.depth + "pass"]

    def fork_body(self):
        f, t, u = self.fresh("f"), self.fresh("t"), self.r.choice(self.tensors)
        self.emit(f"def {f}(a, by=1): return a.tanh() * {self.number()} + {u} * by")
        first = f"torch.jit.fork({f}, {self.tensor()})"
        second = f"torch.jit.fork({f}, {u}, by={self.number()})"
        self.emit(
            self.r.choice(
                (
                    f"{t} = {first}.wait()",
                    f"{f} = [{first}, {second}]; {t} = {f}[1].wait() + {u}; {t} = {t} * {f}[0].wait()",
                    f"{f} = {{'a': {first}, 'b': {second}}}; {t} = torch.jit.wait({f}['b'])",
                    f"{f} = torch.jit.fork(lambda p: p.wait() + 1, {first}); {t} = {f}.wait()",
                    f"{f} = [torch.jit.fork({f}, {u} * i) for i in range(3)]; {t} = {f}[1].wait() - {f}[2].wait()",
                    f"{t} = torch.jit.fork({u}.add_, {self.number()}).wait() + {first}.wait()",
                )
            )
        )
        if not any("dice" in line or "told" in line for line in self.lines[-2:]):
            self.tensors.append(t)

    def leave(self):
        self.emit(f"if {self.condition()}: return {self.r.choice(self.tensors)}, {self.number()}")

    def if_(self):
        self.emit(f"if {self.condition()}:")
        self.block()
        if self.r.random() < 0.5:
            self.emit("else:")
            self.block()

    def for_(self):
        i = self.fresh("i")
        source = self.r.choice(
            (
                f"range({self.r.randint(1, 3)})",
                "range(min(abs(int(n)), 4))",
                "range(x.shape[0])",
                "items",
                "(1, 2.5)",
                "o.parts",
                "net",
                "opts.values()",
                "G.items()",
            )
        )
        self.emit(f"for {i} in {source}:")
        self.depth += 1
        t = self.r.choice(self.tensors)
        if source == "net":
            self.emit(f"{t} = {t} + {i}(torch.ones(1, 3)).sum()")
        elif source in ("G.items()", "opts.values()", "items"):
            self.emit(f"{t} = {t} * {i}[1]" if source == "G.items()" else f"{t} = {t} + {i}")
        else:
            self.emit(f"{t} = {t} * {i} + {self.number()}")
        self.depth -= 1
        if self.r.random() < 0.3:
            self.block()

    def write(self):
        for _ in range(self.r.randint(2, 5)):
            self.statement()
        if self.kept and self.r.random() < 0.7:
            self.emit(f"if {self.condition()}: return {self.kept[-1]}, [{self.kept[0]}]")
        if self.r.random() < 0.15:
            self.emit(f"if {self.condition()}: return rec, {self.r.choice(self.tensors)}")
        names = self.r.sample(self.tensors, min(2, len(self.tensors)))
        self.emit(
            self.r.choice(
                (
                    f"return {names[0]}",
                    f"return {', '.join(names)}, {self.r.choice(self.numbers)}",
                    f"return {{'r': [{', '.join(names)}], 'n': {self.number()}}}",
                    f"return [({names[0]},), {names[-1]}]",
                )
            )
        )
        outer = {"cell": "        nonlocal cell", "steps": "        global steps"}
        body = "\n".join([*(outer[name] for name in sorted(self.names)), *self.lines])
        return f"{PRELUDE}    def f(x, y, n, k, items, opts, flag, rec):\n{body}\n    return f, set_cell\n"


class Surroundings:
    """What calls are made with; each step changes something, the same on both sides."""

    def __init__(self, torch, seed, scope, set_cell):
        self.torch, self.r, self.scope, self.set_cell = torch, random.Random(seed), scope, set_cell
        self.shape, self.dtype, self.turned, self.grad, self.twice = (
            (2, 3),
            torch.float32,
            False,
            False,
            False,
        )
        self.n, self.k, self.flag = 2, 1.5, True
        self.items, self.options, self.no_grad = [1, 2.0], {"a": 1}, False
        self.record, self.kind, self.b, self.shares = None, "Record", 2, False

    def change(self):
        r, scope, torch = self.r, self.scope, self.torch
        o = scope["o"]
        choices = (
            lambda: None,
            lambda: None,
            lambda: setattr(self, "n", r.choice((self.n + 1, 0, -1, 3, 2.0, True, 7))),
            lambda: setattr(self, "n", self.n + 1),
            lambda: setattr(
                self, "k", r.choice((0.5, -1.5, 0.0, -0.0, 2, self.k * 2, float("nan")))
            ),
            lambda: setattr(
                self, "shape", r.choice(((2, 3), (5, 3), (1, 3), (3,), (0, 3), (2, 1), ()))
            ),
            lambda: setattr(self, "shape", (r.randint(1, 6), 3)),
            lambda: setattr(self, "dtype", r.choice((torch.float32, torch.float64, torch.int64))),
            lambda: setattr(self, "turned", not self.turned),
            lambda: setattr(self, "grad", not self.grad),
            lambda: setattr(self, "twice", not self.twice),
            lambda: setattr(self, "flag", not self.flag),
            lambda: setattr(self, "no_grad", not self.no_grad),
            lambda: (
                self.items.append(r.choice((1, 3.5))) if len(self.items) < 4 else self.items.clear()
            ),
            lambda: setattr(self, "kind", r.choice(("Record", "Slotted", "Named", "kept"))),
            lambda: setattr(self, "b", r.choice((1, 0.5, self.b + 1))),
            lambda: setattr(self, "shares", not self.shares),
            lambda: scope["logger"].setLevel(r.choice((10, 20, 40))),
            lambda: self.items.__setitem__(slice(0, 1), [r.choice((2, 0.5))]),
            lambda: self.options.update(a=r.randint(0, 3)),
            lambda: self.options.pop("a", None),
            lambda: self.options.update(t=torch.ones(3)),
            lambda: scope["G"].update(g=r.randint(0, 3)),
            lambda: scope.update(scale=r.choice((2.0, 1.0, 3))),
            lambda: scope.update(steps=(scope["steps"] or 0) + 1),
            lambda: setattr(o, "scale", r.choice((2, 0.5, 3))),
            lambda: setattr(o, "scale", torch.tensor(2.0)),
            lambda: setattr(scope["O"], "limit", r.randint(1, 4)),
            lambda: setattr(o, "__class__", scope[r.choice(("O", "Other"))]),
            lambda: setattr(o, "inner", scope[r.choice("op")]),
            lambda: o.parts.append(1) if len(o.parts) < 4 else o.parts.pop(),
            lambda: setattr(o, "limit", 5) if r.random() < 0.5 else vars(o).pop("limit", None),
            lambda: self.set_cell(r.choice((3, 4, 1.5, None))),
            lambda: setattr(scope["O"], "apply", scope["helper_method"]),
            lambda: setattr(scope["helper"], "__code__", scope["other_helper"].__code__),
            lambda: setattr(scope["net"], "training", not scope["net"].training),
            lambda: scope["net"][0].weight.data.mul_(0.5),
            lambda: setattr(scope["net"][0], "weight", torch.nn.Parameter(torch.ones(3, 3))),
        )
        for _ in range(r.choice((0, 1, 1, 1, 2))):
            r.choice(choices)()

    def arguments(self, step):
        torch = self.torch
        torch.manual_seed(step)
        shape = self.shape[::-1] if self.turned else self.shape
        x = torch.randn(shape).to(self.dtype)
        x = x.T if self.turned and x.dim() == 2 else x
        y = x if self.twice else torch.randn(self.shape)
        if self.grad and not self.no_grad and x.is_floating_point():
            x = x.detach().requires_grad_(True)
        a = x if self.shares else torch.ones(3) * step
        if self.kind != "kept" or self.record is None:
            kind = "Record" if self.kind == "kept" else self.kind
            self.record = self.scope[kind](a, self.b)
        return [x, y, self.n, self.k, self.items, self.options, self.flag, self.record]


def run_side(torch, source, seed, backend, calls):
    name = f"<program {seed}>"
    scope = dict(shared_scope())
    torch.manual_seed(seed)
    run_source(source, name, scope)
    scope["helper_method"] = lambda self, t: t * 3 + self.scale
    scope["other_helper"] = lambda t, v: t - v
    scope["counter"], scope["sub"] = 0, scope["p"]
    scope["o"].seen = scope["o"].hidden = scope["p"].seen = None
    f, set_cell = scope["make"](3)
    if backend:
        f = torch.compile(f, backend=backend)

    def called(*args):
        return f(*args[:-2])  # without a log and a file, which would be others each time

    around, outcomes = Surroundings(torch, seed, scope, set_cell), []
    for step in range(calls):
        if step:
            around.change()
        with torch.set_grad_enabled(not around.no_grad):
            done = outcome(torch, called, scope, around.arguments(step), name)
        seen = scope["sink"].getvalue(), scope["dice"].random(), repr(scope["steps"])
        outcomes.append((*done, *seen))
        around.options.pop("made", None)
    return outcomes, f


def compare(seed, backend="llvm", tally=None):
    """None, or a text that says where plain and compiled differ. `tally` counts replays."""
    return compare_source(Writer(seed).write(), seed, backend, tally)


def compare_source(source, seed, backend, tally=None, calls=14):
    import prong as torch

    plain, _ = run_side(torch, source, seed, None, calls)
    compiled, f = run_side(torch, source, seed, backend, calls)
    if tally is not None:
        tally["calls"] += calls
        tally["replays"] += f._counters()["replays"]
    for step, (p, c) in enumerate(zip(plain, compiled)):
        if p != c:
            parts = [f"  plain    {a}\n  compiled {b}" for a, b in zip(p, c) if a != b]
            return f"program {seed}, call {step + 1}:\n{source}\n" + "\n".join(parts)
    return None
