"""Distributions that are a simple one after transforms."""

import math

import prong
from prong import _names
from prong.distributions import constraints
from prong.distributions.combined import TransformedDistribution
from prong.distributions.continuous import Cauchy, Exponential, Gamma, Normal, Uniform
from prong.distributions.discrete import OfCategorical
from prong.distributions.distribution import ByChance, broadcast_all, clamp_probs
from prong.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    StickBreakingTransform,
)

__all__ = [
    "ExpRelaxedCategorical",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "InverseGamma",
    "Kumaraswamy",
    "LogNormal",
    "LogisticNormal",
    "LogitRelaxedBernoulli",
    "Pareto",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "Weibull",
]

_EULER = 0.57721566490153286060


def _of_base(*names, inside=0):
    """Properties that are those of the distribution under the transforms (and under Independent)."""

    def property_of(name):
        def get(self):
            base = self.base_dist
            for _ in range(inside):
                base = base.base_dist
            return getattr(base, name)

        return property(get)

    return (property_of(name) for name in names)


class LogNormal(TransformedDistribution):
    """Numbers whose logarithms are normally distributed."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    loc, scale = _of_base("loc", "scale")
    mean = property(lambda self: (self.loc + self.scale.pow(2) / 2).exp())
    mode = property(lambda self: (self.loc - self.scale.square()).exp())

    @property
    def variance(self):
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self):
        return self.base_dist.entropy() + self.loc


class _Half(TransformedDistribution):
    """|X| of an X that is distributed evenly around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale, validate_args=None):
        base = self._whole(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    (scale,) = _of_base("scale")
    mode = property(lambda self: prong.zeros_like(self.scale))

    def log_prob(self, value):
        value = prong.as_tensor(self._checked(value), dtype=self.scale.dtype)
        return (self.base_dist.log_prob(value) + math.log(2)).where(value >= 0, -math.inf)

    def cdf(self, value):
        return 2 * self.base_dist.cdf(self._checked(value)) - 1

    def icdf(self, value):
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self):
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """The size of a normal number of mean 0."""

    _whole = Normal
    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale.pow(2) * (1 - 2 / math.pi))


class HalfCauchy(_Half):
    """The size of a Cauchy number around 0."""

    _whole = Cauchy
    mean = property(lambda self: prong.full_like(self.scale, math.inf))
    variance = property(lambda self: self.base_dist.variance)


class Gumbel(TransformedDistribution):
    """Largest values: loc - scale * log(-log(U))."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = prong.finfo(self.loc.dtype)
        low = prong.full_like(self.loc, limits.tiny)
        base = Uniform(low, prong.full_like(self.loc, 1 - limits.eps), validate_args=validate_args)
        steps = [
            ExpTransform().inv,
            AffineTransform(0, -prong.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(self.loc, -self.scale),
        ]
        super().__init__(base, steps, validate_args=validate_args)

    mean = property(lambda self: self.loc + self.scale * _EULER)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: (math.pi / math.sqrt(6)) * self.scale)
    variance = property(lambda self: self.stddev.pow(2))

    def log_prob(self, value):
        y = (self.loc - self._checked(value)) / self.scale
        return (y - y.exp()) - self.scale.log()

    def entropy(self):
        return self.scale.log() + (1 + _EULER)


class Weibull(TransformedDistribution):
    """scale * E ** (1 / concentration) of an exponential number E."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale, concentration, validate_args=None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(prong.ones_like(self.scale), validate_args=validate_args)
        steps = [
            PowerTransform(self.concentration_reciprocal),
            AffineTransform(0, self.scale),
        ]
        super().__init__(base, steps, validate_args=validate_args)

    @property
    def mean(self):
        return self.scale * (1 + self.concentration_reciprocal).lgamma().exp()

    @property
    def mode(self):
        k = self.concentration
        return self.scale * ((k - 1) / k) ** self.concentration_reciprocal

    @property
    def variance(self):
        inverse = self.concentration_reciprocal
        second = (1 + 2 * inverse).lgamma().exp() - (2 * (1 + inverse).lgamma()).exp()
        return self.scale.pow(2) * second

    def entropy(self):
        inverse = self.concentration_reciprocal
        return _EULER * (1 - inverse) + (self.scale * inverse).log() + 1


