"""Adam and AdamW."""

import prong
from prong import Tensor

from .optimizer import Optimizer, check_betas, check_fused, check_rate, number, scalar


class Adam(Optimizer):
    """Steps of a size set by running means of the gradient and of its square."""

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        amsgrad=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
        fused=None,
        decoupled_weight_decay=False,
    ):
        _check_tensors(lr, betas, foreach, capturable)
        check_rate(lr)
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        if not weight_decay >= 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        _check_kinds(betas)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": tuple(betas),
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )
        check_fused(fused, foreach, differentiable)

    def _new_state(self, group, param):
        state = {
            "step": scalar(0.0, group),
            "exp_avg": prong.zeros_like(param),
            "exp_avg_sq": prong.zeros_like(param),
        }
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = prong.zeros_like(param)
        return state

    def _step_group(self, group):
        if group["amsgrad"]:
            params, grads, means, squares, steps, largest = self._gather(
                group, ("exp_avg", "exp_avg_sq", "step", "max_exp_avg_sq")
            )
        else:
            params, grads, means, squares, steps = self._gather(
                group, ("exp_avg", "exp_avg_sq", "step")
            )
            largest = []
        beta1, beta2 = group["betas"]
        prong._adam_step_(
            params,
            grads,
            means,
            squares,
            largest,
            steps,
            number(group["lr"]),
            number(beta1),
            number(beta2),
            group["eps"],
            group["weight_decay"],
            group["amsgrad"],
            group["maximize"],
            group["decoupled_weight_decay"],
        )


class AdamW(Adam):
    """Adam whose decay of the weights does not go through the means."""

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=1e-2,
        amsgrad=False,
        *,
        maximize=False,
        foreach=None,
        capturable=False,
        differentiable=False,
        fused=None,
    ):
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


def _check_tensors(lr, betas, foreach, capturable):
    if foreach and not capturable:
        for name, value in (("lr", lr), ("betas[0]", betas[0]), ("betas[1]", betas[1])):
            if isinstance(value, Tensor):
                raise ValueError(
                    f"{name} as a Tensor is not supported for capturable=False and foreach=True"
                )


def _check_kinds(betas):
    if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor) or not all(
        isinstance(beta, (float, Tensor)) for beta in betas
    ):
        raise ValueError("betas must be either both floats or both Tensors")
    for i, beta in enumerate(betas):
        if isinstance(beta, Tensor) and beta.numel() != 1:
            raise ValueError(f"Tensor betas[{i}] must be 1-element")
