"""Exception classes of the script compiler under PyTorch's names; the compiler raises RuntimeError."""

NotSupportedError = RuntimeError
UnsupportedNodeError = RuntimeError
FrontendError = RuntimeError
