"""Distributions of counts and of categories."""

import math

import prong
from prong import Size, Tensor, _names
from prong.distributions import constraints
from prong.distributions.continuous import Gamma
from prong.distributions.distribution import (
    ByChance,
    ExponentialFamily,
    Parametric,
    broadcast_all,
    lazy_property,
)

__all__ = [
    "Bernoulli",
    "Binomial",
    "Categorical",
    "Geometric",
    "Multinomial",
    "NegativeBinomial",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Poisson",
]

_softplus = prong.nn.functional.softplus
_CHANCES = {"probs": constraints.unit_interval, "logits": constraints.real}
_CATEGORIES = {"probs": constraints.simplex, "logits": constraints.real_vector}


def _spread(values, batch_shape, expand):
    """The values of a support in front of a batch's shape."""
    values = values.reshape((-1,) + (1,) * len(batch_shape))
    return values.expand((-1,) + tuple(batch_shape)) if expand else values


class Bernoulli(ByChance, ExponentialFamily):
    """1 with the chance ``probs``, else 0."""

    arg_constraints = _CHANCES
    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        name, given = self._given_chances(probs, logits)
        self._take(validate_args, **{name: given})

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    @property
    def mode(self):
        likely = (self.probs >= 0.5).to(self.probs)
        return likely.where(self.probs != 0.5, math.nan)

    def sample(self, sample_shape=()):
        with prong.no_grad():
            return prong.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        value = self._checked(value)
        logits, value = broadcast_all(self.logits, value)
        return value * logits - _softplus(logits)

    def entropy(self):
        return _softplus(self.logits) - self.logits * self.probs

    def enumerate_support(self, expand=True):
        return _spread(prong.arange(2, dtype=self._param.dtype), self._batch_shape, expand)


class Geometric(ByChance):
    """Failures before the first success."""

    arg_constraints = _CHANCES
    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None):
        name, given = self._given_chances(probs, logits)
        self._take(validate_args, **{name: given})
        if self._validate_args and name == "probs" and not (self.probs > 0).all():
            wrong = self.probs[self.probs <= 0]
            raise ValueError(
                f"Expected parameter probs ({type(self.probs).__name__} of shape "
                f"{tuple(self.probs.shape)}) of distribution {self!r} to be positive but found "
                f"invalid values:\n{wrong}"
            )

    mean = property(lambda self: 1 / self.probs - 1)
    mode = property(lambda self: prong.zeros_like(self.probs))
    variance = property(lambda self: (1 / self.probs - 1) / self.probs)

    def sample(self, sample_shape=()):
        with prong.no_grad():
            u = self.probs.new_empty(self._extended_shape(sample_shape))
            u.uniform_(prong.finfo(self.probs.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value):
        value, probs = broadcast_all(self._checked(value), self.probs)
        is_certain = (probs == 1) & (value == 0)
        failure = probs.where(~is_certain, 0)
        return value * (-failure).log1p() + self.probs.log()

    def entropy(self):
        return (_softplus(self.logits) - self.logits * self.probs) / self.probs


class Counted(ByChance):
    """A number of successes in trials; ``total_count`` and the chances are broadcast."""

    arg_constraints = {"total_count": constraints.nonnegative_integer, **_CHANCES}

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        name, given = self._given_chances(probs, logits)
        total_count, given = broadcast_all(total_count, given)
        self.total_count = total_count.type_as(given)
        setattr(self, name, given)
        self._start(given.shape, Size(), validate_args)


class Binomial(Counted):
    """Successes in ``total_count`` trials."""

    has_enumerate_support = True

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    mean = property(lambda self: self.total_count * self.probs)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    @property
    def mode(self):
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        with prong.no_grad():
            return prong.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        value, n = self._checked(value), self.total_count
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        # n * log(1 + exp(logits)), written so that exp does not overflow.
        size = n * (self.logits.clamp(min=0) + (-self.logits.abs()).exp().log1p())
        return value * self.logits + ways - size

    def _one_count(self):
        n = int(self.total_count.max())
        if not self.total_count.min() == n:
            return None
        return n

    def entropy(self):
        if self._one_count() is None:
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand=True):
        n = self._one_count()
        if n is None:
            raise NotImplementedError(
                "Inhomogeneous total count not supported by `enumerate_support`."
            )
        return _spread(prong.arange(1 + n, dtype=self._param.dtype), self._batch_shape, expand)


