"""Settings of the process: threads, and PyTorch's switches that have one position here."""

import prong
from prong import _core
from prong._core import get_num_threads, set_default_dtype


def _thread_count(value, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} expects an int, but got {type(value).__name__}")
    if value < 1:
        raise RuntimeError(f"{name} expects a positive integer, but got {value}")
    return value


def set_num_threads(num: int) -> None:
    """The number of threads that work at once: ops' loops and forked tasks share them."""
    _core.set_num_threads(_thread_count(num, "set_num_threads"))


def set_num_interop_threads(num: int) -> None:
    """The same pool serves forked tasks, so this sets the same number, at any time."""
    _core.set_num_threads(_thread_count(num, "set_num_interop_threads"))


def get_num_interop_threads() -> int:
    """The size of the pool; see set_num_interop_threads."""
    return get_num_threads()


def set_default_tensor_type(t) -> None:
    """The old spelling of set_default_dtype."""
    set_default_dtype(
        t.dtype if hasattr(t, "dtype") else getattr(prong, t.rpartition(".")[2]).dtype
    )


def get_default_device():
    """Always the CPU."""
    return _core.device("cpu")


def set_default_device(device) -> None:
    """Accepts the CPU only."""
    if device is not None and _core.device(device).type != "cpu":
        raise RuntimeError(
            f"prong computes on the CPU only; the default device cannot be '{device}'"
        )


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Results here never depend on timing; the switch is only remembered."""
    global _deterministic
    _deterministic = bool(mode)


def are_deterministic_algorithms_enabled() -> bool:
    """What use_deterministic_algorithms was told."""
    return _deterministic


def get_float32_matmul_precision() -> str:
    """'highest', unless set otherwise."""
    return _matmul_precision


def set_float32_matmul_precision(precision: str) -> None:
    """Remembered; products of float32 are always computed at least as exactly as 'highest' asks."""
    global _matmul_precision
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(
            f"float32 matmul precision is 'highest', 'high' or 'medium', not '{precision}'"
        )
    _matmul_precision = precision


_deterministic = False
_matmul_precision = "highest"
