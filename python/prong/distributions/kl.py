"""torch.distributions.kl: divergences of one distribution from another, by pairs of their classes."""

import math
from collections.abc import Callable
from functools import cache

import prong
from prong import _names
from prong.distributions.combined import Independent, TransformedDistribution
from prong.distributions.continuous import (
    Cauchy,
    Exponential,
    Gamma,
    Laplace,
    Normal,
    Uniform,
)
from prong.distributions.discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    OneHotCategorical,
    Poisson,
)
from prong.distributions.distribution import Distribution, ExponentialFamily, sum_rightmost
from prong.distributions.transformed import Gumbel, HalfNormal, Pareto
from prong.distributions.vectors import Beta, Dirichlet, MultivariateNormal, whitened

__all__ = ["kl_divergence", "register_kl"]

_RULES: dict = {}
_EULER = 0.57721566490153286060
_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


def register_kl(type_p, type_q):
    """Decorates the function of (p, q) that gives KL(p || q) for these classes and those below."""
    for given, name in ((type_p, "type_p"), (type_q, "type_q")):
        if not (isinstance(given, type) and issubclass(given, Distribution)):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {given}")

    def decorate(rule):
        _RULES[type_p, type_q] = rule
        _rule_for.cache_clear()
        return rule

    return decorate


@cache
def _rule_for(type_p, type_q):
    """The rule of the nearest classes: p's are looked at first."""
    for above_p in type_p.__mro__:
        for above_q in type_q.__mro__:
            rule = _RULES.get((above_p, above_q))
            if rule is not None:
                return rule
    return None


def kl_divergence(p, q):
    """The expectation under p of log p(x) - log q(x)."""
    rule = _rule_for(type(p), type(q))
    if rule is None:
        raise NotImplementedError(
            "No KL(p || q) is implemented for p type "
            f"{type(p).__name__} and q type {type(q).__name__}"
        )
    return rule(p, q)


def _infinite_like(x):
    return prong.full_like(x, math.inf)


# ── a class and itself ──


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    softplus = prong.nn.functional.softplus
    yes = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    no = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    yes = yes.where(q.probs != 0, math.inf).where(p.probs != 0, 0)
    no = no.where(q.probs != 1, math.inf).where(p.probs != 1, 0)
    return yes + no


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count")
    divergence = p.total_count * _bernoulli(p, q)
    return divergence.where(p.total_count <= q.total_count, math.inf)


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    terms = p.probs * (p.logits - q.logits)
    terms = terms.where(q.probs != 0, math.inf).where(p.probs != 0, 0)
    return terms.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_categorical(p, q):
    return _categorical(p._categorical, q._categorical)


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    distance = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + distance - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p, q):
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * (-distance / p.scale).exp() - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    whole = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return whole.log() - (4 * p.scale * q.scale).log()


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    a, b = p.concentration, q.concentration
    return (
        b * (p.rate / q.rate).log()
        + b.lgamma()
        - a.lgamma()
        + (a - b) * a.digamma()
        + (q.rate - p.rate) * (a / p.rate)
    )


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    normalizers = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return normalizers + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Beta, Beta)
def _beta(p, q):
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ratio = p.scale / q.scale
    shift = (q.loc - p.loc) / q.scale
    return (
        -ratio.log() - shift + _EULER * ratio + (shift + (1 + ratio).lgamma()).exp() - (1 + _EULER)
    )


