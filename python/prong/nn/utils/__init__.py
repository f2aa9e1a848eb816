"""torch.nn.utils: gradient clipping, parametrizations, packed sequences, fusion."""

from prong import _names

from . import fusion, init, parametrizations, parametrize, rnn
from .clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from .convert_parameters import parameters_to_vector, vector_to_parameters
from .fusion import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
)
from .init import skip_init
from .norm_hooks import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm

__getattr__ = _names.module_getattr("prong.nn.utils")
