"""torch.cpu.amp: the old names of torch.amp with the device "cpu"."""

import prong
from prong.amp import GradScaler as _GradScaler
from prong.amp import autocast as _autocast


class autocast(_autocast):
    """torch.amp.autocast("cpu", ...)."""

    def __init__(self, enabled=True, dtype=prong.bfloat16, cache_enabled=True):
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(_GradScaler):
    """torch.amp.GradScaler("cpu", ...)."""

    def __init__(self, *args, **kwargs):
        super().__init__("cpu", *args, **kwargs)


__all__ = ["GradScaler", "autocast"]
