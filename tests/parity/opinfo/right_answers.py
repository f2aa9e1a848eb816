"""Where more than one answer is right: what still has to hold. Called by op_samples.py.

None of these lets a sample go unchecked: each says of Prong's result what PyTorch's documentation
says of its own.
"""

import torch
from torch.testing import assert_close

WIDE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}


# ── which of several equal elements is named ──

# Where the argument dim stands, counted without the input, and what it is by default.
_DIM = {
    "argsort": (0, -1),
    "kthvalue": (1, -1),
    "median": (0, None),
    "mode": (0, -1),
    "nanmedian": (0, None),
    "sort": (0, -1),
    "topk": (1, -1),
}


def _dim_of(name: str, sample):
    place, otherwise = _DIM[name]
    if "dim" in sample.kwargs:
        return sample.kwargs["dim"]
    return sample.args[place] if len(sample.args) > place else otherwise


def _names_equal_elements(name: str, sample, got: list, want: list) -> None:
    """The values are PyTorch's, and each index names an element that equals the value."""
    assert not sample.kwargs.get("stable"), "stable=True says which of equal elements comes first"
    x, dim = sample.input, _dim_of(name, sample)
    assert len(got) == len(want) and dim is not None
    if len(got) == 2:
        assert_close(got[0], want[0], rtol=0, atol=0, equal_nan=True)
    mine, theirs = got[-1], want[-1]
    assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
    if x.dim() == 0:
        assert not mine.any()
        return
    if mine.dim() < x.dim():
        mine, theirs = mine.unsqueeze(dim), theirs.unsqueeze(dim)
    assert_close(x.gather(dim, mine), x.gather(dim, theirs), rtol=0, atol=0, equal_nan=True)
    if name in ("argsort", "sort", "topk"):  # no element twice
        order = mine.sort(dim).values
        assert not (order.diff(dim=dim) == 0).any(), "an element is named twice"


# ── factors up to signs and phases ──


def _decomposes(name: str, sample, got: list, want: list) -> None:
    """Eigenvalues are PyTorch's, eigenvectors are orthonormal and belong to them."""
    values, vectors = got
    assert_close(values, want[0], rtol=1e-4, atol=1e-4)
    assert vectors.dtype == want[1].dtype and vectors.shape == want[1].shape
    a, upper = sample.input.detach(), sample.kwargs.get("UPLO", "L") == "U"
    triangle = a.triu(1) if upper else a.tril(-1)
    a = triangle + triangle.mH + torch.diag_embed(a.diagonal(dim1=-2, dim2=-1).real).to(a.dtype)
    products = a @ vectors, vectors * values.unsqueeze(-2)
    assert_close(*products, rtol=1e-4, atol=1e-3 if a.dtype in WIDE else 1e-8)
    eye = torch.eye(a.shape[-1], dtype=a.dtype).expand_as(a)
    assert_close(vectors.mH @ vectors, eye, rtol=1e-4, atol=1e-4 if a.dtype in WIDE else 1e-8)


def _has_eigenvectors(name: str, sample, got: list, want: list) -> None:
    """Eigenvalues are PyTorch's; eigenvectors have length 1 and belong to them."""
    values, vectors = got
    tolerance = 1e-3 if want[0].dtype in WIDE else 1e-8
    assert_close(values, want[0], rtol=tolerance, atol=tolerance)
    assert vectors.dtype == want[1].dtype and vectors.shape == want[1].shape
    a = sample.input.detach().to(vectors.dtype)
    products = a @ vectors, vectors * values.unsqueeze(-2)
    assert_close(*products, rtol=tolerance, atol=tolerance)
    lengths = torch.linalg.vector_norm(vectors, dim=-2)
    assert_close(lengths, torch.ones_like(lengths), rtol=tolerance, atol=tolerance)


def _is_svd(name: str, sample, got: list, want: list) -> None:
    """Singular values are PyTorch's, vectors are orthonormal, and the three make up the matrix."""
    assert sample.kwargs.get("compute_uv", True), "there are no vectors to choose"
    u, s, v = got
    for mine, theirs in zip(got, want, strict=True):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
    v = v.mH if name == "linalg.svd" else v
    tolerance = 1e-4 if s.dtype in WIDE else 1e-8
    assert_close(s, want[1], rtol=tolerance, atol=tolerance)
    k = s.shape[-1]
    a = (u[..., :k] * s.unsqueeze(-2)) @ v[..., :k].mH
    assert_close(a, sample.input.detach(), rtol=tolerance, atol=10 * tolerance)
    for q in (u, v):
        eye = torch.eye(q.shape[-1], dtype=q.dtype).expand(*q.shape[:-2], -1, -1)
        assert_close(q.mH @ q, eye, rtol=tolerance, atol=tolerance)


