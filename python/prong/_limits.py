"""torch.finfo and torch.iinfo: the limits of a dtype."""

from prong import _core

_MANTISSA_AND_EXPONENT = {  # explicit bits of the significand, largest exponent
    "float16": (10, 15),
    "bfloat16": (7, 127),
    "float32": (23, 127),
    "float64": (52, 1023),
}


class finfo:
    """Limits of a floating-point dtype; of the default dtype when none is given."""

    def __init__(self, type=None):
        dtype = _core.get_default_dtype() if type is None else type
        if not isinstance(dtype, _core.dtype) or not dtype.is_floating_point:
            raise TypeError(
                f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
                f"'{type}'"
                if isinstance(dtype, _core.dtype)
                else f"finfo(): argument 'type' (position 1) must be torch.dtype, "
                f"not {type.__class__.__name__}"
            )
        self.dtype = repr(dtype).removeprefix("torch.")
        mantissa, exponent = _MANTISSA_AND_EXPONENT[self.dtype]
        self.bits = 8 * dtype.itemsize
        self.eps = 2.0**-mantissa
        self.max = (2.0 - 2.0**-mantissa) * 2.0**exponent
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - exponent)
        self.resolution = 10.0 ** -int(mantissa * 0.30103)

    def __repr__(self):
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )

    def __eq__(self, other):
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self.dtype)


class iinfo:
    """Limits of an integer dtype."""

    def __init__(self, type):
        if not isinstance(type, _core.dtype):
            raise TypeError(
                f"iinfo(): argument 'type' (position 1) must be torch.dtype, "
                f"not {type.__class__.__name__}"
            )
        if type.is_floating_point:
            raise TypeError(
                f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type}'"
            )
        if type is _core.bool:
            raise RuntimeError("\"iinfo\" not implemented for 'Bool'")
        self.dtype = repr(type).removeprefix("torch.")
        self.bits = 8 * type.itemsize
        self.min = -(2 ** (self.bits - 1)) if type.is_signed else 0
        self.max = 2 ** (self.bits - 1) - 1 if type.is_signed else 2**self.bits - 1

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"

    def __eq__(self, other):
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self.dtype)
