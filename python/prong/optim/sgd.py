"""SGD: stochastic gradient descent, with momentum."""

import prong

from .optimizer import Optimizer, check_fused, check_rate, number


class SGD(Optimizer):
    """Stochastic gradient descent: ``p -= lr * g``, with momentum and Nesterov's look ahead."""

    def __init__(
        self,
        params,
        lr=1e-3,
        momentum=0,
        dampening=0,
        weight_decay=0,
        nesterov=False,
        *,
        maximize=False,
        foreach=None,
        differentiable=False,
        fused=None,
    ):
        check_rate(lr)
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        check_fused(fused, foreach, differentiable)

    def _step_group(self, group):
        if group["momentum"] == 0:
            params, grads = self._gather(group, ())
            self._apply(group, params, grads, [], False)
            return
        # Parameters that get their first gradient now start their buffers with it.
        new = [
            p
            for p in group["params"]
            if p.grad is not None and self.state[p].get("momentum_buffer") is None
        ]
        if new:
            buffers = [prong.empty_like(p, requires_grad=False) for p in new]
            self._apply(group, new, [p.grad for p in new], buffers, True)
            old = {**group, "params": [p for p in group["params"] if not any(p is q for q in new)]}
            params, grads, momenta = self._gather(old, ("momentum_buffer",))
            for param, buffer in zip(new, buffers, strict=True):
                self.state[param]["momentum_buffer"] = buffer
        else:
            params, grads, momenta = self._gather(group, ("momentum_buffer",))
        self._apply(group, params, grads, momenta, False)

    def _apply(self, group, params, grads, buffers, is_first):
        prong._sgd_step_(
            params,
            grads,
            buffers,
            number(group["lr"]),
            group["momentum"],
            group["dampening"],
            number(group["weight_decay"]),
            group["nesterov"],
            group["maximize"],
            is_first,
        )
