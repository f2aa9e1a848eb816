"""Function.apply() on tensors of a vmap: one step on the tape below it, for all samples at once."""

import importlib
from typing import NamedTuple

from prong import _core
from prong._core import Tensor

__all__ = ["VmapInfo", "apply_over_batch", "batch_dims"]


class VmapInfo(NamedTuple):
    """What a Function's own vmap(info, in_dims, *args) is told."""

    batch_size: int
    randomness: str


def batch_dims(args: tuple) -> list | None:
    """0 for arguments that hold a sample of the innermost vmap, None for others; None in all if
    there is no such argument, or if gradients are taken inside of that vmap."""
    level = _core._vmap_level()
    dims: list = []
    for a in args:
        batch = _core._batch_of(a) if isinstance(a, Tensor) else None
        is_of_level = batch is not None and batch[1] == level
        if is_of_level and a.requires_grad:
            return None
        dims.append(0 if is_of_level and batch[2] else None)
    return dims if 0 in dims else None


def _below(value, level: int):
    batch = _core._batch_of(value) if isinstance(value, Tensor) else None
    return batch[0] if batch is not None and batch[1] == level else value


def apply_over_batch(function_type, dims: list, args: tuple, base, context_type):
    """The results of ``function_type`` for all samples; gradients flow on below the vmap."""
    level = _core._vmap_level()
    below = tuple(_below(a, level) for a in args)
    size = next(a.shape[0] for a, d in zip(below, dims, strict=True) if d == 0)
    info = VmapInfo(size, _core._vmap_randomness())
    if function_type.vmap is not base.vmap:
        results, out_dims = _outside(info, function_type.vmap, (info, tuple(dims), *below))
        if not isinstance(results, tuple):
            return results if out_dims is None else _core._vmap_add(results, out_dims, level)
        if not isinstance(out_dims, tuple):
            out_dims = (out_dims,) * len(results)
        return tuple(
            r if d is None else _core._vmap_add(r, d, level)
            for r, d in zip(results, out_dims, strict=True)
        )
    one_step = _of_all_samples(function_type, dims, info, base, context_type)
    results = _outside(info, one_step.apply, below)
    if isinstance(results, tuple):
        return tuple(_core._vmap_add(r, 0, level) for r in results)
    return _core._vmap_add(results, 0, level)


def _outside(info: VmapInfo, function, args: tuple):
    """function(*args) as below the innermost vmap."""
    level = _core._vmap_level()
    _core._vmap_leave(level)
    try:
        return function(*args)
    finally:
        _core._vmap_enter(info.batch_size, info.randomness)


def _of_all_samples(function_type, dims, info, base, context_type):
    """The Function whose forward and backward are those of ``function_type`` under a vmap."""
    vmap = importlib.import_module("prong.func").vmap  # that package needs this one

    class Inner(context_type):
        """The context that the user's forward and backward see: of one sample."""

        samples: tuple = ()

        @property
        def saved_tensors(self):
            return self.samples

    class AllSamples(base):
        @staticmethod
        def forward(ctx, *args):
            inner = Inner()
            inner._function, inner.needs_input_grad = function_type, ctx.needs_input_grad
            shape = {}

            def one(*sample):
                outputs = function_type.forward(*sample)
                function_type.setup_context(inner, sample, outputs)
                shape["is_single"] = not isinstance(outputs, tuple)
                results = (outputs,) if shape["is_single"] else outputs
                shape["fixed"] = [any(r is n for n in inner._non_differentiable) for r in results]
                saved = inner.__dict__.pop("to_save", ())
                shape["saved"] = [t is not None for t in saved]
                shape["count"] = len(results)
                return (*results, *(t for t in saved if t is not None))

            found = vmap(one, in_dims=tuple(dims), randomness=info.randomness)(*args)
            results, saved = found[: shape["count"]], found[shape["count"] :]
            ctx.inner, ctx.shape = inner, shape
            ctx.set_materialize_grads(inner._materialize)
            ctx.save_for_backward(*saved)
            ctx.mark_non_differentiable(
                *(r for r, fixed in zip(results, shape["fixed"], strict=True) if fixed)
            )
            return results[0] if shape["is_single"] else results

        @staticmethod
        def backward(ctx, *gradients):
            inner, given = ctx.inner, [g for g in gradients if g is not None]
            is_there: list = []

            def one(*values):
                flowing, kept = iter(values[: len(given)]), iter(values[len(given) :])
                inner.samples = tuple(next(kept) if k else None for k in ctx.shape["saved"])
                back = function_type.backward(
                    inner, *(None if g is None else next(flowing) for g in gradients)
                )
                back = back if isinstance(back, tuple) else (back,)
                is_there[:] = [g is not None for g in back]
                return tuple(g for g in back if g is not None)

            found = iter(vmap(one, randomness=info.randomness)(*given, *ctx.saved_tensors))
            all_of = [next(found) if t else None for t in is_there]
            # Arguments that all samples share get the sum.
            return tuple(
                g.sum(0) if g is not None and d is None else g
                for g, d in zip(all_of, dims, strict=False)
            )

    AllSamples.__name__ = f"Vmapped{function_type.__name__}"
    return AllSamples
