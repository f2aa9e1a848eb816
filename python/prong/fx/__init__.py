"""The graph of a compiled function as people see it: nodes to read, edit and run as Python."""

from prong import _names
from prong.fx.graph import Graph, Node, map_arg
from prong.fx.graph_module import GraphModule
from prong.fx.interpreter import Interpreter

__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "map_arg"]

__getattr__ = _names.module_getattr("prong.fx")
