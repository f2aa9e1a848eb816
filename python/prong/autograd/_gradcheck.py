"""gradcheck and gradgradcheck: gradients of the tape against finite differences, in PyTorch's
terms. Called by users and by tests/ops."""

import warnings

import prong
from prong.autograd.backward import grad


class GradcheckError(RuntimeError):
    """What gradcheck raises where gradients disagree."""


def _leaves(value) -> list:
    """The tensors of a result or an argument list."""
    if isinstance(value, prong.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _leaves(item)]
    return []


def _differentiable(value) -> list:
    return [t for t in _leaves(value) if t.is_floating_point() and t.requires_grad]


def _outputs(func, inputs) -> list:
    return [t for t in _leaves(func(*inputs)) if t.is_floating_point() and t.requires_grad]


def _check_inputs(inputs, eps) -> list:
    wanted = _differentiable(inputs)
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the "
            "them have requires_grad=True."
        )
    for i, tensor in enumerate(wanted):
        if tensor.dtype is not prong.float64 and eps < 1e-4:
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point. "
                "This check will likely fail if all the inputs are not of double precision "
                "floating point. ",
                stacklevel=3,
            )
        strides = zip(tensor.shape, tensor.stride(), strict=True)
        if any(stride == 0 and size > 1 for size, stride in strides):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs "
                "that are non-overlapping to be able to compute the numerical gradients correctly. "
                "You should call .contiguous on the input before passing it to gradcheck."
            )
    return wanted


def _numerical(func, inputs, wanted, eps) -> list:
    """For each input and output a matrix [elements of the input, elements of the output]."""
    columns = []
    for tensor in wanted:
        data = tensor.detach()
        rows = []
        for index in _indices(tensor.shape):
            middle = data[index].item()

            def set_to(value, data=data, index=index):
                data[index] = value

            set_to(middle + eps)
            above = [t.detach().clone() for t in _outputs(func, inputs)]
            set_to(middle - eps)
            below = [t.detach().clone() for t in _outputs(func, inputs)]
            set_to(middle)
            rows.append(
                [((a - b) / (2 * eps)).reshape(-1) for a, b in zip(above, below, strict=True)]
            )
        columns.append(rows)
    return columns


def _indices(shape):
    places = [()]
    for size in shape:
        places = [(*place, i) for place in places for i in range(size)]
    return places


def _analytical(outputs, wanted, number) -> list:
    """The gradients of one element of one output, for each of its elements."""
    output = outputs[number]
    rows = []
    for index in _indices(output.shape):
        direction = prong.zeros_like(output)
        direction[index] = 1
        given = grad(output, wanted, direction, retain_graph=True, allow_unused=True)
        rows.append(
            [prong.zeros_like(t) if g is None else g for t, g in zip(wanted, given, strict=True)]
        )
    return rows


def _is_close(a, b, rtol, atol) -> bool:
    return bool(prong.allclose(a.double(), b.double(), rtol, atol, True))


def _mismatch(i, j, numerical, analytical, what="Jacobian") -> str:
    return (
        f"{what} mismatch for output {j} with respect to input {i},\n"
        f"numerical:{numerical}\nanalytical:{analytical}\n"
    )


def _check_slow(func, inputs, wanted, eps, atol, rtol, nondet_tol) -> None:
    numerical = _numerical(func, inputs, wanted, eps)
    outputs = _outputs(func, inputs)  # anew: what they saved was written meanwhile
    for j, output in enumerate(outputs):
        rows = _analytical(outputs, wanted, j)
        again = _analytical(outputs, wanted, j)
        for i, tensor in enumerate(wanted):
            shape = (tensor.numel(), output.numel())
            if not all(shape):
                continue
            exact = prong.stack([row[i].reshape(-1) for row in rows], 1)
            repeated = prong.stack([row[i].reshape(-1) for row in again], 1)
            near = prong.stack([row[j] for row in numerical[i]], 0)
            if not _is_close(exact, near, rtol, atol):
                raise GradcheckError(_mismatch(i, j, near, exact))
            if not _is_close(exact, repeated, 0.0, nondet_tol):
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and "
                    "grad_output multiple times gives different values, although analytical "
                    "gradient matches numerical gradient."
                    f"The tolerance for nondeterminism was {nondet_tol}."
                )


def _direction(tensor, number):
    """Numbers between 1/2 and 3/2 that depend on the place only."""
    places = prong.arange(tensor.numel(), dtype=prong.float64)
    return (prong.sin(places * 1.7 + number) * 0.5 + 1.0).reshape(tensor.shape).to(tensor.dtype)


