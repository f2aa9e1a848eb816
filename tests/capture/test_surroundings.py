"""What stands around a call: modes, defaults, tracing, the depth of calls, copies of what compile() gives."""

import copy
import pickle
import sys

import prong as torch
import pytest
from prong import nn


@torch.compile
def doubled(x):
    return x * 2


def test_results_in_inference_mode_are_inference_tensors():
    c = torch.compile(lambda x: (x * 2, x[0], (x + 1)[0]))
    plain = torch.ones(2)
    for _ in range(3):
        with torch.inference_mode():
            made, view, view_of_made = c(plain)
            assert made.is_inference() and view_of_made.is_inference()
            assert not view.is_inference()
            again = [r.is_inference() for r in c(made)]
            assert again == [True, True, True]
        assert not c(plain)[0].is_inference()
    assert c._counters()["replays"] >= 6
    with pytest.raises(RuntimeError, match="inference tensor"):
        made.add_(1)


def test_a_default_by_name_changes_in_its_dict():
    def scaled(x, *, k=3):
        return x * k

    @torch.compile
    def f(x):
        return scaled(x)

    assert [f(torch.ones(1)).item() for _ in range(2)] == [3.0, 3.0]
    scaled.__kwdefaults__["k"] = 11
    assert f(torch.ones(1)).item() == 11.0


def test_ops_before_a_new_default_dtype_have_the_old_one():
    @torch.compile
    def f():
        first = torch.ones(2)
        torch.set_default_dtype(torch.float64)
        second = torch.ones(2)
        torch.set_default_dtype(torch.float32)
        return first.dtype, second.dtype, torch.ones(2).dtype

    for _ in range(3):
        assert f() == (torch.float32, torch.float64, torch.float32)


def test_calls_nest_as_deeply_as_python_lets_them():
    def down(x, n):
        return x if n == 0 else down(x + 1, n - 1)

    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(6000)
        assert torch.compile(down)(torch.zeros(1), 4000).item() == 4000.0
        with pytest.raises(RecursionError):
            torch.compile(down)(torch.zeros(1), 10**6)
    finally:
        sys.setrecursionlimit(limit)


def test_a_tracer_sees_the_lines_of_a_call_that_has_a_plan():
    def f(x):
        y = x + 1
        return y

    compiled, lines = torch.compile(f), []
    for _ in range(2):
        compiled(torch.ones(1))

    def trace(frame, event, _):
        if frame.f_code is not f.__code__:
            return None
        lines.append((event, frame.f_lineno - f.__code__.co_firstlineno))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        compiled(torch.ones(1))
    finally:
        sys.settrace(before)
    assert lines == [("call", 0), ("line", 1), ("line", 2), ("return", 2)]


class Scaler:
    def __init__(self):
        self.k = 2.0

    def scale(self, x):
        return x * self.k


def test_what_compile_gives_can_be_copied():
    layer = nn.Linear(2, 2)
    compiled = torch.compile(layer, backend="interpreter")
    x = torch.ones(1, 2)
    before = compiled(x).tolist()
    twins = [copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))]
    with torch.no_grad():
        layer.weight.zero_()
    for twin in twins:
        assert type(twin) is type(compiled) and twin(x).tolist() == before
    assert copy.deepcopy(doubled) is doubled
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    scaler = Scaler()
    scaler.scale = torch.compile(scaler.scale)
    twin = copy.deepcopy(scaler)
    scaler.k = 5.0
    assert twin.scale(x).tolist() == [[2.0, 2.0]] and scaler.scale(x).tolist() == [[5.0, 5.0]]
