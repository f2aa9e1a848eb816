"""Rprop: resilient backpropagation."""

import prong

from .optimizer import Optimizer, check_rate, number, scalar


class Rprop(Optimizer):
    """Steps that look at the sign of the gradient only, and grow while it stays the same."""

    def __init__(
        self,
        params,
        lr=1e-2,
        etas=(0.5, 1.2),
        step_sizes=(1e-6, 50),
        *,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        check_rate(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(
            params,
            {
                "lr": lr,
                "etas": etas,
                "step_sizes": step_sizes,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _new_state(self, group, param):
        return {
            "step": scalar(0.0, group),
            "prev": prong.zeros_like(param),
            "step_size": prong.full_like(param.grad, number(group["lr"])),
        }

    def _step_group(self, group):
        prong._rprop_step_(
            *self._gather(group, ("prev", "step_size", "step")),
            *group["etas"],
            *group["step_sizes"],
            group["maximize"],
        )
