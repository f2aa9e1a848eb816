"""explain(f)(*args): what was captured, why not more, and what later calls are held to."""

from dataclasses import dataclass, field

from prong import _compile, fx


@dataclass
class Break:
    """Where tensor work was cut in two. `id` and `hint` are those of docs/compile.md."""

    reason: str
    user_stack: list = field(default_factory=list)
    id: str = ""
    hint: str = ""

    def __str__(self):
        text = self.reason
        if self.user_stack:
            file, line, function = self.user_stack[0]
            text += f" at {file}:{line}" + (f" in {function}" if function else "")
        return text + (f" [{self.id}]" if self.id else "")


@dataclass(frozen=True)
class Guard:
    """Something that a plan relies on: the call is evaluated anew where it no longer holds."""

    name: str
    value: str
    place: tuple | None = None

    def __str__(self):
        where = (
            f" (read at {self.place[0]}:{self.place[1]} in {self.place[2]})" if self.place else ""
        )
        return f"{self.name} is {self.value}{where}"


def guards_of(captured):
    """For each plan of a CompiledFunction, the newest first, its guards."""
    return [
        [Guard(what, value, place if place[0] else None) for what, value, place in plan]
        for plan in captured._guards()
    ]


@dataclass
class ExplainOutput:
    graphs: list
    graph_count: int
    graph_break_count: int
    break_reasons: list
    op_count: int
    ops_per_graph: list
    out_guards: list = field(default_factory=list)
    compile_times: str = ""
    why_evaluated: str = ""

    def __str__(self):
        lines = [
            f"Graphs: {self.graph_count}, with {self.op_count} ops in all; breaks: {self.graph_break_count}",
        ]
        for i, graph in enumerate(self.graphs, 1):
            lines += [f"graph {i}:"] + [f"    {line}" for line in graph.code.splitlines()]
        for i, each in enumerate(self.break_reasons, 1):
            lines.append(f"break {i}: {each}")
            if each.hint:
                lines.append(f"    hint: {each.hint}")
        if self.why_evaluated:
            lines.append(f"calls are evaluated each time, since: {self.why_evaluated}")
        else:
            lines.append(f"guards: {len(self.out_guards)}; while they hold, calls are replayed")
            lines += [f"    {guard}" for guard in self.out_guards]
        lines.append(self.compile_times)
        return "\n".join(lines)


class Collector:
    """Listens to one call of a compiled function."""

    def __init__(self):
        self.graphs, self.breaks, self.compile_ns = [], [], []

    def __call__(self, kind, *data):
        if kind == "graph":
            description, is_new, compile_ns = data
            self.graphs.append(fx.GraphModule.from_description(description))
            if is_new:
                self.compile_ns.append(compile_ns)
        else:
            reason, place, id, hint = data
            self.breaks.append(Break(reason, [place] if place[0] else [], id, hint))

    def compile_times(self):
        each = ", ".join(f"{ns / 1e6:.3g} ms" for ns in self.compile_ns)
        return f"compiled {len(self.compile_ns)} graphs: {each}" if each else "compiled no graph"


def explain(f, *given, **given_keywords):
    """explain(f)(*args) runs f compiled anew, and tells of its graphs, breaks and guards."""

    def run(*args, **kwargs):
        compiled = _compile.compile(getattr(f, "_orig_mod", f), backend="interpreter")
        captured = _compile.capture_of(compiled)
        captured._listener = collector = Collector()
        try:
            compiled(*args, **kwargs)
        finally:
            captured._listener = None
        ops = [[n for n in g.graph.nodes if n.op.startswith("call")] for g in collector.graphs]
        plans = guards_of(captured)
        return ExplainOutput(
            graphs=collector.graphs,
            graph_count=len(collector.graphs),
            graph_break_count=len(collector.breaks),
            break_reasons=collector.breaks,
            op_count=sum(map(len, ops)),
            ops_per_graph=[[n.target for n in each] for each in ops],
            out_guards=plans[0] if plans else [],
            compile_times=collector.compile_times(),
            why_evaluated="" if plans else captured._counters()["why_evaluated"],
        )

    return run(*given, **given_keywords) if given or given_keywords else run
