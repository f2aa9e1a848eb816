"""skip_init: modules without their initial numbers."""

import inspect

from prong.nn import init
from prong.nn.module import Module


def skip_init(module_cls, *args, **kwargs):
    """The module with parameters that hold whatever the memory holds; no random number is drawn."""
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    with init.skipped():
        return module_cls(*args, **kwargs)
