"""torch._dynamo.backends.registry: back ends by name."""

from prong import _names
from prong._backends import list_backends, lookup_backend, register_backend

__all__ = ["list_backends", "lookup_backend", "register_backend"]

__getattr__ = _names.module_getattr("prong._dynamo.backends.registry")
