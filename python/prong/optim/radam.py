"""RAdam: Adam with a rectified adaptive rate."""

import prong

from .optimizer import Optimizer, check_betas, check_not_negative, check_rate, number, scalar


class RAdam(Optimizer):
    """Adam whose adaptive rate waits until the variance of the gradients is known well enough."""

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
    ):
        check_rate(lr)
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "decoupled_weight_decay": decoupled_weight_decay,
                "differentiable": differentiable,
            },
        )

    def _new_state(self, group, param):
        return {
            "step": scalar(0.0, group),
            "exp_avg": prong.zeros_like(param),
            "exp_avg_sq": prong.zeros_like(param),
        }

    def _step_group(self, group):
        lists = self._gather(group, ("exp_avg", "exp_avg_sq", "step"))
        prong._radam_step_(
            *lists,
            number(group["lr"]),
            *group["betas"],
            group["eps"],
            group["weight_decay"],
            group["maximize"],
            group["decoupled_weight_decay"],
        )
