"""Signals, other threads and tracers get in between the instructions of a compiled call, as they do in plain Python."""

import gc
import signal
import sys
import threading

import prong as torch
import pytest


class Alarm(Exception):
    pass


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def test_a_signal_ends_a_recursion_without_loops():
    f = torch.compile(lambda x, n: x + fibonacci(n))

    def ring(*_):
        raise Alarm

    old = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Alarm):
            f(torch.ones(1), 36)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert f(torch.ones(1), 10).tolist() == [56.0]


def test_a_recording_outlives_a_change_of_threads():
    is_over, turns = threading.Event(), []

    def spin():
        while not is_over.is_set():
            turns.append(1)

    def walk(x, n):
        total = 0
        for i in range(n):
            total = total + i
        return x + total

    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    other = threading.Thread(target=spin)
    other.start()
    try:
        f = torch.compile(walk, backend="eager")
        for _ in range(3):
            assert f(torch.ones(1), 3000).tolist() == [1 + 2999 * 1500.0]
    finally:
        is_over.set()
        other.join()
        sys.setswitchinterval(old)
    assert f._counters()["replays"] == 2 and turns


def test_a_tracer_that_is_set_inside_hears_of_the_error_that_follows():
    def run(compiled):
        events = []

        def tracer(frame, event, _):
            if frame.f_code.co_name in ("outer", "inner"):
                events.append((frame.f_code.co_name, event, frame.f_lineno - first))
            return tracer

        def inner():
            sys.settrace(tracer)
            sys._getframe(1).f_trace = tracer
            raise KeyError

        def outer(x):
            try:
                inner()
            except KeyError:
                x = x + 1
            return x

        first = outer.__code__.co_firstlineno
        try:
            result = compiled(outer)(torch.ones(1))
        finally:
            sys.settrace(None)
        return events, result.tolist()

    assert run(torch.compile) == run(lambda f: f)


class Ring:
    """A circle that only the collector frees."""

    def __init__(self, freed):
        self.me, self.freed = self, freed

    def __del__(self):
        self.freed.append(self)


@pytest.mark.parametrize("computes", [False, True])
def test_a_finalizer_that_the_collector_runs_is_no_part_of_the_call(computes):
    freed, log = [], []

    def f(x):
        boxes = [[i] for i in range(20)]  # so many new objects let the collector run
        return x * len(boxes)

    class Computing(Ring):
        def __del__(self):
            super().__del__()
            log.append((torch.ones(2) * 3).tolist())

    compiled = torch.compile(f)
    old = gc.get_threshold()
    try:
        for n in range(3):
            (Computing if computes else Ring)(freed)
            gc.set_threshold(5, 1, 1)
            result = compiled(torch.full((2,), float(n)))
            gc.set_threshold(*old)
            assert result.tolist() == [20.0 * n] * 2
            assert n or freed, "the collector did not run inside the recording"
    finally:
        gc.set_threshold(*old)
    gc.collect()
    assert len(freed) == 3
    assert log == [[3.0, 3.0]] * 3 * computes
    if not computes:
        counters = compiled._counters()
        assert (counters["plans"], counters["replays"]) == (1, 2), counters


def test_what_a_handler_raises_comes_from_the_call_that_the_signal_met():
    class Quiet:
        def __enter__(self):
            return self

        def __exit__(self, kind, error, trace):
            return kind is Alarm

    def ring(*_):
        raise Alarm

    def tried(x):
        try:
            signal.raise_signal(signal.SIGALRM)
        except Alarm:
            return x + 1
        return x - 1

    def within(x):
        with Quiet():
            signal.raise_signal(*(signal.SIGALRM,))
            return x - 1
        return x + 1

    old = signal.signal(signal.SIGALRM, ring)
    try:
        for function in (tried, within):
            compiled = torch.compile(function)
            for i in range(3):
                assert compiled(torch.ones(1) * i).item() == function(torch.ones(1) * i).item()
    finally:
        signal.signal(signal.SIGALRM, old)
