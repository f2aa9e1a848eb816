"""Random fills and comparisons in place: nothing of the old value is left, so it gets zeros."""

import prong
import pytest

FILLS = {
    "uniform_": (),
    "normal_": (),
    "bernoulli_": (0.5,),
    "exponential_": (),
    "log_normal_": (),
    "cauchy_": (),
    "geometric_": (0.5,),
    "eq_": (0.5,),
    "lt_": (0.5,),
    "logical_not_": (),
}


@pytest.mark.parametrize("name", FILLS)
def test_the_old_value_gets_zeros(name):
    x = prong.rand(3, requires_grad=True)
    y = x * 2
    getattr(y, name)(*FILLS[name])
    (y * x).sum().backward()
    assert prong.equal(x.grad, y.detach())


@pytest.mark.parametrize("name", FILLS)
def test_a_leaf_is_refused(name):
    x = prong.rand(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        getattr(x, name)(*FILLS[name])


def test_draws_from_probabilities_give_them_zeros():
    p = prong.rand(3, requires_grad=True)
    prong.bernoulli(p).sum().backward()
    assert prong.equal(p.grad, prong.zeros(3))
    mean, std = prong.rand(3, requires_grad=True), prong.rand(3, requires_grad=True)
    prong.normal(mean, std).sum().backward()
    assert prong.equal(mean.grad, prong.zeros(3)) and prong.equal(std.grad, prong.zeros(3))
