"""torch.distributions.constraints: the sets that parameters and values of distributions lie in.

A constraint's ``check(value)`` tells for each event whether it lies in the set; an event is a value's last
``event_dim`` dimensions.
"""

import prong
from prong import _names

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A set of values; a subclass says which by ``check``."""

    is_discrete = False
    event_dim = 0
    bounds: tuple[str, ...] = ()  # what a constraint of this class is made with

    def __init__(self, *args, **kwargs):
        given = dict(zip(self.bounds, args, strict=False), **kwargs)
        if set(given) != set(self.bounds) or len(args) > len(self.bounds):
            raise TypeError(f"{self._title()} is made with ({', '.join(self.bounds)})")
        self.__dict__.update(given)

    def check(self, value):
        raise NotImplementedError

    def _title(self):
        return type(self).__name__.removeprefix("_")

    def __repr__(self):
        return f"{self._title()}({', '.join(f'{n}={getattr(self, n)}' for n in self.bounds)})"


def _constraint(name, holds, bounds=(), *, is_discrete=False, event_dim=0):
    """The class of constraints under which holds(value, *bounds)."""

    def check(self, value):
        return holds(value, *(getattr(self, bound) for bound in self.bounds))

    fields = {"is_discrete": is_discrete, "event_dim": event_dim, "bounds": bounds, "check": check}
    return type(name, (Constraint,), {**fields, "__module__": __name__})


def _whole(x):
    return x % 1 == 0


def _boolean(x):
    return (x == 0) | (x == 1)


def _square(x):
    return prong.full(x.shape[:-2], x.shape[-2] == x.shape[-1], dtype=prong.bool)


def _lower_triangular(x):
    return (x.tril() == x).flatten(-2).all(-1)


def _positive_diagonal(x):
    return (x.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


def _symmetric(x):
    is_square = _square(x)
    return prong.isclose(x, x.mT, atol=1e-6).all(-2).all(-1) if is_square.all() else is_square


def _semidefinite(x):
    is_symmetric = _symmetric(x)
    return prong.linalg.eigvalsh(x).ge(0).all(-1) if is_symmetric.all() else is_symmetric


def _definite(x):
    is_symmetric = _symmetric(x)
    return prong.linalg.cholesky_ex(x).info.eq(0) if is_symmetric.all() else is_symmetric


def _unit_rows(x):
    tolerance = prong.finfo(x.dtype).eps * x.size(-1) * 10
    return ((prong.linalg.norm(x.detach(), dim=-1) - 1).abs() <= tolerance).all(-1)


def _simplex(x):
    return (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6)


_LOW, _HIGH = ("lower_bound",), ("upper_bound",)
_BOTH = _LOW + _HIGH

real = _constraint("_Real", lambda x: x == x)()
boolean = _constraint("_Boolean", _boolean, is_discrete=True)()
greater_than = _constraint("_GreaterThan", lambda x, low: low < x, _LOW)
greater_than_eq = _constraint("_GreaterThanEq", lambda x, low: low <= x, _LOW)
less_than = _constraint("_LessThan", lambda x, high: x < high, _HIGH)
interval = _constraint("_Interval", lambda x, low, high: (low <= x) & (x <= high), _BOTH)
half_open_interval = _constraint(
    "_HalfOpenInterval", lambda x, low, high: (low <= x) & (x < high), _BOTH
)
integer_interval = _constraint(
    "_IntegerInterval",
    lambda x, low, high: _whole(x) & (low <= x) & (x <= high),
    _BOTH,
    is_discrete=True,
)
_integer_greater_than = _constraint(
    "_IntegerGreaterThan", lambda x, low: _whole(x) & (x >= low), _LOW, is_discrete=True
)
multinomial = _constraint(
    "_Multinomial",
    lambda x, high: (x >= 0).all(-1) & (x.sum(-1) <= high),
    _HIGH,
    is_discrete=True,
    event_dim=1,
)
multinomial.__repr__ = lambda self: "Multinomial()"
one_hot = _constraint(
    "_OneHot",
    lambda x: _boolean(x).all(-1) & (x.sum(-1) == 1),
    is_discrete=True,
    event_dim=1,
)()
simplex = _constraint("_Simplex", _simplex, event_dim=1)()
square = _constraint("_Square", _square, event_dim=2)()
symmetric = _constraint("_Symmetric", _symmetric, event_dim=2)()
positive_semidefinite = _constraint("_PositiveSemidefinite", _semidefinite, event_dim=2)()
positive_definite = _constraint("_PositiveDefinite", _definite, event_dim=2)()
lower_triangular = _constraint("_LowerTriangular", _lower_triangular, event_dim=2)()
lower_cholesky = _constraint(
    "_LowerCholesky", lambda x: _lower_triangular(x) & _positive_diagonal(x), event_dim=2
)()
corr_cholesky = _constraint(
    "_CorrCholesky",
    lambda x: _lower_triangular(x) & _positive_diagonal(x) & _unit_rows(x),
    event_dim=2,
)()

positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
positive_integer = _integer_greater_than(1)
nonnegative_integer = _integer_greater_than(0)


class _IndependentConstraint(Constraint):
    """Events of more dimensions than those of a base constraint, each part of which satisfies that."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(
        lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims
    )

    def check(self, value):
        good = self.base_constraint.check(value)
        n = self.reinterpreted_batch_ndims
        if good.dim() < n:
            raise ValueError(
                f"a value under {self} has {self.event_dim} dimensions or more, not {value.dim()}"
            )
        return good.reshape(good.shape[: good.dim() - n] + (-1,)).all(-1)

    def __repr__(self):
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


