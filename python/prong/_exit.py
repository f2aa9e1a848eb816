"""What happens when the process is interrupted, forks or ends. Called once, by the package."""

import atexit

from prong import _core


def watch_process() -> None:
    """Ctrl-C ends a long op; at exit running tasks may finish, and no thread enters Python then."""
    _core._watch_interrupts()
    atexit.register(_core._shut_down)
