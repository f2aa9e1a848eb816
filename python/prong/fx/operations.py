"""What the nodes of a graph call: Python's operators, functions of prong, methods, and ops that have no public name."""

import functools
import importlib
import operator

from prong import _core

OPERATORS = {
    "add": (operator.add, "+"),
    "sub": (operator.sub, "-"),
    "mul": (operator.mul, "*"),
    "div": (operator.truediv, "/"),
    "floor_divide": (operator.floordiv, "//"),
    "remainder": (operator.mod, "%"),
    "pow": (operator.pow, "**"),
    "matmul": (operator.matmul, "@"),
    "bitwise_and": (operator.and_, "&"),
    "bitwise_or": (operator.or_, "|"),
    "bitwise_xor": (operator.xor, "^"),
    "eq": (operator.eq, "=="),
    "ne": (operator.ne, "!="),
    "lt": (operator.lt, "<"),
    "le": (operator.le, "<="),
    "gt": (operator.gt, ">"),
    "ge": (operator.ge, ">="),
}
SYMBOLS = {function: symbol for function, symbol in OPERATORS.values()}


class _Op:
    """An op by its name in the registry, for graphs that use what has no spelling of its own in Python."""

    def __init__(self, name):
        self.__name__ = self.name = name

    def __call__(self, *args, **kwargs):
        return _core.call_op(self.name, *args, **kwargs)

    def __repr__(self):
        return f"prong.ops.aten.{self.name}"

    def __reduce__(self):
        return (op_named, (self.name,))


_ops: dict = {}


def op_named(name):
    """The op of the registry that has this name; KeyError: there is none."""
    if name not in _op_names():
        raise KeyError(name)
    return _ops.setdefault(name, _Op(name))


@functools.cache
def _op_names():
    return frozenset(op["name"] for op in _core.ops())


def function_named(base):
    """The public function of an op: prong.relu, prong.nn.functional.linear, prong.special.i0; None: it has none."""
    function = _core.functions.get(base, _core.nn_functional.get(base))
    place, _, rest = base.partition("_")
    if function is None and place in ("special", "linalg", "fft"):
        found = getattr(importlib.import_module(f"prong.{place}"), rest, None)
        function = found if isinstance(found, type(_core.functions["relu"])) else None
    return function


def target_of(base, name, count, has_keywords):
    """(kind, target) of a node that runs the op: an operator, a function, a method or the bare op."""
    if base in OPERATORS and count == 2 and not has_keywords and name == base:
        return "call_function", OPERATORS[base][0]
    function = function_named(base)
    if function is not None:
        return "call_function", function
    if hasattr(_core.Tensor, base) and callable(getattr(_core.Tensor, base)):
        return "call_method", base
    return "call_function", op_named(name)


def operator_name(target):
    """ "add" for operator.add, "getitem" for operator.getitem; None: no operator of graphs."""
    if target is operator.getitem:
        return "getitem"
    return next((base for base, (function, _) in OPERATORS.items() if function is target), None)


def op_name(node):
    """The base name of the op that a node calls: "add", "softmax", "getitem"."""
    target = node.target
    if isinstance(target, str):
        return target
    if operator_name(target):
        return operator_name(target)
    return target.name.partition(".")[0] if isinstance(target, _Op) else target.__name__
