"""Errors of compile(); known as prong._dynamo.exc.*."""


class TorchDynamoException(RuntimeError):
    """Base of the errors of capture and compilation."""


class Unsupported(TorchDynamoException):
    """fullgraph=True, and the function's tensor work does not fit one graph."""


class BackendCompilerFailed(TorchDynamoException):
    """A back end raised while it compiled a graph."""


class CompiledDiffers(TorchDynamoException):
    """mode="check" found a value that differs from eager's."""
