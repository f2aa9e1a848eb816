"""Adagrad: rates that fall with the squares met so far."""

import prong

from .optimizer import Optimizer, check_fused, check_not_negative, check_rate, number, scalar


class Adagrad(Optimizer):
    """Divides gradients by the root of the sum of their squares."""

    def __init__(
        self,
        params,
        lr=1e-2,
        lr_decay=0,
        weight_decay=0,
        initial_accumulator_value=0,
        eps=1e-10,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        fused=None,
    ):
        check_rate(lr)
        check_not_negative(
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
        )
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        check_fused(fused, foreach, differentiable)
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param].update(self._new_state(group, param))

    def _new_state(self, group, param):
        start = self.defaults["initial_accumulator_value"]
        return {"step": scalar(0.0, group), "sum": prong.full_like(param, start)}

    def _step_group(self, group):
        prong._adagrad_step_(
            *self._gather(group, ("sum", "step")),
            number(group["lr"]),
            group["lr_decay"],
            group["eps"],
            group["weight_decay"],
            group["maximize"],
        )
