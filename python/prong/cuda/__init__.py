"""torch.cuda on a machine without one: programs ask before they use it."""

import importlib

from prong import _names


def is_available() -> bool:
    return False


def is_initialized() -> bool:
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return False


def device_count() -> int:
    return 0


def manual_seed(seed: int) -> None:
    """Nothing to seed."""


def manual_seed_all(seed: int) -> None:
    """Nothing to seed."""


def empty_cache() -> None:
    """Nothing cached."""


def synchronize(device=None) -> None:
    raise AssertionError("Torch not compiled with CUDA enabled (prong computes on the CPU only)")


def current_device() -> int:
    raise AssertionError("Torch not compiled with CUDA enabled (prong computes on the CPU only)")


def __getattr__(name: str):
    if name == "amp":
        return importlib.import_module("prong.cuda.amp")
    _names.raise_missing("prong.cuda", name)
