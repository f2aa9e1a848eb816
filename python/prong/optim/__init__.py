"""torch.optim: optimizers and the schedules of their rates."""

from prong import _names

from . import lr_scheduler

__getattr__ = _names.module_getattr("prong.optim")
