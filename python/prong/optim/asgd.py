"""ASGD: averaged stochastic gradient descent."""

import prong

from .optimizer import Optimizer, check_not_negative, check_rate, number, scalar


class ASGD(Optimizer):
    """Gradient descent whose average over the late steps is kept in the state."""

    def __init__(
        self,
        params,
        lr=1e-2,
        lambd=1e-4,
        alpha=0.75,
        t0=1e6,
        weight_decay=0,
        foreach=None,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        check_rate(lr)
        check_not_negative(weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "lambd": lambd,
                "alpha": alpha,
                "t0": t0,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _new_state(self, group, param):
        return {
            "step": scalar(0.0, group),
            "eta": scalar(number(group["lr"]), group),
            "mu": scalar(1.0, group),
            "ax": prong.zeros_like(param),
        }

    def _step_group(self, group):
        prong._asgd_step_(
            *self._gather(group, ("ax", "mu", "eta", "step")),
            number(group["lr"]),
            group["lambd"],
            group["alpha"],
            group["t0"],
            group["weight_decay"],
            group["maximize"],
        )
