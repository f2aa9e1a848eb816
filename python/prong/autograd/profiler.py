"""torch.autograd.profiler: what runs when, on every thread; tables, traces, a timeline page."""

import functools

from prong import _core
from prong._profile_events import EventList, FunctionEvent, averages, function_events

__all__ = ["EventList", "FunctionEvent", "emit_itt", "emit_nvtx", "profile", "record_function"]


class record_function:
    """Names a stretch of the program in profiles: a with block, or a decorator."""

    def __init__(self, name: str, args: str | None = None):
        if not isinstance(name, str):
            raise TypeError(
                f"record_function(): argument 'name' must be str, not {type(name).__name__}"
            )
        self.name, self.args = name, args
        self._spans: list = []

    def __enter__(self):
        span = _core.ProfileSpan(self.name)
        span.begin()
        self._spans.append(span)
        return self

    def __exit__(self, *exception):
        self._spans.pop().end()

    def __call__(self, function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return wrapped


class profile:
    """Records from entry to exit; then it can be asked, printed and exported at will."""

    def __init__(
        self,
        enabled=True,
        *,
        use_cuda=False,
        use_device=None,
        record_shapes=False,
        with_flops=False,
        profile_memory=False,
        with_stack=False,
        with_modules=False,
        use_kineto=False,
        use_cpu=True,
        **ignored,
    ):
        self.enabled = enabled
        self.record_shapes = record_shapes
        self._session = None
        self._is_running = False

    def __enter__(self):
        if not self.enabled:
            return self
        if self._is_running:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._start()
        return self

    def __exit__(self, *exception):
        if self.enabled:
            self._stop()
        return False

    def _start(self):
        _core._profile_start()
        self._is_running = True

    def _stop(self):
        self._session = _core._profile_stop()
        self._is_running = False

    def _recorded(self):
        if self._session is None:
            raise RuntimeError("Profiler didn't finish running: nothing was recorded yet")
        return self._session

    @property
    def function_events(self) -> EventList:
        """Every span, in order of start."""
        return function_events(self._recorded())

    def events(self) -> EventList:
        return self.function_events

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, **ignored) -> EventList:
        """Sums by name."""
        return averages(self._recorded(), group_by_input_shape)

    def total_average(self):
        """The sum over all events."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of work on all threads."""
        return sum(event.self_cpu_time_total for event in self.key_averages())

    def table(
        self,
        sort_by=None,
        row_limit=100,
        max_src_column_width=75,
        max_name_column_width=55,
        max_shapes_column_width=80,
        header=None,
        top_level_events_only=False,
    ) -> str:
        return self.key_averages().table(
            sort_by, row_limit, max_src_column_width, max_name_column_width, header=header
        )

    def export_chrome_trace(self, path) -> None:
        """Writes JSON for chrome://tracing or Perfetto."""
        self._recorded().write_chrome_trace(str(path))

    def export_timeline(self, path, title="Prong timeline") -> None:
        """Writes one HTML page: a lane a thread, tasks linked from fork to wait."""
        self._recorded().write_timeline(title, str(path))

    def __repr__(self):
        return "<unfinished profiler.profile>" if self._session is None else self.table()

    __str__ = __repr__


class _Ignored:
    """Emitting ranges for a vendor's profiler: there is none here."""

    def __init__(self, *args, **kwargs):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return False


emit_nvtx = emit_itt = _Ignored
