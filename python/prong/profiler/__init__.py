"""torch.profiler: profiles with a schedule over the steps of a program."""

import enum
import os
import socket
import time

from prong import _names
from prong.autograd.profiler import profile as _profile
from prong.autograd.profiler import record_function

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerActivity(enum.Enum):
    """What to record; only the CPU is here."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4


class ProfilerAction(enum.Enum):
    """What a step of a schedule does."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set:
    """The CPU."""
    return {ProfilerActivity.CPU}


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
):
    """A function from step to action: skip, then cycles of waiting, warming up, recording."""
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError("Invalid profiler schedule arguments")
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative, got {step}")
        step -= skip_first - (wait if skip_first_wait else 0)
        if step < 0 or (repeat and step >= repeat * length):
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == length - 1 else ProfilerAction.RECORD

    return action


def _always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
):
    """Writes a Chrome trace into the folder each time a recording is complete."""

    def write(prof) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        prof.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}.pt.trace.json"))

    return write


class profile(_profile):
    """Records all the while, or as the schedule says; step() goes to the next step of it."""

    def __init__(
        self,
        *,
        activities=None,
        schedule=None,
        on_trace_ready=None,
        record_shapes=False,
        profile_memory=False,
        with_stack=False,
        with_flops=False,
        with_modules=False,
        **ignored,
    ):
        super().__init__(record_shapes=record_shapes)
        self.activities = set(activities or supported_activities())
        self.schedule = schedule or _always
        self.on_trace_ready = on_trace_ready
        self.step_num = 0

    @property
    def current_action(self) -> ProfilerAction:
        return self.schedule(self.step_num)

    def start(self) -> None:
        """What entering the with block does."""
        if self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
            self._start()

    def stop(self) -> None:
        """What leaving the with block does."""
        if self._is_running:
            self._save()

    def step(self) -> None:
        """The next step of the schedule."""
        was = self.current_action
        self.step_num += 1
        if self._is_running and was is ProfilerAction.RECORD_AND_SAVE:
            self._save()
        now = self.current_action
        if not self._is_running and now in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
            self._start()

    def _save(self) -> None:
        self._stop()
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exception):
        self.stop()
        return False


__getattr__ = _names.module_getattr("prong.profiler")
