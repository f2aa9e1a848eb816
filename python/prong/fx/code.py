"""Graphs as Python source. Called by GraphModule.recompile and Graph.python_code."""

import importlib
import operator

from prong import _core
from prong.fx.graph import Node
from prong.fx.operations import SYMBOLS, _Op


def write_code(graph, self_name="self"):
    """(source of `def forward(self, ...)`, the globals that it needs)."""
    writer = _Writer()
    names = [node.name for node in graph.nodes if node.op == "placeholder"]
    lines = [writer.line(node) for node in graph.nodes if node.op != "placeholder"]
    body = "\n".join(f"    {line}" for line in lines) or "    pass"
    return f"def forward({', '.join([self_name, *names])}):\n{body}\n", writer.globals


class _Writer:
    def __init__(self):
        prong = importlib.import_module("prong")
        self.globals = {"prong": prong, "inf": float("inf"), "nan": float("nan")}

    def value(self, v):
        if isinstance(v, Node):
            return v.name
        if type(v) is tuple:
            return f"({', '.join(map(self.value, v))}{',' if len(v) == 1 else ''})"
        if type(v) is list:
            return f"[{', '.join(map(self.value, v))}]"
        if isinstance(v, slice):
            return f"slice({self.value(v.start)}, {self.value(v.stop)}, {self.value(v.step)})"
        if isinstance(v, (_core.dtype, _core.device)):
            return "prong." + repr(v).rpartition("torch.")[2].rpartition("prong.")[2]
        if v is None or isinstance(v, (bool, int, float, str)):
            return repr(v)
        return self.hold(v, "value")

    def hold(self, v, stem):
        for name, held in self.globals.items():
            if held is v:
                return name
        name = f"_{stem}_{len(self.globals)}"
        self.globals[name] = v
        return name

    def arguments(self, args, kwargs):
        return ", ".join(
            [*map(self.value, args), *(f"{k}={self.value(v)}" for k, v in kwargs.items())]
        )

    def call(self, node):
        args, kwargs = node.args, node.kwargs
        if node.op == "call_method":
            return f"{self.value(args[0])}.{node.target}({self.arguments(args[1:], kwargs)})"
        if node.op == "get_attr":
            return f"self.{node.target}"
        if node.op == "call_module":
            return f"self.{node.target}({self.arguments(args, kwargs)})"
        if node.target in SYMBOLS and len(args) == 2 and not kwargs:
            return f"{self.value(args[0])} {SYMBOLS[node.target]} {self.value(args[1])}"
        if node.target is operator.getitem:
            return f"{self.value(args[0])}[{self.value(args[1])}]"
        return f"{self.function(node.target)}({self.arguments(args, kwargs)})"

    def function(self, target):
        if isinstance(target, _Op):
            return self.hold(target, target.name.replace(".", "_"))
        name = getattr(target, "__name__", "")
        prong = self.globals["prong"]
        if name and prong.__dict__.get(name) is target:
            return f"prong.{name}"
        if name and prong.nn.functional.__dict__.get(name) is target:
            return f"prong.nn.functional.{name}"
        return self.hold(target, name if name.isidentifier() else "function")

    def line(self, node):
        if node.op == "output":
            return f"return {self.value(node.args[0])}"
        return f"{node.name} = {self.call(node)}"