@register_kl(Pareto, Pareto)
def _pareto(p, q):
    ratio = q.alpha / p.alpha
    divergence = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return divergence.where(p.scale >= q.scale, math.inf)


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    divergence = ((q.high - q.low) / (p.high - p.low)).log()
    return divergence.where((q.low <= p.low) & (q.high >= p.high), math.inf)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be "
            "computed"
        )
    factor = q._unbroadcasted_scale_tril
    # Columns of q^-1 p, whose squares sum to the trace of q's precision times p's covariance.
    columns = whitened(factor.unsqueeze(-3), p._unbroadcasted_scale_tril.mT)
    distance = whitened(factor, q.loc - p.loc).pow(2).sum(-1)
    trace = columns.pow(2).sum([-2, -1])
    determinants = q._half_log_determinant() - p._half_log_determinant()
    return determinants + 0.5 * (trace + distance - p.event_shape[0])


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    """A bijection changes no divergence."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    extra = len(p.event_shape) - len(p.base_dist.event_shape)
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), extra)


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p, q):
    """The Bregman divergence of the log normalizer."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using "
            "Bregman divergences"
        )
    thetas = [theta.detach().requires_grad_() for theta in p._natural_params]
    normalizer = p._log_normalizer(*thetas)
    slopes = prong.autograd.grad(normalizer.sum(), thetas, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - normalizer
    for theta, other, slope in zip(p._natural_params, q._natural_params, slopes, strict=True):
        product = (other - theta) * slope
        result = result - sum_rightmost(product, product.dim() - len(q.batch_shape))
    return result


# ── two classes of numbers: what p expects of log q, by p's moments ──

# The expectation of log x.
_LOG_MOMENT = {
    Beta: lambda p: p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma(),
    Exponential: lambda p: -_EULER - p.rate.log(),
    Gamma: lambda p: p.concentration.digamma() - p.rate.log(),
    Pareto: lambda p: p.scale.log() + p.alpha.reciprocal(),
    Uniform: lambda p: _log_mean_of_uniform(p, p.low, p.high),
}

# The expectation of exp(-x / scale).
_EXPONENTIAL_MOMENT = {
    Exponential: lambda p, scale: p.rate * scale / (p.rate * scale + 1),
    Gamma: lambda p, scale: ((p.rate * scale).reciprocal() + 1).pow(-p.concentration),
    Normal: lambda p, scale: (-p.loc / scale + 0.5 * (p.scale / scale).pow(2)).exp(),
    Uniform: lambda p, scale: (
        (scale * ((-p.low / scale).exp() - (-p.high / scale).exp())) / (p.high - p.low)
    ),
}


def _log_mean_of_uniform(p, low, high):
    """The mean of log over [low, high]."""
    return (prong.xlogy(high, high) - prong.xlogy(low, low)) / (p.high - p.low) - 1


def _log_moment(p):
    return _LOG_MOMENT[type(p)](p)


def _log_exponential(p, q):
    return q.rate.log() - q.rate * p.mean


def _log_gamma(p, q):
    a = q.concentration
    return a * q.rate.log() - a.lgamma() + (a - 1) * _log_moment(p) - q.rate * p.mean


def _log_normal(p, q):
    square = p.variance + (p.mean - q.loc).pow(2)
    return -square / (2 * q.scale.pow(2)) - q.scale.log() - _HALF_LOG_TAU


def _log_gumbel(p, q):
    # E[-z - exp(-z)] - log scale, of z = (x - loc) / scale.
    tail = (q.loc / q.scale).exp() * _EXPONENTIAL_MOMENT[type(p)](p, q.scale)
    return -(p.mean - q.loc) / q.scale - tail - q.scale.log()


def _log_laplace(p, q):
    """Of a normal p: the mean distance to q's center."""
    z = (p.loc - q.loc) / p.scale
    distance = p.scale * (
        math.sqrt(2 / math.pi) * (-0.5 * z.square()).exp() + z * prong.erf(z / math.sqrt(2))
    )
    return -distance / q.scale - (2 * q.scale).log()


def _log_beta(p, q):
    """Of a uniform p within [0, 1]."""
    a, b = q.concentration1, q.concentration0
    beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
    log_rest = _log_mean_of_uniform(p, 1 - p.high, 1 - p.low)
    return (a - 1) * _log_moment(p) + (b - 1) * log_rest - beta


def _log_uniform(p, q):
    """Of a p between 0 and 1."""
    return -(q.high - q.low).log() + prong.zeros_like(p.mean)


def _log_pareto(p, q):
    return q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _log_moment(p)


_ALWAYS = None


def _from_zero(p, q):
    return p.low >= 0


def _crossing(log_q, within=_ALWAYS):
    """The rule by E[log q]; infinite where p does not lie within q's support."""

    def rule(p, q):
        divergence = -p.entropy() - log_q(p, q)
        return divergence if within is _ALWAYS else divergence.where(within(p, q), math.inf)

    return rule


# (classes of p, class of q, E[log q], when p lies within q's support)
_CROSSINGS: tuple[tuple[tuple[type, ...], type, Callable, Callable | None], ...] = (
    ((Beta, Gamma, Pareto), Exponential, _log_exponential, _ALWAYS),
    ((Uniform,), Exponential, _log_exponential, _from_zero),
    ((Beta, Exponential, Pareto), Gamma, _log_gamma, _ALWAYS),
    ((Uniform,), Gamma, _log_gamma, _from_zero),
    ((Beta, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform), Normal, _log_normal, _ALWAYS),
    ((Exponential, Gamma, Normal, Uniform), Gumbel, _log_gumbel, _ALWAYS),
    ((Normal,), Laplace, _log_laplace, _ALWAYS),
    ((Uniform,), Beta, _log_beta, lambda p, q: (p.low >= 0) & (p.high <= 1)),
    ((Uniform,), Pareto, _log_pareto, lambda p, q: p.low >= q.scale),
    ((Beta,), Uniform, _log_uniform, lambda p, q: (q.low <= 0) & (q.high >= 1)),
)
# p has values where q has none.
_OUTSIDE: tuple[tuple[tuple[type, ...], tuple[type, ...]], ...] = (
    ((Beta,), (Pareto,)),
    ((Exponential, Gamma), (Beta, Pareto, Uniform)),
    ((Gumbel, Laplace, Normal), (Beta, Exponential, Gamma, Pareto, Uniform)),
    ((Pareto,), (Beta, Uniform)),
    ((Poisson,), (Bernoulli, Binomial)),
)


def _register_crossings():
    for classes, class_q, log_q, within in _CROSSINGS:
        for class_p in classes:
            register_kl(class_p, class_q)(_crossing(log_q, within))
    for classes, classes_q in _OUTSIDE:
        for class_p in classes:
            for class_q in classes_q:
                register_kl(class_p, class_q)(lambda p, q: _infinite_like(p.mean))


_register_crossings()


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


__getattr__ = _names.module_getattr(__name__)
