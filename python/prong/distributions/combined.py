"""Distributions made of distributions: reinterpreted, transformed, mixed."""

import prong
from prong import Size, _names
from prong.distributions import constraints
from prong.distributions.discrete import Categorical
from prong.distributions.distribution import Distribution, Parametric, sum_rightmost
from prong.distributions.transforms import ComposeTransform, Transform

__all__ = ["Independent", "MixtureSameFamily", "TransformedDistribution"]


class Independent(Parametric):
    """The last dimensions of a distribution's batch taken as one event."""

    arg_constraints: dict = {}

    def __init__(self, base_distribution, reinterpreted_batch_ndims, validate_args=None):
        n = reinterpreted_batch_ndims
        if n > len(base_distribution.batch_shape):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {n} vs {len(base_distribution.batch_shape)}"
            )
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, n
        shape = base_distribution.batch_shape + base_distribution.event_shape
        cut = len(base_distribution.batch_shape) - n
        self._start(shape[:cut], shape[cut:], validate_args)

    def _expand_part(self, part, batch_shape):
        return part.expand(batch_shape + self._event_shape[: self.reinterpreted_batch_ndims])

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    @property
    def has_enumerate_support(self):
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self):
        support, n = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(support, n) if n else support

    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    def sample(self, sample_shape=()):
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=()):
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value):
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self):
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand=True):
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self):
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Parametric):
    """What transforms make of the samples of a distribution."""

    arg_constraints: dict = {}

    def __init__(self, base_distribution, transforms, validate_args=None):
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list):
            if not all(isinstance(t, Transform) for t in transforms):
                raise ValueError("transforms must be a Transform or a list of Transforms")
            self.transforms = transforms
        else:
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        base, transform = base_distribution, ComposeTransform(self.transforms)
        base_shape, base_event_dim = base.batch_shape + base.event_shape, len(base.event_shape)
        if len(base_shape) < transform.domain.event_dim:
            raise ValueError(
                "base_distribution needs to have shape with size at least "
                f"{transform.domain.event_dim}, but got {base_shape}."
            )
        shape = transform.forward_shape(base_shape)
        wanted = transform.inverse_shape(shape)
        if base_shape != wanted:
            base = base.expand(wanted[: len(wanted) - base_event_dim])
        missing = transform.domain.event_dim - base_event_dim
        self.base_dist = Independent(base, missing) if missing > 0 else base
        event_dim = transform.codomain.event_dim + max(-missing, 0)
        if len(shape) < event_dim:
            raise ValueError(f"a value of {event_dim} dimensions or more has no shape {shape}")
        cut = len(shape) - event_dim
        self._start(shape[:cut], shape[cut:], validate_args)

    def _expand_part(self, part, batch_shape):
        transform = ComposeTransform(self.transforms)
        shape = transform.inverse_shape(batch_shape + self._event_shape)
        return part.expand(shape[: len(shape) - len(part.event_shape)])

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        extra = len(self._event_shape) - support.event_dim
        return constraints.independent(support, extra) if extra > 0 else support

    def _forward(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape=()):
        with prong.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=()):
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        y, event_dim, result = self._checked(value), len(self._event_shape), 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            jacobian = transform.log_abs_det_jacobian(x, y)
            result = result - sum_rightmost(jacobian, event_dim - transform.domain.event_dim)
            y = x
        base = self.base_dist.log_prob(y)
        return result + sum_rightmost(base, event_dim - len(self.base_dist.event_shape))

    def _monotone(self, value):
        """A probability, turned around where the transforms together go down."""
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value):
        for transform in self.transforms[::-1]:
            value = transform.inv(value)
        self.base_dist._checked(value)
        return self._monotone(self.base_dist.cdf(value))

    def icdf(self, value):
        return self._forward(self.base_dist.icdf(self._monotone(value)))


class MixtureSameFamily(Parametric):
    """A Categorical chooses which of the last dimension of a distribution's batch is drawn."""

    arg_constraints: dict = {}

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of torch.distributions.Distribution"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        own, batch = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        for i, j in zip(reversed(own), reversed(batch), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({own}) is not compatible with "
                    f"`component_distribution.batch_shape`({batch})"
                )
        count = mixture_distribution.logits.shape[-1]
        given = component_distribution.batch_shape[-1]
        if count is not None and given is not None and count != given:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({given})"
            )
        self._num_component = count
        self._start(batch, component_distribution.event_shape, validate_args)

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)

    def _expand_part(self, part, batch_shape):
        is_component = part is self._component_distribution
        return part.expand(batch_shape + ((self._num_component,) if is_component else ()))

    has_rsample = False

    @constraints.dependent_property
    def support(self):
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def _weights(self):
        """The chances of the components, with the event's dimensions behind."""
        probs = self.mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * len(self._event_shape))

    def _mixed(self, values):
        return (self._weights() * values).sum(-1 - len(self._event_shape))

    @property
    def mean(self):
        return self._mixed(self.component_distribution.mean)

    @property
    def variance(self):
        within = self._mixed(self.component_distribution.variance)
        center = self.mean.unsqueeze(-1 - len(self._event_shape))
        return within + self._mixed((self.component_distribution.mean - center).pow(2.0))

    def cdf(self, value):
        value = self._each(self._checked(value))
        chances = self.mixture_distribution.probs
        return (self.component_distribution.cdf(value) * chances).sum(-1)

    def log_prob(self, value):
        value = self._each(self._checked(value))
        weights = self.mixture_distribution.logits.log_softmax(-1)
        return (self.component_distribution.log_prob(value) + weights).logsumexp(-1)

    def sample(self, sample_shape=()):
        with prong.no_grad():
            dim = -1 - len(self._event_shape)
            which = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            which = which.expand(Size(sample_shape) + self._batch_shape)
            which = which.reshape(which.shape + (1,) * (len(self._event_shape) + 1))
            shape = list(drawn.shape)
            shape[dim] = 1
            return drawn.gather(dim, which.expand(shape)).squeeze(dim)

    def _each(self, value):
        return value.unsqueeze(-1 - len(self._event_shape))

    def __repr__(self):
        return (
            f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
        )


__getattr__ = _names.module_getattr(__name__)
