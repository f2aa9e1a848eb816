"""torch.cuda.amp: the old names of torch.amp with the device "cuda", which is not here."""

import functools

import prong
from prong.amp import GradScaler as _GradScaler
from prong.amp import autocast as _autocast
from prong.amp import custom_bwd as _custom_bwd
from prong.amp import custom_fwd as _custom_fwd


class autocast(_autocast):
    """torch.amp.autocast("cuda", ...)."""

    def __init__(self, enabled=True, dtype=prong.float16, cache_enabled=True):
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(_GradScaler):
    """torch.amp.GradScaler("cuda", ...)."""

    def __init__(self, *args, **kwargs):
        super().__init__("cuda", *args, **kwargs)


custom_fwd = functools.partial(_custom_fwd, device_type="cuda")
custom_bwd = functools.partial(_custom_bwd, device_type="cuda")

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
