"""Errors of compile(); known as prong._dynamo.exc.*."""


class TorchDynamoException(RuntimeError):
    """Base of the errors of capture and compilation."""


class Unsupported(TorchDynamoException):
    """fullgraph=True, and the function's tensor work does not fit one graph."""


class BackendCompilerFailed(TorchDynamoException):
    """A back end raised while it compiled a graph, or gave nothing that can be called."""


class InvalidBackend(TorchDynamoException):
    """There is no back end of that name."""


class CompiledDiffers(TorchDynamoException):
    """mode="check" found a value that differs from eager's."""


class RecompileError(TorchDynamoException):
    """Something had to be compiled anew where set_stance or config.error_on_recompile forbid it."""


class FailOnRecompileLimitHit(Unsupported):
    """A function has as many plans as it may have, and config.fail_on_recompile_limit_hit is set."""


class TorchRuntimeError(TorchDynamoException):
    """Never raised here: errors of ops are those of plain Python. For programs that catch it."""


class InternalTorchDynamoError(TorchDynamoException):
    """Never raised here; for programs that catch it."""


class ResetRequired(TorchDynamoException):
    """Never raised here; for programs that catch it."""


class UserError(Unsupported):
    """Never raised here; for programs that catch it."""
