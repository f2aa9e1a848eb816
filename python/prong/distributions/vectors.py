"""Distributions of vectors: Dirichlet (and Beta, its first element of two) and the normal one."""

import math

import prong
from prong import Size, _names
from prong.distributions import constraints
from prong.distributions.distribution import (
    ExponentialFamily,
    Parametric,
    broadcast_all,
    lazy_property,
)

__all__ = ["Beta", "Dirichlet", "MultivariateNormal"]


class Dirichlet(Parametric, ExponentialFamily):
    """Probabilities of categories."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration, validate_args=None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        self._start(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    @property
    def mean(self):
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self):
        excess = (self.concentration - 1).clamp(min=0.0)
        is_corner = (self.concentration < 1).all(-1, keepdim=True)
        corner = prong.nn.functional.one_hot(
            self.concentration.argmax(-1), self._event_shape[0]
        ).to(excess)
        return corner.where(is_corner, excess / excess.sum(-1, True))

    @property
    def variance(self):
        a, total = self.concentration, self.concentration.sum(-1, True)
        return a * (total - a) / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape=()):
        return prong._sample_dirichlet(
            self.concentration.expand(self._extended_shape(sample_shape))
        )

    def log_prob(self, value):
        a = self.concentration
        density = prong.special.xlogy(a - 1, self._checked(value)).sum(-1)
        return density + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    def entropy(self):
        a, total = self.concentration, self.concentration.sum(-1)
        return (
            a.lgamma().sum(-1)
            - total.lgamma()
            - (a.size(-1) - total) * total.digamma()
            - ((a - 1) * a.digamma()).sum(-1)
        )


class Beta(Parametric, ExponentialFamily):
    """A probability: the first element of a Dirichlet vector of two."""

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        pair = prong.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(pair, validate_args=validate_args)
        self._start(self._dirichlet.batch_shape, Size(), validate_args)

    concentration1 = property(lambda self: self._dirichlet.concentration[..., 0])
    concentration0 = property(lambda self: self._dirichlet.concentration[..., 1])
    mean = property(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))
    mode = property(lambda self: self._dirichlet.mode[..., 0])

    @property
    def variance(self):
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape=()):
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value):
        value = self._checked(value)
        return self._dirichlet.log_prob(prong.stack([value, 1.0 - value], -1))

    def entropy(self):
        return self._dirichlet.entropy()


def precision_to_scale_tril(precision):
    """The lower Cholesky factor of the inverse."""
    # Of the matrix turned by half a turn, the factor turned back is an upper one.
    flipped = prong.linalg.cholesky(prong.flip(precision, (-2, -1)))
    upper = prong.transpose(prong.flip(flipped, (-2, -1)), -2, -1)
    identity = prong.eye(precision.shape[-1], dtype=precision.dtype)
    return prong.linalg.solve_triangular(upper, identity, upper=False)


def whitened(scale_tril, difference):
    """scale_tril^-1 difference, for any shapes that broadcast."""
    if scale_tril.dim() == 2 and difference.dim() > 1:  # one factor: solved for all at once
        columns = difference.reshape(-1, difference.shape[-1]).mT
        solved = prong.linalg.solve_triangular(scale_tril, columns, upper=False)
        return solved.mT.reshape(difference.shape)
    columns = difference.unsqueeze(-1)
    shape = prong.broadcast_shapes(scale_tril.shape[:-2], columns.shape[:-2])
    scale_tril = scale_tril.expand(shape + scale_tril.shape[-2:])
    columns = columns.expand(shape + columns.shape[-2:])
    return prong.linalg.solve_triangular(scale_tril, columns, upper=False).squeeze(-1)


class MultivariateNormal(Parametric):
    """The normal distribution of vectors, by covariance, precision or a Cholesky factor."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _shared = ("_unbroadcasted_scale_tril",)  # one factor often serves all

    def __init__(
        self,
        loc,
        covariance_matrix=None,
        precision_matrix=None,
        scale_tril=None,
        validate_args=None,
    ):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        matrices = {
            "covariance_matrix": covariance_matrix,
            "scale_tril": scale_tril,
            "precision_matrix": precision_matrix,
        }
        given = [(name, matrix) for name, matrix in matrices.items() if matrix is not None]
        if len(given) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
            )
        [(name, matrix)] = given
        if matrix.dim() < 2:
            middle = " matrix" if name == "scale_tril" else ""
            raise ValueError(
                f"{name}{middle} must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        batch_shape = prong.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch_shape + matrix.shape[-2:]))
        self.loc = loc.expand(batch_shape + loc.shape[-1:])
        self._start(batch_shape, self.loc.shape[-1:], validate_args)
        if name == "covariance_matrix":
            matrix = prong.linalg.cholesky(matrix)
        elif name == "precision_matrix":
            matrix = precision_to_scale_tril(matrix)
        self._unbroadcasted_scale_tril = matrix

    def _of_batch(self, matrix):
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self):
        return self._of_batch(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self):
        factor = self._unbroadcasted_scale_tril
        return self._of_batch(factor @ factor.mT)

    @lazy_property
    def precision_matrix(self):
        return self._of_batch(prong.cholesky_inverse(self._unbroadcasted_scale_tril))

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)

    @property
    def variance(self):
        squares = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return squares.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape=()):
        z = prong.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype)
        return self.loc + (self._unbroadcasted_scale_tril @ z.unsqueeze(-1)).squeeze(-1)

    def _half_log_determinant(self):
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value):
        difference = self._checked(value) - self.loc
        squared = whitened(self._unbroadcasted_scale_tril, difference).pow(2).sum(-1)
        size = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (size + squared) - self._half_log_determinant()

    def entropy(self):
        size = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (size + self._half_log_determinant()).expand(self._batch_shape)


__getattr__ = _names.module_getattr(__name__)
