"""Schedulers that go up and down, with the momentum against them."""

import math

from .scheduler import LRScheduler, check_optimizer, functions_state, one_a_group, put


def _wants_momentum(optimizer):
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError(
            "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
        )
    return "betas" in optimizer.defaults


def _put_momentum(group, use_beta1, momentum):
    if use_beta1:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


def _begin_momentum(optimizer, use_beta1, highest, lowest):
    for high, low, group in zip(highest, lowest, optimizer.param_groups, strict=True):
        _put_momentum(group, use_beta1, high)
        group["max_momentum"] = high
        group["base_momentum"] = low


class CyclicLR(LRScheduler):
    """Between `base_lr` and `max_lr` in triangles, whose height `mode` or `scale_fn` may change."""

    def __init__(
        self,
        optimizer,
        base_lr,
        max_lr,
        step_size_up=2000,
        step_size_down=None,
        mode="triangular",
        gamma=1.0,
        scale_fn=None,
        scale_mode="cycle",
        cycle_momentum=True,
        base_momentum=0.8,
        max_momentum=0.9,
        last_epoch=-1,
    ):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = one_a_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups, strict=True):
                put(group, "lr", rate)
        self.max_lrs = one_a_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        self._init_scale_mode()
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _wants_momentum(optimizer)
            self.base_momentums = one_a_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = one_a_group("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                _begin_momentum(optimizer, self.use_beta1, self.max_momentums, self.base_momentums)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _init_scale_mode(self):
        if self._scale_fn_custom is None:
            self.scale_mode = "iterations" if self.mode == "exp_range" else "cycle"

    def scale_fn(self, x):
        """The height of a triangle, as a part of the first one's."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "exp_range":
            return self.gamma**x
        return 1.0 if self.mode == "triangular" else 1 / (2.0 ** (x - 1))

    def get_lr(self):
        self._check_stepping()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        part = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(
                self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True
            ):
                _put_momentum(group, self.use_beta1, high - (high - low) * part * height)
        return [
            low + (high - low) * part * height
            for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]

    def state_dict(self):
        state = super().state_dict()
        custom = self._scale_fn_custom
        state["_scale_fn_custom"] = None if custom is None else functions_state([custom])[0]
        return state

    def load_state_dict(self, state_dict):
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        custom = state_dict["_scale_fn_custom"]
        if custom is not None:
            vars(self._scale_fn_custom).update(custom)
        self._init_scale_mode()


def _phase(end_step, start_lr, end_lr, start_momentum, end_momentum):
    return {
        "end_step": end_step,
        "start_lr": start_lr,
        "end_lr": end_lr,
        "start_momentum": start_momentum,
        "end_momentum": end_momentum,
    }


def _whole_and_positive(name, value):
    if not isinstance(value, int) or value <= 0:
        raise ValueError(f"Expected positive integer {name}, but got {value}")
    return value


class OneCycleLR(LRScheduler):
    """Up to `max_lr` and far down, once, over all steps of a training."""

    def __init__(
        self,
        optimizer,
        max_lr,
        total_steps=None,
        epochs=None,
        steps_per_epoch=None,
        pct_start=0.3,
        anneal_strategy="cos",
        cycle_momentum=True,
        base_momentum=0.85,
        max_momentum=0.95,
        div_factor=25.0,
        final_div_factor=1e4,
        three_phase=False,
        last_epoch=-1,
    ):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        if total_steps is not None:
            self.total_steps = _whole_and_positive("total_steps", total_steps)
        elif epochs is not None and steps_per_epoch is not None:
            _whole_and_positive("epochs", epochs)
            self.total_steps = epochs * _whole_and_positive("steps_per_epoch", steps_per_epoch)
        else:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        last, rise = self.total_steps - 1, float(pct_start * self.total_steps) - 1
        up = _phase(rise, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        if three_phase:
            fall = float(2 * pct_start * self.total_steps) - 2
            self._schedule_phases = [
                up,
                _phase(fall, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                _phase(last, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
            ]
        else:
            self._schedule_phases = [
                up,
                _phase(last, "max_lr", "min_lr", "base_momentum", "max_momentum"),
            ]
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_func_type = anneal_strategy
        highest = one_a_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for rate, group in zip(highest, optimizer.param_groups, strict=True):
                group["initial_lr"] = rate / div_factor
                group["max_lr"] = rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _wants_momentum(optimizer)
            high = one_a_group("max_momentum", optimizer, max_momentum)
            low = one_a_group("base_momentum", optimizer, base_momentum)
            if last_epoch == -1:
                _begin_momentum(optimizer, self.use_beta1, high, low)
        super().__init__(optimizer, last_epoch)

    def _between(self, start, end, part):
        if self._anneal_func_type == "cos":
            return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)
        return (end - start) * part + start

    def get_lr(self):
        self._check_stepping()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is {self.total_steps}"
            )
        start, phase = 0.0, self._schedule_phases[0]
        for phase_after in self._schedule_phases[1:]:
            if step <= phase["end_step"]:
                break
            start, phase = phase["end_step"], phase_after
        part = (step - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                _put_momentum(group, self.use_beta1, self._between(*ends, part))
        return rates
