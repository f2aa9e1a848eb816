"""torch._functorch: its settings, as programs that set some need no change."""

from prong import _names

__getattr__ = _names.module_getattr("prong._functorch", ("config",))
