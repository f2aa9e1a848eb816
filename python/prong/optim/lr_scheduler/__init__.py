"""torch.optim.lr_scheduler: learning rates that change from step to step, with PyTorch's numbers and state."""

from bisect import bisect_right
from math import inf

from prong import _names

from .cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from .cycle import CyclicLR, OneCycleLR
from .factor import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from .joined import ChainedScheduler, SequentialLR
from .plateau import ReduceLROnPlateau
from .scheduler import LRScheduler, _LRScheduler

__getattr__ = _names.module_getattr("prong.optim.lr_scheduler")

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
