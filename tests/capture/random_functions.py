"""The grammar of random programs: Writer(seed).write() gives the source of one function. Used by random_programs.py."""

import random

import random_surroundings

SHAPES = ((3,), (2, 3), (1,), (), (0, 3))

# What no program changes: run once, for all programs.
SHARED = """
import collections, contextlib, dataclasses, functools, itertools, operator
Pair = collections.namedtuple('Pair', 'first second')
@dataclasses.dataclass
class Box:
    value: object
    weight: float = 0.5
    tags: list = dataclasses.field(default_factory=list)
    def total(self): return self.value * self.weight
"""
SHARED += random_surroundings.SHARED

# What every program has at hand beside its arguments.
PRELUDE = """
G = {'g': 1}
counter = 0
class Manager:
    def __init__(self, log, swallows=False): self.log, self.swallows = log, swallows
    def __enter__(self): self.log.append('enter'); return self
    def __exit__(self, kind, error, trace):
        self.log.append('exit' if kind is None else kind.__name__); return self.swallows
@contextlib.contextmanager
def managed(log, value):
    log.append('before')
    try: yield value
    except ValueError: log.append('caught')
    finally: log.append('after')
class O:
    limit = 3
    def __init__(self): self.scale, self.count, self.seen, self._hidden = 2, 0, None, 1.5
    def apply(self, t): return t * self.scale
    @property
    def hidden(self): return self._hidden
    @hidden.setter
    def hidden(self, value): self._hidden = value
    @staticmethod
    def twice(t): return t + t
    @classmethod
    def bound(cls, t): return t + cls.limit
    def __call__(self, t, by=1): return t - by
    def __getitem__(self, key): return key * self.scale
    def __len__(self): return self.limit
    def __getattr__(self, name):
        if name.startswith('made_'): return self.scale + len(name)
        raise AttributeError(name)
class Sub(O):
    def apply(self, t): return super().apply(t) + 1
    def __iter__(self): return iter((1, self.scale))
    def __eq__(self, other): return isinstance(other, O) and self.scale == other.scale
    __hash__ = None
o, sub = O(), Sub()
def helper(t, v=1, *rest, **more): return t + v
def spread(a, b=2, *rest, key=3, **more): return (a * b + key, len(rest), sorted(more))
def mutable(t, into=[]):
    into.append(t.dim()); return len(into)
def depth(n, t): return t if n <= 0 else depth(n - 1, t + n)
def numbers(n, log):
    try:
        for i in range(n):
            got = yield i
            if got is not None: log.append(got)
    finally: log.append('closed')
def tensors(t, n):
    for i in range(n): yield t * i
    return t
def through(t, n):
    last = yield from tensors(t, n)
    yield last + 1
def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs): return function(*args, **kwargs)
    return wrapper
@logged
def decorated(t, by=2): return t * by
linear = torch.nn.Linear(3, 3)
"""
PRELUDE += random_surroundings.PRELUDE


class Choices(random.Random):
    """Its choices are not quite even, and cost a third: they are most of what writing costs."""

    def choice(self, seq):
        return seq[int(self.random() * len(seq))]

    def randint(self, a, b):
        return a + int(self.random() * (b - a + 1))


