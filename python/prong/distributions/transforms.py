"""torch.distributions.transforms: invertible maps with the logarithm of their Jacobian's determinant."""

import math

import prong
from prong import Size, Tensor, _names
from prong.distributions import constraints
from prong.distributions.distribution import broadcast_all, sum_rightmost
from prong.distributions.transform import (
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    Transform,
    identity_transform,
    widened,
)

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]

_softplus = prong.nn.functional.softplus


class _WithoutParameters(Transform):
    """Two of a kind are equal."""

    def __eq__(self, other):
        return type(self) is type(other)

    __hash__ = Transform.__hash__


class _Plain(_WithoutParameters):
    """A bijection of numbers."""

    bijective = True
    sign = 1
    domain = constraints.real


class ExpTransform(_Plain):
    """y = exp(x)."""

    codomain = constraints.positive

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class PowerTransform(Transform):
    """y = x ** exponent, of positive numbers."""

    domain = codomain = constraints.positive
    bijective = True

    def __init__(self, exponent, cache_size=0):
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size)

    sign = property(lambda self: self.exponent.sign())

    def __eq__(self, other):
        return isinstance(other, PowerTransform) and bool(self.exponent.eq(other.exponent).all())

    __hash__ = Transform.__hash__

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape):
        return prong.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


def _off_ends(y):
    """y kept off 0 and 1."""
    limits = prong.finfo(y.dtype)
    return y.clamp(min=limits.tiny, max=1.0 - limits.eps)


class SigmoidTransform(_Plain):
    """y = 1 / (1 + exp(-x)), kept off the ends of the interval."""

    codomain = constraints.unit_interval

    def _call(self, x):
        return _off_ends(x.sigmoid())

    def _inverse(self, y):
        y = _off_ends(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y):
        return -_softplus(-x) - _softplus(x)


class SoftplusTransform(_Plain):
    """y = log(1 + exp(x)); x itself where it is large."""

    codomain = constraints.positive

    def _call(self, x):
        return _softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y):
        return -_softplus(-x)


class TanhTransform(_Plain):
    """y = tanh(x); its inverse loses what rounding to 1 loses, unless the pair is cached."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return prong.atanh(y)

    def log_abs_det_jacobian(self, x, y):
        return 2.0 * (math.log(2.0) - x - _softplus(-2.0 * x))


class AbsTransform(_WithoutParameters):
    """y = |x|; the inverse gives the positive one."""

    domain, codomain = constraints.real, constraints.positive

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class AffineTransform(Transform):
    """y = loc + scale * x."""

    bijective = True

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    event_dim = property(lambda self: self._event_dim)

    @property
    def domain(self):
        return widened(constraints.real, self._event_dim)

    codomain = domain

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self._event_dim, cache_size=cache_size)

    def __eq__(self, other):
        return isinstance(other, AffineTransform) and all(
            bool((prong.as_tensor(a) == prong.as_tensor(b)).all())
            for a, b in ((self.loc, other.loc), (self.scale, other.scale))
        )

    __hash__ = Transform.__hash__

    @property
    def sign(self):
        scale = self.scale
        return scale.sign() if isinstance(scale, Tensor) else (scale > 0) - (scale < 0)

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        scale = self.scale
        if isinstance(scale, Tensor):
            result = scale.abs().log()
        else:
            result = prong.full_like(x, math.log(abs(scale)))
        n = self._event_dim
        if n:
            result = result.expand(prong.broadcast_shapes(result.shape, x.shape[x.dim() - n :]))
            result = sum_rightmost(result, n)
        return result.expand(x.shape[: x.dim() - n])

    def forward_shape(self, shape):
        parameters = (getattr(v, "shape", ()) for v in (self.loc, self.scale))
        return prong.broadcast_shapes(shape, *parameters)

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """y = the distribution function of a distribution at x."""

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)


class SoftmaxTransform(_WithoutParameters):
    """Exponentials divided by their sum; no bijection."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x):
        probs = (x - x.max(-1, True)[0]).exp()
        return probs / probs.sum(-1, True)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape):
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape

    inverse_shape = forward_shape


def _resized(shape, dims, size):
    if len(shape) < dims:
        raise ValueError("Too few dimensions on input")
    return shape[:-dims] + Size(size)


