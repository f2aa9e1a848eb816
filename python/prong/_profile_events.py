"""Recorded spans and their sums, with PyTorch's attribute names. Times are microseconds."""

from types import SimpleNamespace


class FunctionEvent:
    """One span of one thread."""

    count = 1
    is_async = False
    is_remote = False
    input_shapes: tuple = ()

    def __init__(self, number: int, span: tuple):
        self.id = number
        (
            self.name,
            self.category,
            self.thread,
            start,
            end,
            self.task,
            self.detail,
            self.is_clipped,
        ) = span
        self.key = self.name
        self.time_range = SimpleNamespace(start=start, end=end, elapsed_us=lambda: end - start)
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []

    @property
    def cpu_time_total(self) -> float:
        return self.time_range.end - self.time_range.start

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    def __repr__(self):
        return (
            f"<FunctionEvent name={self.name} thread={self.thread} "
            f"start_us={self.time_range.start:.3f} "
            f"cpu_time={self.cpu_time_total:.3f}us>"
        )


class FunctionEventAvg:
    """The sum of the spans of one name."""

    def __init__(self, values: dict):
        self.key = values["key"]
        self.detail = values["detail"]
        self.category = values["category"]
        self.count = values["count"]
        self.cpu_time_total = values["cpu_time_total"]
        self.self_cpu_time_total = values["self_cpu_time_total"]
        self.input_shapes = self.detail

    name = property(lambda self: self.key)

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count if self.count else 0.0

    def __repr__(self):
        return (
            f"<FunctionEventAvg key={self.key} count={self.count} cpu_time={self.cpu_time:.3f}us "
            f"self_cpu_time={self.self_cpu_time_total:.3f}us>"
        )


class EventList(list):
    """Events with the methods of PyTorch's list of them."""

    def __init__(self, events, session, by_detail=False):
        super().__init__(events)
        self._session, self._by_detail = session, by_detail

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
        """A text table of the sums by name."""
        text = self._session.table(
            sort_by or "", row_limit, max_name_column_width or 55, self._by_detail
        )
        return text if header is None else f"{header}\n{text}"

    def key_averages(self, group_by_input_shapes=False, **ignored) -> "EventList":
        return averages(self._session, group_by_input_shapes)

    def total_average(self) -> FunctionEventAvg:
        """The sum over all events."""
        return FunctionEventAvg(
            {
                "key": "Total",
                "detail": "",
                "category": "",
                "count": sum(e.count for e in self),
                "cpu_time_total": sum(e.cpu_time_total for e in self),
                "self_cpu_time_total": sum(e.self_cpu_time_total for e in self),
            }
        )

    @property
    def self_cpu_time_total(self) -> float:
        return sum(event.self_cpu_time_total for event in self)

    def export_chrome_trace(self, path) -> None:
        self._session.write_chrome_trace(str(path))

    def __str__(self):
        return self.table()


def function_events(session) -> EventList:
    """All spans, each knowing the span around it on its thread."""
    events = [FunctionEvent(i, span) for i, span in enumerate(session.spans())]
    open_spans: dict[int, list[FunctionEvent]] = {}
    for event in events:
        stack = open_spans.setdefault(event.thread, [])
        while stack and stack[-1].time_range.end <= event.time_range.start:
            stack.pop()
        if stack:
            event.cpu_parent = stack[-1]
            stack[-1].cpu_children.append(event)
        stack.append(event)
    return EventList(events, session)


def averages(session, by_shape=False) -> EventList:
    """Sums by name, and by input shapes if asked."""
    return EventList(
        [FunctionEventAvg(a) for a in session.averages(bool(by_shape))], session, bool(by_shape)
    )
