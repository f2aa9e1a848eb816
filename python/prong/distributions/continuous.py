"""Distributions of single real numbers that are sampled directly."""

import math

import prong
from prong import _names
from prong.distributions import constraints
from prong.distributions.distribution import ExponentialFamily, Parametric
from prong.special import xlogy

__all__ = [
    "Cauchy",
    "Chi2",
    "Exponential",
    "FisherSnedecor",
    "Gamma",
    "Laplace",
    "Normal",
    "StudentT",
    "Uniform",
]

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


def _nan_like(x):
    return prong.full_like(x, math.nan)


class LocationScale(Parametric):
    """loc + scale * Z for a standard Z, which a subclass describes by functions of tensors."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self._take(validate_args, loc=loc, scale=scale)

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)

    def _standard(self, value):
        return (self._checked(value) - self.loc) / self.scale

    def rsample(self, sample_shape=()):
        return self.loc + self.scale * self._draw(self._extended_shape(sample_shape))

    def _draw(self, shape):
        raise NotImplementedError


class Normal(LocationScale, ExponentialFamily):
    """The normal distribution, by mean and standard deviation."""

    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.stddev.pow(2))

    def _draw(self, shape):
        return prong.randn(shape, dtype=self.loc.dtype)

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        with prong.no_grad():
            return prong.normal(self.loc.expand(shape), self.scale.expand(shape))

    def log_prob(self, value):
        z = self._checked(value) - self.loc
        return -(z**2) / (2 * self.scale**2) - self.scale.log() - _HALF_LOG_TAU

    def cdf(self, value):
        return 0.5 * (1 + prong.erf(self._standard(value) / math.sqrt(2)))

    def icdf(self, value):
        return self.loc + self.scale * prong.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self):
        return 0.5 + _HALF_LOG_TAU + self.scale.log()


class Laplace(LocationScale):
    """Two exponential tails of mean length ``scale``."""

    stddev = property(lambda self: math.sqrt(2) * self.scale)
    variance = property(lambda self: 2 * self.scale.pow(2))

    def _draw(self, shape):
        u = self.loc.new_empty(shape).uniform_(prong.finfo(self.loc.dtype).eps - 1, 1)
        return -u.sign() * (-u.abs()).log1p()

    def log_prob(self, value):
        return -(2 * self.scale).log() - self._standard(value).abs()

    def cdf(self, value):
        z = self._standard(value)
        return 0.5 - 0.5 * z.sign() * prong.expm1(-z.abs())

    def icdf(self, value):
        term = value - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    def entropy(self):
        return 1 + (2 * self.scale).log()


class Cauchy(LocationScale):
    """The ratio of two normal numbers; neither mean nor variance exist."""

    mean = property(lambda self: _nan_like(self.loc))
    variance = property(lambda self: prong.full_like(self.loc, math.inf))

    def _draw(self, shape):
        return self.loc.new_empty(shape).cauchy_()

    def log_prob(self, value):
        return -math.log(math.pi) - self.scale.log() - self._standard(value).square().log1p()

    def cdf(self, value):
        return self._standard(value).atan() / math.pi + 0.5

    def icdf(self, value):
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self):
        return math.log(4 * math.pi) + self.scale.log()


class Uniform(Parametric):
    """Evenly spread over [low, high)."""

    has_rsample = True

    def __init__(self, low, high, validate_args=None):
        self._take(validate_args, low=low, high=high)

    @property
    def arg_constraints(self):
        return {
            "low": constraints.less_than(self.high),
            "high": constraints.greater_than(self.low),
        }

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.interval(self.low, self.high)

    mean = property(lambda self: (self.high + self.low) / 2)
    mode = property(lambda self: _nan_like(self.high))
    variance = property(lambda self: (self.high - self.low).pow(2) / 12)

    @property
    def stddev(self):
        return (self.high - self.low) / 12**0.5

    def rsample(self, sample_shape=()):
        u = prong.rand(self._extended_shape(sample_shape), dtype=self.low.dtype)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value):
        value = self._checked(value)
        inside = ((self.low <= value) & (value < self.high)).type_as(self.low)
        return inside.log() - (self.high - self.low).log()

    def cdf(self, value):
        return ((self._checked(value) - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value):
        return value * (self.high - self.low) + self.low

    def entropy(self):
        return (self.high - self.low).log()


class Exponential(Parametric, ExponentialFamily):
    """Waiting times of events that come at ``rate``."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate, validate_args=None):
        self._take(validate_args, rate=rate)

    mean = property(lambda self: self.rate.reciprocal())
    mode = property(lambda self: prong.zeros_like(self.rate))
    stddev = property(lambda self: self.rate.reciprocal())
    variance = property(lambda self: self.rate.pow(-2))

    def rsample(self, sample_shape=()):
        return self.rate.new_empty(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value):
        return self.rate.log() - self.rate * self._checked(value)

    def cdf(self, value):
        return 1 - (-self.rate * self._checked(value)).exp()

    def icdf(self, value):
        return -(-value).log1p() / self.rate

    def entropy(self):
        return 1 - self.rate.log()


