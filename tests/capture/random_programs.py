"""Random Python functions, run plainly and compiled, call after call. Used by test_random_programs.py and by hand:
`python tests/capture/random_programs.py --count 200000` compares that many, of random_replays.py too.
"""

import dataclasses
import functools
import io
import random
import sys

from random_functions import SHAPES, SHARED, Writer

PLAIN = (bool, int, float, str, type(None))
PRELUDE_FILE = "<prelude>"


def shown(value, depth=0):
    """A value as something that == compares exactly, nan too."""
    import prong as torch

    if type(value) in PLAIN:
        return (type(value).__name__, repr(value))
    if depth > 6:
        return "deep"
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
        return (type(value).__name__, *(shown(v, depth + 1) for v in value))
    if isinstance(value, dict):
        return (type(value).__name__, *((repr(k), shown(v, depth + 1)) for k, v in value.items()))
    if dataclasses.is_dataclass(value):
        return (type(value).__name__, *(shown(v, depth + 1) for v in vars(value).values()))
    if type(value).__repr__ is object.__repr__:
        inside = vars(value) if hasattr(value, "held") else {}
        return (type(value).__name__, *((k, shown(v, depth + 1)) for k, v in inside.items()))
    return (type(value).__name__, repr(value))


def arguments(torch, seed):
    r = random.Random(seed)
    torch.manual_seed(seed)
    shape = r.choice(SHAPES)
    x, y = torch.randn(shape), torch.randn(r.choice((shape, (), (3,))))
    if r.random() < 0.2:
        y = x
    elif r.random() < 0.1 and x.dim():
        y = x[:1]
    if r.random() < 0.2 and x.dim() == 2:
        x = torch.randn(shape[::-1]).T
    if r.random() < 0.15:
        x.requires_grad_(True)
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


def lines_of(error, name):
    """The lines of the program that the error came through."""
    lines, trace = [], error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename in (name, PRELUDE_FILE):
            lines.append((trace.tb_frame.f_code.co_name, trace.tb_lineno))
        trace = trace.tb_next
    return lines


def chain(error, name):
    """The error, and those that it came from or came while."""
    told = []
    while error is not None and len(told) < 5:
        lines = lines_of(error, name)
        if isinstance(error, UnboundLocalError):
            lines = []  # CPython 3.11 tells the line before, once the code is warm
        told.append((type(error).__name__, str(error), lines))
        error = error.__cause__ or error.__context__
    return told


def outcome(torch, f, scope, given, name):
    """What a call did: its value or its error, and all that it changed."""
    log, out = [], io.StringIO()
    try:
        value = f(*given, log, out)
        result = shown(value)
        if isinstance(value, torch.Tensor) and value.requires_grad:
            value.sum().backward()
    except Exception as error:
        result = ("raised", chain(error, name))
    o, sub = scope["o"], scope["sub"]
    return (
        result,
        shown(log),
        out.getvalue(),
        shown(given),
        shown([t.grad for t in given[:2] if t.is_leaf]),
        shown([t._version for t in given[:2]]),
        shown([scope["G"], scope["counter"], scope["O"].limit]),
        shown([o.scale, o.count, o.seen, o.hidden, sub.scale]),
        torch.is_grad_enabled(),
        torch.rand(1).item(),
    )


@functools.cache
def shared_scope():
    import prong as torch

    scope = {"torch": torch, "__name__": "random_program"}
    exec(SHARED, scope)
    return scope


@functools.lru_cache(maxsize=8)
def compiled_prelude(prelude):
    return compile(prelude, PRELUDE_FILE, "exec")


def in_two(source):
    """What stands before the program's own function, the same in all programs, and the rest."""
    at = source.index("\ndef make(") + 1
    return source[:at], source[at:]


def run_source(source, name, scope):
    """Runs a program's module in `scope`; its prelude is compiled once for all."""
    prelude, rest = in_two(source)
    exec(compiled_prelude(prelude), scope)
    exec(compile(rest, name, "exec"), scope)


def compare(seed, backend="llvm", tally=None):
    """None, or a text that says where plain and compiled differ."""
    return compare_source(Writer(seed).write(), seed, backend, tally)


def compare_source(source, seed, backend, tally=None):
    import prong as torch

    name = f"<program {seed}>"
    sides = []
    for is_compiled in (False, True):
        scope = dict(shared_scope())
        torch.manual_seed(seed)
        run_source(source, name, scope)
        f = scope["make"](3)
        if not callable(f):
            raise TypeError("the program makes no function")
        if is_compiled:
            f = torch.compile(f, backend=backend)
        outcomes = []
        for step, argument_seed in enumerate((seed, seed, seed + 1, seed + 2, seed)):
            if step == 3:
                scope["G"]["g"], scope["o"].scale = 4, 0.5
            outcomes.append(outcome(torch, f, scope, arguments(torch, argument_seed), name))
        sides.append(outcomes)
    if tally is not None:
        tally["calls"] += len(outcomes)
        tally["replays"] += f._counters()["replays"]
    for step, (plain, compiled) in enumerate(zip(*sides)):
        if plain != compiled:
            parts = [f"  plain    {p}\n  compiled {c}" for p, c in zip(plain, compiled) if p != c]
            return f"program {seed}, call {step + 1}:\n{source}\n" + "\n".join(parts)
    return None


if __name__ == "__main__":
    import compare_many

    sys.exit(compare_many.main())
