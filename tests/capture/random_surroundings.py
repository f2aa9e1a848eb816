"""What random functions do with the world around tensors: arrays over their memory, out=, context
variables, enums, caches, dispatch by type, closures that they give, attributes of tensors.
Used by random_functions.py."""

SHARED = """
import contextvars, enum, weakref
import numpy as np
class Mode(enum.Enum):
    ADD = 1
    MUL = 2
    def apply(self, t): return t + 1 if self is Mode.ADD else t * 2
class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3
@functools.singledispatch
def kind_of(value): return 0
@kind_of.register(int)
def _(value): return value + 1
@kind_of.register(float)
def _(value): return value * 2
@kind_of.register(list)
def _(value): return len(value)
"""

PRELUDE = """
current = contextvars.ContextVar('current', default=2)
@functools.lru_cache(maxsize=4)
def cached(n): return n * 2
class Deep(Sub):
    @functools.cached_property
    def once(self): return self.scale + 1
    def apply(self, t): return super(Deep, self).apply(t) * 2
    @classmethod
    def bound(cls, t): return super().bound(t) + 1
deep = Deep()
def adder(t):
    total = 0
    def add(by):
        nonlocal total
        total += by
        return t + total
    return add
"""


def numbers(writer):
    r = writer.r
    return (
        "current.get()",
        "Level.HIGH",
        f"Level({r.choice((1, 3))}) * 2",
        f"cached({r.randint(0, 2)})",
        f"kind_of({writer.r.choice(writer.numbers)})",
        f"kind_of({writer.l()})",
        "deep.once",
        "len(Mode)",
        f"Mode({r.choice((1, 2))}).value",
        f"{writer.t()}.squeeze().dim()",
        f"len({writer.t()}.squeeze(0).shape)",
        f"len({writer.t()}.tolist()) if {writer.t()}.dim() else 0",
        f"(0 if weakref.ref(o)() is None else {r.randint(1, 3)})",
        f"getattr({writer.t()}, 'tag', 1)",
        f"({writer.t()} is {writer.t()}) + 0",
        f"(id({writer.t()}) == id(x)) * 1",
    )


def tensors(writer):
    r, t = writer.r, writer.t()
    return (
        f"{t}.squeeze()",
        f"{t}.squeeze(-1) * {writer.number_name()}",
        f"deep.apply({t})",
        f"Deep.bound({t})",
        f"Mode.{r.choice(('ADD', 'MUL'))}.apply({t})",
        f"adder({t})({writer.number_name()})",
        f"torch.add({t}, {writer.number_name()}, out=torch.empty(0))",
        f"torch.mul({t}, 2, out=torch.zeros_like({t}))",
        f"torch.from_numpy({t}.detach().numpy() * 2)",
        f"torch.tensor({t}.tolist())",
        f"next(q for q in ({t}, x))",
        f"{{Mode.ADD: {t}, Mode.MUL: x}}[Mode({r.choice((1, 2))})]",
        "torch.rand(1)",
    )


def statements(writer):
    r, t = writer.r, writer.t()
    name = writer.fresh("a")
    return r.choice(
        (
            (
                f"{name} = {t}.detach().numpy()",
                f"if {name}.size and {name}.flags.writeable: {name}.flat[0] = 3",
            ),
            (f"{name} = {t} * 2", f"{t}.detach().numpy().fill(1)", f"log.append({name}.tolist())"),
            (f"torch.mul({t}.detach(), {writer.number_name()}, out={t}.detach())",),
            (f"current.set({r.randint(1, 3)})",),
            (
                f"{name} = current.set({r.randint(4, 6)})",
                f"log.append(current.get() * {t}.dim())",
                f"current.reset({name})",
            ),
            (f"{t}.tag = {r.randint(1, 4)}", f"log.append({t}.tag)"),
            (
                f"{name} = adder({t})",
                f"log.append({name}(1).tolist())",
                f"log.append({name}(2).tolist())",
            ),
            ("log.append(Mode.ADD.name)",),
            ("log.append(cached.cache_info().currsize)",),
            ("deep.__dict__.pop('once', None)",),
            (f"torch.manual_seed({r.randint(0, 3)})",),
            (f"log.append({t}.squeeze().shape)",),
            (
                f"{name} = [weakref.ref(Box(1), lambda _: log.append('gone'))]",
                f"log.append({name}[0]() is None)",
            ),
            (
                f"match Mode({r.choice((1, 2))}):",
                "    case Mode.ADD: log.append('add')",
                "    case _: log.append('other')",
            ),
            (f"log.append(sorted(locals())[:{r.randint(1, 2)}])",),
        )
    )
