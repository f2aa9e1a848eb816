"""What the namespace can do: __array_namespace_info__."""

from typing import Any

import prong
from prong.array_api.data_types import DTYPES, isdtype

_CPU = prong.device("cpu")


class Info:
    """Capabilities, devices and dtypes, by the standard's inspection functions."""

    def capabilities(self) -> dict[str, Any]:
        """Masks are indices, and shapes may depend on data; 64 dims are what NumPy takes back."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> prong.device:
        """Where tensors are made unless a device is named."""
        return _CPU

    def devices(self) -> list[prong.device]:
        """Every device there is."""
        return [_CPU]

    def default_dtypes(self, *, device=None) -> dict[str, prong.dtype]:
        """What is made of Python numbers."""
        real = prong.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": real.to_complex(),
            "integral": prong.int64,
            "indexing": prong.int64,
        }

    def dtypes(self, *, device=None, kind=None) -> dict[str, prong.dtype]:
        """The standard's dtypes that are here, all or those of a kind."""
        return {
            name: dtype for name, dtype in DTYPES.items() if kind is None or isdtype(dtype, kind)
        }


def __array_namespace_info__() -> Info:
    """The inspection functions."""
    return Info()