class StickBreakingTransform(_WithoutParameters):
    """n numbers to n + 1 probabilities: each says which part of the rest is broken off."""

    domain, codomain = constraints.real_vector, constraints.simplex
    bijective = True

    def _offset(self, x):
        """log of how many pieces are still to come: zeros make pieces of one size."""
        return prong.arange(x.shape[-1], 0, -1, dtype=x.dtype).log()

    def _call(self, x):
        z = _off_ends((x - self._offset(x)).sigmoid())
        rest = (1 - z).cumprod(-1)
        one = prong.ones_like(z[..., :1])
        return prong.cat([z, one], -1) * prong.cat([one, rest], -1)

    def _inverse(self, y):
        front = y[..., :-1]
        rest = (1 - front.cumsum(-1)).clamp(min=prong.finfo(y.dtype).tiny)
        return front.log() - rest.log() + self._offset(front)

    def log_abs_det_jacobian(self, x, y):
        x = x - self._offset(x)
        return (-x + prong.nn.functional.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        return _resized(shape, 1, [shape[-1] + 1] if shape else [])

    def inverse_shape(self, shape):
        return _resized(shape, 1, [shape[-1] - 1] if shape else [])


class LowerCholeskyTransform(_WithoutParameters):
    """Any matrix to a lower triangular one of positive diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(LowerCholeskyTransform):
    """Any matrix to a positive definite one, by its Cholesky factor."""

    codomain = constraints.positive_definite

    def _call(self, x):
        factor = super()._call(x)
        return factor @ factor.mT

    def _inverse(self, y):
        return super()._inverse(prong.linalg.cholesky(y))


class CorrCholeskyTransform(_WithoutParameters):
    """n (n - 1) / 2 numbers to the Cholesky factor of an n by n correlation matrix."""

    domain, codomain = constraints.real_vector, constraints.corr_cholesky
    bijective = True

    def _below(self, n):
        return prong.tril_indices(n, n, -1)

    def _size(self, count):
        n = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return n

    def _rests(self, r):
        """Per row, what of its unit length is left before each column, squared."""
        left = (1 - r.square()).cumprod(-1)
        return prong.cat([prong.ones_like(left[..., :1]), left[..., :-1]], -1)

    def _call(self, x):
        n = self._size(x.shape[-1])
        eps = prong.finfo(x.dtype).eps
        r = x.tanh().clamp(min=-1 + eps, max=1 - eps)
        row, column = self._below(n)
        square = x.new_zeros(x.shape[:-1] + (n, n))
        square[..., row, column] = r
        square = square + prong.eye(n, dtype=x.dtype)
        return square * self._rests(square.tril(-1)).sqrt()

    def _inverse(self, y):
        n = y.shape[-1]
        used = y.square().cumsum(-1)
        left = prong.cat([prong.ones_like(used[..., :1]), 1 - used[..., :-1]], -1)
        row, column = self._below(n)
        part, left = y[..., row, column], left[..., row, column]
        return prong.atanh(part / left.clamp(min=prong.finfo(y.dtype).tiny).sqrt())

    def log_abs_det_jacobian(self, x, y):
        # dy/dx of an element: the root of what is left before it, times tanh's slope.
        n = y.shape[-1]
        left = 1 - y.square().cumsum(-1)
        row, column = self._below(n)
        inside = column + 1 < row  # what is left behind the element, where another one follows
        behind = left[..., row[inside], column[inside]].log().sum(-1)
        slope = -2 * (x + _softplus(-2 * x) - math.log(2.0)).sum(-1)
        return 0.5 * behind + slope

    def forward_shape(self, shape):
        n = self._size(shape[-1]) if shape else 0
        return _resized(shape, 1, [n, n])

    def inverse_shape(self, shape):
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return _resized(shape, 2, [shape[-1] * (shape[-1] - 1) // 2])


class _Parts(Transform):
    """Slices of a value along a dimension, each through a transform of its own."""

    def __init__(self, tseq, dim=0, cache_size=0):
        if not all(isinstance(t, Transform) for t in tseq):
            raise TypeError(f"{type(self).__name__} is made of transforms, not {tseq}")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) if cache_size else t for t in tseq]
        self.dim = dim

    bijective = property(lambda self: all(t.bijective for t in self.transforms))

    def _pairs(self, *values):
        slices = zip(*(self._split(value) for value in values), strict=True)
        return zip(self.transforms, slices, strict=True)

    def _call(self, x):
        return self._join([t(part) for t, (part,) in self._pairs(x)])

    def _inverse(self, y):
        return self._join([t.inv(part) for t, (part,) in self._pairs(y)])


class CatTransform(_Parts):
    """Transforms of pieces of the given lengths."""

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)

    event_dim = property(lambda self: max(t.event_dim for t in self.transforms))
    length = property(lambda self: sum(self.lengths))

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _split(self, value):
        return value.split(self.lengths, self.dim)

    def _join(self, parts):
        return prong.cat(parts, self.dim)

    def _of_parts(self, which):
        return constraints.cat([getattr(t, which) for t in self.transforms], self.dim, self.lengths)

    domain = property(lambda self: self._of_parts("domain"))
    codomain = property(lambda self: self._of_parts("codomain"))

    def log_abs_det_jacobian(self, x, y):
        terms = []
        for t, (a, b) in self._pairs(x, y):
            jacobian = t.log_abs_det_jacobian(a, b)
            terms.append(sum_rightmost(jacobian, self.event_dim - t.event_dim))
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return prong.cat(terms, dim) if dim < 0 else sum(terms)


class StackTransform(_Parts):
    """Transforms of the slices along a dimension."""

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _split(self, value):
        return value.unbind(self.dim)

    def _join(self, parts):
        return prong.stack(parts, self.dim)

    def _of_parts(self, which):
        return constraints.stack([getattr(t, which) for t in self.transforms], self.dim)

    domain = property(lambda self: self._of_parts("domain"))
    codomain = property(lambda self: self._of_parts("codomain"))

    def log_abs_det_jacobian(self, x, y):
        return self._join([t.log_abs_det_jacobian(a, b) for t, (a, b) in self._pairs(x, y)])


__getattr__ = _names.module_getattr(__name__)
