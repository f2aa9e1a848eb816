"""prong.array_api: the array API standard's namespace; what Tensor.__array_namespace__() gives."""

import math

import prong
from prong.array_api import creation as _creation
from prong.array_api import data_types as _data_types
from prong.array_api import elementwise as _elementwise
from prong.array_api import fft, linalg, versions
from prong.array_api import manipulation as _manipulation
from prong.array_api import searching as _searching
from prong.array_api import statistics as _statistics
from prong.array_api.inspection import __array_namespace_info__
from prong.array_api.linalg import matmul, matrix_transpose, tensordot, vecdot

__array_api_version__ = versions.NEWEST
e, inf, nan, pi, newaxis = math.e, math.inf, math.nan, math.pi, None

_CHAPTERS = (_creation, _data_types, _elementwise, _manipulation, _searching, _statistics)
globals().update({name: getattr(part, name) for part in _CHAPTERS for name in part.__all__})
globals().update(_data_types.DTYPES)

__all__ = [
    "__array_api_version__",
    "__array_namespace_info__",
    "e",
    "fft",
    "inf",
    "linalg",
    "matmul",
    "matrix_transpose",
    "nan",
    "newaxis",
    "pi",
    "tensordot",
    "vecdot",
    *_data_types.DTYPES,
    *(name for part in _CHAPTERS for name in part.__all__),
]


def __dir__():
    return sorted(__all__)
