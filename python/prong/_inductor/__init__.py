"""torch._inductor: settings of a compiler that is not here, as programs that set some need no change."""

from prong import _names

__all__ = ["list_mode_options", "list_options"]


def list_options():
    """The options of the default back end: none."""
    return []


def list_mode_options(mode=None, dynamic=None):
    """For each mode the options that it sets: none."""
    modes = ("default", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
    return {} if mode else {each: {} for each in modes}


__getattr__ = _names.module_getattr("prong._inductor", ("config",))
