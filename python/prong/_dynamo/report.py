"""explain(f)(*args): what was captured, and why not more."""

from dataclasses import dataclass, field

from prong import _compile, fx


@dataclass
class Break:
    """Where tensor work was cut in two."""

    reason: str
    user_stack: list = field(default_factory=list)

    def __str__(self):
        where = f" at {self.user_stack[0][0]}:{self.user_stack[0][1]}" if self.user_stack else ""
        return self.reason + where


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

    def __str__(self):
        lines = [
            f"Graphs: {self.graph_count}, with {self.op_count} ops in all; breaks: {self.graph_break_count}",
        ]
        for i, graph in enumerate(self.graphs, 1):
            lines += [f"graph {i}:"] + [f"    {line}" for line in graph.code.splitlines()]
        for i, reason in enumerate(self.break_reasons, 1):
            lines.append(f"break {i}: {reason}")
        return "\n".join(lines)


class Collector:
    """Listens to one call of a compiled function."""

    def __init__(self):
        self.graphs, self.breaks = [], []

    def __call__(self, kind, *data):
        if kind == "graph":
            self.graphs.append(fx.GraphModule.from_description(data[0]))
        else:
            reason, place = data
            self.breaks.append(Break(reason, [place] if place[0] else []))


def explain(f, *given, **given_keywords):
    """explain(f)(*args) runs f compiled anew, and tells of its graphs and breaks."""

    def run(*args, **kwargs):
        target = getattr(f, "_orig_mod", f)
        compiled = _compile.compile(target, backend="interpreter")
        inner = compiled.__dict__.get("_compiled_call", compiled)
        inner._listener = collector = Collector()
        try:
            compiled(*args, **kwargs)
        finally:
            inner._listener = None
        ops = [[n for n in g.graph.nodes if n.op.startswith("call")] for g in collector.graphs]
        return ExplainOutput(
            graphs=collector.graphs,
            graph_count=len(collector.graphs),
            graph_break_count=len(collector.breaks),
            break_reasons=collector.breaks,
            op_count=sum(map(len, ops)),
            ops_per_graph=[[n.target for n in each] for each in ops],
        )

    return run(*given, **given_keywords) if given or given_keywords else run
