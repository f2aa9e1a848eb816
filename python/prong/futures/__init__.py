"""Futures: values of tasks that may not be there yet."""

import importlib
import queue
from types import GenericAlias

from prong import _names
from prong._core import Future

__all__ = ["Future", "as_completed", "collect_all", "wait_all"]

# Future[Tensor] in annotations.
Future.__class_getitem__ = classmethod(lambda cls, element: GenericAlias(cls, element))


def _await(self):
    """``await future`` in a coroutine: the event loop goes on until the task is done."""
    # Whoever awaits has it loaded; everybody else would wait for it.
    loop = importlib.import_module("asyncio").get_running_loop()
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


def wait_all(futures):
    """The values of all futures; raises the first error once all are done."""
    futures = list(futures)
    for future in futures:
        future.exception()
    return [future.wait() for future in futures]


def collect_all(futures):
    """A future of the list of the futures, done when all of them are; it never fails itself."""
    futures = list(futures)
    result = Future()
    left = len(futures)
    if not futures:
        result.set_result(futures)
        return result
    done = queue.SimpleQueue()

    def count(_):
        # SimpleQueue counts without a race: the last one to arrive sees the full number.
        done.put(None)
        if done.qsize() >= left and not result.done():
            try:
                result.set_result(futures)
            except RuntimeError:  # another one was the last too
                pass

    for future in futures:
        future.add_done_callback(count)
    return result


def as_completed(futures, timeout=None):
    """The futures one by one, in the order in which they get done."""
    futures = list(futures)
    done = queue.SimpleQueue()
    for future in futures:
        future.add_done_callback(done.put)
    for _ in futures:
        try:
            yield done.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError(f"no further future was done after {timeout} seconds") from None


__getattr__ = _names.module_getattr("prong.futures")
