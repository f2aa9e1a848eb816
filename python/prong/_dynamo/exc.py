"""torch._dynamo.exc: the errors of capture."""

from prong._compile_errors import (
    BackendCompilerFailed,
    CompiledDiffers,
    TorchDynamoException,
    Unsupported,
)

__all__ = ["BackendCompilerFailed", "CompiledDiffers", "TorchDynamoException", "Unsupported"]
