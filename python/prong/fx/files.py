"""Graphs in files: plain values and tensors only, so that loading one runs no code that the file names. Called by
GraphModule.save and load.
"""

import operator

import prong
from prong.fx.graph import Graph, map_nodes
from prong.fx.operations import OPERATORS, function_named, op_named, operator_name

VERSION = 1


def save(module, path):
    tensors = {}
    for node in module.graph.nodes:
        if node.op == "call_module":
            raise NotImplementedError(
                f"node {node} calls a module, which a file of a graph cannot hold; pickle can"
            )
        if node.op == "get_attr":
            value = module.attribute(node.target)
            if not isinstance(value, prong.Tensor):
                raise NotImplementedError(
                    f"node {node} reads {type(value).__name__}, only tensors are saved"
                )
            tensors[node.target] = value.detach()
    rows = [
        {
            "name": node.name,
            "op": node.op,
            "target": _target_text(node),
            "args": _packed(node.args),
            "kwargs": _packed(node.kwargs),
            "meta": {k: _packed(v) for k, v in node.meta.items() if k != "example_value"},
        }
        for node in module.graph.nodes
    ]
    prong.save({"prong_graph": VERSION, "nodes": rows, "tensors": tensors}, path)


def load(path):
    """(graph, what its get_attr nodes read)."""
    try:
        saved = prong.load(path)
    except (RuntimeError, EOFError, ValueError) as error:
        raise RuntimeError(f"{path} is no file of a graph, or a damaged one: {error}") from error
    if not isinstance(saved, dict) or saved.get("prong_graph") != VERSION:
        raise ValueError(f"{path} holds no graph that this version of prong knows")
    graph, made = Graph(), {}
    for row in saved["nodes"]:
        args, kwargs = _unpacked(row["args"], made), _unpacked(row["kwargs"], made)
        target = _target_named(row["op"], row["target"])
        node = graph.create_node(row["op"], target, args, kwargs, name=row["name"])
        node.meta.update((k, _unpacked(v, made)) for k, v in row["meta"].items())
        made[row["name"]] = node
    return graph, saved["tensors"]


def _target_text(node):
    target = node.target
    if isinstance(target, str):
        return target
    if operator_name(target):
        return f"operator {operator_name(target)}"
    name = getattr(target, "name", None)
    if name and op_named(name) is target:
        return f"op {name}"
    if function_named(getattr(target, "__name__", "")) is target:
        return f"function {target.__name__}"
    raise NotImplementedError(
        f"node {node} calls {target!r}, which is no op: a file of a graph cannot name it"
    )


def _target_named(op, text):
    if op != "call_function":
        return text
    kind, _, name = text.partition(" ")
    if kind == "operator":
        return operator.getitem if name == "getitem" else OPERATORS[name][0]
    return op_named(name) if kind == "op" else function_named(name)


def _packed(value):
    value = map_nodes(value, lambda node: ("%", node.name))
    return _slices(value)


def _slices(value):
    if isinstance(value, slice):
        return ("slice", value.start, value.stop, value.step)
    if isinstance(value, tuple):
        return tuple(map(_slices, value))
    if isinstance(value, list):
        return [_slices(v) for v in value]
    if isinstance(value, dict):
        return {k: _slices(v) for k, v in value.items()}
    return value


def _unpacked(value, made):
    if isinstance(value, tuple):
        if len(value) == 2 and value[0] == "%":
            return made[value[1]]
        if len(value) == 4 and value[0] == "slice":
            return slice(*(_unpacked(v, made) for v in value[1:]))
        return tuple(_unpacked(v, made) for v in value)
    if isinstance(value, list):
        return [_unpacked(v, made) for v in value]
    if isinstance(value, dict):
        return {k: _unpacked(v, made) for k, v in value.items()}
    return value


__all__ = ["load", "save"]
