"""Padding modules."""

from prong import Tensor

from . import functional as F
from .module import Module


class _PadNd(Module):
    """Padding of the last dimensions: two numbers for each, the last dimension first."""

    __constants__ = ["padding"]
    padding: list[int]
    _spatial = 0

    def __init__(self, padding):
        super().__init__()
        n = 2 * self._spatial
        self.padding = tuple(padding) if isinstance(padding, (tuple, list)) else (padding,) * n

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]
    value: float

    def __init__(self, padding, value: float):
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ReflectionPadNd(_PadNd):
    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "reflect")


class _ReplicationPadNd(_PadNd):
    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "replicate")


class _CircularPadNd(_PadNd):
    def forward(self, input: Tensor) -> Tensor:
        n = self._spatial
        if input.dim() != n + 1 and input.dim() != n + 2:
            raise ValueError(f"expected {n + 1}D or {n + 2}D input (got {input.dim()}D input)")
        return F.pad(input, self.padding, "circular")


class ConstantPad1d(_ConstantPadNd):
    """One value around [N, C, L]."""

    _spatial = 1


class ConstantPad2d(_ConstantPadNd):
    """One value around [N, C, H, W]."""

    _spatial = 2


class ConstantPad3d(_ConstantPadNd):
    """One value around [N, C, D, H, W]."""

    _spatial = 3


class ReflectionPad1d(_ReflectionPadNd):
    """[N, C, L] mirrored at its edges."""

    _spatial = 1


class ReflectionPad2d(_ReflectionPadNd):
    """[N, C, H, W] mirrored at its edges."""

    _spatial = 2


class ReflectionPad3d(_ReflectionPadNd):
    """[N, C, D, H, W] mirrored at its edges."""

    _spatial = 3


class ReplicationPad1d(_ReplicationPadNd):
    """The edges of [N, C, L] repeated."""

    _spatial = 1


class ReplicationPad2d(_ReplicationPadNd):
    """The edges of [N, C, H, W] repeated."""

    _spatial = 2


class ReplicationPad3d(_ReplicationPadNd):
    """The edges of [N, C, D, H, W] repeated."""

    _spatial = 3


class CircularPad1d(_CircularPadNd):
    """[N, C, L] continued from its other end."""

    _spatial = 1


class CircularPad2d(_CircularPadNd):
    """[N, C, H, W] continued from its other end."""

    _spatial = 2


class CircularPad3d(_CircularPadNd):
    """[N, C, D, H, W] continued from its other end."""

    _spatial = 3


class ZeroPad1d(ConstantPad1d):
    """Zeros around [N, C, L]."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Zeros around [N, C, H, W]."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Zeros around [N, C, D, H, W]."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"
