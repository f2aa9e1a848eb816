"""torch.backends: switches of libraries that are not here; they can be set to no effect."""

from prong import _names


class _Backend:
    def __init__(self, **values):
        self.__dict__.update(values)

    def is_available(self) -> bool:
        return False

    def is_built(self) -> bool:
        return False


cudnn = _Backend(
    enabled=False, benchmark=False, deterministic=False, allow_tf32=False, version=lambda: None
)
cuda = _Backend(matmul=_Backend(allow_tf32=False, allow_fp16_reduced_precision_reduction=False))
mps = _Backend()
mkl = _Backend()
mkldnn = _Backend(enabled=False)
openmp = _Backend()

__getattr__ = _names.module_getattr("prong.backends")
