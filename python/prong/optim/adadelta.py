"""Adadelta: steps scaled by those before."""

import prong

from .optimizer import Optimizer, check_not_negative, check_rate, number, scalar


class Adadelta(Optimizer):
    """Scales gradients by the ratio of the root mean squares of past moves and gradients."""

    def __init__(
        self,
        params,
        lr=1.0,
        rho=0.9,
        eps=1e-6,
        weight_decay=0,
        foreach=None,
        *,
        capturable=False,
        maximize=False,
        differentiable=False,
    ):
        check_rate(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_not_negative(weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "rho": rho,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "capturable": capturable,
                "foreach": foreach,
                "differentiable": differentiable,
            },
        )

    def _new_state(self, group, param):
        return {
            "step": scalar(0.0, group),
            "square_avg": prong.zeros_like(param),
            "acc_delta": prong.zeros_like(param),
        }

    def _step_group(self, group):
        prong._adadelta_step_(
            *self._gather(group, ("square_avg", "acc_delta", "step")),
            number(group["lr"]),
            group["rho"],
            group["eps"],
            group["weight_decay"],
            group["maximize"],
        )