class NegativeBinomial(Counted):
    """Successes before ``total_count`` failures."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        super().__init__(total_count, probs, logits, validate_args)

    mean = property(lambda self: self.total_count * self.logits.exp())
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0))
    variance = property(lambda self: self.mean / (-self.logits).sigmoid())

    @lazy_property
    def _gamma(self):
        return Gamma(self.total_count, (-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape=()):
        with prong.no_grad():
            return prong.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value):
        value, n = self._checked(value), self.total_count
        log_sigmoid = prong.nn.functional.logsigmoid
        chances = n * log_sigmoid(-self.logits) + value * log_sigmoid(self.logits)
        ways = (n + value).lgamma() - (1 + value).lgamma() - n.lgamma()
        return chances + ways.where(n + value != 0, 0)


class Poisson(Parametric, ExponentialFamily):
    """Counts of events that come at ``rate``."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate, validate_args=None):
        self._take(validate_args, rate=rate)

    mean = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())
    variance = property(lambda self: self.rate)

    def sample(self, sample_shape=()):
        with prong.no_grad():
            return prong.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        rate, value = broadcast_all(self.rate, self._checked(value))
        return prong.xlogy(value, rate) - rate - (value + 1).lgamma()


class Categorical(ByChance):
    """The number of a category; chances, up to a factor, are in the last dimension."""

    arg_constraints = _CATEGORIES
    has_enumerate_support = True
    _is_binary = False

    def __init__(self, probs=None, logits=None, validate_args=None):
        name, given = self._given_chances(probs, logits)
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if name == "probs":
            self.probs = given / given.sum(-1, keepdim=True)
        else:
            self.logits = given - given.logsumexp(dim=-1, keepdim=True)
        self._start(given.shape[:-1], Size(), validate_args)

    _num_events = property(lambda self: self._param.shape[-1])

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    mean = property(lambda self: prong.full(self._batch_shape, math.nan, dtype=self.probs.dtype))
    mode = property(lambda self: self.probs.argmax(dim=-1))
    variance = mean

    def sample(self, sample_shape=()):
        sample_shape = Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        with prong.no_grad():
            drawn = prong.multinomial(rows, sample_shape.numel(), True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        value = self._checked(value).long().unsqueeze(-1)
        value, log_pmf = prong.broadcast_tensors(value, self.logits)
        return log_pmf.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self):
        finite = self.logits.clamp(min=prong.finfo(self.logits.dtype).min)
        return -(finite * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        return _spread(prong.arange(self._num_events), self._batch_shape, expand)


class OfCategorical(Parametric):
    """A distribution of vectors made of draws of a Categorical, ``self._categorical``."""

    arg_constraints = _CATEGORIES
    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    _param = property(lambda self: self._categorical._param)
    param_shape = property(lambda self: self._categorical.param_shape)
    _num_events = property(lambda self: self._categorical._num_events)

    def _take_categorical(self, probs, logits, validate_args):
        self._categorical = Categorical(probs, logits)
        self._start(self._categorical.batch_shape, self._param.shape[-1:], validate_args)


class OneHotCategorical(OfCategorical):
    """Vectors with a 1 at the place of the category that was drawn."""

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._take_categorical(probs, logits, validate_args)

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    def _one_hot(self, index):
        return prong.nn.functional.one_hot(index, self._num_events).to(self._param)

    mode = property(lambda self: self._one_hot(self.probs.argmax(dim=-1)))

    def sample(self, sample_shape=()):
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value):
        return self._categorical.log_prob(self._checked(value).max(-1)[1])

    def entropy(self):
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        n = self._num_events
        values = prong.eye(n, dtype=self._param.dtype)
        values = values.view((n,) + (1,) * len(self._batch_shape) + (n,))
        return values.expand((n,) + tuple(self._batch_shape) + (n,)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot samples with the gradients of their probabilities."""

    has_rsample = True

    def rsample(self, sample_shape=()):
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(OfCategorical):
    """How often each category comes in ``total_count`` draws."""

    total_count: int

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if isinstance(total_count, Tensor):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._take_categorical(probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape=()):
        sample_shape = Size(sample_shape)
        drawn = self._categorical.sample(Size((self.total_count,)) + sample_shape).movedim(0, -1)
        counts = drawn.new_zeros(self._extended_shape(sample_shape))
        return counts.scatter_add_(-1, drawn, prong.ones_like(drawn)).type_as(self.probs)

    def log_prob(self, value):
        logits, value = broadcast_all(self.logits, self._checked(value))
        ways = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        impossible = (value == 0) & (logits == -math.inf)
        return ways + (logits.where(~impossible, 0) * value).sum(-1)

    def entropy(self):
        # Of the draws in order, less that of the order.
        n = self.total_count
        binomial = Binomial(n, probs=self.probs)
        counts = binomial.enumerate_support(expand=False)[1:]
        weights = (counts + 1).lgamma()
        order = (binomial.log_prob(counts).exp() * weights).sum([0, -1])
        return n * self._categorical.entropy() - math.lgamma(n + 1) + order


__getattr__ = _names.module_getattr(__name__)
