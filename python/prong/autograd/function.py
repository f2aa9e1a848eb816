"""autograd.Function: a step of the tape whose forward and backward are written in Python."""

import functools
import importlib

from prong import _core
from prong._core import Tensor
from prong.autograd import batched_function
from prong.autograd.grad_mode import enable_grad, no_grad


class FunctionCtx:
    """What ``forward`` leaves for ``backward``."""

    _saved: tuple = ()
    to_save: tuple = ()
    _node = None
    _non_differentiable: tuple = ()
    _dirty: tuple = ()
    _materialize = True
    needs_input_grad: tuple = ()

    def save_for_backward(self, *tensors) -> None:
        """Keeps inputs, outputs or other tensors; once, from forward."""
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(
                    "save_for_backward can only save variables, but argument is of type "
                    f"{type(t).__name__}"
                )
        self.to_save = tensors

    def save_for_forward(self, *tensors) -> None:
        """Accepted, for functions with a jvp."""

    def mark_dirty(self, *tensors) -> None:
        """Names the inputs that forward wrote in place."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors) -> None:
        """Names outputs through which no gradient flows."""
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """False: gradients that nothing flowed into are None in backward, not zeros."""
        self._materialize = value

    @property
    def saved_tensors(self) -> tuple:
        """What was kept; RuntimeError where it was freed or written in place since."""
        if self._node is None:
            return self.to_save
        if self._saved and _core._is_freed(self._node):
            _core._throw_freed()
        return tuple([_core._saved_for_backward(saved, self._node) for saved in self._saved])

    saved_variables = saved_tensors


def _check_gradients(name: str, given, inputs: tuple) -> tuple:
    """One value an input, as a tuple; trailing Nones may be too many."""
    gradients = given if isinstance(given, tuple) else (given,)
    if len(gradients) > len(inputs) and all(g is None for g in gradients[len(inputs) :]):
        gradients = gradients[: len(inputs)]
    if len(gradients) != len(inputs):
        raise RuntimeError(
            f"function {name}Backward returned an incorrect number of gradients "
            f"(expected {len(inputs)}, got {len(gradients)})"
        )
    for i, (gradient, is_tensor) in enumerate(zip(gradients, inputs, strict=True)):
        if gradient is not None and not is_tensor:
            raise RuntimeError(
                f"function {name}Backward returned a gradient different from None at position "
                f"{i + 1}, but the corresponding forward input was not a Variable"
            )
    return gradients


def _takes_ctx(function_type) -> bool:
    """Whether forward gets the context; else setup_context does."""
    return function_type.setup_context is Function.setup_context


def _run_forward(function_type, ctx, args, kwargs):
    with no_grad():
        if _takes_ctx(function_type):
            return function_type.forward(ctx, *args, **kwargs)
        outputs = function_type.forward(*args, **kwargs)
        bound = args
        if kwargs:
            inspect = importlib.import_module("inspect")  # slow to load, and seldom needed
            bound = inspect.signature(function_type.forward).bind(*args, **kwargs).args
        function_type.setup_context(ctx, bound, outputs)
        return outputs


def _is_among(tensor, others) -> bool:
    return any(tensor is other for other in others)


def _in_place_of(tensor, given, results):
    """The result that stands for what forward gave; others are themselves."""
    for g, r in zip(given, results, strict=True):
        if g is tensor:
            return r
    return tensor


class _Backward:
    """What the node calls: the user's backward, its results checked."""

    def __init__(self, function_type, ctx, is_tensor, shapes):
        self.type, self.ctx, self.is_tensor, self.shapes = function_type, ctx, is_tensor, shapes

    def __call__(self, gradients: tuple) -> tuple:
        if self.ctx._materialize:
            gradients = [
                _core.functions["zeros"](shape[0], dtype=shape[1])
                if g is None and shape is not None
                else g
                for g, shape in zip(gradients, self.shapes, strict=True)
            ]
        user = self.type.vjp if self.type.vjp is not Function.vjp else self.type.backward
        given = user(self.ctx, *gradients)
        checked = _check_gradients(self.type.__name__, given, self.is_tensor)
        return tuple([g for g, is_tensor in zip(checked, self.is_tensor, strict=True) if is_tensor])


def _record(function_type, ctx, args, outputs: tuple) -> tuple:
    """Puts the node on the tape; gives the outputs as its results."""
    # Lists, not generators: builtin code that takes from a generator makes facts of its numbers.
    inputs = tuple([a for a in args if isinstance(a, Tensor)])
    shapes = [(o.shape, o.dtype) if isinstance(o, Tensor) else None for o in outputs]
    is_tensor = tuple([isinstance(a, Tensor) for a in args])
    call = _Backward(function_type, ctx, is_tensor, shapes)
    name = f"{function_type.__name__}Backward"
    for dirty in ctx._dirty:
        if not _is_among(dirty, outputs):
            raise RuntimeError(
                "a tensor given to mark_dirty() was not returned from forward: return what was "
                "modified in place"
            )
        _core._check_inplace(dirty)
    node = _core._make_function_node(name, call, inputs)
    made = []
    for i, output in enumerate(outputs):
        made.append(_one_output(ctx, node, i, output, inputs))
    ctx._node = node
    return tuple(made)


