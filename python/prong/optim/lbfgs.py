"""LBFGS: a quasi-Newton method that keeps the last moves."""

import prong

from .line_search import Point, StrongWolfe
from .optimizer import Optimizer, check_rate, number


class LBFGS(Optimizer):
    """Follows the gradient bent by the curvature seen in the last ``history_size`` moves."""

    def __init__(
        self,
        params,
        lr=1,
        max_iter=20,
        max_eval=None,
        tolerance_grad=1e-7,
        tolerance_change=1e-9,
        history_size=100,
        line_search_fn=None,
    ):
        check_rate(lr)
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self):
        return self.param_groups[0]["params"]

    # ── all parameters as one vector ──

    def _gradient(self):
        return prong.cat(
            [p.new_zeros(p.numel()) if p.grad is None else p.grad.reshape(-1) for p in self._params]
        )

    def _move(self, step, direction):
        start = 0
        for param in self._params:
            part = direction[start : start + param.numel()]
            param.add_(part.view_as(param), alpha=number(step))
            start += param.numel()

    def _evaluate_at(self, closure, origin, step, direction):
        self._move(step, direction)
        loss = float(closure())
        gradient = self._gradient()
        for param, value in zip(self._params, origin, strict=True):
            param.copy_(value)
        return loss, gradient

    # ── the step ──

    def step(self, closure):
        """Several moves; ``closure`` computes the loss and its gradients anew."""

        def with_gradients():
            with prong.enable_grad():
                return closure()

        with prong.no_grad():
            return self._step(with_gradients)

    def _step(self, closure):
        group, state = self.param_groups[0], self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = closure()
        loss, evaluations = float(first_loss), 1
        state["func_evals"] += 1
        gradient = self._gradient()
        if gradient.abs().max() <= group["tolerance_grad"]:
            return first_loss
        for i in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction(group, state, gradient)
            if state.get("prev_flat_grad") is None:
                state["prev_flat_grad"] = gradient.clone()
            else:
                state["prev_flat_grad"].copy_(gradient)
            state["prev_loss"] = loss
            step = number(group["lr"])
            if state["n_iter"] == 1:
                step = min(1.0, 1.0 / gradient.abs().sum()) * step
            state["d"], state["t"] = direction, step
            slope = gradient.dot(direction)
            if slope > -group["tolerance_change"]:
                break
            is_last = i == group["max_iter"]
            loss, gradient, used = self._advance(
                closure, Point(0, loss, gradient, slope), is_last, evaluations
            )
            evaluations += used
            state["func_evals"] += used
            if is_last or evaluations >= group["max_eval"]:
                break
            if gradient.abs().max() <= group["tolerance_grad"]:
                break
            if direction.mul(state["t"]).abs().max() <= group["tolerance_change"]:
                break
            if abs(loss - state["prev_loss"]) < group["tolerance_change"]:
                break
        return first_loss

    def _direction(self, group, state, gradient):
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return gradient.neg()
        changes, moves, ro = state["old_dirs"], state["old_stps"], state["ro"]
        change = gradient.sub(state["prev_flat_grad"])
        move = state["d"].mul(state["t"])
        curvature = change.dot(move)
        if curvature > 1e-10:
            if len(changes) == group["history_size"]:
                for history in (changes, moves, ro):
                    history.pop(0)
            changes.append(change)
            moves.append(move)
            ro.append(1.0 / curvature)
            state["H_diag"] = curvature / change.dot(change)
        state.setdefault("al", [None] * group["history_size"])
        weights = state["al"]
        q = gradient.neg()
        for i in reversed(range(len(changes))):
            weights[i] = moves[i].dot(q) * ro[i]
            q.add_(changes[i], alpha=-number(weights[i]))
        direction = q * state["H_diag"]
        for i in range(len(changes)):
            correction = changes[i].dot(direction) * ro[i]
            direction.add_(moves[i], alpha=number(weights[i] - correction))
        return direction

    def _advance(self, closure, start, is_last, evaluations):
        """Moves; gives the loss, the gradient and how often the loss was computed."""
        group, state = self.param_groups[0], self.state[self._params[0]]
        direction = state["d"]
        if group["line_search_fn"] is None:
            self._move(state["t"], direction)
            if is_last:
                return start.loss, start.grad, 0
            return float(closure()), self._gradient(), 1
        if group["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        origin = [p.clone() for p in self._params]
        search = StrongWolfe(
            lambda step: self._evaluate_at(closure, origin, step, direction),
            start,
            direction,
            group["tolerance_change"],
            group["max_eval"] - evaluations,
        )
        best = search.search(state["t"])
        state["t"] = best.at
        self._move(best.at, direction)
        return best.loss, best.grad, search.evaluations
