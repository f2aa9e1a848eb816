"""Parametrizations that are ready: weight_norm, spectral_norm, orthogonal."""

import prong
from prong import Tensor, _names
from prong.nn import functional as F
from prong.nn.module import Module

from . import parametrize
from .norm_hooks import dim_of_outputs, norm_except_dim, scaled_weight


class _WeightNorm(Module):
    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return scaled_weight(weight_v, weight_g, self.dim)

    def right_inverse(self, weight):
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """Splits a weight into its length (original0) and its direction (original1)."""
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    return module


class _SpectralNorm(Module):
    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(
                "Dimension out of range (expected to be in range of "
                f"[-{ndim}, {ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight)
            u = matrix.new_empty(matrix.size(0)).normal_(0, 1)
            v = matrix.new_empty(matrix.size(1)).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _matrix(self, weight):
        return weight.movedim(self.dim, 0).flatten(1)

    def _power_method(self, matrix, count):
        with prong.no_grad():
            for _ in range(count):
                F.normalize(prong.mv(matrix, self._v), dim=0, eps=self.eps, out=self._u)
                F.normalize(prong.mv(matrix.t(), self._u), dim=0, eps=self.eps, out=self._v)

    def forward(self, weight):
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()
        return weight / prong.vdot(u, prong.mv(matrix, v))

    def right_inverse(self, value):
        return value


def _tensor_of(module, name):
    found = getattr(module, name, None)
    if not isinstance(found, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return found


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divides a weight by its largest singular value, kept track of by power iteration."""
    weight = _tensor_of(module, name)
    dim = dim_of_outputs(module) if dim is None else dim
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    parametrize.register_parametrization(module, name, made)
    return module


class _Orthogonal(Module):
    """A matrix with orthonormal columns (or rows): from a skew matrix, or from reflections.

    With ``base`` (a trivialization) what is learnt is a turn away from it, so that any matrix can be set.
    """

    def __init__(self, weight, orthogonal_map, use_trivialization):
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X):
        rows, columns = X.size(-2), X.size(-1)
        turned = rows < columns
        if turned:
            X, rows, columns = X.mT, columns, rows
        Q = self._reflected(X) if self.orthogonal_map == "householder" else self._turned(X)
        if hasattr(self, "base"):
            Q = self.base @ Q
        return Q.mT if turned else Q

    def _turned(self, X):
        rows, columns = X.size(-2), X.size(-1)
        A = X.tril()
        if rows != columns:
            A = prong.cat([A, A.new_zeros([*A.shape[:-1], rows - columns])], -1)
        A = A - A.mH
        if self.orthogonal_map == "matrix_exp":
            Q = prong.linalg.matrix_exp(A)
        else:
            eye = prong.eye(rows, dtype=A.dtype)
            Q = prong.linalg.solve(eye - 0.5 * A, eye + 0.5 * A)
        return Q[..., :columns]

    @staticmethod
    def _reflected(X):
        # I - tau v v^T is a reflection if tau = 2 / |v|^2; v is 1 on the diagonal, X below it.
        below = X.tril(-1)
        tau = 2.0 / (1.0 + (below * below).sum(-2))
        signs = X.diagonal(dim1=-2, dim2=-1).to(prong.int32).to(X.dtype)
        return prong.linalg.householder_product(below, tau) * signs.unsqueeze(-2)

    def right_inverse(self, Q):
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. "
                f"Got a tensor of shape {Q.shape}."
            )
        tall = Q.mT if Q.size(-2) < Q.size(-1) else Q
        if not hasattr(self, "base"):
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley "
                    "parametrizations when use_trivialization=False."
                )
            packed = _reflections(tall)
            return packed.mT if tall is not Q else packed
        missing = tall.size(-2) - tall.size(-1)
        if missing:
            noise = prong.randn([*tall.shape[:-1], missing], dtype=Q.dtype)
            self.base = _orthonormal(prong.cat([tall, noise], -1))
        else:
            self.base = tall.clone() if _is_orthonormal(tall) else _orthonormal(tall)
        made = prong.zeros_like(Q)
        made.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return made


def _reflections(Q):
    """Vectors below the diagonal whose reflections, times the signs on it, give the columns of Q."""
    packed = Q.clone()
    for k in range(Q.size(-1)):
        column = packed[..., k:, k]
        first, rest = column[..., :1], column[..., 1:]
        length = column.norm(2, -1, keepdim=True)
        done = rest.norm(2, -1, keepdim=True) == 0
        end = prong.where(first >= 0, -length, length)
        v = prong.cat([prong.ones_like(first), rest / prong.where(done, 1.0, first - end)], -1)
        tau = prong.where(done, 0.0, (end - first) / prong.where(done, 1.0, end))
        below = packed[..., k:, k + 1 :]
        below -= tau.unsqueeze(-1) * v.unsqueeze(-1) * (v.unsqueeze(-2) @ below)
        # A column that is there already needs no reflection, but this form has one: it turns the sign.
        sign = prong.where(done, -first.sign(), end.sign())
        packed[..., k:, k] = prong.cat([sign, v[..., 1:]], -1)
    return packed


def _is_orthonormal(Q):
    eye = prong.eye(Q.size(-1), dtype=Q.dtype)
    error = 10.0 * Q.size(-2) * prong.finfo(Q.dtype).eps
    return prong.allclose(Q.mH @ Q, eye, atol=error)


def _orthonormal(A):
    """The orthogonal matrix nearest in the sense of QR, with R's diagonal positive."""
    Q, R = prong.linalg.qr(A)
    return Q * R.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """Keeps a matrix (or a batch of them) orthogonal."""
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization)
    parametrize.register_parametrization(module, name, made, unsafe=True)
    return module


__getattr__ = _names.module_getattr("prong.nn.utils.parametrizations")
