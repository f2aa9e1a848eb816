"""RMSprop: gradients divided by the root of their mean square."""

import prong

from .optimizer import Optimizer, check_not_negative, check_rate, number, scalar


class RMSprop(Optimizer):
    """Divides gradients by the root of a running mean of their squares."""

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha=0.99,
        eps=1e-8,
        weight_decay=0,
        momentum=0,
        centered=False,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        check_rate(lr)
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_not_negative(momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "capturable": capturable,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
            },
        )

    def _new_state(self, group, param):
        state = {"step": scalar(0.0, group), "square_avg": prong.zeros_like(param)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = prong.zeros_like(param)
        if group["centered"]:
            state["grad_avg"] = prong.zeros_like(param)
        return state

    def _step_group(self, group):
        names = ["square_avg", "step"]
        if group["momentum"] > 0:
            names.append("momentum_buffer")
        if group["centered"]:
            names.append("grad_avg")
        params, grads, *state = self._gather(group, tuple(names))
        of = dict(zip(names, state, strict=True))
        prong._rmsprop_step_(
            params,
            grads,
            of["square_avg"],
            of.get("momentum_buffer", []),
            of.get("grad_avg", []),
            of["step"],
            number(group["lr"]),
            group["alpha"],
            group["eps"],
            group["weight_decay"],
            group["momentum"],
            group["centered"],
            group["maximize"],
        )
