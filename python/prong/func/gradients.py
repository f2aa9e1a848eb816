"""Functions differentiated: grad, vjp, jvp, and Jacobians, on the tape.

A function's inputs are made anew for it (``_begin_gradient``), so that its gradients end there;
what comes out keeps a history only where that leads further, to an outer function's inputs or to
tensors that require grad anyhow. Forward mode is the tape twice: the gradient of a function is
linear in the gradient of its outputs, and is differentiated to that.
"""

import functools

from prong import _core
from prong._core import Tensor
from prong.autograd.backward import grad as _tape_gradients
from prong.autograd.grad_mode import enable_grad
from prong.func import tree
from prong.func.batching import vmap


def _begin(value):
    """Tensors of a nest as inputs to be differentiated to."""
    leaves, spec = tree.flatten(value)
    for x in leaves:
        if not isinstance(x, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
    return [_core._begin_gradient(x) for x in leaves], spec


def _outside(value, own, keeps: bool):
    """What a caller sees of a function's result."""

    def one(t):
        if not keeps:
            return t.detach() if t.requires_grad else t
        return _core._outside(t, own)

    return tree.map_tensors(one, value)


def _matters_outside(outputs: list, own: list) -> bool:
    """Whether gradients of these may be differentiated in turn by somebody further out."""
    if not _core.is_grad_enabled():
        return False
    return _core._vmap_level() > 0 or any(
        x.requires_grad and _core._outside(x, own).requires_grad for x in outputs
    )


def _gradients(outputs, inputs, given, keeps_graph, create_graph) -> list:
    """Zeros where nothing flows."""
    used = [i for i, y in enumerate(outputs) if y.requires_grad]
    found = (None,) * len(inputs)
    if used:
        found = _tape_gradients(
            [outputs[i] for i in used],
            inputs,
            [given[i] for i in used],
            keeps_graph or create_graph,
            create_graph,
            allow_unused=True,
        )
    zeros = _core.functions["zeros_like"]
    return [zeros(x) if g is None else g for g, x in zip(found, inputs, strict=True)]


def _differentiated(args: tuple, argnums) -> tuple:
    """(the arguments that argnums names, as a nest; a function that puts others in their place)"""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not numbers:
        raise RuntimeError("argnums must be an int or a tuple of ints, got an empty tuple")
    at = []
    for n in numbers:
        if not isinstance(n, int):
            raise RuntimeError(f"argnums must be int or Tuple[int, ...], got {type(n)}")
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
        at.append(n % len(args))
    if len(set(at)) != len(at):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    chosen = args[at[0]] if isinstance(argnums, int) else tuple(args[n] for n in at)

    def replaced(value) -> list:
        out = list(args)
        for n, part in zip(at, [value] if isinstance(argnums, int) else value, strict=True):
            out[n] = part
        return out

    return chosen, replaced


def _with_aux(name: str, output, has_aux: bool) -> tuple:
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return output


def _flat_outputs(name: str, output) -> tuple:
    leaves, spec = tree.flatten(output)
    for y in leaves:
        if not isinstance(y, Tensor):
            raise RuntimeError(
                f"{name}: Expected f to return only tensors (in tuples, lists and dicts), got "
                f"{type(y)}"
            )
    return leaves, spec


# ── reverse mode ──


def grad_and_value(func, argnums=0, has_aux=False):
    """A function that gives ``func``'s gradient to the arguments ``argnums``, and its value, which
    is one number. With ``has_aux``, ``func`` gives (value, anything), and this (gradient, (value,
    anything))."""

    @functools.wraps(func, updated=())
    def wrapped(*args, **kwargs):
        keeps = _core.is_grad_enabled()
        chosen, replaced = _differentiated(args, argnums)
        with enable_grad():
            inputs, spec = _begin(chosen)
            try:
                output = func(*replaced(tree.unflatten(inputs, spec)), **kwargs)
                output, aux = _with_aux("grad_and_value(f)(*args)", output, has_aux)
                if not isinstance(output, Tensor):
                    raise RuntimeError(
                        "grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got "
                        f"{type(output)}"
                    )
                if output.dim() != 0:
                    raise RuntimeError(
                        "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got "
                        f"tensor with {output.dim()} dims. Maybe you wanted to use the vjp or "
                        "jacrev APIs instead?"
                    )
                again = keeps and _matters_outside([output], inputs)
                found = _gradients([output], inputs, [None], False, again)
            finally:
                _core._end_gradient(inputs)
            gradients = _outside(tree.unflatten(found, spec), [], keeps)
            value = _outside(output, [], keeps)
            if has_aux:
                return gradients, (value, _outside(aux, [], keeps))
            return gradients, value

    return wrapped


def grad(func, argnums=0, has_aux=False):
    """A function that gives ``func``'s gradient to the arguments ``argnums``; ``func`` gives one
    number. With ``has_aux``, ``func`` gives (value, anything), and this (gradient, anything)."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func, updated=())
    def wrapped(*args, **kwargs):
        gradients, value = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return wrapped


class _Run:
    """A function that ran on inputs to be differentiated to."""

    def __init__(self, name: str, func, primals, has_aux: bool):
        """func takes the nest of primals; primals: the nest."""
        self.keeps = _core.is_grad_enabled()
        with enable_grad():
            self.inputs, self.input_spec = _begin(primals)
            output = func(tree.unflatten(self.inputs, self.input_spec))
            output, aux = _with_aux(name, output, has_aux)
            self.outputs, self.output_spec = _flat_outputs(name, output)
            self.again = self.keeps and _matters_outside(self.outputs, self.inputs)
        self.value = self.outside(output)
        self.aux = self.outside(aux)

    def outside(self, value):
        return _outside(value, self.inputs, self.keeps)

    def pull(self, index: int | None, cotangents: list, create_graph: bool) -> list:
        """Gradients to the inputs, of all outputs or of one."""
        outputs = self.outputs if index is None else [self.outputs[index]]
        return _gradients(outputs, self.inputs, cotangents, True, create_graph)

    def linear(self):
        """Gradients of the outputs to come, and the gradients to the inputs, linear in them."""
        with enable_grad():
            zeros = _core.functions["zeros_like"]
            at = [i for i, y in enumerate(self.outputs) if y.requires_grad]
            seeds = [_core._begin_gradient(zeros(self.outputs[i].detach())) for i in at]
            found = [None] * len(self.inputs)
            if at:
                found = _tape_gradients(
                    [self.outputs[i] for i in at],
                    self.inputs,
                    seeds,
                    True,
                    True,
                    allow_unused=True,
                )
        return _Linear(self, at, seeds, found)


class _Linear:
    """A function's derivative at a point: what tangents of the inputs do to the outputs."""

    def __init__(self, run: _Run, at: list, seeds: list, found: list):
        self.run, self.at, self.seeds, self.found = run, at, seeds, found

    def push(self, tangents: dict, create_graph: bool) -> list:
        """Tangents of the outputs; `tangents` by the number of the input."""
        used = [k for k in tangents if self.found[k] is not None and self.found[k].requires_grad]
        out = [_core.functions["zeros_like"](y.detach()) for y in self.run.outputs]
        if not used or not self.seeds:
            return out
        moved = _tape_gradients(
            [self.found[k] for k in used],
            self.seeds,
            [tangents[k] for k in used],
            True,
            create_graph,
            allow_unused=True,
        )
        for i, m in zip(self.at, moved, strict=True):
            if m is not None:
                out[i] = m
        return out

    def outside(self, value):
        return _outside(value, self.run.inputs + self.seeds, self.run.keeps)


def _check_cotangents(run: _Run, cotangents) -> list:
    leaves, spec = tree.flatten(cotangents)
    if spec != run.output_spec:
        raise RuntimeError(
            f"Expected pytree structure of cotangents to be the same as pytree structure of outputs "
            f"to the function. cotangents: {spec}, primal output: {run.output_spec}"
        )
    for i, (c, y) in enumerate(zip(leaves, run.outputs, strict=True)):
        if c.shape != y.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {c.shape} and output[{i}] has a "
                f"shape of {y.shape}."
            )
    return leaves


