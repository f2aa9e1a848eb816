"""torch.optim.swa_utils: averages of a model over its training, and the schedule that goes with them."""

from prong import _names

from .averaging import (
    AveragedModel,
    get_ema_avg_fn,
    get_ema_multi_avg_fn,
    get_swa_avg_fn,
    get_swa_multi_avg_fn,
    update_bn,
)
from .schedule import SWALR

__getattr__ = _names.module_getattr("prong.optim.swa_utils")

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]
