"""gradcheck and gradgradcheck accept right gradients and refuse wrong ones, with PyTorch's words."""

import prong
import pytest
from prong.autograd import Function, gradcheck, gradgradcheck


def numbers(*sizes):
    prong.manual_seed(3)
    return prong.randn(*sizes, dtype=prong.float64, requires_grad=True)


class Square(Function):
    """x^2, with a backward that may be wrong by a factor."""

    factor = 2.0

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x * Square.factor


@pytest.mark.parametrize("fast_mode", [False, True])
def test_right_gradients_pass(fast_mode):
    x, y = numbers(3, 2), numbers(2)
    assert gradcheck(lambda a, b: (a * b).sin(), (x, y), fast_mode=fast_mode)
    assert gradgradcheck(lambda a, b: (a * b).sin(), (x, y), fast_mode=fast_mode)
    assert gradcheck(lambda a: (a.exp(), a * 3), x, fast_mode=fast_mode)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_wrong_gradients_fail(fast_mode, monkeypatch):
    x = numbers(3)
    assert gradcheck(Square.apply, x, fast_mode=fast_mode)
    monkeypatch.setattr(Square, "factor", 2.1)
    with pytest.raises(
        RuntimeError, match="Jacobian mismatch for output 0 with respect to input 0"
    ):
        gradcheck(Square.apply, x, fast_mode=fast_mode)
    assert not gradcheck(Square.apply, x, fast_mode=fast_mode, raise_exception=False)


def test_wrong_second_derivatives_fail():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x.detach() * x  # half of the way is cut

    x = numbers(3)
    assert gradcheck(Cube.apply, x)
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradgradcheck(Cube.apply, x)


def test_inputs_are_left_as_they_were():
    x = numbers(4)
    before = x.detach().clone()
    gradcheck(prong.sin, x)
    gradcheck(prong.sin, x, fast_mode=True)
    assert prong.equal(x.detach(), before)


def test_no_input_requires_grad():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(prong.sin, prong.ones(3, dtype=prong.float64))


def test_single_precision_is_warned_of():
    with pytest.warns(UserWarning, match="is not a double precision floating point"):
        gradcheck(lambda x: x * 2, prong.ones(2, requires_grad=True), atol=1.0)


def test_memory_that_overlaps_is_refused():
    x = prong.ones(1, dtype=prong.float64).expand(3).requires_grad_()
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        gradcheck(lambda t: t * 2, x)


def test_empty_inputs_pass():
    assert gradcheck(lambda x: x * 2, numbers(0, 3))


def test_an_output_that_moves_without_a_gradient_fails():
    with pytest.raises(RuntimeError, match="expected to be zero"):
        gradcheck(lambda x: (x * 2).detach(), numbers(2))