# ── the order of what has none ──


def _same_set(name: str, sample, got: list, want: list) -> None:
    """The same different elements, as often; the inverse finds each of the input's."""
    options = sample.kwargs
    assert not options.get("sorted", True), "sorted=True says the order"
    dim = options.get("dim")
    for mine, theirs in zip(got, want, strict=True):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape

    def rows(results):
        values = results[0] if dim is None else results[0].movedim(dim, 0).flatten(1)
        counts = results[-1] if options.get("return_counts") else torch.zeros(len(values))
        return sorted(zip(values.tolist(), counts.tolist(), strict=True))

    assert rows(got) == rows(want)
    if options.get("return_inverse"):
        x, (values, inverse) = sample.input, got[:2]
        found = values[inverse] if dim is None else values.index_select(dim, inverse)
        assert_close(found.reshape(x.shape), x, rtol=0, atol=0)


SPECIFIED = {
    "linalg.svd": _is_svd,
    "svd": _is_svd,
    "unique": _same_set,
    **dict.fromkeys(_DIM, _names_equal_elements),
    "linalg.eig": _has_eigenvectors,
    "linalg.eigh": _decomposes,
}


def without_phase(name: str, result):
    """What of a result has a gradient that does not depend on the factor that was chosen."""
    if name in ("linalg.svd", "svd"):
        return abs(result[0]), result[1], abs(result[2])
    return (result[0], abs(result[1])) if name in ("linalg.eig", "linalg.eigh") else result


# ── of which argument one triangle is read ──

_TRIANGLE = {"cholesky_inverse": 0, "cholesky_solve": 1}


def of_one_triangle(name: str, sample) -> list:
    """The arguments, so that nothing flows back to the triangle that is not read."""
    args, place = [sample.input, *sample.args], _TRIANGLE.get(name)
    if place is not None:
        is_upper = sample.kwargs.get("upper", False)
        args[place] = args[place].triu() if is_upper else args[place].tril()
    return args


# ── narrow types ──


def widened(sample):
    """The sample in float64, or complex128."""

    def widen(value):
        if isinstance(value, torch.dtype):
            return WIDE.get(value, value)
        if value.dtype not in WIDE:
            return value
        return value.detach().to(WIDE[value.dtype]).requires_grad_(value.requires_grad)

    return sample.transform(widen)


def as_near_as_pytorch(got: list, want: list, exact: list, tolerance: dict) -> None:
    """In 16 and 32 bits, as near to PyTorch's result in 64 bits as PyTorch's own is."""
    assert len(got) == len(want) == len(exact)
    for g, w, e in zip(got, want, exact, strict=True):
        assert w.dtype in WIDE and g.dtype == w.dtype and g.shape == w.shape == e.shape
        e, g_wide, w_wide = e.detach(), g.to(e.dtype), w.detach().to(e.dtype)
        finite = w_wide.isfinite() & e.isfinite()
        assert_close(g[~finite], w.detach()[~finite], rtol=0, atol=0, equal_nan=True)
        if not finite.any():
            continue
        error, its_error = ((x - e)[finite].abs() for x in (g_wide, w_wide))
        rtol, atol = tolerance[w.dtype]
        allowed = its_error.max() + atol + rtol * e[finite].abs()
        assert (error <= allowed).all(), (
            f"errors to {error.max():.3g}, while PyTorch's are to {its_error.max():.3g}"
        )


# ── dropout ──


def check_attention_dropout(run, theirs, sample) -> None:
    """Of attention with dropout_p: each weight is dropped, or is the one without divided by 1 - p."""
    p = sample.kwargs["dropout_p"]
    query, (key, _) = sample.input, sample.args[:2]
    count = key.shape[-2]
    eye = torch.eye(count, dtype=query.dtype).expand(*key.shape[:-1], count).contiguous()
    plain = {k: v for k, v in sample.kwargs.items() if k != "dropout_p"}
    weights = theirs(query.detach(), key.detach(), eye, **plain)
    found = run(query.detach(), key.detach(), eye, **plain, dropout_p=p)
    assert found.shape == weights.shape and found.dtype == weights.dtype
    tolerance = 3e-2 if query.dtype in (torch.float16, torch.bfloat16) else 1e-4
    scaled = weights / (1 - p)
    is_kept = (found - scaled).abs() <= tolerance * (1 + scaled.abs())
    assert (is_kept | (found == 0)).all(), "a weight is neither dropped nor scaled"
    clear = scaled > 4 * tolerance  # what 0 cannot be taken for
    n, dropped = int(clear.sum()), int((found[clear] == 0).sum())
    spread = (n * p * (1 - p)) ** 0.5
    assert abs(dropped - n * p) <= 6 * spread, f"{dropped} of {n} weights are dropped at p={p}"