def _one_output(ctx, node, i, output, inputs):
    if not isinstance(output, Tensor):
        return output
    if _is_among(output, ctx._non_differentiable) or not output.is_floating_point():
        _core._add_result(output, node)
        return output.detach() if output.requires_grad else output
    if _is_among(output, ctx._dirty):
        edge = next(k for k, t in enumerate(inputs) if t is output)
        _core._bump_version(output)
        _core._rebase_history(output, node, i, edge)
        return output
    if _is_among(output, inputs):  # an input as it is: its own history must stay
        with no_grad():
            output = output.view_as(output)
    elif output.grad_fn is not None:
        output = output.detach()
    _core._set_history(output, node, i)
    return output


class Function:
    """Base of custom steps: static ``forward(ctx, ...)`` and ``backward(ctx, *gradients)``.

    Or ``forward(...)`` with ``setup_context(ctx, inputs, output)``. Call ``apply``.
    """

    _context_type = FunctionCtx
    _context_is_for: type | None = None

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls._make_context_type()

    @classmethod
    def _make_context_type(cls) -> None:
        cls._context_is_for = cls
        cls._context_type = type(f"{cls.__name__}Backward", (FunctionCtx,), {})

    def __init__(self, *args, **kwargs):
        raise RuntimeError(
            f"{type(self).__name__} should not be instantiated. Methods on autograd functions are "
            "all static, so you should invoke them on the class itself: call .apply()"
        )

    @staticmethod
    def forward(*args, **kwargs):
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx, inputs, output):
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    @staticmethod
    def vjp(ctx, *grad_outputs):
        raise NotImplementedError

    @staticmethod
    def jvp(ctx, *grad_inputs):
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    generate_vmap_rule = False

    @staticmethod
    def vmap(info, in_dims, *args):
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap static method "
            "or set generate_vmap_rule=True."
        )

    @classmethod
    def _refuse_lost_gradients(cls, args) -> None:
        """Below this vmap the tape would not see the step."""
        for a in args:
            batch = _core._batch_of(a) if isinstance(a, Tensor) else None
            while batch is not None:
                if batch[0].requires_grad and _core.is_grad_enabled():
                    raise RuntimeError(
                        f"vmap over {cls.__name__}.apply() has no gradients: set "
                        "generate_vmap_rule=True and override setup_context(), or override the "
                        "vmap static method"
                    )
                batch = _core._batch_of(batch[0])

    @classmethod
    def apply(cls, *args, **kwargs):
        """Runs forward, and remembers how to go back if an input requires grad."""
        if cls._context_is_for is not cls:  # a class between has an __init_subclass__ of its own
            cls._make_context_type()
        ctx = cls._context_type()
        ctx._function = cls
        ctx.needs_input_grad = tuple([isinstance(a, Tensor) and a.requires_grad for a in args])
        is_recorded = _core.is_grad_enabled() and any(ctx.needs_input_grad)
        if _core._vmap_level() and not kwargs:
            dims = batched_function.batch_dims(args)
            if dims is not None:
                if not (cls.generate_vmap_rule or cls.vmap is not Function.vmap):
                    cls._refuse_lost_gradients(args)
                elif not _takes_ctx(cls):
                    return batched_function.apply_over_batch(cls, dims, args, Function, FunctionCtx)
        outputs = _run_forward(cls, ctx, args, kwargs)
        is_single = not isinstance(outputs, tuple)
        results = (outputs,) if is_single else outputs
        if is_recorded:
            given = results
            results = _record(cls, ctx, args, results)
            saved = [_in_place_of(t, given, results) for t in ctx.to_save]
            ctx.to_save = ()
            ctx._saved = tuple([_core._save_for_backward(t, ctx._node) for t in saved])
        return results[0] if is_single else results


def once_differentiable(backward):
    """A backward whose own gradients cannot be taken: asking for them raises."""

    @functools.wraps(backward)
    def wrapper(ctx, *gradients):
        with no_grad():
            results = backward(ctx, *gradients)
        if not (
            _core.is_grad_enabled()
            and any(isinstance(g, Tensor) and g.requires_grad for g in gradients)
        ):
            return results
        is_single = not isinstance(results, tuple)
        values = (results,) if is_single else results
        marked = tuple(_Refused.apply(v, *gradients) if v is not None else None for v in values)
        return marked[0] if is_single else marked

    return wrapper


class _Refused(Function):
    @staticmethod
    def forward(ctx, value, *gradients):
        return value.detach()

    @staticmethod
    def backward(ctx, *gradients):
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )


__all__ = ["Function", "FunctionCtx", "enable_grad", "once_differentiable"]
