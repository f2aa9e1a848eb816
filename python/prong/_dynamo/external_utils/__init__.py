"""torch._dynamo.external_utils: is_compiling, where older programs look for it."""

from prong import _names
from prong._compile import is_compiling

__all__ = ["is_compiling"]

__getattr__ = _names.module_getattr("prong._dynamo.external_utils")
