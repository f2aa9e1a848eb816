"""Whether autocast is on for a kind of device, and with which dtype. Tasks inherit the state of the CPU."""

import warnings

from prong import _core

# What programs may set for devices that are not here; it changes no op.
_elsewhere: dict[str, tuple[bool, _core.dtype]] = {}
_DEVICES = ("cpu", "cuda", "xpu", "mps", "mtia", "hpu", "xla", "ipu", "maia", "meta")
_nesting = 0


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast may be asked for that kind of device."""
    if not isinstance(device_type, str):
        raise TypeError(
            f"is_autocast_available(): argument 'device_type' must be str, not {type(device_type)}"
        )
    return device_type in ("cpu", "cuda", "xpu", "mps", "hpu", "xla")


def _known(device_type):
    if device_type not in _DEVICES:
        raise RuntimeError(
            f"Expected one of {', '.join(_DEVICES)} device type at start of device string: {device_type}"
        )


def _get(device_type):
    _known(device_type)
    if device_type == "cpu":
        enabled, dtype, _ = _core._get_autocast()
        return enabled, dtype
    usual = _core.float16 if device_type in ("cuda", "mps") else _core.bfloat16
    return _elsewhere.get(device_type, (False, usual))


def _set(device_type, enabled, dtype):
    _known(device_type)
    if device_type == "cpu":
        _core._set_autocast(enabled, dtype, _core._get_autocast()[2])
    else:
        _elsewhere[device_type] = (enabled, dtype)


def get_all(device_type):
    """Whether it is on, the dtype, and whether casts may be kept."""
    enabled, dtype = _get(device_type)
    return enabled, dtype, is_autocast_cache_enabled()


def set_all(device_type, enabled, dtype, keeps):
    """What `get_all` gave, or another state."""
    _set(device_type, enabled, dtype)
    set_autocast_cache_enabled(keeps)


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on."""
    return _get(device_type)[0]


def set_autocast_enabled(device_type, enabled=None) -> None:
    """Switches autocast on or off."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    _set(device_type, bool(enabled), _get(device_type)[1])


def get_autocast_dtype(device_type: str):
    """The dtype that autocast converts to."""
    return _get(device_type)[1]


def set_autocast_dtype(device_type: str, dtype) -> None:
    """Sets the dtype that autocast converts to."""
    _set(device_type, _get(device_type)[0], dtype)


def is_autocast_cache_enabled() -> bool:
    """Whether casts of weights may be kept; prong makes them anew."""
    return _core._get_autocast()[2]


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Whether casts of weights may be kept; prong makes them anew."""
    on, dtype, _ = _core._get_autocast()
    _core._set_autocast(on, dtype, bool(enabled))


def clear_autocast_cache() -> None:
    """Nothing to do: no casts are kept."""


def autocast_increment_nesting() -> int:
    """Counts a region that begins."""
    global _nesting
    _nesting += 1
    return _nesting


def autocast_decrement_nesting() -> int:
    """Counts a region that ends."""
    global _nesting
    _nesting -= 1
    return _nesting


def _old(name, new):
    warnings.warn(
        f"torch.{name} is deprecated. Please use torch.{new} instead.",
        DeprecationWarning,
        stacklevel=3,
    )


def is_autocast_cpu_enabled() -> bool:
    """The old name of is_autocast_enabled("cpu")."""
    _old("is_autocast_cpu_enabled()", "is_autocast_enabled('cpu')")
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """The old name of set_autocast_enabled("cpu", enabled)."""
    _old("set_autocast_cpu_enabled(enabled)", "set_autocast_enabled('cpu', enabled)")
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype():
    """The old name of get_autocast_dtype("cpu")."""
    _old("get_autocast_cpu_dtype()", "get_autocast_dtype('cpu')")
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype) -> None:
    """The old name of set_autocast_dtype("cpu", dtype)."""
    _old("set_autocast_cpu_dtype(dtype)", "set_autocast_dtype('cpu', dtype)")
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype():
    """The old name of get_autocast_dtype("cuda")."""
    _old("get_autocast_gpu_dtype()", "get_autocast_dtype('cuda')")
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype) -> None:
    """The old name of set_autocast_dtype("cuda", dtype)."""
    _old("set_autocast_gpu_dtype(dtype)", "set_autocast_dtype('cuda', dtype)")
    set_autocast_dtype("cuda", dtype)
