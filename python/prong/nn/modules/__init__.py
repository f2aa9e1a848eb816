"""torch.nn.modules: the modules under the paths that programs import them from; the files are prong.nn's own."""

import sys

from prong import nn as _nn
from prong.nn import (
    activation,
    adaptive,
    container,
    conv,
    conv_transpose,
    distance,
    dropout,
    flatten,
    instance_norm,
    linear,
    loss,
    module,
    normalization,
    padding,
    pooling,
    resampling,
    rnn,
    sparse,
    transformer,
)
from prong.nn.module import Module

from . import tuples

# The names of PyTorch's files.
_PATHS = {
    "activation": activation,
    "adaptive": adaptive,
    "batchnorm": normalization,
    "channelshuffle": resampling,
    "container": container,
    "conv": conv,
    "distance": distance,
    "dropout": dropout,
    "flatten": flatten,
    "fold": resampling,
    "instancenorm": instance_norm,
    "linear": linear,
    "loss": loss,
    "module": module,
    "normalization": normalization,
    "padding": padding,
    "pixelshuffle": resampling,
    "pooling": pooling,
    "rnn": rnn,
    "sparse": sparse,
    "transformer": transformer,
    "upsampling": resampling,
    "utils": tuples,
}
for _name, _module in _PATHS.items():
    sys.modules.setdefault(f"{__name__}.{_name}", _module)
    globals()[_name] = _module


def __getattr__(name):
    return getattr(_nn, name)
