"""A line search for the strong Wolfe conditions. Called by LBFGS."""

from dataclasses import dataclass

from prong import Tensor

_ARMIJO, _CURVATURE = 1e-4, 0.9


@dataclass
class Point:
    """A place on the line: how far, the loss, the gradient, and the slope along the line."""

    at: float
    loss: float
    grad: Tensor
    slope: Tensor


def _root(x):
    return x.sqrt() if isinstance(x, Tensor) else x**0.5


def _cubic_minimum(a: Point, b: Point, bounds=None):
    """Where the cubic through both points with their slopes is least, kept inside the bounds."""
    low, high = bounds or ((a.at, b.at) if a.at <= b.at else (b.at, a.at))
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.at - b.at)
    square = d1**2 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    d2 = _root(square)
    if a.at <= b.at:
        least = b.at - (b.at - a.at) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    else:
        least = a.at - (a.at - b.at) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2))
    return min(max(least, low), high)


class StrongWolfe:
    """Searches along one direction: first for a bracket around a good point, then inside it."""

    def __init__(self, evaluate, start: Point, direction, tolerance_change, most_rounds):
        """``evaluate(step)`` gives the loss and the gradient there; ``start`` is at zero."""
        self.evaluate, self.start, self.direction = evaluate, start, direction
        self.tolerance_change, self.most_rounds = tolerance_change, most_rounds
        self.evaluations = 0

    def search(self, step) -> Point:
        """The point to go to; ``evaluations`` then says how often the loss was computed."""
        ends, found, rounds = self._bracket(step)
        low = 0 if ends[0].loss <= ends[-1].loss else 1
        return ends[low] if found else self._narrow(ends, low, rounds)

    def _point(self, at) -> Point:
        self.evaluations += 1
        loss, grad = self.evaluate(at)
        return Point(at, loss, grad, grad.dot(self.direction))

    def _falls_too_little(self, point) -> bool:
        return point.loss > self.start.loss + _ARMIJO * point.at * self.start.slope

    def _is_flat(self, point) -> bool:
        return abs(point.slope) <= -_CURVATURE * self.start.slope

    def _bracket(self, step):
        """One point that will do, or two with one between; whether it is one; rounds used."""
        before, point, rounds = self.start, self._point(step), 0
        while rounds < self.most_rounds:
            if self._falls_too_little(point) or (rounds > 1 and point.loss >= before.loss):
                return [before, point], False, rounds
            if self._is_flat(point):
                return [point], True, rounds
            if point.slope >= 0:
                return [before, point], False, rounds
            bounds = (point.at + 0.01 * (point.at - before.at), point.at * 10)
            before, point = point, self._point(_cubic_minimum(before, point, bounds))
            rounds += 1
        return [self.start, point], False, rounds

    def _narrow(self, ends, low, rounds) -> Point:
        size = self.direction.abs().max()
        is_stuck = False
        while rounds < self.most_rounds:
            if abs(ends[1].at - ends[0].at) * size < self.tolerance_change:
                break
            at, is_stuck = _inside(_cubic_minimum(*ends), ends, is_stuck)
            point = self._point(at)
            rounds += 1
            high = 1 - low
            if self._falls_too_little(point) or point.loss >= ends[low].loss:
                ends[high] = point
                low = 0 if ends[0].loss <= ends[1].loss else 1
                continue
            found = self._is_flat(point)
            if not found and point.slope * (ends[high].at - ends[low].at) >= 0:
                ends[high] = ends[low]
            ends[low] = point
            if found:
                break
        return ends[low]


def _inside(at, ends, is_stuck):
    """A point not too near to an end, unless the last one was and this one lies between."""
    least, most = min(ends[0].at, ends[1].at), max(ends[0].at, ends[1].at)
    margin = 0.1 * (most - least)
    if not min(most - at, at - least) < margin:
        return at, False
    if not is_stuck and least < at < most:
        return at, True
    return (most - margin if abs(at - most) < abs(at - least) else least + margin), False
