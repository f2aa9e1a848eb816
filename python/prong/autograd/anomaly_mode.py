"""Anomaly mode: a backward pass that stops at the first NaN and says where the forward call stood."""

import warnings

from prong import _core


class set_detect_anomaly:
    """Switches it on or off, at once, and back when used in a ``with``."""

    def __init__(self, mode: bool, check_nan: bool = True):
        self._before = _core._is_anomaly()
        _core._set_anomaly(bool(mode))

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        _core._set_anomaly(self._before)


class detect_anomaly(set_detect_anomaly):
    """``with detect_anomaly():`` — for looking for a fault; it makes every op slower."""

    def __init__(self, check_nan: bool = True):
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=2,
        )
        self._before = _core._is_anomaly()

    def __enter__(self):
        _core._set_anomaly(True)


__all__ = ["detect_anomaly", "set_detect_anomaly"]
