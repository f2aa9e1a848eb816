"""Graphs of prong as torch.fx graphs, and tensors across without a copy. Called by torch_backends."""

import operator

import prong
from prong.bridge import packages
from prong.fx.graph import map_nodes
from prong.fx.operations import SYMBOLS


def to_torch(value):
    """The same memory as a torch.Tensor; numbers stay what they are."""
    if isinstance(value, prong.Tensor):
        return packages.load("torch").from_dlpack(value.detach())
    return value


def from_torch(value):
    torch = packages.load("torch")
    if not isinstance(value, torch.Tensor):
        return value
    value = value.detach().resolve_conj().resolve_neg()
    return prong.from_dlpack(value)


def to_torch_module(module):
    """A torch.fx.GraphModule of the same graph. Raises NotImplementedError for what PyTorch has no name for."""
    torch = packages.load("torch")
    fx = packages.load("torch.fx")
    graph, made = fx.Graph(), {}

    def convert(value):
        return _map_values(map_nodes(value, made.__getitem__), torch)

    for node in module.graph.nodes:
        args, kwargs = convert(node.args), convert(node.kwargs)
        if node.op == "placeholder":
            made[node] = graph.placeholder(node.name, type_expr=_type_of(node, torch))
        elif node.op == "output":
            made[node] = graph.output(args[0])
        elif node.op == "call_function":
            kind, target, args = _function(node, args, torch)
            made[node] = graph.create_node(kind, target, args, kwargs, node.name)
        elif node.op == "call_method":
            made[node] = graph.call_method(node.target, args, kwargs)
        else:
            raise NotImplementedError(f"a node of kind {node.op} has no counterpart in PyTorch")
    return fx.GraphModule(torch.nn.Module(), graph)


def _type_of(node, torch):
    example = node.meta.get("example_value")
    return torch.Tensor if "dtype" in node.meta else type(example) if example is not None else None


def _map_values(value, torch):
    if isinstance(value, tuple):
        return tuple(_map_values(v, torch) for v in value)
    if isinstance(value, list):
        return [_map_values(v, torch) for v in value]
    if isinstance(value, dict):
        return {k: _map_values(v, torch) for k, v in value.items()}
    if isinstance(value, prong.dtype):
        return getattr(torch, str(value).rpartition(".")[2])
    if isinstance(value, prong.device):
        return torch.device("cpu")
    if isinstance(value, prong.Tensor):
        return to_torch(value)
    return value


def _function(node, args, torch):
    """(kind of node, target, arguments) that do in PyTorch what the node does here."""
    target = node.target
    if target in SYMBOLS or target is operator.getitem:
        return "call_function", target, args
    name = target.__name__.rpartition(".")[2] if "." in target.__name__ else target.__name__
    if name == "batch_norm":  # PyTorch asks whether cuDNN may run it
        return "call_function", torch.batch_norm, (*args, False)
    for place in (torch, torch.nn.functional):
        if callable(getattr(place, name, None)) and hasattr(prong_place(place, torch), name):
            return "call_function", getattr(place, name), args
    if hasattr(torch.Tensor, name):
        return "call_method", name, args
    base = target.__name__.partition(".")[0]
    packet = getattr(torch.ops.aten, base, None)
    if packet is None:
        raise NotImplementedError(f"the op {target.__name__} has no counterpart in PyTorch")
    return "call_function", packet, args


def prong_place(place, torch):
    return prong if place is torch else prong.nn.functional
