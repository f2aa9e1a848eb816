"""torch._dynamo.backends: where programs look for the registry of back ends."""

from prong import _names

__getattr__ = _names.module_getattr("prong._dynamo.backends", ("registry",))
