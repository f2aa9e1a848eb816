"""torch._logging: set_logs says how logs are asked for here."""

import warnings

from prong import _names

__all__ = ["set_logs"]


def set_logs(**topics):
    """Logs are chosen when a program starts, by the variable PRONG_LOG."""
    if any(topics.values()):
        warnings.warn(
            "torch._logging.set_logs() has no effect here: start the program with "
            "PRONG_LOG=capture,guards,recompiles to see what is compiled, and why",
            stacklevel=2,
        )


__getattr__ = _names.module_getattr("prong._logging")
