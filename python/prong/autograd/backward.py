"""backward() and grad(): what they take, in PyTorch's forms; the pass itself is C++."""

import importlib
import warnings
from collections.abc import Sequence

from prong import _core
from prong._core import Tensor


def _as_tuple(value) -> tuple:
    return (value,) if isinstance(value, Tensor) else tuple(value)


def _first_gradients(given, roots: tuple) -> tuple:
    if given is None:
        return (None,) * len(roots)
    gradients = _as_tuple(given)
    if len(gradients) != len(roots):
        raise RuntimeError(f"got {len(roots)} tensors and {len(gradients)} gradients")
    return gradients


def backward(
    tensors,
    grad_tensors=None,
    retain_graph=None,
    create_graph=False,
    grad_variables=None,
    inputs=None,
) -> None:
    """Adds the gradients of ``tensors`` to the ``.grad`` of the leaves they were computed from.

    ``grad_tensors`` are the gradients of the tensors themselves; they may be left out for single
    numbers. With ``inputs``, only those leaves are given gradients. The graph is freed unless
    ``retain_graph`` (default: ``create_graph``). Raises RuntimeError for a tensor without gradients,
    a freed graph, or a saved tensor that was written in place since.
    """
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=2,
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "backward(). Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    if inputs is not None:
        inputs = _as_tuple(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    roots = _as_tuple(tensors)
    keep = create_graph if retain_graph is None else retain_graph
    _core._run_backward(
        roots, _first_gradients(grad_tensors, roots), keep, create_graph, inputs or (), False, True
    )


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=None,
    is_grads_batched=False,
    materialize_grads=False,
) -> tuple:
    """The gradients of the sum of ``outputs`` to ``inputs``, as a tuple; ``.grad`` stays as it is.

    Raises RuntimeError where an input was not used, unless ``allow_unused`` (None for it then) or
    ``materialize_grads`` (zeros).
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True).",
            FutureWarning,
            stacklevel=2,
        )
    roots, ends = _as_tuple(outputs), _as_tuple(inputs)
    keep = create_graph if retain_graph is None else retain_graph
    first = _first_gradients(grad_outputs, roots)
    if is_grads_batched:
        vmap = importlib.import_module("prong.func").vmap

        def one(*gradients):
            return grad(roots, ends, gradients, True, create_graph, True, allow_unused)

        return vmap(one)(*first)
    found = _core._run_backward(roots, first, keep, create_graph, ends, True, allow_unused)
    if materialize_grads:
        found = tuple(
            g if g is not None else _core.functions["zeros_like"](x).requires_grad_(create_graph)
            for g, x in zip(found, ends, strict=True)
        )
    return found


class RemovableHandle:
    """What registering a hook gives: ``remove()``, or leaving a ``with`` block, takes it away."""

    def __init__(self, remove):
        self._remove = remove

    def remove(self) -> None:
        remove, self._remove = self._remove, lambda: None
        remove()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()


def _backward_of(
    self: Tensor, gradient=None, retain_graph=None, create_graph=False, inputs=None
) -> None:
    if gradient is None and inputs is None:  # the common call, without detours
        keep = create_graph if retain_graph is None else retain_graph
        _core._run_backward((self,), (None,), keep, create_graph, (), False, True)
        return
    if gradient is not None and not isinstance(gradient, (Tensor, Sequence)):
        raise TypeError(
            f"gradients can be either Tensors or None, but got {type(gradient).__name__}"
        )
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


def _register_hook(self: Tensor, hook):
    return RemovableHandle(_core._add_tensor_hook(self, hook))


def _register_post_accumulate_grad_hook(self: Tensor, hook):
    return RemovableHandle(_core._add_post_accumulate_hook(self, hook))


def _retain_grad(self: Tensor) -> None:
    _core._retain_grad(self)


TENSOR_METHODS = {
    "backward": _backward_of,
    "register_hook": _register_hook,
    "register_post_accumulate_grad_hook": _register_post_accumulate_grad_hook,
    "retain_grad": _retain_grad,
    "_is_view": lambda self: self._base is not None,
}

_core.Node.register_hook = lambda self, hook: RemovableHandle(self._register_hook(hook))
_core.Node.register_prehook = lambda self, hook: RemovableHandle(self._register_prehook(hook))
