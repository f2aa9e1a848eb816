"""GraphModule: a graph with the Python function that it stands for. What back ends are given."""

import builtins
import operator

import prong
from prong import nn
from prong.fx import files
from prong.fx.code import write_code
from prong.fx.forks import Recorded, Values, without_forks
from prong.fx.graph import Graph, map_nodes
from prong.fx.operations import target_of


class GraphModule(nn.Module):
    """A module whose forward() is a graph's code. `graph` may be edited; recompile() makes forward() follow.

    `root`, a module or a dict, has what get_attr and call_module nodes name.
    """

    def __init__(self, root=None, graph=None, class_name="GraphModule"):
        super().__init__()
        self.__dict__["_graph"] = graph if graph is not None else Graph()
        self._class_name = class_name
        self.meta = {}
        for node in self.graph.nodes:
            if node.op in ("get_attr", "call_module"):
                _copy_attribute(root, self, node.target)
        self.recompile()

    @classmethod
    def from_description(cls, description, example_inputs=()):
        """From what the recorder tells (bindings/capture_graph.h)."""
        inputs, nodes, outputs, bodies = description
        graph = Graph()
        values = Values(graph)
        for i, name in enumerate(inputs):
            values[name] = graph.placeholder(name)
            if i < len(example_inputs):
                _describe_example(values[name], example_inputs[i])
        Recorded(nodes, bodies, outputs, _add_node).add(graph, values)
        graph.output(tuple(values[name] for name in outputs))
        return cls({}, graph)

    @property
    def graph(self):
        return self._graph

    @graph.setter
    def graph(self, graph):
        self.__dict__["_graph"] = graph
        self.recompile()

    @property
    def code(self):
        return self._code

    def recompile(self):
        """Makes forward() from the graph as it is now."""
        self.graph.owning_module = self
        code, scope = write_code(self.graph)
        exec(builtins.compile(code, "<graph>", "exec"), scope)
        self.__dict__["_code"], self.__dict__["_forward"] = code, scope["forward"]
        return code

    def forward(self, *args, **kwargs):
        return self._forward(self, *args, **kwargs)

    def print_readable(self, print_output=True):
        text = f"class {self._class_name}:\n" + "".join(
            f"    {line}\n" for line in self._code.splitlines()
        )
        if print_output:
            print(text)
        return text

    def attribute(self, path):
        """What a get_attr or call_module node with this target means."""
        value = self
        for part in path.split("."):
            value = getattr(value, part)
        return value

    def without_forks(self):
        """The module with forked bodies where they are forked: the same values, one after the other."""
        return GraphModule(self, without_forks(self.graph), self._class_name)

    def save(self, path):
        """Writes the graph and the tensors that it reads; load() makes it again, and runs no code of the file. Forked
        bodies are written where they stand.
        """
        files.save(self.without_forks(), path)

    @classmethod
    def load(cls, path):
        graph, tensors = files.load(path)
        return cls(tensors, graph)

    def draw(self, path):
        """Writes the graph as an SVG picture."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.graph.svg())

    def __repr__(self):
        return f"{self._class_name}()\n\n{self._code}"

    def __reduce__(self):
        own = {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code", "_forward")}
        return (_built_again, (self.graph, own))


def _built_again(graph, own):
    module = GraphModule.__new__(GraphModule)
    module.__dict__.update(own)
    module.__dict__["_graph"] = graph
    module.recompile()
    return module


def _copy_attribute(root, to, path):
    """Gives `to` what `root` has under a dotted path."""
    if root is None:
        raise ValueError(f"a node reads {path!r}, but the GraphModule is made without a root")
    *folders, name = path.split(".")
    if isinstance(root, dict):
        value = root[path]
    else:
        value = root
        for part in path.split("."):
            value = getattr(value, part)
    for folder in folders:
        if not hasattr(to, folder):
            setattr(to, folder, nn.Module())
        to = getattr(to, folder)
    setattr(to, name, value)


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
    is_one = len(names) == 1 and node["result"] == "tensor"
    # Of an op with many results: "max_1" for "max_1_0" and "max_1_1".
    own_name = node["base"] if writes else names[0] if is_one else names[0].rpartition("_")[0]
    made = graph.create_node(kind, target, args, kwargs, name=own_name)
    file, function, line = node["place"]
    made.meta["writes"] = writes
    if file:
        made.meta["stack_trace"] = f'  File "{file}", line {line}, in {function}'
        made.meta["place"] = (file, line)
    examples = [_shaped(*meta) for meta in node["metas"]]
    if is_one:
        _describe_example(made, examples[0])
        values[names[0]] = made
        return
    for i, name in enumerate(names):
        item = graph.create_node("call_function", operator.getitem, (made, i), name=name)
        item.meta.update({k: v for k, v in made.meta.items() if k != "writes"})
        _describe_example(item, examples[i])
        values[name] = item
    if names:
        made.meta["example_value"] = tuple(examples)


def _shaped(shape, dtype):
    """Tells of a value what is known before it is computed, and holds no memory for it."""
    return prong.empty((), dtype=dtype).expand(tuple(shape))


__all__ = ["GraphModule", "map_nodes"]
