"""Sums of gradients on the tape leave alone what others see."""

import numpy as np
import prong


class FromNumpy(prong.autograd.Function):
    """A step whose gradient lies in an array of NumPy's."""

    @staticmethod
    def forward(ctx, x, array):
        ctx.array = array
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        return prong.from_numpy(ctx.array), None


def test_memory_of_numpy_is_not_summed_into():
    array = np.ones(3, dtype=np.float32)
    x = prong.zeros(3, requires_grad=True)
    (FromNumpy.apply(x, array) + FromNumpy.apply(x, array) + x).sum().backward()
    assert x.grad.tolist() == [3, 3, 3]
    assert array.tolist() == [1, 1, 1]