class Gamma(Parametric, ExponentialFamily):
    """Of shape ``concentration`` and inverse scale ``rate``."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration, rate, validate_args=None):
        self._take(validate_args, concentration=concentration, rate=rate)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate.pow(2))

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        value = prong._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=prong.finfo(value.dtype).tiny)
        return value

    def log_prob(self, value):
        self._checked(value)
        value = prong.as_tensor(value, dtype=self.rate.dtype)
        a = self.concentration
        return xlogy(a, self.rate) + xlogy(a - 1, value) - self.rate * value - a.lgamma()

    def cdf(self, value):
        return prong.special.gammainc(self.concentration, self.rate * self._checked(value))

    def entropy(self):
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()


class Chi2(Gamma):
    """The sum of ``df`` squared standard normal numbers."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args=None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    df = property(lambda self: self.concentration * 2)


class StudentT(LocationScale):
    """A standard normal number over the root of a mean of ``df`` squared ones."""

    arg_constraints = {"df": constraints.positive, **LocationScale.arg_constraints}

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self._take(validate_args, df=df, loc=loc, scale=scale)
        self._chi2 = Chi2(self.df)

    @property
    def mean(self):
        return self.loc.where(self.df > 1, math.nan)

    @property
    def variance(self):
        df = self.df
        finite = self.scale.pow(2) * df / (df - 2)
        return finite.where(df > 2, math.inf).where(df > 1, math.nan)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        normal = prong.randn(shape, dtype=self.df.dtype)
        return self.loc + self.scale * normal * (self._chi2.rsample(sample_shape) / self.df).rsqrt()

    def _log_normalizer(self):
        df = self.df
        return (
            self.scale.log()
            + 0.5 * df.log()
            + 0.5 * math.log(math.pi)
            + (0.5 * df).lgamma()
            - (0.5 * (df + 1)).lgamma()
        )

    def log_prob(self, value):
        z = self._standard(value)
        return -0.5 * (self.df + 1) * (z**2 / self.df).log1p() - self._log_normalizer()

    def entropy(self):
        more = 0.5 * (self.df + 1)
        return self._log_normalizer() + more * (more.digamma() - (0.5 * self.df).digamma())


class FisherSnedecor(Parametric):
    """The ratio of two means of squared normal numbers, of ``df1`` and of ``df2`` of them."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1, df2, validate_args=None):
        self._take(validate_args, df1=df1, df2=df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)

    @property
    def mean(self):
        return (self.df2 / (self.df2 - 2)).where(self.df2 > 2, math.nan)

    @property
    def mode(self):
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mode.where(self.df1 > 2, math.nan)

    @property
    def variance(self):
        a, b = self.df1, self.df2
        variance = 2 * b.pow(2) * (a + b - 2) / (a * (b - 2).pow(2) * (b - 4))
        return variance.where(b > 4, math.nan)

    def rsample(self, sample_shape=()):
        above, below = self._gamma1.rsample(sample_shape), self._gamma2.rsample(sample_shape)
        tiny = prong.finfo(self.df1.dtype).tiny
        below.detach().clamp_(min=tiny)
        ratio = above / below
        ratio.detach().clamp_(min=tiny)
        return ratio

    def log_prob(self, value):
        value = self._checked(value)
        a, b = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
        return a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p() - beta


__getattr__ = _names.module_getattr(__name__)
