"""Random Python functions over tensors and Python values, as source text. Used by test_random_programs.py and by hand:
`python tests/capture/random_programs.py 200000` compares that many programs, plain and compiled."""

import random
import sys

SHAPES = ((3,), (2, 3), (1,), (), (0, 3))


class Writer:
    """Writes one function; all choices come from its seed."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.lines, self.depth, self.budget = [], 1, self.r.randint(4, 14)
        self.tensors, self.numbers, self.lists = ["x", "y"], ["n", "k"], ["items"]
        self.count = 0

    def emit(self, text):
        self.lines.append("    " * self.depth + text)

    def fresh(self, stem):
        self.count += 1
        return f"{stem}{self.count}"

    def number(self):
        r = self.r
        return r.choice(
            (
                r.choice(self.numbers),
                str(r.randint(-3, 5)),
                repr(round(r.uniform(-2, 2), 2)),
                f"len({r.choice(self.lists)})",
                f"{r.choice(self.tensors)}.dim()",
                f"{r.choice(self.tensors)}.numel()",
                "G['g']",
                "o.scale",
                "cell",
            )
        )

    def tensor(self):
        r, t = self.r, self.r.choice(self.tensors)
        return r.choice(
            (
                t,
                f"{t} {r.choice('+-*')} {r.choice(self.tensors)}",
                f"{t} {r.choice('+-*')} {self.number()}",
                f"{self.number()} {r.choice('+-*')} {t}",
                f"{t}.{r.choice(('relu', 'tanh', 'abs', 'sum', 'neg', 'exp'))}()",
                f"torch.{r.choice(('sin', 'cos', 'sigmoid'))}({t})",
                f"{t}.reshape(-1)",
                f"{t}[..., :{r.randint(0, 2)}]",
                f"{t}[{r.randint(-1, 1)}]",
                f"torch.where({t} > {self.number()}, {t}, {t} * 2)",
                f"torch.stack([{t}, {t}])",
                f"helper({t}, {self.number()})",
                f"o.apply({t})",
                f"{t}.clone()",
                f"{t}.T" if r.random() < 0.3 else f"{t}.mean()",
                f"{t}.to(torch.float64)",
            )
        )

    def condition(self):
        r = self.r
        return r.choice(
            (
                f"{self.number()} {r.choice(('<', '==', '>='))} {self.number()}",
                f"{r.choice(self.tensors)}.sum() > {self.number()}",
                "'a' in opts",
                f"{r.choice(self.tensors)}.shape[-1:] == (3,)",
                "flag",
                f"not {r.choice(self.lists)}",
                "G['g'] > 2",
                f"{r.choice(self.tensors)} is x",
            )
        )

    def block(self, write):
        self.depth += 1
        known = [list(v) for v in (self.tensors, self.numbers, self.lists)]
        write()
        self.tensors, self.numbers, self.lists = known
        self.depth -= 1

    def statements(self, least=1, most=3):
        for _ in range(self.r.randint(least, most)):
            self.statement()

    def statement(self):
        self.budget -= 1
        simple = (
            self.assign_tensor,
            self.assign_tensor,
            self.assign_tensor,
            self.assign_number,
            self.assign_list,
            self.append,
            self.in_place,
            self.store,
            self.unpack,
            self.log,
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
        )
        pool = simple + deep if self.budget > 0 and self.depth < 5 else simple
        self.r.choice(pool)()

    def assign_tensor(self):
        name = self.r.choice(self.tensors) if self.r.random() < 0.2 else self.fresh("t")
        self.emit(f"{name} = {self.tensor()}")
        if name not in self.tensors:
            self.tensors.append(name)

    def assign_number(self):
        name = self.fresh("v")
        self.emit(f"{name} = {self.number()} {self.r.choice('+-*')} {self.number()}")
        self.numbers.append(name)

    def assign_list(self):
        name = self.fresh("l")
        values = [
            self.r.choice((self.number(), self.tensor())) for _ in range(self.r.randint(0, 3))
        ]
        self.emit(f"{name} = [{', '.join(values)}]")
        self.lists.append(name)

    def append(self):
        self.emit(
            f"{self.r.choice(self.lists)}.append({self.r.choice((self.number(), self.tensor()))})"
        )

    def in_place(self):
        t = self.r.choice(self.tensors)
        self.emit(
            self.r.choice(
                (
                    f"{t} += {self.number()}",
                    f"{t}.mul_({self.number()})",
                    f"{t}.add_({self.r.choice(self.tensors)})",
                    f"{t}[0] = {self.number()}",
                    f"{t}.zero_()",
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
                )
            )
        )

    def unpack(self):
        a, b = self.fresh("t"), self.fresh("v")
        self.emit(f"{a}, {b} = {self.tensor()}, {self.number()}")
        self.tensors.append(a)
        self.numbers.append(b)

    def log(self):
        self.emit(
            self.r.choice(
                (
                    f"log.append({self.number()})",
                    f"log.append({self.r.choice(self.tensors)}.tolist())",
                    f'log.append(f"{{{self.number()}}}")',
                    f"print({self.number()}, file=out)",
                )
            )
        )

    def if_(self):
        self.emit(f"if {self.condition()}:")
        self.block(self.statements)
        if self.r.random() < 0.5:
            self.emit("else:")
            self.block(self.statements)

    def for_(self):
        i = self.fresh("i")
        source = self.r.choice(
            (
                f"range({self.r.randint(0, 4)})",
                f"list({self.r.choice(self.lists)})[:3]",
                "(1, 2.5)",
                "opts",
                "x[:2]",
            )
        )
        self.emit(f"for {i} in {source}:")

        def body():
            self.statements()
            if self.r.random() < 0.3:
                self.emit(f"if {self.condition()}: {self.r.choice(('break', 'continue'))}")
            if self.r.random() < 0.3:
                self.emit(f"log.append(str(type({i})))")

        self.block(body)

    def while_(self):
        w = self.fresh("w")
        self.emit(f"{w} = 0")
        self.emit(f"while {w} < {self.r.randint(0, 3)}:")

        def body():
            self.emit(f"{w} += 1")
            self.statements()

        self.block(body)

    def try_(self):
        self.emit("try:")

        def body():
            self.statements()
            if self.r.random() < 0.4:
                self.emit(
                    self.r.choice(
                        (
                            "raise KeyError('k')",
                            "1 / 0",
                            "[][1]",
                            "x + torch.ones(7)",
                            "missing",
                            "x.nothing",
                        )
                    )
                )

        self.block(body)
        self.emit(
            "except "
            + self.r.choice(
                ("Exception", "ZeroDivisionError", "(KeyError, IndexError)", "RuntimeError")
            )
            + " as error:"
        )
        self.block(lambda: self.emit("log.append(type(error).__name__)"))
        if self.r.random() < 0.4:
            self.emit("finally:")
            self.block(lambda: self.emit("log.append('finally')"))

    def with_(self):
        self.emit(f"with {self.r.choice(('torch.no_grad()', 'Manager(log)'))}:")
        self.block(self.statements)

    def closure(self):
        f, a = self.fresh("f"), self.fresh("a")
        self.emit(f"def {f}({a}, more=1):")
        outer = self.tensors

        def body():
            self.emit(f"return {a} {self.r.choice('+*')} {self.r.choice(outer)} * more")

        self.block(body)
        name = self.fresh("t")
        self.emit(f"{name} = {f}({self.tensor()}, {self.number()})")
        self.tensors.append(name)

    def comprehension(self):
        name = self.fresh("l")
        self.emit(
            f"{name} = [{self.r.choice(self.tensors)} * q for q in range({self.r.randint(0, 3)})]"
        )
        self.lists.append(name)

    def generator(self):
        name = self.fresh("v")
        self.emit(f"{name} = sum(q for q in range({self.r.randint(0, 4)}))")
        self.numbers.append(name)

    def write(self):
        self.statements(2, 6)
        result = ", ".join(
            [
                *self.r.sample(self.tensors, min(3, len(self.tensors))),
                self.r.choice(self.numbers),
                self.r.choice(self.lists),
            ]
        )
        self.emit(
            self.r.choice(
                (f"return {result}", f"return {{'r': [{result}]}}", f"return {self.tensors[-1]}")
            )
        )
        body = "\n".join(self.lines)
        return (
            PRELUDE
            + "    def f(x, y, n, k, items, opts, flag, log, out):\n"
            + "\n".join("    " + line for line in body.split("\n"))
            + "\n    return f\n"
        )


PRELUDE = """
G = {'g': 1}
class Manager:
    def __init__(self, log): self.log = log
    def __enter__(self): self.log.append('enter')
    def __exit__(self, *error): self.log.append('exit')
