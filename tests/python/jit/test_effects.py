"""What a scripted call does beside giving a result is done as often as it is called."""

import prong
from prong import Tensor, jit


def trains_three_times(x: Tensor, mean: Tensor, var: Tensor):
    prong.batch_norm(x, None, None, mean, var, True, 0.5, 1e-5, False)
    first = prong.batch_norm(x, None, None, mean, var, True, 0.5, 1e-5, False)
    return first + prong.batch_norm(x, None, None, mean, var, True, 0.5, 1e-5, False)


def evaluates_between(x: Tensor, mean: Tensor, var: Tensor):
    before = prong.batch_norm(x, None, None, mean, var, False, 0.5, 1e-5, False)
    prong.batch_norm(x, None, None, mean, var, True, 0.5, 1e-5, False)
    return before - prong.batch_norm(x, None, None, mean, var, False, 0.5, 1e-5, False)


def trains_as_told(x: Tensor, mean: Tensor, var: Tensor, training: bool = True):
    prong.batch_norm(x, None, None, mean, var, training, 0.5, 1e-5, False)
    return mean + 0


def outcome(function):
    prong.manual_seed(1)
    x, mean, var = prong.randn(8, 3), prong.zeros(3), prong.ones(3)
    result = function(x, mean, var)
    return result.tolist(), mean.tolist(), var.tolist()


def test_running_statistics_are_folded_at_each_call():
    assert outcome(jit.script(trains_three_times)) == outcome(trains_three_times)


def test_statistics_are_read_before_and_after_they_are_written():
    assert outcome(jit.script(evaluates_between)) == outcome(evaluates_between)


def test_a_flag_that_is_not_known_may_mean_writing():
    assert outcome(jit.script(trains_as_told)) == outcome(trains_as_told)
