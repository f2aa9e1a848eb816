"""Gradients of every op that has them, on its samples in float64: against finite differences, twice
differentiated, in place, of strided and empty inputs, and against PyTorch where it is installed."""

import prong
import pytest
from prong.autograd import grad, gradcheck, gradgradcheck
from samples import bind, call_of, convert, not_contiguous, to_numpy
from test_ops import call_torch, facet, flat, has_values, inplace_form, run, torch_function


def gradient_facet(applies):
    """As facet; ops that a gradient goes through and that say why they have none skip a sample."""

    def decorate(check):
        def checked(op, sample):
            try:
                check(op, sample)
            except NotImplementedError as error:
                pytest.skip(str(error))
            except RuntimeError as error:
                if "derivative for prong::" in str(error) and "is not implemented: " in str(error):
                    pytest.skip(str(error))
                raise

        checked.__doc__ = check.__doc__
        return facet(applies)(checked)

    return decorate


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
NOT_YET = {
    "linalg_qr": "mode 'r' has no gradient, and does not say so",
}


def differentiates(op) -> bool:
    if op["name"] in OF_TRIANGLES | OF_LAYERS or op["name"] in NOT_YET:
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


def checked_call(op, sample):
    """Arguments, or a skip where the sample has no gradient to check."""
    args, kwargs = in_double(op, sample)
    if not leaves_of(args, kwargs):
        pytest.skip("no floating argument")
    outputs = [t for t in flat(apply(op, args, kwargs)) if isinstance(t, prong.Tensor)]
    if not any(t.requires_grad for t in outputs):
        pytest.skip("no floating result")
    if any(t.is_floating_point() and t.dtype is not prong.float64 for t in outputs):
        pytest.skip("the result is too coarse for finite differences")
    return args, kwargs


@gradient_facet(differentiates)
def test_finite_differences(op, sample):
    function, leaves = as_function(op, *checked_call(op, sample))
    assert gradcheck(function, leaves, eps=1e-6, atol=1e-6, rtol=1e-5)


@gradient_facet(lambda op: differentiates(op) and not op["no_grad"])
def test_second_derivatives(op, sample):
    function, leaves = as_function(op, *checked_call(op, sample))
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
    args, kwargs = checked_call(op, sample)
    strided = convert(
        (args, kwargs),
        lambda t: not_contiguous(t.detach()).requires_grad_(t.requires_grad),
    )
    try:
        got = gradients(op, *strided)[1]
    except RuntimeError as error:
        if op["base_name"].startswith("view") and ("view" in str(error) or "stride" in str(error)):
            pytest.skip("a view of this memory does not exist")
        raise
    assert_close(got, gradients(op, args, kwargs)[1])


@gradient_facet(lambda op: differentiates(op) and op["spelling"]["inplace"])
def test_in_place(op, sample):
    args, kwargs = checked_call(op, sample)
    if not args or not is_wanted(args[0]):
        pytest.skip("the sample does not begin with a floating tensor")
    results, want = gradients(op, args, kwargs)
    if results[0].shape != args[0].shape:
        pytest.skip("the result does not fit into the argument")

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
    "ldexp": "with an integer exponent its factor 2^other is truncated to an integer",
    "view.dtype": "its view as another dtype has no gradient, not even as its own dtype",
}


@pytest.mark.needs_torch
@gradient_facet(lambda op: differentiates(op) and op["name"] not in OTHER_IN_PYTORCH)
def test_agrees_with_pytorch(op, sample):
    torch = pytest.importorskip("torch")
    call = torch_function(torch, op)
    if call is None or op["mutates"] >= 0:
        pytest.skip("PyTorch has no function of that name")
    args, kwargs = checked_call(op, sample)
    leaves = leaves_of(args, kwargs)
    theirs = {id(t): torch.from_numpy(to_numpy(t.detach()).copy()).requires_grad_() for t in leaves}
    made = lambda t: theirs.get(id(t), t)  # noqa: E731
    try:
        want = call_torch(torch, call, op, args, kwargs, made)
    except RuntimeError as error:
        if "is not differentiable with respect to argument" in str(error):
            pytest.skip(str(error))
        raise
    want = [t for t in flat(want) if isinstance(t, torch.Tensor) and t.requires_grad]
    results, got = gradients(op, args, kwargs)
    assert len(want) == len(results), "other results have gradients"
    try:
        want = torch.autograd.grad(
            want,
            list(theirs.values()),
            [torch.from_numpy(to_numpy(weights(t))) for t in results],
            allow_unused=True,
        )
    except RuntimeError as error:
        if "not implemented" in str(error):
            pytest.skip(str(error))
        raise
    for g, w in zip(got, want, strict=True):
        if w is None:
            assert g is None or not bool((g != 0).any())
            continue
        g = prong.zeros(list(w.shape), dtype=prong.float64) if g is None else g
        assert_close([g], [prong.from_numpy(w.contiguous().numpy())], 1e-7)
