"""Gradients of every op that has them, on its samples in float64: against finite differences, twice
differentiated, in place, of strided and empty inputs, and against PyTorch where it is installed."""

import functools

import prong
import pytest
from prong.autograd import grad, gradcheck, gradgradcheck
from samples import bind, call_of, convert, not_contiguous, to_numpy
from test_ops import OPS, call_torch, facet, flat, has_values, inplace_form, run, torch_function

try:
    import torch
except ImportError:  # the oracle of one test
    torch = None

BY_NAME = {op["name"]: op for op in OPS}
# Samples without a gradient: what backward says of them.
NO_GRADIENT = {
    ("linalg_qr", "t(4, 3), 'complete'"): "not differentiable when mode='complete'",
    ("linalg_qr", "t(4, 3), 'r'"): "depends on Q, which is not computed",
    ("embedding_backward", "t(3, 4), torch.tensor([1, 0, 1]), 2, 0, True"): (
        "double backward is not supported with scale_grad_by_freq"
    ),
    ("cross_entropy_rows_backward", "t(3), t(3, 5), index(3, high=5), pos(5), 1, 'none'"): (
        "class weights have no second derivative"
    ),
}
# Ops that read one triangle of a matrix: their gradient is that of a symmetric change, which a
# change of one element is not.
OF_TRIANGLES = {
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "linalg_cholesky",
    "linalg_cholesky_ex",
    "linalg_eigh",
    "linalg_eigvalsh",
    "linalg_pinv",
}
# What they keep for the way back counts as a constant.
OF_LAYERS = {"recurrent_layer", "recurrent_backward"}


def differentiates(op) -> bool:
    if op["name"] in OF_TRIANGLES | OF_LAYERS:
        return False
    return (op["has_grad"] or op["composite"]) and has_values(op) and not op["inplace_of"]


def in_double(op, sample):
    """The sample in float64; tensors that gradients flow to are leaves that ask for them."""
    args, kwargs = call_of(op, sample)
    constants = {
        id(tensor)
        for name, value in bind(op, args, kwargs).items()
        for tensor in flat([value])
        if not op["composite"] and name not in op["grad_arguments"]
    }

    def change(tensor):
        if not tensor.is_floating_point():
            return tensor
        return tensor.detach().double().requires_grad_(id(tensor) not in constants)

    def wide(value):
        is_float = isinstance(value, prong.dtype) and value.is_floating_point
        return prong.float64 if is_float else value

    return convert(args, change), {
        name: wide(value) for name, value in convert(kwargs, change).items()
    }


def leaves_of(args, kwargs) -> list:
    """What is differentiated to."""
    return [v for v in flat([list(args), list(kwargs.values())]) if is_wanted(v)]


def is_wanted(value) -> bool:
    return isinstance(value, prong.Tensor) and value.requires_grad


def apply(op, args, kwargs):
    """The op; one that writes an argument writes a copy."""
    if op["mutates"] >= 0:
        named = bind(op, args, kwargs)
        name = list(named)[op["mutates"]]
        if args and op["mutates"] < len(args):
            args = (*args[: op["mutates"]], named[name].clone(), *args[op["mutates"] + 1 :])
        else:
            kwargs = {**kwargs, name: named[name].clone()}
    return run(op, args, kwargs)


def as_function(op, args, kwargs):
    """(function of the leaves, the leaves) for gradcheck."""
    leaves = leaves_of(args, kwargs)

    def function(*values):
        of = {id(leaf): value for leaf, value in zip(leaves, values, strict=True)}
        swap = lambda t: of.get(id(t), t)  # noqa: E731
        return apply(op, convert(args, swap), convert(kwargs, swap))

    return function, tuple(leaves)


@functools.cache
def _has_gradient(name: str, sample: str) -> bool:
    op = BY_NAME[name]
    args, kwargs = in_double(op, sample)
    if (name, sample) in NO_GRADIENT or not leaves_of(args, kwargs):
        return False
    outputs = [t for t in flat(apply(op, args, kwargs)) if isinstance(t, prong.Tensor)]
    is_coarse = any(t.is_floating_point() and t.dtype is not prong.float64 for t in outputs)
    return any(t.requires_grad for t in outputs) and not is_coarse


def has_gradient(op, sample) -> bool:
    """A result requires grad, and is fine enough for finite differences."""
    return _has_gradient(op["name"], sample)


def gradient_facet(applies, to_sample=lambda op, sample: True):
    """A facet of the samples that have gradients."""
    return facet(applies, lambda op, sample: has_gradient(op, sample) and to_sample(op, sample))


@facet(
    lambda op: any(name == op["name"] for name, _ in NO_GRADIENT),
    lambda op, sample: (op["name"], sample) in NO_GRADIENT,
)
def test_what_has_no_gradient_says_so(op, sample):
    with pytest.raises((NotImplementedError, RuntimeError)) as raised:
        gradients(op, *in_double(op, sample))
    assert NO_GRADIENT[op["name"], sample] in str(raised.value)


@gradient_facet(differentiates)
def test_finite_differences(op, sample):
    function, leaves = as_function(op, *in_double(op, sample))
    assert gradcheck(function, leaves, eps=1e-6, atol=1e-6, rtol=1e-5)


# Samples without a second derivative: what the pass over the first one's tape says of them.
_WEIGHTS = "class weights have no second derivative in nll_loss and cross_entropy"
NO_SECOND_DERIVATIVE = {
    ("nll_loss", "t(3, 5), index(3, high=5), pos(5), 1, 'sum'"): _WEIGHTS,
    ("nll_loss", "t(2, 5, 3), index(2, 3, high=5), pos(5), 1"): _WEIGHTS,
    ("cross_entropy_rows", "t(3, 5), index(3, high=5), pos(5), 1, 'none'"): _WEIGHTS,
    ("cross_entropy", "t(3, 5), index(3, high=5), pos(5), 1, 'mean', 0.1"): _WEIGHTS,
}


