"""How tensors print."""

import math

from prong import _core


def set_printoptions(
    precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None
):
    """Sets what is given; profile is 'default', 'short' or 'full'."""
    if profile is None and sci_mode is None:
        pass  # sci_mode=None means: let the values decide
    _core._set_print_options(precision, threshold, edgeitems, linewidth, profile, sci_mode)


def get_printoptions() -> dict:
    """The options that hold now."""
    options = _core._print_options()
    if options["threshold"] != math.inf:
        options["threshold"] = int(options["threshold"])
    return options