class Writer:
    """Writes one function; all choices come from its seed."""

    def __init__(self, seed):
        self.r = Choices(seed)
        self.lines, self.depth, self.budget = [], 1, self.r.randint(4, 16)
        self.tensors, self.numbers, self.lists = ["x", "y"], ["n", "k"], ["items"]
        self.dicts, self.loops = ["opts"], 0
        self.count = 0

    # ── pieces ──

    def emit(self, text):
        self.lines.append("    " * self.depth + text)

    def fresh(self, stem):
        self.count += 1
        return f"{stem}{self.count}"

    def t(self):
        return self.r.choice(self.tensors)

    def l(self):  # noqa: E743
        return self.r.choice(self.lists)

    def any(self):
        return self.r.choice((self.number, self.tensor))()

    def number_name(self):
        return self.r.choice(self.numbers)

    def number(self):
        r = self.r
        if r.random() < 0.08:
            return r.choice(random_surroundings.numbers(self))
        return r.choice(
            (
                r.choice(self.numbers),
                r.choice(self.numbers),
                str(r.randint(-3, 5)),
                repr(round(r.uniform(-2, 2), 2)),
                f"len({self.l()})",
                f"{self.t()}.dim()",
                f"{self.t()}.numel()",
                f"len({self.t()}.shape)",
                "G['g']",
                "o.scale",
                "cell",
                "counter",
                "o.hidden",
                "sub.made_up",
                "o[2]",
                "len(o)",
                f"(3 if {r.choice(self.numbers)} else 1)",
                f"int({r.choice(self.numbers)})",
                f"abs({r.choice(self.numbers)})",
                f"max({r.choice(self.numbers)}, 1)",
                f"round({r.choice(self.numbers)})",
                f"mutable({self.t()})",
                f"sum(q * 2 for q in range({r.randint(0, 3)}))",
                f"functools.reduce(operator.add, range({r.randint(1, 4)}))",
                f"len({r.choice(self.dicts)})",
                "n % 3",
                "n // 2",
                "-k",
                f"spread({r.randint(0, 2)}, *range({r.randint(0, 3)}), key={r.choice(self.numbers)})[0]",
                f"(lambda a, b=2: a * b)({r.choice(self.numbers)})",
            )
        )

    def tensor(self):
        r, t = self.r, self.t()
        if r.random() < 0.08:
            return r.choice(random_surroundings.tensors(self))
        return r.choice(
            (
                t,
                f"{t} {r.choice('+-*')} {self.t()}",
                f"{t} {r.choice('+-*')} {self.number()}",
                f"{self.number()} {r.choice('+-*')} {t}",
                f"{t}.{r.choice(('relu', 'tanh', 'abs', 'sum', 'neg', 'exp', 'sigmoid', 'cumsum_', 'mean'))}()".replace(
                    "cumsum_()", "flatten().cumsum(0)"
                ),
                f"torch.{r.choice(('sin', 'cos', 'sigmoid', 'zeros_like', 'floor'))}({t})",
                f"{t}.reshape(-1)",
                f"{t}[..., :{r.randint(0, 2)}]",
                f"{t}[{r.randint(-1, 1)}]",
                f"{t}[None]",
                f"torch.where({t} > {self.number()}, {t}, {t} * 2)",
                f"torch.stack([{t}, {t}])",
                f"torch.cat([{t}.flatten(), {self.t()}.flatten()])",
                f"helper({t}, {self.number()})",
                f"helper({t}, *({self.number()}, 1), z=2)",
                f"{r.choice(('o', 'sub'))}.apply({t})",
                f"o({t}, by={self.number()})",
                f"O.twice({t})",
                f"Sub.bound({t})",
                f"{t}.clone()",
                f"{t}.T",
                f"{t}.to(torch.float64)",
                f"{t}.long()",
                f"{t}.unsqueeze(0)",
                f"{t}.expand(2, *{t}.shape)",
                f"{t}.view(-1)",
                f"{t}.detach()",
                f"depth({r.randint(0, 3)}, {t})",
                f"decorated({t})",
                f"Box({t}).total()",
                f"Pair({t}, 1).first",
                f"torch.ones({r.randint(1, 3)}) * {self.number()}",
                f"torch.full(({r.randint(0, 2)}, 3), {self.number()})",
                f"torch.arange({r.randint(0, 3)})",
                f"functools.partial(helper, v={self.number()})({t})",
                f"sum(({t}, {t}), start={t})",
                f"torch.nn.functional.softmax({t}.flatten(), 0)",
                "torch.randn(2)",
                "linear(torch.ones(2, 3))",
                f"{t}.masked_fill({t} > 0, {self.number()})",
                f"{t}.max()",
                f"({t} if flag else -{t})",
                *self.shaped_by_data(t),
            )
        )

    def shaped_by_data(self, t):
        """Python data as tensors, iteration, and shapes that data decide."""
        r = self.r
        return (
            f"torch.tensor({r.choice(('[1.0, 2.0]', self.number(), f'[{self.number()}, 1]'))})",
            f"{t}[{r.choice(('[0]', '[-1, 0]', '..., [0]', f'[{self.number()}]'))}]",
            f"{t}[{t} > {self.number()}]",
            f"{t}.flatten()[{t}.flatten().nonzero()[:, 0]]",
            f"torch.unique({t}) * {self.number()}",
            f"torch.stack([row * 2 for row in {t}])",
            f"sum([*{t}.flatten()[:3]])",
            f"torch.where({t} > 0)[0]",
        )

    def condition(self):
        r = self.r
        return r.choice(
            (
                f"{self.number()} {r.choice(('<', '==', '>=', '!='))} {self.number()}",
                f"{self.t()}.sum() > {self.number()}",
                "'a' in opts",
                f"{self.t()}.shape[-1:] == (3,)",
                "flag",
                f"not {self.l()}",
                "G['g'] > 2",
                f"{self.t()} is x",
                f"0 < {self.number()} <= 3",
                f"isinstance({r.choice(self.numbers)}, (int, bool))",
                f"flag and {self.t()}.dim() or {self.number()}",
                "hasattr(o, 'count')",
                f"any(q > 1 for q in ({self.number()}, {self.number()}))",
                f"all([{self.number()}, flag])",
                f"{self.t()}.numel() > 2 and bool(({self.t()} > 0).any())",
                "o == sub",
                f"(w := {self.number()}) > 1 and w < 4",
                f"{self.t()}.dtype == torch.float32",
                f"{self.t()}.requires_grad",
                "x.is_contiguous()",
                "counter % 2",
            )
        )

    def block(self, write):
        self.depth += 1
        pools = ("tensors", "numbers", "lists", "dicts")
        known = {pool: list(getattr(self, pool)) for pool in pools}
        write()
        for pool, names in known.items():
            setattr(self, pool, names)
        self.depth -= 1

    def statements(self, least=1, most=3):
        for _ in range(self.r.randint(least, most)):
            self.statement()

    def statement(self):
        self.budget -= 1
        simple = (
            *[self.assign_tensor] * 4,
            self.assign_number,
            self.assign_list,
            self.append,
            *[self.in_place] * 2,
            *[self.store] * 2,
            self.unpack,
            self.log,
            self.container,
            self.view,
            self.delete,
            self.count_up,
            self.records,
            self.sequences,
            self.leave,
            self.surroundings,
        )
        deep = (
            self.if_,
            self.for_,
            self.try_,
            self.closure,
            self.comprehension,
            self.generator,
            self.while_,
            self.with_,
            self.match,
            self.inner_class,
            self.gradient,
            self.fork_,
        )
        pool = simple + deep if self.budget > 0 and self.depth < 5 else simple
        self.r.choice(pool)()

    # ── simple statements ──

    def assign_tensor(self):
        name = self.t() if self.r.random() < 0.2 else self.fresh("t")
        self.emit(f"{name} = {self.tensor()}")
        if name not in self.tensors:
            self.tensors.append(name)

    def assign_number(self):
        name = self.fresh("v")
        self.emit(f"{name} = {self.number()} {self.r.choice('+-*')} {self.number()}")
        self.numbers.append(name)

    def assign_list(self):
        name = self.fresh("l")
        values = [self.any() for _ in range(self.r.randint(0, 3))]
        self.emit(
            self.r.choice(
                (
                    f"{name} = [{', '.join(values)}]",
                    f"{name} = [*{self.l()}, {self.any()}]",
                    f"{name} = list({self.l()})",
                    f"{name} = {self.l()}[1:]",
                    f"{name} = {self.l()} + [{self.any()}]",
                    f"{name} = {self.l()}",
                )
            )
        )
        self.lists.append(name)

    def append(self):
        self.emit(f"{self.l()}.append({self.any()})")

    def in_place(self):
        t = self.t()
        self.emit(
            self.r.choice(
                (
                    f"{t} += {self.number()}",
                    f"{t} *= {self.t()}",
                    f"{t}.mul_({self.number()})",
                    f"{t}.add_({self.t()})",
                    f"{t}[0] = {self.number()}",
                    f"{t}[..., :1] += {self.number()}",
                    f"{t}.zero_()",
                    f"{t}.flatten()[:1].add_(1)",
                    f"{t}.view(-1).mul_(2)",
                    f"{t}.clamp_(-1, {self.number()})",
                    f"{t}.copy_({self.t()})",
                    f"{t}[{t} > 0] = {self.number()}",
                    f"{t}.T.neg_()",
                )
            )
        )

    def store(self):
        self.emit(
            self.r.choice(
                (
                    f"G['g'] = {self.number()}",
                    f"o.scale = {self.number()}",
                    f"opts[{self.r.randint(0, 2)!r}] = {self.tensor()}",
                    f"o.seen = {self.tensor()}",
                    "o.count += 1",
                    f"o.hidden = {self.number()}",
                    f"setattr(sub, 'scale', {self.number()})",
                    f"O.limit = {self.r.randint(1, 4)}",
                    f"{self.r.choice(self.dicts)}.setdefault('a', []) ",
                    f"{self.r.choice(self.dicts)}.update(b={self.any()})",
                    f"{self.r.choice(self.dicts)}.pop('a', None)",
                )
            )
        )

    def count_up(self):
        self.emit(self.r.choice(("counter += 1", "counter = counter + n", "hits += 1")))

    def unpack(self):
        a, b = self.fresh("t"), self.fresh("v")
        self.emit(
            self.r.choice(
                (
                    f"{a}, {b} = {self.tensor()}, {self.number()}",
                    f"{a}, *_, {b} = ({self.tensor()}, 1, 2, {self.number()})",
                    f"({a}, {b}), _ = [({self.tensor()}, {self.number()}), 0]",
                    f"{a}, {b} = Pair({self.tensor()}, {self.number()})",
                    f"{a} = {self.tensor()}; {b} = {self.number()}; {a}, {b} = {a}, {b}",
                )
            )
        )
        self.tensors.append(a)
        self.numbers.append(b)

    def log(self):
        t = self.t()
        self.emit(
            self.r.choice(
                (
                    f"log.append({self.number()})",
                    f"log.append({t}.tolist())",
                    f'log.append(f"{{{self.number()}}}")',
                    f'log.append(f"{{{self.number()}!r:>8}} {{{t}.shape}}")',
                    f'log.append(f"{{{t}.sum().item():.3f}}")',
                    f'log.append("%s %d" % ({self.number()}, {t}.dim()))',
                    f"print({self.number()}, file=out)",
                    f"print({t}, file=out)",
                    f"log.append(str({t}.dtype))",
                    f"log.append({t}.stride())",
                    f"log.append(repr({self.l()})[:20])",
                    f"log.append(sorted(spread(1, 2, 3, 4, z={self.number()}, **{{'q': 1}})[2]))",
                    f"log.append(type({self.any()}).__name__)",
                )
            )
        )

    def container(self):
        name, r = self.l(), self.r
        self.emit(
            r.choice(
                (
                    f"{name}.insert(0, {self.any()})",
                    f"{name}.extend([{self.any()}])",
                    f"{name}.reverse()",
                    f"{name}[:1] = [{self.any()}, {self.any()}]",
                    f"{name}[-1] = {self.any()}",
                    f"{name}.pop()",
                    f"{name} += [{self.any()}]",
                    f"{name}.clear()",
                    f"log.append(len({name} * 2))",
                    f"log.append({{q % 2 for q in range({r.randint(0, 4)})}})",
                    f"log.append(sorted({{'b': 1, 'a': {self.number()}}}.items()))",
                    f"log.append(list({r.choice(self.dicts)}))",
                    f"log.append([q is x for q in {name}])",
                )
            )
        )

    def view(self):
        name, t = self.fresh("t"), self.t()
        self.emit(
            f"{name} = {self.r.choice((f'{t}.flatten()', f'{t}[..., 1:]', f'{t}.T', f'{t}.unsqueeze(-1)'))}"
        )
        self.emit(self.r.choice((f"{name}.add_(1)", f"{t}.mul_(2)", f"{name} *= 0.5")))
        self.tensors.append(name)

    def delete(self):
        if len(self.tensors) > 3 and self.r.random() < 0.5:
            self.emit(f"del {self.tensors[-1]}")
            if self.r.random() < 0.9:
                self.tensors.pop()
        else:
            self.emit(f"{self.r.choice(self.dicts)}.pop({self.r.randint(0, 2)}, None)")

    def records(self):
        name = self.fresh("b")
        self.emit(f"{name} = {self.r.choice(('Box', 'Pair'))}({self.tensor()}, {self.number()})")
        self.emit(
            self.r.choice(
                (
                    f"log.append(type({name}).__name__)",
                    f"if type({name}) is Box: {name} = dataclasses.replace({name}, value={self.tensor()})",
                    f"if type({name}) is Pair: {name} = {name}._replace(first={self.tensor()})",
                    f"{self.l()}.append({name})",
                    f"log.append(hasattr({name}, 'value') and {name}.total().tolist())",
                )
            )
        )

    def sequences(self):
        r, name = self.r, self.fresh("l")
        t = self.t()
        self.emit(
            f"{name} = "
            + r.choice(
                (
                    f"[a * b for a, b in zip(({t}, {t}), range({r.randint(0, 3)}))]",
                    f"list(enumerate({self.l()}, start=1))",
                    f"list(map(lambda q: q * {self.number()}, ({t}, {r.choice(self.numbers)})))",
                    f"list(filter(None, ({self.number()}, {self.number()})))",
                    f"sorted(({self.number()}, {self.number()}), key=lambda q: -q)",
                    f"list(reversed({self.l()}))",
                    f"list(itertools.chain({self.l()}, ({t},)))",
                    f"list(itertools.islice(itertools.count({r.randint(0, 2)}), {r.randint(0, 3)}))",
                    f"list(collections.deque(({self.number()}, {t}), maxlen=1))",
                    f"list(collections.OrderedDict(a={self.number()}, b={t}).values())",
                    "list(collections.Counter('abca').items())",
                    f"[q for q in {t}]" if r.random() < 0.5 else f"list({t}.unbind(0))",
                    f"[*itertools.accumulate((1, {self.number()}))]",
                    f"[*itertools.product((1, 2), ({self.number()},))]",
                    "list(sub)",
                )
            )
        )
        self.lists.append(name)

    def leave(self):
        r = self.r
        if r.random() < 0.3:
            self.emit(f"if {self.condition()}: return {self.t()}, {self.number()}")
        elif r.random() < 0.3:
            self.emit(f"assert {self.condition()}, 'assertion'")
        else:
            self.emit(f"if {self.condition()}: raise ValueError({self.number()})")

    def surroundings(self):
        for line in random_surroundings.statements(self):
            self.emit(line)

    # ── compound statements ──

    def if_(self):
        self.emit(f"if {self.condition()}:")
        self.block(self.statements)
        if self.r.random() < 0.2:
            self.emit(f"elif {self.condition()}:")
            self.block(self.statements)
        if self.r.random() < 0.5:
            self.emit("else:")
            self.block(self.statements)

    def body_of_loop(self, *more):
        self.loops += 1
        for text in more:
            self.emit(text)
        self.statements()
        if self.r.random() < 0.3:
            self.emit(f"if {self.condition()}: {self.r.choice(('break', 'continue'))}")
        self.loops -= 1

    def for_(self):
        i = self.fresh("i")
        source = self.r.choice(
            (
                f"range({self.r.randint(0, 4)})",
                f"list({self.l()})[:3]",
                "(1, 2.5)",
                "list(opts)",
                "x[:2]",
                "numbers(3, log)",
                f"through({self.t()}, 2)",
                f"range(min({self.t()}.dim(), 3))",
                "opts",
                "enumerate((n, k))",
                "zip((1, 2), (x, y))",
            )
        )
        self.emit(f"for {i} in {source}:")

        def body():
            self.body_of_loop()
            if self.r.random() < 0.3:
                self.emit(f"log.append(str(type({i})))")
            elif self.r.random() < 0.3 and source.startswith("range"):
                self.emit(f"{self.t()} = {self.t()} * {i}")

        self.block(body)
        if self.r.random() < 0.2:
            self.emit("else:")
            self.block(lambda: self.emit("log.append('else')"))

    def while_(self):
        w = self.fresh("w")
        self.emit(f"{w} = 0")
        self.emit(f"while {w} < {self.r.randint(0, 3)}:")
        self.block(lambda: self.body_of_loop(f"{w} += 1"))

    def try_(self):
        r = self.r
        self.emit("try:")

        def body():
            self.statements()
            if r.random() < 0.5:
                self.emit(
                    r.choice(
                        (
                            "raise KeyError('k')",
                            "1 / 0",
                            "[][1]",
                            "x + torch.ones(7)",
                            "missing",
                            "x.nothing",
                            "raise ValueError('v') from KeyError('cause')",
                            f"{self.t()}[torch.tensor([9])]",
                            "torch.ones(2) @ torch.ones(3)",
                            "x.reshape(17)",
                            "next(iter(()))",
                            "int('no')",
                            "raise Manager",
                        )
                    )
                )
            elif r.random() < 0.2:
                self.emit(self.jump())

        self.block(body)
        only_finally = r.random() < 0.2
        if not only_finally:
            self.emit(
                "except "
                + r.choice(
                    (
                        "Exception",
                        "ZeroDivisionError",
                        "(KeyError, IndexError)",
                        "RuntimeError",
                        "ValueError",
                        "LookupError",
                    )
                )
                + " as error:"
            )

            def handler():
                self.emit("log.append(type(error).__name__)")
                if r.random() < 0.4:
                    self.statements(1, 1)
                if r.random() < 0.15:
                    self.emit(
                        r.choice(
                            (
                                "raise",
                                "raise TypeError('again') from error",
                                "raise TypeError('more')",
                            )
                        )
                    )

            self.block(handler)
            if r.random() < 0.2:
                self.emit("else:")
                self.block(lambda: self.statements(1, 1))
        if only_finally or r.random() < 0.4:
            self.emit("finally:")

            def last():
                self.emit("log.append('finally')")
                if r.random() < 0.1:
                    self.emit(self.jump())
                elif r.random() < 0.3:
                    self.statements(1, 1)

            self.block(last)

    def jump(self):
        if self.loops and self.r.random() < 0.6:
            return self.r.choice(("break", "continue"))
        return f"return {self.t()}, 'early'"

    def with_(self):
        name = self.fresh("m")
        self.emit(
            "with "
            + self.r.choice(
                (
                    "torch.no_grad()",
                    f"Manager(log) as {name}",
                    "Manager(log, True)",
                    f"managed(log, {self.number()}) as {name}",
                    "Manager(log), Manager(log, flag)",
                    "contextlib.suppress(ValueError, ZeroDivisionError)",
                    f"contextlib.nullcontext({self.number()}) as {name}",
                    "torch.enable_grad()",
                    "torch.set_grad_enabled(flag)",
                )
            )
            + ":"
        )

        def body():
            self.statements()
            if self.r.random() < 0.3:
                self.emit(self.r.choice(("raise ValueError('in with')", "1 / 0", self.jump())))

        self.block(body)

    def match(self):
        name = self.fresh("v")
        subject = self.r.choice(
            (
                f"{self.number()}",
                f"({self.number()}, {self.tensor()})",
                f"{self.l()}",
                f"{self.r.choice(self.dicts)}",
                f"Pair({self.number()}, {self.t()})",
                f"Box({self.number()})",
            )
        )
        self.emit(f"match {subject}:")
        self.depth += 1
        cases = [
            "case 1 | 2:",
            f"case (int() as {name}, _):",
            f"case [{name}, *_]:",
            f"case {{'a': {name}}}:",
            f"case Box(value={name}) if {name} == {name}:",
            f"case Pair(first={name}):",
            "case float() | int():",
        ]
        for case in self.r.sample(cases, self.r.randint(1, 3)):
            self.emit(case)

            def body(case=case):
                self.emit(f"log.append({case!r})")
                self.statements(1, 1)

            self.block(body)
        if self.r.random() < 0.6:
            self.emit("case _:")
            self.block(lambda: self.statements(1, 1))
        self.depth -= 1

    def closure(self):
        r = self.r
        f, a = self.fresh("f"), self.fresh("a")
        name = self.fresh("t")
        outer = list(self.tensors)
        shared = self.fresh("s")
        if r.random() < 0.5:
            self.emit(f"{shared} = {self.number()}")
            self.numbers.append(shared)
            self.emit(f"def {f}({a}, *more, by={self.number()}):")

            def body():
                self.emit(f"nonlocal {shared}")
                self.emit(f"{shared} = {shared} + 1")
                self.emit(f"return {a} {r.choice('+*')} {r.choice(outer)} * by + len(more)")

            self.block(body)
            self.emit(f"{name} = {f}({self.tensor()}, {self.number()}) + {f}({self.t()}, by=2)")
        else:
            self.emit(f"def {f}({a}, more=1):")
            self.block(lambda: self.emit(f"return {a} {r.choice('+*')} {r.choice(outer)} * more"))
            self.emit(
                f"{name} = "
                + r.choice(
                    (
                        f"{f}({self.tensor()}, {self.number()})",
                        f"{f}(**{{{a!r}: {self.tensor()}, 'more': 2}})",
                        f"functools.reduce({f}, [{self.t()}, {self.number()}])",
                        f"[{f}(q) for q in ({self.t()}, 2)][0]",
                    )
                )
            )
        self.tensors.append(name)

    def fork_(self):
        """Bodies whose order plain Python fixes: waited for at once, or pure."""
        r, f, name = self.r, self.fresh("f"), self.fresh("t")
        which = r.randint(0, 3)
        if which == 0:
            self.emit(f"{f} = torch.jit.fork(lambda q, by=2: q * by + {self.t()}, {self.tensor()})")
            self.emit(f"{name} = {f}.wait()")
        elif which == 1:
            self.emit(f"def {f}(q, by=1):")

            def body():
                self.statements()
                self.emit(f"return q * {self.number()} + by")

            outer, self.loops = self.loops, 0  # none of them can be left from inside
            self.block(body)
            self.loops = outer
            self.emit(f"{name} = torch.jit.wait(torch.jit.fork({f}, {self.tensor()}, by=2))")
        elif which == 2:
            t, u = self.t(), self.t()
            self.emit(
                f"{f} = [torch.jit.fork(lambda q, i=i: (q * i).tanh() + 1, {t}) for i in range(2)]"
            )
            self.emit(f"{name} = {f}[1].wait() * ({u} + 1) - {f}[0].wait()")
        else:
            self.emit(f"{f} = torch.jit.fork(torch.add, {self.t()}, {self.number()})")
            self.emit(f"{f} = {{'a': torch.jit.fork(lambda p: p.wait() * 2, {f}), 'b': {f}}}")
            self.emit(f"{name} = {f}['a'].wait() + {f}['b'].wait()")
        self.tensors.append(name)

    def comprehension(self):
        r, name, t = self.r, self.fresh("l"), self.t()
        self.emit(
            f"{name} = "
            + r.choice(
                (
                    f"[{t} * q for q in range({r.randint(0, 3)})]",
                    f"[{t} + q for q in range(4) if q % 2]",
                    f"[a + b for a in range(2) for b in ({self.number()},)]",
                    f"list({{q: {t} * q for q in range({r.randint(0, 3)})}}.values())",
                    f"[(q, {self.number()}) for q in {self.l()}]",
                    f"[[{t} for _ in range(1)] for _ in range(2)]",
                )
            )
        )
        self.lists.append(name)

    def generator(self):
        r, name = self.r, self.fresh("v")
        if r.random() < 0.4:
            self.emit(f"{name} = sum(q for q in range({r.randint(0, 4)}))")
        elif r.random() < 0.5:
            g = self.fresh("g")
            self.emit(f"{g} = numbers({r.randint(1, 4)}, log)")
            self.emit(f"{name} = next({g}, -1)")
            self.emit(
                r.choice(
                    (
                        f"{g}.send('sent')",
                        f"{g}.close()",
                        f"del {g}",
                        f"next({g}, None)",
                        f"{name} += sum({g})",
                    )
                )
            )
        else:
            self.emit(f"{name} = 0")
            self.emit(f"for q in through({self.t()}, {r.randint(0, 2)}):")
            self.block(lambda: self.emit(f"{name} = {name} + q.dim()"))
        self.numbers.append(name)

    def inner_class(self):
        c, name = self.fresh("C"), self.fresh("t")
        self.emit(f"class {c}:")
        self.block(lambda: self.emit(f"by = {self.number()}"))
        self.block(
            lambda: self.emit(
                f"def go(self, t): return t * self.by + {self.r.choice(self.numbers)}"
            )
        )
        self.emit(f"{name} = {c}().go({self.tensor()})")
        self.tensors.append(name)

    def gradient(self):
        w, name = self.fresh("w"), self.fresh("t")
        self.emit(f"{w} = torch.ones(3, requires_grad=True)")
        self.emit(
            f"({w} * {self.r.choice(('2', self.number()))}).{self.r.choice(('exp', 'sin', 'relu'))}().sum().backward()"
        )
        self.emit(f"{name} = {w}.grad" + self.r.choice(("", " + 1", ".clone()")))
        self.tensors.append(name)

    def write(self):
        self.statements(2, 6)
        result = ", ".join(
            [
                *self.r.sample(self.tensors, min(3, len(self.tensors))),
                self.r.choice(self.numbers),
                self.l(),
            ]
        )
        self.emit(
            self.r.choice(
                (f"return {result}", f"return {{'r': [{result}]}}", f"return {self.tensors[-1]}")
            )
        )
        body = "\n".join("    " + line for line in self.lines)
        return (
            f"{PRELUDE}def make(cell):\n    hits = 0\n    def f(x, y, n, k, items, opts, flag, log, out):\n"
            f"        global counter\n        nonlocal hits\n{body}\n    return f\n"
        )