@gradient_facet(lambda op: differentiates(op) and not op["no_grad"])
def test_second_derivatives(op, sample):
    function, leaves = as_function(op, *in_double(op, sample))
    if reason := NO_SECOND_DERIVATIVE.get((op["name"], sample)):
        with pytest.raises(NotImplementedError, match=reason):
            gradgradcheck(function, leaves, fast_mode=True)
        return
    assert gradgradcheck(function, leaves, eps=1e-6, atol=1e-6, rtol=1e-5, fast_mode=True)


def gradients(op, args, kwargs, call=None):
    """(results, gradients to all leaves), of a weighted sum of the floating results."""
    results = [
        t
        for t in flat((call or apply)(op, args, kwargs))
        if isinstance(t, prong.Tensor) and t.requires_grad
    ]
    return results, grad(
        results, leaves_of(args, kwargs), [weights(t) for t in results], allow_unused=True
    )


def weights(tensor):
    places = prong.arange(tensor.numel(), dtype=prong.float64)
    return prong.cos(places * 1.3).reshape(tensor.shape).to(tensor.dtype)


def assert_close(got, want, tolerance=1e-9):
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert (g is None) == (w is None)
        if g is not None:
            assert g.shape == w.shape and g.dtype is w.dtype
            assert prong.allclose(g, w, tolerance, tolerance, True), f"{g} is not {w}"


@gradient_facet(lambda op: differentiates(op) and not op["base_name"].startswith("as_strided"))
def test_not_contiguous(op, sample):
    args, kwargs = in_double(op, sample)
    strided = convert(
        (args, kwargs),
        lambda t: not_contiguous(t.detach()).requires_grad_(t.requires_grad),
    )
    try:
        got = gradients(op, *strided)[1]
    except RuntimeError as error:
        if op["base_name"].startswith("view") and ("view" in str(error) or "stride" in str(error)):
            return  # said as it should: a view of this memory does not exist
        raise
    assert_close(got, gradients(op, args, kwargs)[1])


def fits_in_place(op, sample) -> bool:
    """The sample begins with a floating tensor, of the result's shape."""
    args, kwargs = in_double(op, sample)
    return bool(args) and is_wanted(args[0]) and run(op, args, kwargs).shape == args[0].shape


@gradient_facet(lambda op: differentiates(op) and op["spelling"]["inplace"], fits_in_place)
def test_in_place(op, sample):
    args, kwargs = in_double(op, sample)
    want = gradients(op, args, kwargs)[1]

    def write(op, args, kwargs):
        target = args[0].clone()
        inplace_form(op)(target, *args[1:], **kwargs)
        return target

    def write_view(op, args, kwargs):
        whole = args[0] * prong.ones([2] + [1] * args[0].dim(), dtype=prong.float64)
        inplace_form(op)(whole[0], *args[1:], **kwargs)
        return whole[0]

    assert_close(gradients(op, args, kwargs, write)[1], want)
    assert_close(gradients(op, args, kwargs, write_view)[1], want)


# Where PyTorch's gradient is another, and why.
OTHER_IN_PYTORCH = {
    "linalg_eig": "eigenvectors have no angle of their own, and it asks for one to be used",
    "linalg_svd": "singular vectors have no sign of their own",
    "ldexp": "with an integer exponent its factor 2^other is truncated to an integer",
    "scatter.reduce": "has no gradient",
    "scatter.value_reduce": "has no gradient",
    "svd": "the signs of its vectors, which the gradient depends on, may be others",
    "view.dtype": "its view as another dtype has no gradient, not even as its own dtype",
}


# Arguments that PyTorch has no gradient to: there they are constants.
CONSTANT_IN_PYTORCH = {
    "binary_cross_entropy": ("weight",),
    "binary_cross_entropy_with_logits": ("weight", "pos_weight"),
    "cross_entropy": ("weight",),
    "nll_loss": ("weight",),
}


def is_in_pytorch(op) -> bool:
    return torch is not None and op["mutates"] < 0 and torch_function(torch, op) is not None


@pytest.mark.needs_torch
@gradient_facet(
    lambda op: differentiates(op) and op["name"] not in OTHER_IN_PYTORCH and is_in_pytorch(op)
)
def test_agrees_with_pytorch(op, sample):
    call = torch_function(torch, op)
    args, kwargs = in_double(op, sample)
    for name in CONSTANT_IN_PYTORCH.get(op["name"], ()):
        if (constant := bind(op, args, kwargs)[name]) is not None:
            constant.requires_grad_(False)
    leaves = leaves_of(args, kwargs)
    theirs = {id(t): torch.from_numpy(to_numpy(t.detach()).copy()).requires_grad_() for t in leaves}
    made = lambda t: theirs.get(id(t), t)  # noqa: E731
    want = call_torch(torch, call, op, args, kwargs, made)
    want = [t for t in flat(want) if isinstance(t, torch.Tensor) and t.requires_grad]
    results, got = gradients(op, args, kwargs)
    assert len(want) == len(results), "other results have gradients"
    want = torch.autograd.grad(
        want,
        list(theirs.values()),
        [torch.from_numpy(to_numpy(weights(t))) for t in results],
        allow_unused=True,
    )
    for g, w in zip(got, want, strict=True):
        if w is None:
            assert g is None or not bool((g != 0).any())
            continue
        g = prong.zeros(list(w.shape), dtype=prong.float64) if g is None else g
        assert_close([g], [prong.from_numpy(w.contiguous().numpy())], 1e-7)