class Pareto(TransformedDistribution):
    """scale * exp(E / alpha) of an exponential number E."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale, alpha, validate_args=None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        steps = [ExpTransform(), AffineTransform(0, self.scale)]
        super().__init__(base, steps, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self):
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    mode = property(lambda self: self.scale)

    @property
    def variance(self):
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    def entropy(self):
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class InverseGamma(TransformedDistribution):
    """The reciprocal of a gamma-distributed number."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration, rate, validate_args=None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        inverse = PowerTransform(-base.rate.new_ones(()))
        super().__init__(base, inverse, validate_args=validate_args)

    concentration, rate = _of_base("concentration", "rate")
    mode = property(lambda self: self.rate / (self.concentration + 1))

    @property
    def mean(self):
        a = self.concentration
        return (self.rate / (a - 1)).where(a > 1, math.inf)

    @property
    def variance(self):
        a = self.concentration
        return (self.rate.square() / ((a - 1).square() * (a - 2))).where(a > 2, math.inf)

    def entropy(self):
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class Kumaraswamy(TransformedDistribution):
    """(1 - U ** (1 / concentration0)) ** (1 / concentration1): nearly Beta, with a simple inverse."""

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        pair = broadcast_all(concentration1, concentration0)
        self.concentration1, self.concentration0 = pair
        zeros, ones = prong.zeros_like(pair[1]), prong.ones_like(pair[1])
        steps = [
            PowerTransform(exponent=pair[1].reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=pair[0].reciprocal()),
        ]
        base = Uniform(zeros, ones, validate_args=validate_args)
        super().__init__(base, steps, validate_args=validate_args)

    def _moment(self, n):
        a, b = self.concentration1, self.concentration0
        part = 1 + n / a
        return (b.log() + part.lgamma() + b.lgamma() - (part + b).lgamma()).exp()

    mean = property(lambda self: self._moment(1))
    variance = property(lambda self: self._moment(2) - self.mean.pow(2))

    @property
    def mode(self):
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)) ** a.reciprocal()
        return mode.where((a >= 1) & (b >= 1) & ~((a == 1) & (b == 1)), math.nan)

    def entropy(self):
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + _EULER
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()


class LogisticNormal(TransformedDistribution):
    """Probabilities made by breaking a stick at normal numbers."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    loc, scale = _of_base("loc", "scale", inside=1)


class LogitRelaxedBernoulli(ByChance):
    """Logits of RelaxedBernoulli."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True
    _shared = ("temperature",)

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature
        name, given = self._given_chances(probs, logits)
        self._take(validate_args, **{name: given})

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(prong.rand(shape, dtype=probs.dtype))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value):
        value = self._checked(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value.mul(self.temperature)
        return self.temperature.log() + difference - 2 * difference.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """Numbers of (0, 1) that come near 0 and 1 as the temperature falls."""

    arg_constraints = LogitRelaxedBernoulli.arg_constraints
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    temperature, logits, probs = _of_base("temperature", "logits", "probs")


class ExpRelaxedCategorical(OfCategorical):
    """Logarithms of RelaxedOneHotCategorical."""

    support = constraints.real_vector
    has_rsample = True
    _shared = ("temperature",)

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature
        self._take_categorical(probs, logits, validate_args)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(prong.rand(shape, dtype=self.logits.dtype))
        scores = (self.logits.expand(shape) - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value):
        n = self._num_events
        logits, value = broadcast_all(self.logits, self._checked(value))
        scale = self.temperature.log().mul(-(n - 1)) - math.lgamma(n)
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) - scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """Probabilities that come near one-hot vectors as the temperature falls."""

    arg_constraints = ExpRelaxedCategorical.arg_constraints
    support = constraints.simplex
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    temperature, logits, probs = _of_base("temperature", "logits", "probs")


__getattr__ = _names.module_getattr(__name__)
