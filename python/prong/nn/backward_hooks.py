"""Backward hooks of modules: steps of the tape around a call, where the hooks see the gradients."""

import warnings

from prong import Tensor, is_grad_enabled
from prong.autograd import Function


def _as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


class _Gradients:
    """One call of a module: what its hooks are told when its backward has run."""

    def __init__(self, module, hooks, pre_hooks):
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.grad_outputs = None
        self.output_places: list[int] = []
        self.output_count = 0
        self.input_places: list[int] | None = None
        self.input_count = 0

    def at_output(self, gradients):
        """The gradients of the outputs, as the pre-hooks leave them."""
        full = _spread(gradients, self.output_places, self.output_count)
        for hook in self.pre_hooks:
            changed = hook(self.module, full)
            if changed is not None:
                full = _checked(changed, full, "pre hook", "grad_output")
        self.grad_outputs = full
        if self.input_places is None:
            self._call((None,) * self.input_count)
        return tuple(full[i] for i in self.output_places)

    def at_input(self, gradients):
        """The gradients of the inputs, as the hooks leave them."""
        if self.grad_outputs is None:
            # Reached without the outputs: a gradient that the module's own code asked for.
            return gradients
        assert self.input_places is not None
        full = self._call(_spread(gradients, self.input_places, self.input_count))
        self.grad_outputs = None
        return tuple(full[i] for i in self.input_places)

    def _call(self, grad_inputs):
        for hook in self.hooks:
            changed = hook(self.module, grad_inputs, self.grad_outputs)
            if changed is None:
                continue
            if self.input_places is None:
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return "
                    "None or None for all gradients."
                )
            grad_inputs = _checked(changed, grad_inputs, "hook", "grad_input")
        return grad_inputs


def _spread(gradients, places, count):
    full = [None] * count
    for place, gradient in zip(places, gradients):
        full[place] = gradient
    return tuple(full)


def _checked(changed, before, kind, what):
    changed = _as_tuple(changed)
    if len(changed) != len(before):
        raise RuntimeError(
            f"Backward {kind} returned an invalid number of {what}, got {len(changed)}, but expected "
            f"{len(before)}"
        )
    return changed


class _AtOutput(Function):
    @staticmethod
    def forward(ctx, call, *tensors):
        ctx.call = call
        ctx.mark_non_differentiable(*(t for t in tensors if not t.requires_grad))
        return tensors

    @staticmethod
    def backward(ctx, *gradients):
        return (None, *ctx.call.at_output(gradients))


class _AtInput(Function):
    @staticmethod
    def forward(ctx, call, *tensors):
        ctx.call = call
        ctx.mark_non_differentiable(*(t for t in tensors if not t.requires_grad))
        return tensors

    @staticmethod
    def backward(ctx, *gradients):
        return (None, *ctx.call.at_input(gradients))


def call_with_backward_hooks(module, hooks, pre_hooks, run, args):
    """``run(args)``, with the module's backward hooks around it."""
    if not is_grad_enabled():
        return run(args)
    call = _Gradients(module, hooks, pre_hooks)
    call.input_count = len(args)
    places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
    if hooks and any(args[i].requires_grad for i in places):
        call.input_places = places
        noted = _AtInput.apply(call, *(args[i] for i in places))
        args = list(args)
        for place, tensor in zip(places, noted):
            args[place] = tensor
        args = tuple(args)
    result = run(args)
    outputs = result if isinstance(result, tuple) else (result,)
    if not isinstance(result, (tuple, Tensor)):
        warnings.warn(
            "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors "
            f"but received {type(result)}",
            stacklevel=4,
        )
        return result
    call.output_count = len(outputs)
    call.output_places = [i for i, o in enumerate(outputs) if isinstance(o, Tensor)]
    if not any(outputs[i].requires_grad for i in call.output_places):
        return result
    noted = list(outputs)
    for place, tensor in zip(
        call.output_places, _AtOutput.apply(call, *(outputs[i] for i in call.output_places))
    ):
        noted[place] = tensor
    return type(result)(noted) if isinstance(result, tuple) else noted[0]


def first_tensor(result):
    """The first tensor in a result."""
    while not isinstance(result, Tensor):
        if isinstance(result, dict):
            result = next((v for v in result.values() if isinstance(v, Tensor)), None)
        elif isinstance(result, (tuple, list)) and result:
            result = result[0]
        else:
            return None
    return result
