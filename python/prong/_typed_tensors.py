"""The old typed constructors: torch.FloatTensor(...), isinstance(x, torch.LongTensor)."""

from prong import _core


class _Typed(type):
    dtype: _core.dtype

    def __instancecheck__(cls, obj) -> bool:
        return isinstance(obj, _core.Tensor) and obj.dtype is cls.dtype

    def __call__(cls, *args):
        if not args:
            return _core.tensor([], dtype=cls.dtype)
        if len(args) == 1 and not isinstance(args[0], (int, _core.Size)):
            if isinstance(args[0], _core.Tensor) and args[0].dtype is not cls.dtype:
                raise TypeError(f"expected {cls.dtype} (got {args[0].dtype})")
            return _core.tensor(
                args[0].detach().clone() if isinstance(args[0], _core.Tensor) else args[0],
                dtype=cls.dtype,
            )
        return _core.functions["empty"](*args, dtype=cls.dtype)


def _make(name: str, dtype):
    return _Typed(
        name, (), {"dtype": dtype, "__module__": "prong", "__doc__": f"Makes tensors of {dtype}."}
    )


HalfTensor = _make("HalfTensor", _core.float16)
BFloat16Tensor = _make("BFloat16Tensor", _core.bfloat16)
FloatTensor = _make("FloatTensor", _core.float32)
DoubleTensor = _make("DoubleTensor", _core.float64)
ByteTensor = _make("ByteTensor", _core.uint8)
CharTensor = _make("CharTensor", _core.int8)
ShortTensor = _make("ShortTensor", _core.int16)
IntTensor = _make("IntTensor", _core.int32)
LongTensor = _make("LongTensor", _core.int64)
BoolTensor = _make("BoolTensor", _core.bool)
