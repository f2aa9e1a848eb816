"""torch.types: names for annotations."""

from collections.abc import Sequence
from typing import Any

from prong._core import Size, Tensor, device, dtype, layout

Number = int | float | bool
Device = device | str | int | None
_size = Size | list[int] | tuple[int, ...]
_int, _float, _bool = int, float, bool
_dtype, _device, _layout = dtype, device, layout
_TensorOrTensors = Tensor | Sequence[Tensor]
FileLike = Any

__all__ = ["Device", "FileLike", "Number"]
