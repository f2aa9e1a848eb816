"""Runs a graph node by node; people override its methods to look or to change."""

from prong.fx.graph import map_nodes


class Interpreter:
    def __init__(self, module, garbage_collect_values=True, graph=None):
        self.module = module
        self.graph = module.graph if graph is None else graph
        self.env = {}

    def run(self, *args, initial_env=None):
        """What the graph gives for these inputs; `initial_env` has values of nodes that are not run."""
        self.env = dict(initial_env or {})
        self.args_iter = iter(args)
        result = None
        for node in self.graph.nodes:
            if node not in self.env:
                self.env[node] = self.run_node(node)
            if node.op == "output":
                result = self.env[node]
        return result

    def fetch(self, value):
        return map_nodes(value, self.env.__getitem__)

    def fetch_args_kwargs_from_env(self, n):
        return self.fetch(n.args), self.fetch(n.kwargs)

    def map_nodes_to_values(self, args, n):
        return self.fetch(args)

    def fetch_attr(self, target):
        return self.module.attribute(target)

    def run_node(self, n):
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target, args, kwargs):
        try:
            return next(self.args_iter)
        except StopIteration:
            raise RuntimeError(f"run() was given no value for the input {target}") from None

    def output(self, target, args, kwargs):
        return args[0]

    def call_function(self, target, args, kwargs):
        return target(*args, **kwargs)

    def call_method(self, target, args, kwargs):
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target, args, kwargs):
        return self.fetch_attr(target)(*args, **kwargs)

    def get_attr(self, target, args, kwargs):
        return self.fetch_attr(target)