class O:
    def __init__(self): self.scale, self.count, self.seen = 2, 0, None
    def apply(self, t): return t * self.scale
o = O()
def helper(t, v=1, *rest, **more): return t + v
def make(cell):
"""


def shown(value):
    """A value as something that == compares exactly, nan too."""
    import prong as torch

    if isinstance(value, torch.Tensor):
        return (
            "tensor",
            str(value.dtype),
            tuple(value.shape),
            value.stride(),
            repr(value.tolist()),
            value.requires_grad,
        )
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, *map(shown, value))
    if isinstance(value, dict):
        return ("dict", *((repr(k), shown(v)) for k, v in value.items()))
    return (type(value).__name__, repr(value))


def arguments(torch, seed):
    r = random.Random(seed)
    torch.manual_seed(seed)
    shape = r.choice(SHAPES)
    x, y = torch.randn(shape), torch.randn(r.choice((shape, (), (3,))))
    if r.random() < 0.2:
        y = x
    if r.random() < 0.2 and x.dim() == 2:
        x = torch.randn(shape[::-1]).T
    items = [1, torch.ones(2)]
    return [
        x,
        y,
        r.randint(-1, 4),
        round(r.uniform(-1, 3), 1),
        items,
        {"a": 1} if r.random() < 0.7 else {},
        r.random() < 0.5,
    ]


def outcome(f, scope, given):
    """What a call did: its value or its error, and all that it changed."""
    import io

    log, out = [], io.StringIO()
    try:
        result = shown(f(*given, log, out))
    except Exception as error:
        result = ("raised", type(error).__name__, str(error))
    o = scope["o"]
    return (
        result,
        shown(log),
        out.getvalue(),
        shown(given),
        shown(scope["G"]),
        shown([o.scale, o.count, o.seen]),
    )


def compare(seed, backend="llvm"):
    """None, or a text that says where plain and compiled differ."""
    import prong as torch

    source = Writer(seed).write()
    code = compile(source, f"<program {seed}>", "exec")
    sides = []
    for is_compiled in (False, True):
        scope = {"torch": torch, "__name__": "random_program"}
        exec(code, scope)
        f = scope["make"](3)
        if is_compiled:
            f = torch.compile(f, backend=backend)
        outcomes = []
        for step, argument_seed in enumerate((seed, seed, seed + 1, seed + 2, seed)):
            if step == 3:
                scope["G"]["g"], scope["o"].scale = 4, 0.5
            outcomes.append(outcome(f, scope, arguments(torch, argument_seed)))
        sides.append(outcomes)
    for step, (plain, compiled) in enumerate(zip(*sides)):
        if plain != compiled:
            return (
                f"program {seed}, call {step + 1}:\n{source}\nplain    {plain}\ncompiled {compiled}"
            )
    return None


if __name__ == "__main__":
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    different = 0
    for seed in range(first, first + int(sys.argv[1])):
        text = compare(seed, "interpreter" if seed % 8 else "llvm")
        if text:
            different += 1
            print(text, flush=True)
            if different == 3:
                break
    print(f"{different} differ")
    sys.exit(different > 0)
