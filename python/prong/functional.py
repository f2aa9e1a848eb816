"""torch.functional: the functions over several tensors; they are prong.name too."""

from prong import _core
from prong.compositions import FUNCTIONS as _FUNCTIONS

globals().update(_FUNCTIONS)
globals().update(
    {
        name: _core.functions[name]
        for name in ("atleast_1d", "atleast_2d", "einsum", "meshgrid", "norm", "split", "unique")
        if name in _core.functions
    }
)
