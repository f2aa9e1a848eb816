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


def _rebuild_parameter(cls, data, requires_grad):
    return cls(data, requires_grad)
