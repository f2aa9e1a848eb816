"""torch._dynamo.exc: the errors of capture."""

from prong import _names
from prong._compile_errors import (
    BackendCompilerFailed,
    CompiledDiffers,
    FailOnRecompileLimitHit,
    InternalTorchDynamoError,
    InvalidBackend,
    RecompileError,
    ResetRequired,
    TorchDynamoException,
    TorchRuntimeError,
    Unsupported,
    UserError,
)

__all__ = [
    "BackendCompilerFailed",
    "CompiledDiffers",
    "FailOnRecompileLimitHit",
    "InternalTorchDynamoError",
    "InvalidBackend",
    "RecompileError",
    "ResetRequired",
    "TorchDynamoException",
    "TorchRuntimeError",
    "Unsupported",
    "UserError",
]

__getattr__ = _names.module_getattr("prong._dynamo.exc")
