"""GraphModule: a graph with the Python function that it stands for. What back ends are given."""

import operator

from prong.fx.code import write_code
from prong.fx.graph import Graph, map_nodes
from prong.fx.operations import target_of


class GraphModule:
    """`graph` may be edited; recompile() makes forward() follow."""

    def __init__(self, root=None, graph=None, class_name="GraphModule"):
        if isinstance(root, dict):
            self.__dict__.update(root)
        self.graph = graph if graph is not None else Graph()
        self._class_name = class_name
        self.meta = {}
        self.recompile()

    @classmethod
    def from_description(cls, description, example_inputs=()):
        """From what the recorder tells (bindings/capture_graph.h)."""
        inputs, nodes, outputs = description
        graph, values = Graph(), {}
        for i, name in enumerate(inputs):
            values[name] = graph.placeholder(name)
            if i < len(example_inputs):
                _describe_example(values[name], example_inputs[i])
        for node in nodes:
            _add_node(graph, values, node)
        graph.output(tuple(values[name] for name in outputs))
        return cls({}, graph)

    @property
    def code(self):
        return self._code

    def recompile(self):
        """Makes forward() from the graph as it is now."""
        self._code, scope = write_code(self.graph)
        exec(__builtins__["compile"](self._code, "<graph>", "exec"), scope)
        self._forward = scope["forward"]
        return self._code

    def forward(self, *args, **kwargs):
        return self._forward(self, *args, **kwargs)

    __call__ = forward

    def print_readable(self, print_output=True):
        text = f"class {self._class_name}:\n" + "".join(
            f"    {line}\n" for line in self._code.splitlines()
        )
        if print_output:
            print(text)
        return text

    def eval(self):
        return self

    def train(self, mode=True):
        return self

    def named_parameters(self, *args, **kwargs):
        return iter(())

    def parameters(self, recurse=True):
        return iter(())

    def named_buffers(self, *args, **kwargs):
        return iter(())

    def __repr__(self):
        return f"{self._class_name}()\n\n{self._code}"

    def __getstate__(self):
        return {"graph": self.graph, "class_name": self._class_name}

    def __setstate__(self, state):
        self.__init__({}, state["graph"], state["class_name"])


def _describe_example(node, example):
    if hasattr(example, "shape"):
        node.meta.update(shape=tuple(example.shape), dtype=example.dtype, example_value=example)
    else:
        node.meta["example_value"] = example


def _add_node(graph, values, node):
    def real(v):
        if type(v) is tuple and len(v) == 2 and v[0] == "%":
            return values[v[1]]
        return [real(item) for item in v] if type(v) is list else v

    args = tuple(real(v) for v in node["args"])
    kwargs = {k: real(v) for k, v in node["kwargs"].items()}
    kind, target = target_of(node["base"], node["name"], len(args), bool(kwargs))
    names, writes = node["outputs"], not node["outputs"]
    made = graph.create_node(
        kind, target, args, kwargs, name=names[0] if len(names) == 1 else node["base"]
    )
    file, function, line = node["place"]
    made.meta["writes"] = writes
    if file:
        made.meta["stack_trace"] = f'  File "{file}", line {line}, in {function}'
        made.meta["place"] = (file, line)
    if len(names) == 1 and node["result"] == "tensor":
        made.meta["shape"], made.meta["dtype"] = tuple(node["metas"][0][0]), node["metas"][0][1]
        values[names[0]] = made
        return
    for i, name in enumerate(names):
        item = graph.create_node("call_function", operator.getitem, (made, i), name=name)
        item.meta["shape"], item.meta["dtype"] = tuple(node["metas"][i][0]), node["metas"][i][1]
        values[name] = item


__all__ = ["GraphModule", "map_nodes"]
