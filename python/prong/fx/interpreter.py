"""Runs a graph node by node; people override its methods to look or to change."""

from prong.fx.graph import map_nodes


class Interpreter:
    def __init__(self, module):
        self.module = module
        self.env = {}

    def run(self, *args):
        self.env = {}
        given = iter(args)
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                self.env[node] = next(given)
            elif node.op == "output":
                return self.fetch(node.args[0])
            else:
                self.env[node] = self.run_node(node)
        return None

    def fetch(self, value):
        return map_nodes(value, self.env.__getitem__)

    def run_node(self, node):
        args, kwargs = self.fetch(node.args), self.fetch(node.kwargs)
        return getattr(self, node.op)(node.target, args, kwargs)

    def call_function(self, target, args, kwargs):
        return target(*args, **kwargs)

    def call_method(self, target, args, kwargs):
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target, args, kwargs):
        return self.module.attribute(target)(*args, **kwargs)

    def get_attr(self, target, args, kwargs):
        return self.module.attribute(target)
