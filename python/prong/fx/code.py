"""Graphs as Python source. Called by GraphModule.recompile and Graph.python_code."""

import builtins
import importlib
import operator

from prong import _core
from prong.fx.graph import Body, Node
from prong.fx.operations import SYMBOLS, _Op, function_named

_LARGEST = 2**63 - 1  # "to the end", of a slice
_NAMESPACES = ("nn.functional", "special", "linalg", "fft")


def write_code(graph, self_name="self"):
    """(source of `def forward(self, ...)`, the globals that it needs)."""
    writer = _Writer()
    return "\n".join(writer.function_lines(graph, "forward", [self_name])) + "\n", writer.globals


def run_body(body, args):
    """What the body of a fork gives, for who runs a graph node by node."""
    writer = _Writer()
    code = "\n".join(writer.function_lines(body.graph, body.__name__, []))
    exec(builtins.compile(code, "<graph>", "exec"), writer.globals)
    return writer.globals[body.__name__](*args)


class _Writer:
    def __init__(self):
        prong = importlib.import_module("prong")
        self.globals = {"prong": prong}

    def function_lines(self, graph, name, parameters):
        names = [node.name for node in graph.nodes if node.op == "placeholder"]
        lines = [f"def {name}({', '.join([*parameters, *names])}):"]
        for node in graph.nodes:
            if node.op != "placeholder":
                for argument in node.args:
                    if isinstance(argument, Body):
                        inner = self.function_lines(argument.graph, argument.__name__, [])
                        lines += [f"    {line}" for line in inner]
                lines.append(f"    {self.line(node)}")
        return lines if len(lines) > 1 else [*lines, "    pass"]

    def value(self, v):
        if isinstance(v, Node):
            return v.name
        if isinstance(v, Body):
            return v.__name__
        if type(v) is tuple:
            return f"({', '.join(map(self.value, v))}{',' if len(v) == 1 else ''})"
        if type(v) is list:
            return f"[{', '.join(map(self.value, v))}]"
        if isinstance(v, slice):
            return f"slice({self.value(v.start)}, {self.value(v.stop)}, {self.value(v.step)})"
        if isinstance(v, (_core.dtype, _core.device)):
            return "prong." + repr(v).rpartition("torch.")[2].rpartition("prong.")[2]
        if isinstance(v, float) and v - v != 0:
            return f"float('{v}')"
        if v is None or isinstance(v, (bool, int, float, str)):
            return repr(v)
        if type(v) is dict:
            return f"{{{', '.join(f'{self.value(k)}: {self.value(x)}' for k, x in v.items())}}}"
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
            return self.attribute(node.target)
        if node.op == "call_module":
            return f"{self.attribute(node.target)}({self.arguments(args, kwargs)})"
        if node.target in SYMBOLS and len(args) == 2 and not kwargs:
            return f"{self.value(args[0])} {SYMBOLS[node.target]} {self.value(args[1])}"
        if node.target is operator.getitem:
            return f"{self.value(args[0])}[{self.value(args[1])}]"
        if isinstance(node.target, _Op) and node.target.name == "slice":
            return self.slice(*args, **kwargs)
        return f"{self.function(node.target)}({self.arguments(args, kwargs)})"

    def attribute(self, path):
        text = "self"
        for part in path.split("."):
            text = f"{text}.{part}" if part.isidentifier() else f"getattr({text}, {part!r})"
        return text

    def slice(self, x, dim=0, start=None, end=None, step=1):
        if not isinstance(dim, int) or dim < 0:
            return f"prong.ops.aten.slice({self.arguments((x, dim, start, end, step), {})})"
        start, end = start or None, None if end == _LARGEST else end
        bounds = f"{self.bound(start)}:{self.bound(end)}"
        if step != 1:
            bounds += f":{self.value(step)}"
        return f"{self.value(x)}[{':, ' * dim}{bounds}]"

    def bound(self, v):
        return "" if v is None else self.value(v)

    def function(self, target):
        if isinstance(target, _Op):
            importlib.import_module("prong.ops")
            return (
                f"prong.ops.aten.{target.name}"
                if "." not in target.name
                else self.hold(target, target.name.replace(".", "_"))
            )
        name = getattr(target, "__name__", "")
        prong = self.globals["prong"]
        if name in ("fork", "wait") and getattr(prong.jit, name) is target:
            return f"prong.jit.{name}"
        if name and prong.__dict__.get(name) is target:
            return f"prong.{name}"
        for place in _NAMESPACES:
            module = importlib.import_module(f"prong.{place}")
            short = name.removeprefix(f"{place}_")
            if short and module.__dict__.get(short) is target:
                return f"prong.{place}.{short}"
        if name.isidentifier() and function_named(name) is target:
            importlib.import_module("prong.ops")
            return f"prong.ops.aten.{name}"
        return self.hold(target, name if name.isidentifier() else "function")

    def line(self, node):
        if node.op == "output":
            return f"return {self.value(node.args[0])}"
        return f"{node.name} = {self.call(node)}"
