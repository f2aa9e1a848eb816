"""torch._dynamo.decorators: marks of functions and tensors."""

from prong import _names
from prong._dynamo import (
    allow_in_graph,
    assume_constant_result,
    disable,
    disallow_in_graph,
    forbid_in_graph,
    graph_break,
    mark_dynamic,
    mark_static,
    mark_static_address,
    mark_unbacked,
    maybe_mark_dynamic,
    nonstrict_trace,
    run,
    set_stance,
    substitute_in_graph,
)

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "disable",
    "disallow_in_graph",
    "forbid_in_graph",
    "graph_break",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "nonstrict_trace",
    "run",
    "set_stance",
    "substitute_in_graph",
]

__getattr__ = _names.module_getattr("prong._dynamo.decorators")
