"""Prong: tensor programs in plain Python, run in parallel and compiled; the API is PyTorch's."""

import importlib
import math

from prong import _native  # isort: skip  (first: it decides how the native module is loaded)
from prong import _core, _names
from prong._compile import compile
from prong._core import (
    OutOfMemoryError,
    Size,
    Tensor,
    device,
    dtype,
    get_default_dtype,
    get_num_threads,
    layout,
    memory_format,
    set_default_dtype,
)
from prong._creation import as_tensor, asarray, from_dlpack, from_numpy, frombuffer, tensor
from prong._exit import watch_process as _watch_process
from prong._limits import finfo, iinfo
from prong._printing import get_printoptions, set_printoptions
from prong._queries import (
    can_cast,
    get_device_module,
    is_complex,
    is_storage,
    is_tensor,
    promote_types,
    result_type,
    typename,
)
from prong._settings import (
    are_deterministic_algorithms_enabled,
    get_default_device,
    get_float32_matmul_precision,
    get_num_interop_threads,
    set_default_device,
    set_default_tensor_type,
    set_float32_matmul_precision,
    set_num_interop_threads,
    set_num_threads,
    use_deterministic_algorithms,
)
from prong._storage import UntypedStorage
from prong._tensor import install_methods as _install_methods
from prong._typed_tensors import (
    BFloat16Tensor,
    BoolTensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
)
from prong.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from prong.random import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from prong.version import __version__

pi, e, inf, nan = math.pi, math.e, math.inf, math.nan
newaxis = None

# Every op whose definition says that it is a function; dtypes, layouts and memory formats by name.
# Names of the package that are more than the op of that name.
_OWN_NAMES = frozenset(globals()) & frozenset(_core.functions)
globals().update(
    {name: function for name, function in _core.functions.items() if name not in _OWN_NAMES}
)
globals().update(
    {
        name: value
        for name, value in vars(_core).items()
        if isinstance(value, (dtype, layout, memory_format))
    }
)

_install_methods()
_watch_process()

# Python over the ops, which are there from here on; an op of the same name goes before.
from prong import compositions as _compositions  # noqa: E402

globals().update({n: f for n, f in _compositions.FUNCTIONS.items() if n not in _core.functions})
globals().update(_compositions.REPLACED)
_OWN_NAMES |= frozenset(_compositions.REPLACED)
_install_methods(_compositions.METHODS)

# Functions of nn.functional that are the package's too.
_OF_NN = frozenset(
    {
        "adaptive_avg_pool1d",
        "adaptive_max_pool1d",
        "alpha_dropout",
        "avg_pool1d",
        "channel_shuffle",
        "cosine_embedding_loss",
        "cosine_similarity",
        "ctc_loss",
        "dropout",
        "embedding_bag",
        "feature_alpha_dropout",
        "hinge_embedding_loss",
        "instance_norm",
        "margin_ranking_loss",
        "max_pool1d_with_indices",
        "native_channel_shuffle",
        "pairwise_distance",
        "pdist",
        "pixel_shuffle",
        "pixel_unshuffle",
        "poisson_nll_loss",
        "rrelu",
        "rrelu_",
        "triplet_margin_loss",
    }
)

# Loaded when first used, so that `import prong` stays quick.
_SUBMODULES = frozenset(
    {
        "_dynamo",
        "_functorch",
        "_higher_order_ops",
        "_inductor",
        "_logging",
        "amp",
        "array_api",
        "autograd",
        "backends",
        "compiler",
        "cpu",
        "cuda",
        "distributions",
        "fft",
        "func",
        "futures",
        "fx",
        "jit",
        "linalg",
        "nn",
        "optim",
        "profiler",
        "random",
        "return_types",
        "serialization",
        "signal",
        "special",
        "testing",
        "types",
        "utils",
        "version",
    }
)


# Functions of those that are the package's too.
_OF_SUBMODULES = {
    "load": "serialization",
    "save": "serialization",
    "cond": "_higher_order_ops",
    "vmap": "func",
    "autocast": "amp.autocast_mode",
    "GradScaler": "amp.grad_scaler",
    "autocast_decrement_nesting": "amp.state",
    "autocast_increment_nesting": "amp.state",
    "clear_autocast_cache": "amp.state",
    "get_autocast_cpu_dtype": "amp.state",
    "get_autocast_dtype": "amp.state",
    "get_autocast_gpu_dtype": "amp.state",
    "is_autocast_cache_enabled": "amp.state",
    "is_autocast_cpu_enabled": "amp.state",
    "is_autocast_enabled": "amp.state",
    "set_autocast_cache_enabled": "amp.state",
    "set_autocast_cpu_dtype": "amp.state",
    "set_autocast_cpu_enabled": "amp.state",
    "set_autocast_dtype": "amp.state",
    "set_autocast_enabled": "amp.state",
    "set_autocast_gpu_dtype": "amp.state",
}


def __getattr__(name: str):
    where = "nn.functional" if name in _OF_NN else _OF_SUBMODULES.get(name)
    if where is not None:
        found = getattr(importlib.import_module(f"prong.{where}"), name)
        globals()[name] = found  # the next time it is there at once
        return found
    if name in _SUBMODULES or (not name.startswith("_") and _names.is_own_module(f"prong.{name}")):
        return importlib.import_module(f"prong.{name}")
    _names.raise_missing("prong", name)


def __dir__():
    return sorted(set(globals()) | _SUBMODULES | set(_OF_SUBMODULES))
