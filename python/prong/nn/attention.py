"""torch.nn.attention: which kernels of scaled_dot_product_attention a program allows. There is one here, for all."""

import enum
from contextlib import contextmanager

from prong import _names


class SDPBackend(enum.IntEnum):
    """PyTorch's kinds of kernels."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends, set_priority: bool = False):
    """Allows some kinds of kernels; the one of prong serves for each of them."""
    allowed = [backends] if isinstance(backends, SDPBackend) else list(backends)
    if not allowed or not all(isinstance(b, SDPBackend) for b in allowed):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances"
        )
    yield {}


__getattr__ = _names.module_getattr("prong.nn.attention")