def vjp(func, *primals, has_aux=False):
    """(``func(*primals)``, a function from gradients of its outputs to gradients of ``primals``);
    with ``has_aux`` what else ``func`` gives comes third."""
    if not primals:
        raise RuntimeError("vjp(f, *primals): expected at least one primal")
    run = _Run("vjp(f, *primals)", lambda nest: func(*nest), primals, has_aux)

    def pull_back(cotangents):
        leaves = _check_cotangents(run, cotangents)
        again = _core.is_grad_enabled() and (
            run.again or _core._vmap_level() > 0 or any(c.requires_grad for c in leaves)
        )
        found = _outside(run.pull(None, leaves, again), run.inputs, _core.is_grad_enabled())
        return tree.unflatten(found, run.input_spec)

    if has_aux:
        return run.value, pull_back, run.aux
    return run.value, pull_back


def _basis(x: Tensor) -> Tensor:
    """Each unit vector of a tensor's space."""
    n = x.numel()
    return _core.functions["eye"](n, dtype=x.dtype).reshape(n, *x.shape)


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """A function that gives ``func``'s Jacobian to the arguments ``argnums``, one row for each
    number of the output: reverse mode, all rows at once by vmap (``chunk_size`` at a time)."""

    @functools.wraps(func, updated=())
    def wrapped(*args, **kwargs):
        chosen, replaced = _differentiated(args, argnums)
        run = _Run(
            "jacrev(f)(*args)", lambda nest: func(*replaced(nest), **kwargs), chosen, has_aux
        )

        def rows(i, y):
            pull = lambda cotangent: tuple(run.pull(i, [cotangent], run.again))  # noqa: E731
            if y.numel() == 0:
                parts = [x.new_zeros([0, *x.shape]) for x in run.inputs]
            else:
                parts = vmap(pull, chunk_size=chunk_size)(_basis(y))
            parts = [
                p.reshape([*y.shape, *x.shape]) for p, x in zip(parts, run.inputs, strict=True)
            ]
            return tree.unflatten(run.outside(parts), run.input_spec)

        jacobian = tree.unflatten([rows(i, y) for i, y in enumerate(run.outputs)], run.output_spec)
        return (jacobian, run.aux) if has_aux else jacobian

    return wrapped