def _check_fast(func, inputs, wanted, eps, atol, rtol) -> None:
    """One random direction of each input against one of each output."""
    for i, tensor in enumerate(wanted):
        step = _direction(tensor, i)
        data = tensor.detach()
        middle = data.clone()
        data.copy_(middle + step * eps)
        above = [t.detach().clone() for t in _outputs(func, inputs)]
        data.copy_(middle - step * eps)
        below = [t.detach().clone() for t in _outputs(func, inputs)]
        data.copy_(middle)
        for j, output in enumerate(_outputs(func, inputs)):
            weight = _direction(output, 10 + j)
            near = (((above[j] - below[j]) / (2 * eps)) * weight).sum()
            (given,) = grad(output, [tensor], weight, retain_graph=True, allow_unused=True)
            exact = prong.zeros_like(near) if given is None else (given * step).sum()
            scale = max(1.0, float(tensor.numel() * output.numel()) ** 0.5)
            if not _is_close(exact, near, rtol, atol * scale):
                raise GradcheckError(_mismatch(i, j, near, exact, "Fast mode: Jacobian"))


def _check_undefined(outputs, wanted) -> None:
    """A gradient that never came counts as zeros."""
    for output in outputs:
        if output.grad_fn is None:
            continue
        zeros = prong.zeros_like(output)
        for i, given in enumerate(
            grad(output, wanted, zeros, retain_graph=True, allow_unused=True)
        ):
            if given is not None and given.numel() and bool((given != 0).any()):
                raise GradcheckError(
                    "Expected all input grads to be undefined or zero when all output grads are "
                    f"undefined or zero, but input {i} has another. Please look at 'Notes about "
                    "undefined output gradients' in tools/autograd/derivatives.yaml"
                )


def gradcheck(
    func,
    inputs,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of ``func`` agree with finite differences at ``inputs``: all elements
    of the Jacobian, or one random direction of it with ``fast_mode``."""
    if check_forward_ad or check_batched_forward_grad:
        raise NotImplementedError("gradcheck: prong has no forward mode to check yet")
    if check_batched_grad:
        raise NotImplementedError("gradcheck: prong has no batched backward to check yet")
    if not check_backward_ad:
        raise AssertionError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    inputs = tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)
    try:
        wanted = _check_inputs(inputs, eps)
        with prong.enable_grad():
            outputs = _outputs(func, inputs)
        if not outputs:
            _check_nothing_flows(func, inputs, wanted, eps)
            return True
        _check_dtypes(outputs, wanted, check_grad_dtypes)
        if fast_mode:
            _check_fast(func, inputs, wanted, eps, atol, rtol)
        else:
            _check_slow(func, inputs, wanted, eps, atol, rtol, nondet_tol)
        if check_undefined_grad:
            _check_undefined(_outputs(func, inputs), wanted)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check_nothing_flows(func, inputs, wanted, eps) -> None:
    """No output requires a gradient: then no input may move a floating output."""
    before = [t.detach().clone() for t in _leaves(func(*inputs)) if t.is_floating_point()]
    for i, tensor in enumerate(wanted):
        data = tensor.detach()
        middle = data.clone()
        data.add_(eps)
        after = [t for t in _leaves(func(*inputs)) if t.is_floating_point()]
        data.copy_(middle)
        for j, (a, b) in enumerate(zip(before, after, strict=True)):
            if not _is_close(a, b.detach(), 0.0, 0.0):
                raise GradcheckError(
                    f"Numerical gradient for function expected to be zero: output {j} moves with "
                    f"input {i}, but does not require grad."
                )


def _check_dtypes(outputs, wanted, is_asked) -> None:
    if not is_asked:
        return
    for output in outputs:
        given = grad(output, wanted, prong.ones_like(output), retain_graph=True, allow_unused=True)
        for i, (tensor, g) in enumerate(zip(wanted, given, strict=True)):
            if g is not None and g.dtype is not tensor.dtype:
                raise GradcheckError(
                    f"gradient of input {i} has the dtype {g.dtype}, not {tensor.dtype}"
                )


def gradgradcheck(
    func,
    inputs,
    grad_outputs=None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """gradcheck of the gradients of ``func`` themselves, as a function of the inputs and of
    ``grad_outputs`` (random ones where none are given)."""
    if check_fwd_over_rev:
        raise NotImplementedError("gradgradcheck: prong has no forward mode to check yet")
    if not check_rev_over_rev:
        raise AssertionError(
            "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True"
        )
    inputs = tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)
    _check_inputs(inputs, eps)
    with prong.enable_grad():
        outputs = _outputs(func, inputs)
    if grad_outputs is None:
        grad_outputs = tuple(_direction(t, 20 + i).requires_grad_() for i, t in enumerate(outputs))
        if gen_non_contig_grad_outputs:
            grad_outputs = tuple(
                prong.stack([g.detach(), g.detach()], -1).select(-1, 0).requires_grad_()
                for g in grad_outputs
            )
    else:
        grad_outputs = tuple(_leaves(grad_outputs))

    def gradients(*args):
        own = args[: len(inputs)]
        with prong.enable_grad():
            results = _outputs(func, own)
            given = grad(
                results,
                _differentiable(own),
                args[len(inputs) :],
                create_graph=True,
                allow_unused=True,
            )
        return tuple(g for g in given if g is not None)

    if not outputs or not any(t.requires_grad for t in gradients(*inputs, *grad_outputs)):
        return True
    return gradcheck(
        gradients,
        (*inputs, *grad_outputs),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        fast_mode=fast_mode,
        masked=masked,
    )
