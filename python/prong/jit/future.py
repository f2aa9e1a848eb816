"""fork, wait and Future outside of scripts: forked Python calls run on the pool."""

import asyncio
from types import GenericAlias

from prong import _core
from prong._core import Future

# Future[Tensor] in annotations.
Future.__class_getitem__ = classmethod(lambda cls, element: GenericAlias(cls, element))


def _await(self):
    """``await future`` in a coroutine: the event loop goes on until the task is done."""
    loop = asyncio.get_running_loop()
    waiter = loop.create_future()

    def pass_on(done):
        def finish():
            if waiter.cancelled():
                return
            error = done.exception()
            if error is not None:
                waiter.set_exception(error)
            else:
                waiter.set_result(done.value())

        loop.call_soon_threadsafe(finish)

    self.add_done_callback(pass_on)
    return waiter.__await__()


Future.__await__ = _await


def _refuse_copy(self, *args):
    raise RuntimeError("a Future cannot be copied or pickled: wait for its value and copy that")


Future.__copy__ = Future.__deepcopy__ = Future.__reduce_ex__ = _refuse_copy


# In C++, so that an exception's note names the line that forked. Runs f as a task; an exception is raised by wait.
fork = _core.fork


def wait(future, timeout=None):
    """The value of a future; blocks until it is there."""
    if not isinstance(future, Future):
        kind = "None" if future is None else f"a value of type '{type(future).__name__}'"
        raise TypeError(f"wait() needs a Future but got {kind}")
    return future.wait(timeout)


_fork, _wait = fork, wait