# ── forward mode ──


def _check_tangents(run: _Run, tangents) -> dict:
    leaves, spec = tree.flatten(tangents)
    if spec != run.input_spec:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same python "
            f"structure. For example, if primals is a tuple of 3 tensors, tangents also must be. Got "
            f"primals with structure {run.input_spec} and tangents with structure {spec}"
        )
    for t, x in zip(leaves, run.inputs, strict=True):
        if t.shape != x.shape:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the "
                "original Tensor, this is not supported. Tensor is of size "
                f"{list(x.shape)} while the given forward gradient is of size {list(t.shape)}."
            )
    return dict(enumerate(leaves))


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """(``func(*primals)``, how it changes as ``primals`` move along ``tangents``); with ``has_aux``
    what else ``func`` gives comes third."""
    for name, value in (("primals", primals), ("tangents", tangents)):
        if not isinstance(value, tuple):
            raise RuntimeError(
                f"jvp(f, primals, tangents): Expected {name} to be a tuple. E.g. it should be valid "
                "to call f(*primals)."
            )
    if not primals:
        raise RuntimeError("jvp(f, primals, tangents): Expected at least one primal")
    run = _Run("jvp(f, primals, tangents)", lambda nest: func(*nest), primals, has_aux)
    given = _check_tangents(run, tangents)
    linear = run.linear()
    if strict and any(not y.requires_grad for y in run.outputs):
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. "
            "This is not allowed with strict=True."
        )
    again = run.again or (run.keeps and any(t.requires_grad for t in given.values()))
    moved = linear.outside(linear.push(given, again))
    out = tree.unflatten(moved, run.output_spec)
    return (run.value, out, run.aux) if has_aux else (run.value, out)


def linearize(func, *primals):
    """(``func(*primals)``, the linear function from tangents of ``primals`` to tangents of the
    outputs)."""
    run = _Run("linearize(f, *primals)", lambda nest: func(*nest), primals, False)
    linear = run.linear()

    def push_forward(*tangents):
        given = _check_tangents(run, tangents)
        again = _core.is_grad_enabled() and (
            run.again or any(t.requires_grad for t in given.values())
        )
        return tree.unflatten(linear.outside(linear.push(given, again)), run.output_spec)

    return run.value, push_forward


def jacfwd(func, argnums=0, has_aux=False, *, chunk_size=None, randomness="error"):
    """A function that gives ``func``'s Jacobian to the arguments ``argnums``, one column for each
    number of the input: forward mode, all columns at once by vmap."""

    @functools.wraps(func, updated=())
    def wrapped(*args, **kwargs):
        chosen, replaced = _differentiated(args, argnums)
        run = _Run(
            "jacfwd(f)(*args)", lambda nest: func(*replaced(nest), **kwargs), chosen, has_aux
        )
        linear = run.linear()
        columns = []  # by input, then by output
        for k, x in enumerate(run.inputs):
            push = lambda t, k=k: tuple(linear.push({k: t}, run.again))  # noqa: E731
            if x.numel() == 0:
                parts = [y.new_zeros([0, *y.shape]) for y in run.outputs]
            else:
                parts = vmap(push, chunk_size=chunk_size, randomness=randomness)(_basis(x.detach()))
            columns.append(
                [
                    p.movedim(0, -1).reshape([*y.shape, *x.shape])
                    for p, y in zip(parts, run.outputs, strict=True)
                ]
            )
        rows = [
            tree.unflatten(linear.outside([c[i] for c in columns]), run.input_spec)
            for i in range(len(run.outputs))
        ]
        jacobian = tree.unflatten(rows, run.output_spec)
        return (jacobian, run.aux) if has_aux else jacobian

    return wrapped


def hessian(func, argnums=0):
    """A function that gives ``func``'s second derivatives to the arguments ``argnums``."""
    return jacfwd(jacrev(func, argnums), argnums)
