"""torch.autograd.functional: Jacobians, Hessians and products with them, of functions of tensors.

They stand on prong.func, and differ in their calls: inputs and outputs are tensors or tuples of
them, and results keep a history only with ``create_graph``.
"""

from prong import _core
from prong._core import Tensor
from prong.func.batching import vmap
from prong.func.gradients import _basis, _gradients, _outside, _Run


def _as_tuple(value, what: str, name: str) -> tuple:
    given = value if isinstance(value, (tuple, list)) else (value,)
    for i, x in enumerate(given):
        if not isinstance(x, Tensor):
            where = (
                f"Value at index {i} has type {type(x)}" if value is given else f"type {type(x)}"
            )
            raise TypeError(
                f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the "
                f"given {what} has {where}."
            )
    return tuple(given)


def _run(name: str, func, inputs) -> tuple:
    """(the run, whether inputs were a tuple, whether outputs are)"""
    given = _as_tuple(inputs, "inputs", name)
    were_tuple = []

    def call(nest):
        output = func(*nest)
        were_tuple.append(isinstance(output, (tuple, list)))
        return _as_tuple(output, "outputs of the user-provided function", name)

    run = _Run(name, call, given, False)
    return run, isinstance(inputs, (tuple, list)), were_tuple[0]


def _check_strict(run: _Run, strict: bool) -> None:
    if not strict:
        return
    for i, y in enumerate(run.outputs):
        found = (None,) * len(run.inputs)
        if y.requires_grad:
            found = _core._run_backward(
                (y,), (_core.functions["zeros_like"](y),), True, False, run.inputs, True, True
            )
        for j, g in enumerate(found):
            if g is None:
                raise RuntimeError(
                    f"Output {i} of the user-provided function is independent of input {j}. This is "
                    "not allowed in strict mode."
                )


def _vectors(given, like: list, name: str, required: bool) -> list:
    if given is None:
        if required and not (len(like) == 1 and like[0].numel() == 1):
            raise RuntimeError(
                f"The vector v can only be None if the user-provided function returns a single "
                f"Tensor with a single element ({name})."
            )
        return [_core.functions["ones_like"](x.detach()) for x in like]
    vectors = list(_as_tuple(given, "v", name))
    if len(vectors) != len(like):
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}."
        )
    for i, (v, x) in enumerate(zip(vectors, like, strict=True)):
        if v.shape != x.shape:
            which = f"Entry {i} in v" if len(like) > 1 else "v"
            raise RuntimeError(f"{which} has invalid size: should be {x.shape} but got {v.shape}.")
    return vectors


def _result(values, run: _Run, create_graph: bool, is_tuple: bool):
    out = tuple(
        _outside(v, [], True) if create_graph else (v.detach() if v.requires_grad else v)
        for v in values
    )
    return out if is_tuple else out[0]


def _own_value(run: _Run, create_graph: bool, is_tuple: bool):
    return _result(run.outputs if create_graph else run.value, run, create_graph, is_tuple)


def jacobian(
    func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"
):
    """The Jacobian of ``func`` at ``inputs``: for each output and each input, a tensor of the sizes
    of both. ``strategy`` "forward-mode" works by columns, and needs ``vectorize``."""
    if strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function '
            'has more outputs than inputs, "forward-mode" tends to be more performant. Otherwise, '
            'prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError(
            'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` '
            "are not supported together (yet)."
        )
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError(
            'torch.autograd.functional.jacobian: `strategy="forward-mode"` needs `vectorize=True`.'
        )
    run, takes_tuple, gives_tuple = _run("jacobian", func, inputs)
    _check_strict(run, strict)
    rows = []
    columns = [_columns(run, k) for k in range(len(run.inputs))] if strategy[0] == "f" else None
    for i, y in enumerate(run.outputs):
        if columns:
            parts = [c[i] for c in columns]
        else:
            parts = _rows(run, i, y, create_graph)
        rows.append(_result(parts, run, create_graph, takes_tuple))
    return tuple(rows) if gives_tuple else rows[0]


def _rows(run: _Run, i: int, y: Tensor, create_graph: bool) -> list:
    if y.numel() == 0:
        return [x.new_zeros([*y.shape, *x.shape]) for x in run.inputs]
    pull = lambda cotangent: tuple(run.pull(i, [cotangent], create_graph))  # noqa: E731
    parts = vmap(pull)(_basis(y.detach()))
    return [p.reshape([*y.shape, *x.shape]) for p, x in zip(parts, run.inputs, strict=True)]


def _columns(run: _Run, k: int) -> list:
    linear, x = run.linear(), run.inputs[k]
    if x.numel() == 0:
        return [y.new_zeros([*y.shape, *x.shape]) for y in run.outputs]
    push = lambda tangent: tuple(linear.push({k: tangent}, False))  # noqa: E731
    parts = vmap(push)(_basis(x.detach()))
    return [
        p.movedim(0, -1).reshape([*y.shape, *x.shape])
        for p, y in zip(parts, run.outputs, strict=True)
    ]


def _scalar(name: str, func):
    def call(*inputs):
        output = func(*inputs)
        if not isinstance(output, Tensor):
            raise RuntimeError(f"The function given to {name} should return a single Tensor")
        if output.numel() != 1:
            raise RuntimeError(
                "The Tensor returned by the function given to "
                f"{name} should contain a single element"
            )
        return output.reshape([])

    return call


def hessian(
    func,
    inputs,
    create_graph=False,
    strict=False,
    vectorize=False,
    outer_jacobian_strategy="reverse-mode",
):
    """The second derivatives of ``func``, which gives one number, at ``inputs``."""
    scalar = _scalar("hessian", func)
    takes_tuple = isinstance(inputs, (tuple, list))

    def gradient(*given):
        found = jacobian(scalar, given, create_graph=True)
        return tuple(found)

    rows = jacobian(
        gradient,
        inputs if takes_tuple else (inputs,),
        create_graph,
        strict,
        vectorize,
        outer_jacobian_strategy,
    )
    return rows if takes_tuple else rows[0][0]


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(``func(*inputs)``, the product of the vector ``v`` with its Jacobian)."""
    run, takes_tuple, gives_tuple = _run("vjp", func, inputs)
    _check_strict(run, strict)
    found = run.pull(None, _vectors(v, run.outputs, "vjp", True), create_graph)
    return (
        _own_value(run, create_graph, gives_tuple),
        _result(found, run, create_graph, takes_tuple),
    )


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(``func(*inputs)``, the product of its Jacobian with the vector ``v``)."""
    run, _, gives_tuple = _run("jvp", func, inputs)
    _check_strict(run, strict)
    tangents = dict(enumerate(_vectors(v, run.inputs, "jvp", True)))
    moved = run.linear().push(tangents, create_graph)
    return (
        _own_value(run, create_graph, gives_tuple),
        _result(moved, run, create_graph, gives_tuple),
    )


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(``func(*inputs)``, the product of the vector ``v`` with its second derivatives)."""
    run, takes_tuple, gives_tuple = _run("vhp", _scalar("vhp", func), inputs)
    _check_strict(run, strict)
    vectors = _vectors(v, run.inputs, "vhp", True)
    first = run.pull(None, [None], True)
    found = _gradients(first, run.inputs, vectors, True, create_graph)
    return (
        _own_value(run, create_graph, gives_tuple),
        _result(found, run, create_graph, takes_tuple),
    )


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(``func(*inputs)``, the product of its second derivatives with the vector ``v``)."""
    return vhp(func, inputs, v, create_graph, strict)  # they are symmetric
