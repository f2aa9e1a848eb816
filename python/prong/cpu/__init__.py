"""torch.cpu: what there is of a device module for the CPU."""

from prong import _names

from . import amp


def is_available() -> bool:
    """There is always a CPU."""
    return True


def device_count() -> int:
    """The CPU is one device."""
    return 1


def current_device() -> str:
    """The one there is."""
    return "cpu"


def set_device(device) -> None:
    """Nothing to choose from."""


def synchronize(device=None) -> None:
    """Nothing is put off."""


__getattr__ = _names.module_getattr("prong.cpu")
