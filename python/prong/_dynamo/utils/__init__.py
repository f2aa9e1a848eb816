"""torch._dynamo.utils: counts of what was compiled, and same()."""

from collections import Counter

from prong import _compile, _names
from prong._dynamo.testing import same

__all__ = ["counters", "same"]


class _Counters:
    """counters["stats"]["unique_graphs"] and its like: of the compiled functions that there are, since clear()."""

    def __init__(self):
        self._before = {}

    def _sums(self):
        sums = Counter()
        for reference in list(_compile._compiled):
            compiled = reference()
            if compiled is not None:
                sums.update({k: v for k, v in compiled._counters().items() if isinstance(v, int)})
        return sums

    def __getitem__(self, group):
        sums = self._sums()
        count = {k: max(0, v - self._before.get(k, 0)) for k, v in sums.items()}
        groups = {
            "stats": {
                "calls_captured": count.get("ops", 0),
                "unique_graphs": count.get("compiled", 0),
            },
            "frames": {"total": count.get("graphs", 0), "ok": count.get("graphs", 0)},
            "graph_break": {"all": count["breaks"]} if count.get("breaks") else {},
        }
        return Counter(groups.get(group, {}))

    def clear(self):
        self._before = dict(self._sums())


counters = _Counters()

__getattr__ = _names.module_getattr("prong._dynamo.utils")
