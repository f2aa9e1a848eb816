"""torch._higher_order_ops: control flow as functions of functions."""

from prong._higher_order_ops.associative_scan import associative_scan
from prong._higher_order_ops.cond import cond
from prong._higher_order_ops.map import map
from prong._higher_order_ops.scan import scan
from prong._higher_order_ops.while_loop import while_loop

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]
