"""Tensors from Python data, NumPy arrays, buffers and other libraries' tensors."""

import prong
from prong import _core
from prong._core import as_tensor, from_numpy, tensor

__all__ = ["asarray", "as_tensor", "from_dlpack", "from_numpy", "frombuffer", "tensor"]


def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor over the memory of another library's tensor, or of a DLPack capsule."""
    if device is not None:
        _core.device(device)
    if hasattr(ext_tensor, "__dlpack__"):
        try:
            capsule = ext_tensor.__dlpack__(max_version=(1, 0))
        except TypeError:  # a producer from before DLPack 1.0
            capsule = ext_tensor.__dlpack__()
    else:
        capsule = ext_tensor
    made = _core._from_dlpack_capsule(capsule)
    return made.clone() if copy else made


def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """A 1-d tensor over the memory of a bytes-like object."""
    view = memoryview(buffer).cast("B")
    if view.nbytes == 0:
        raise ValueError("both buffer length (0) and count (-1) must not be 0")
    if not 0 <= offset < view.nbytes:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length "
            f"({view.nbytes} bytes) minus 1"
        )
    available = view.nbytes - offset
    if count < 0:
        if available % dtype.itemsize:
            raise ValueError(
                f"buffer length ({available} bytes) after offset ({offset} bytes) must be a "
                f"multiple "
                f"of element size ({dtype.itemsize})"
            )
        count = available // dtype.itemsize
    if count * dtype.itemsize > available:
        raise ValueError(
            f"requested buffer length ({count} * {dtype.itemsize} bytes) after offset "
            f"({offset} bytes) "
            f"must not be greater than actual buffer length ({view.nbytes} bytes)"
        )
    made = _core._from_buffer(view, dtype, offset, count)
    return made.requires_grad_() if requires_grad else made


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    """A tensor of obj: itself or its memory where that is possible, unless copy=True."""
    if isinstance(obj, _core.Tensor):
        made = obj
    elif getattr(type(obj), "_is_prong_storage", False):
        made = obj._bytes  # its memory, as bytes or as what dtype says
        made = made if dtype in (None, made.dtype) else made.view(dtype)
    elif not copy and hasattr(obj, "__dlpack__") and not hasattr(obj, "__array_interface__"):
        made = from_dlpack(obj)
    elif not copy and not isinstance(obj, (str, list, tuple, bool, int, float)) and _is_buffer(obj):
        made = frombuffer(obj, dtype=dtype or prong.get_default_dtype())
    else:
        made = as_tensor(obj, dtype=dtype, device=device)
    converted = made if dtype is None else made.to(dtype)
    shares = converted is made and (
        isinstance(obj, _core.Tensor) or not isinstance(obj, (list, tuple))
    )
    if copy is False and not shares:
        raise ValueError("cannot make a tensor of this object without a copy (copy=False)")
    if copy and shares:
        converted = converted.clone()
    if converted.requires_grad != requires_grad:
        converted = converted.detach().requires_grad_(requires_grad)
    return converted


def _is_buffer(obj) -> bool:
    return isinstance(obj, (bytes, bytearray, memoryview))