independent = _IndependentConstraint
real_vector = independent(real, 1)


class MixtureSameFamilyConstraint(Constraint):
    """A value of a mixture is one of any of its components."""

    def __init__(self, base_constraint):
        if not isinstance(base_constraint, Constraint):
            raise TypeError(f"base_constraint is to be a Constraint, not {base_constraint!r}")
        self.base_constraint = base_constraint

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim)

    def check(self, value):
        event_dim = self.event_dim
        good = self.base_constraint.check(value.unsqueeze(-1 - event_dim))
        return good.flatten(good.dim() - 1 - event_dim).all(-1) if event_dim else good.all(-1)

    def __repr__(self):
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _Parts(Constraint):
    """Slices of a value along a dimension, each under a constraint of its own."""

    def __init__(self, cseq, dim=0):
        self.cseq, self.dim = list(cseq), dim
        if not all(isinstance(c, Constraint) for c in self.cseq):
            raise TypeError(f"{self._title()} is made of constraints, not {self.cseq}")

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq))
    event_dim = property(lambda self: max(c.event_dim for c in self.cseq))

    def __repr__(self):
        return f"{self._title()}()"


class _Cat(_Parts):
    def __init__(self, cseq, dim=0, lengths=None):
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    def check(self, value):
        parts = value.split(self.lengths, self.dim)
        return prong.cat(
            [c.check(part) for c, part in zip(self.cseq, parts, strict=True)], self.dim
        )


class _Stack(_Parts):
    def check(self, value):
        parts = value.unbind(self.dim)
        return prong.stack(
            [c.check(part) for c, part in zip(self.cseq, parts, strict=True)], self.dim
        )


cat, stack = _Cat, _Stack


class _Dependent(Constraint):
    """A constraint that depends on a distribution's parameters."""

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def _known(self, name):
        value = getattr(self, f"_{name}")
        if value is NotImplemented:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return value

    is_discrete = property(lambda self: self._known("is_discrete"))
    event_dim = property(lambda self: self._known("event_dim"))

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value):
        raise ValueError("Cannot determine validity of dependent constraint")

    def __repr__(self):
        return "Dependent()"


dependent = _Dependent()


def is_dependent(constraint):
    """Whether the constraint is known only once there are parameters."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property that gives a constraint; of the class it is a dependent constraint itself."""

    def __init__(self, fn=None, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn):
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


dependent_property = _DependentProperty


__getattr__ = _names.module_getattr(__name__)
