"""Adamax: Adam by the largest gradient."""

import prong

from .optimizer import Optimizer, check_betas, check_rate, number, scalar


class Adamax(Optimizer):
    """Adam with a decaying maximum of the gradient's size in place of the mean of its square."""

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        check_rate(lr)
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        if not weight_decay >= 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
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
            "exp_avg": prong.zeros_like(param),
            "exp_inf": prong.zeros_like(param),
        }

    def _step_group(self, group):
        lists = self._gather(group, ("exp_avg", "exp_inf", "step"))
        prong._adamax_step_(
            *lists,
            number(group["lr"]),
            *group["betas"],
            group["eps"],
            group["weight_decay"],
            group["maximize"],
        )
