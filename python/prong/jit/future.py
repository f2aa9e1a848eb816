"""fork and wait outside of scripts: forked Python calls run on the pool."""

from prong import _core
from prong.futures import Future

# In C++, so that an exception's note names the line that forked. Runs f as a task; an exception is raised by wait.
fork = _core.fork


def wait(future, timeout=None):
    """The value of a future; blocks until it is there."""
    if not isinstance(future, Future):
        kind = "None" if future is None else f"a value of type '{type(future).__name__}'"
        raise TypeError(f"wait() needs a Future but got {kind}")
    return future.wait(timeout)


_fork, _wait = fork, wait
