"""What every distribution is: shapes, checks of parameters and values, repr, expand.

``Parametric`` is what those of this package are made of: its fields are tensors of the batch's shape (and
distributions of that batch), so that checking, printing and expanding are written once.
"""

import warnings
from numbers import Number

import prong
from prong import Size, Tensor, _names
from prong.distributions import constraints

__all__ = ["Distribution"]


class lazy_property:
    """A property that is computed when first asked for and kept as a field of the instance."""

    def __init__(self, wrapped):
        self.wrapped, self.__doc__ = wrapped, wrapped.__doc__

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        with prong.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def broadcast_all(*values):
    """The values as tensors of one shape; numbers get the dtype of the first tensor among them."""
    if not all(isinstance(value, (Tensor, Number)) for value in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
            "__torch_function__."
        )
    if not all(isinstance(value, Tensor) for value in values):
        tensors = [value for value in values if isinstance(value, Tensor)]
        dtype = tensors[0].dtype if tensors else prong.get_default_dtype()
        values = [v if isinstance(v, Tensor) else prong.tensor(v, dtype=dtype) for v in values]
    return prong.broadcast_tensors(*values)


def sum_rightmost(value, dim):
    """The sum over the last ``dim`` dimensions."""
    return value if dim == 0 else value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


class Distribution:
    """A distribution of events of the shape ``event_shape``, one for each index of ``batch_shape``."""

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value):
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape=(), event_shape=(), validate_args=None):
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self):
        try:
            table = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` "
                "or initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=4,
            )
            return
        for name, constraint in table.items():
            is_made_later = isinstance(getattr(type(self), name, None), lazy_property)
            if constraints.is_dependent(constraint) or (
                is_made_later and name not in self.__dict__
            ):
                continue
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                    f"{constraint!r}, but found invalid values:\n{value}"
                )

    batch_shape = property(lambda self: self._batch_shape)
    event_shape = property(lambda self: self._event_shape)

    # ── what a subclass says ──

    @property
    def arg_constraints(self):
        """Names of parameters and the constraints that they satisfy."""
        raise NotImplementedError

    @property
    def support(self):
        """The constraint that values satisfy."""
        raise NotImplementedError

    @property
    def mean(self):
        raise NotImplementedError

    @property
    def mode(self):
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self):
        raise NotImplementedError

    @property
    def stddev(self):
        return self.variance.sqrt()

    def expand(self, batch_shape, _instance=None):
        """The same distribution for a larger batch, without copying parameters."""
        raise NotImplementedError

    def rsample(self, sample_shape=()):
        """A sample through which gradients flow to the parameters."""
        raise NotImplementedError

    def log_prob(self, value):
        """The logarithm of the density, or of the probability, at the value."""
        raise NotImplementedError

    def cdf(self, value):
        raise NotImplementedError

    def icdf(self, value):
        raise NotImplementedError

    def enumerate_support(self, expand=True):
        """Every value of a discrete distribution, stacked in front."""
        raise NotImplementedError

    def entropy(self):
        raise NotImplementedError

    # ── what follows ──

    def sample(self, sample_shape=()):
        """Draws ``sample_shape`` times for each member of the batch."""
        with prong.no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n):
        warnings.warn(
            "sample_n(n) will be deprecated. Use .sample((n,)) instead.", UserWarning, stacklevel=2
        )
        return self.sample(Size((n,)))

    def perplexity(self):
        return self.entropy().exp()

    def _extended_shape(self, sample_shape=()):
        return Size(sample_shape) + self._batch_shape + self._event_shape

    def _checked(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return value

    def _validate_sample(self, value):
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        event_dim = len(self._event_shape)
        if value.shape[value.dim() - event_dim :] != self._event_shape:
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{value.shape} vs {self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        for i, j in zip(reversed(value.shape), reversed(expected), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    "Value is not broadcastable with batch_shape+event_shape: "
                    f"{value.shape} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to "
                f"be within the support ({support!r}) of the distribution {self!r}, but found "
                f"invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls, _instance=None):
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                "method must also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def __repr__(self):
        named = [(name, self.__dict__[name]) for name in _table(self) if name in self.__dict__]
        shown = (f"{n}: {p if p.numel() == 1 else p.size()}" for n, p in named)
        return f"{type(self).__name__}({', '.join(shown)})"


def _table(distribution):
    # A dependent table reads parameters, which are there whenever one can print.
    try:
        return distribution.arg_constraints
    except NotImplementedError:
        return {}


class Parametric(Distribution):
    """A distribution of this package: every tensor among its fields has the batch's shape in front."""

    _shared: tuple[str, ...] = ()  # fields that have not: one for the whole batch

    def _take(self, validate_args, **parameters):
        """Keeps the parameters of single numbers, broadcast; numbers alone make an empty batch."""
        tensors = broadcast_all(*parameters.values())
        self.__dict__.update(zip(parameters, tensors, strict=True))
        self._start(tensors[0].shape, Size(), validate_args)

    def _start(self, batch_shape, event_shape, validate_args):
        Distribution.__init__(self, batch_shape, event_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        made_by = next(c for c in type(self).__mro__ if c.__module__.startswith(__package__ + "."))
        new, batch_shape = self._get_checked_instance(made_by, _instance), Size(batch_shape)
        old = len(self._batch_shape)
        for name, value in self.__dict__.items():
            if isinstance(value, Tensor) and name not in self._shared:
                value = value.expand(batch_shape + value.shape[old:])
            elif isinstance(value, Distribution):
                value = self._expand_part(value, batch_shape)
            new.__dict__[name] = value
        new._batch_shape = batch_shape
        return new

    def _expand_part(self, part, batch_shape):
        return part.expand(batch_shape)


def as_chances(logits, is_binary=False):
    """Probabilities: of success if binary, else of each category in the last dimension."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def clamp_probs(probs):
    """Probabilities whose logarithms, and those of their complements, are finite."""
    eps = prong.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def as_logits(probs, is_binary=False):
    """The inverse of as_chances, up to a constant for categories."""
    probs = clamp_probs(probs)
    return probs.log() - (-probs).log1p() if is_binary else probs.log()


class ByChance(Parametric):
    """Given by probabilities or by their logits; the other is made when first asked for."""

    _is_binary = True

    def _given_chances(self, probs, logits):
        """The name of what is given, and it."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        self._given = "logits" if probs is None else "probs"
        return self._given, logits if probs is None else probs

    @lazy_property
    def probs(self):
        return as_chances(self.logits, self._is_binary)

    @lazy_property
    def logits(self):
        return as_logits(self.probs, self._is_binary)

    @property
    def _param(self):
        return self.__dict__[self._given]

    @property
    def param_shape(self):
        return self._param.size()


class ExponentialFamily(Distribution):
    """Densities exp(<t(x), theta> - F(theta) + k(x)); entropies follow from F and its gradient."""

    @property
    def _natural_params(self):
        raise NotImplementedError

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self):
        """The expectation of k(x)."""
        raise NotImplementedError

    def entropy(self):
        result = -self._mean_carrier_measure
        thetas = [theta.detach().requires_grad_() for theta in self._natural_params]
        normalizer = self._log_normalizer(*thetas)
        slopes = prong.autograd.grad(normalizer.sum(), thetas, create_graph=True)
        result += normalizer
        for theta, slope in zip(thetas, slopes, strict=True):
            product = theta * slope
            result -= sum_rightmost(product, product.dim() - len(self._batch_shape))
        return result


__getattr__ = _names.module_getattr(__name__)
