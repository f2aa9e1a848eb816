"""torch.types: names for annotations."""

from typing import Any, Sequence, Union

from prong._core import Size, Tensor, device, dtype, layout

Number = Union[int, float, bool]
Device = Union[device, str, int, None]
_size = Union[Size, list[int], tuple[int, ...]]
_int, _float, _bool = int, float, bool
_dtype, _device, _layout = dtype, device, layout
_TensorOrTensors = Union[Tensor, Sequence[Tensor]]
FileLike = Any

__all__ = ["Device", "FileLike", "Number"]
