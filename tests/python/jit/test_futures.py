"""fork, wait and Future outside of scripts, and across the border."""

import asyncio
import sys
import threading
import time

import prong as torch
import pytest
from prong import Tensor


def test_result_is_the_very_object():
    box = object()
    assert torch.jit.wait(torch.jit.fork(lambda: box)) is box


def test_classes_and_subscript():
    f = torch.jit.fork(len, [1])
    assert isinstance(f, torch.jit.Future) and torch.futures.Future is torch.jit.Future
    assert torch.jit.Future[Tensor].__origin__ is torch.jit.Future
    assert f.wait() == 1 and f.done() and f.value() == 1


def test_error_keeps_class_traceback_and_place():
    def bad():
        raise KeyError("missing")

    f = torch.jit.fork(bad)
    for _ in range(2):
        with pytest.raises(KeyError) as caught:
            f.wait()
        assert any("forked at" in n and "test_futures.py" in n for n in caught.value.__notes__)
        assert any(entry.name == "bad" for entry in caught.traceback)


@pytest.mark.parametrize("value", [None, 3, "x"])
def test_wait_needs_a_future(value):
    with pytest.raises(TypeError, match="Future"):
        torch.jit.wait(value)


def test_fork_needs_something_to_call():
    with pytest.raises(TypeError, match="cannot call"):
        torch.jit.fork(3)


def test_set_result_once():
    f = torch.futures.Future()
    with pytest.raises(RuntimeError, match="not done"):
        f.value()
    with pytest.raises(TimeoutError):
        f.wait(timeout=0.01)
    f.set_result(5)
    with pytest.raises(RuntimeError):
        f.set_result(6)
    assert f.wait() == 5


def test_then_and_callbacks():
    f = torch.futures.Future()
    seen = []
    g = f.then(lambda done: done.value() + 1)
    f.add_done_callback(lambda done: seen.append(done.value()))
    bad = f.then(lambda done: 1 / 0)
    f.set_result(1)
    assert g.wait() == 2 and seen == [1]
    with pytest.raises(ZeroDivisionError):
        bad.wait()


def test_set_exception():
    f = torch.futures.Future()
    f.set_exception(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        f.wait()
    assert isinstance(f.exception(), ValueError)
    with pytest.raises(TypeError):
        torch.futures.Future().set_exception("no exception")


def test_wait_all_collect_all_as_completed():
    fs = [torch.jit.fork(lambda i=i: i) for i in range(5)]
    assert torch.futures.wait_all(fs) == list(range(5))
    assert [f.value() for f in torch.futures.collect_all(fs).wait()] == list(range(5))
    assert sorted(f.value() for f in torch.futures.as_completed(fs)) == list(range(5))
    assert torch.futures.collect_all([]).wait() == []


def test_await():
    async def main():
        return await torch.jit.fork(lambda: 7) + await torch.jit.fork(lambda: 1)

    assert asyncio.run(main()) == 8


def test_forks_run_at_the_same_time():
    # Each waits for the other: run one after the other they would never end.
    barrier = threading.Barrier(2, timeout=20)
    fs = [torch.jit.fork(barrier.wait) for _ in range(2)]
    assert sorted(f.wait() for f in fs) == [0, 1]


def test_python_future_in_a_script():
    def run(f: torch.jit.Future[Tensor], x):
        return torch.jit.wait(f) + x

    s = torch.jit.script(run)
    f = torch.futures.Future()
    thread = threading.Thread(target=lambda: (time.sleep(0.02), f.set_result(torch.ones(1))))
    thread.start()
    assert s(f, torch.ones(1)).item() == 2
    thread.join()
    bad = torch.futures.Future()
    bad.set_result("text")
    with pytest.raises(RuntimeError, match="Future\\[Tensor\\]"):
        s(bad, torch.ones(1))


def test_grad_mode_travels():
    with torch.no_grad():
        f = torch.jit.fork(torch.is_grad_enabled)
    assert f.wait() is False
    assert torch.jit.fork(torch.is_grad_enabled).wait() is True


def test_no_copies():
    import copy

    with pytest.raises(RuntimeError):
        copy.deepcopy(torch.futures.Future())


def test_a_task_handles_what_was_handled_where_it_was_forked():
    def handled():
        return sys.exc_info()[1]

    def failing():
        raise KeyError("late")

    before = torch.jit.fork(handled)
    for _ in range(200):  # whoever runs it: a thread of the pool, or this one while it waits
        early = torch.jit.fork(failing)
        try:
            raise ValueError("first")
        except ValueError as error:
            assert torch.jit.wait(torch.jit.fork(handled)) is error
            with pytest.raises(KeyError) as inside:
                torch.jit.wait(torch.jit.fork(failing))
            assert inside.value.__context__ is error
            with pytest.raises(KeyError) as outside:
                torch.jit.wait(early)
            assert outside.value.__context__ is None
            assert sys.exc_info()[1] is error
    assert torch.jit.wait(before) is None
