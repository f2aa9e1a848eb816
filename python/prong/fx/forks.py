"""Forked bodies in graphs: prong.jit.fork of a Body, prong.jit.wait for what it gives. Made from what the recorder
tells; without_forks() puts them back where they stand, for back ends that cannot run them apart.
"""

import operator

import prong.jit
from prong.fx.graph import Body, Graph, map_nodes


class Values(dict):
    """The nodes of a graph by the names of values; waits for a body when something that it gives is asked for."""

    def __init__(self, graph):
        super().__init__()
        self.graph, self.tasks = graph, {}

    def __missing__(self, name):
        task, given, metas = self.tasks[name]
        result = self.graph.create_node("call_function", prong.jit.wait, (task,), name="wait")
        for i, n in enumerate(given):
            item = self.graph.create_node("call_function", operator.getitem, (result, i), name=n)
            item.meta.update(shape=tuple(metas[n][0]), dtype=metas[n][1])
            self[n] = item
        return self[name]


class Recorded:
    """Nodes and bodies as the recorder tells them, put into graphs. `add_node` adds one node."""

    def __init__(self, nodes, regions, outputs, add_node):
        self.nodes, self.regions, self.outputs, self.add_node = nodes, regions, outputs, add_node

    def add(self, graph, values, region=-1, first=0, end=None):
        inner = [r for r in range(len(self.regions)) if self.regions[r][0] == region]
        starts = {self.regions[r][1]: r for r in inner}
        i, end = first, len(self.nodes) if end is None else end
        while i < end:
            if i in starts:
                self.fork(graph, values, starts[i])
                i = self.regions[starts[i]][2]
            else:
                self.add_node(graph, values, self.nodes[i])
                i += 1

    def fork(self, graph, values, region):
        _, first, end, name, (file, function, line) = self.regions[region]
        inside, outside = self.nodes[first:end], self.nodes[:first] + self.nodes[end:]
        metas = {n: meta for node in inside for n, meta in zip(node["outputs"], node["metas"])}
        reads = dict.fromkeys(n for node in inside for n in _reads(node) if n not in metas)
        wanted = {n for node in outside for n in _reads(node)}.union(self.outputs)
        given = [n for n in metas if n in wanted]
        if not given:
            return  # nobody reads what it computes
        body = Graph()
        own = Values(body)
        for n in reads:
            own[n] = body.placeholder(n)
        self.add(body, own, region, first, end)
        body.output(tuple(own[n] for n in given))
        short = "".join(c if c.isalnum() else "_" for c in name.rpartition(".")[2]).strip("_")
        task = graph.create_node(
            "call_function",
            prong.jit.fork,
            (Body(body, f"{short or 'lambda'}_body"), *(values[n] for n in reads)),
            name=f"{short or 'lambda'}_task",
        )
        if file:
            task.meta["stack_trace"] = f'  File "{file}", line {line}, in {function}'
            task.meta["place"] = (file, line)
        for n in given:
            values.tasks[n] = (task, given, metas)


def _reads(node):
    found = []

    def look(v):
        if type(v) is tuple and len(v) == 2 and v[0] == "%":
            found.append(v[1])
        elif type(v) is list:
            for item in v:
                look(item)

    look([*node["args"], *node["kwargs"].values()])
    return found


def without_forks(graph):
    """A copy in which the nodes of forked bodies stand where they are forked: the same values, one after the other."""
    flat = Graph()
    _copy(graph, flat, {})
    return flat


def _copy(graph, to, made):
    """Copies all nodes but placeholders that are in `made` and the output, whose value is returned."""
    for node in graph.nodes:
        args, kwargs = (map_nodes(v, made.__getitem__) for v in (node.args, node.kwargs))
        if node.op == "output":
            if made.get("is_body"):
                return args[0]
            to.output(args[0])
        elif node.op == "placeholder" and made.get("is_body"):
            continue
        elif node.target is prong.jit.fork and isinstance(node.args[0], Body):
            body = node.args[0].graph
            inside = {n: a for n, a in zip(body.nodes, args[1:])}
            made[node] = _copy(body, to, {**inside, "is_body": True})
        elif node.target is prong.jit.wait:
            made[node] = args[0]
        elif node.target is operator.getitem and type(args[0]) is tuple:
            made[node] = args[0][args[1]]
        else:
            copied = to.create_node(node.op, node.target, args, kwargs, name=node.name)
            copied.meta = dict(node.meta)
            made[node] = copied
    return None
