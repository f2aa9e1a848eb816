"""Parameter and Buffer: tensors that a Module registers when they are set as attributes."""

import prong
from prong import Tensor


class Parameter(Tensor):
    """A tensor that is a parameter of the module it is assigned to.

    ``data`` is shared, not copied. It requires grad unless ``requires_grad=False``.
    """

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = prong.empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter data must be a Tensor, not {type(data).__name__}")
        return data.detach().as_subclass(cls).requires_grad_(requires_grad)

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.data.clone(), self.requires_grad)
        memo[id(self)] = result
        return result

    def __reduce_ex__(self, protocol):
        return (_rebuild_parameter, (type(self), self.data.detach(), self.requires_grad))


class Buffer(Tensor):
    """A buffer of the module it is assigned to; ``persistent=False`` keeps it out of the state dict."""

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = prong.empty(0)
        result = data.detach().as_subclass(cls).requires_grad_(data.requires_grad)
        result.persistent = persistent
        return result


class _Uninitialized:
    """What lazy modules hold until their first input tells the size."""

    _NO_SHAPE = (
        "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
        "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. "
        "Call `forward` to initialize the parameters before accessing their attributes."
    )

    def materialize(self, shape, device=None, dtype=None):
        """Becomes a plain parameter (or tensor) of that shape, not set yet."""
        self.data = prong.empty(shape, device=device, dtype=dtype or self.dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        raise RuntimeError(self._NO_SHAPE)

    def size(self, *args):
        raise RuntimeError(self._NO_SHAPE)

    def __repr__(self):
        return f"<{type(self).__name__}>"

    __str__ = __repr__


class UninitializedParameter(_Uninitialized, Parameter):
    """A parameter whose size is not known yet."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        data = prong.empty(0, device=device, dtype=dtype)
        return data.as_subclass(cls).requires_grad_(requires_grad)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, dtype=self.dtype)
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        return (type(self), (self.requires_grad, None, self.dtype))


class UninitializedBuffer(_Uninitialized, Tensor):
    """A buffer whose size is not known yet."""

    cls_to_become = Buffer

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        data = prong.empty(0, device=device, dtype=dtype)
        made = data.as_subclass(cls).requires_grad_(requires_grad)
        made.persistent = persistent
        return made

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, dtype=self.dtype)
        return memo[id(self)]


def is_lazy(tensor) -> bool:
    """Whether the size is not known yet."""
    return isinstance(tensor, _Uninitialized)


def _rebuild_parameter(cls, data, requires_grad):
    return cls(data, requires_grad)
