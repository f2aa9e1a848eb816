"""ReduceLROnPlateau: lowers the rate when a figure has stopped improving."""

import warnings
from math import inf

from .scheduler import LRScheduler, check_optimizer, of_groups, put


class ReduceLROnPlateau(LRScheduler):
    """Times `factor` after `patience` steps without a better figure; step() is given the figure."""

    def __init__(
        self,
        optimizer,
        mode="min",
        factor=0.1,
        patience=10,
        threshold=1e-4,
        threshold_mode="rel",
        cooldown=0,
        min_lr=0,
        eps=1e-8,
    ):
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        self.factor = factor
        check_optimizer(optimizer)
        self.optimizer = optimizer
        count = len(optimizer.param_groups)
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != count:
                raise ValueError(f"expected {count} min_lrs, got {len(min_lr)}")
            self.default_min_lr = None
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * count
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = of_groups(optimizer, "lr")
        self._init_is_better(mode, threshold, threshold_mode)
        self._reset()

    def _reset(self):
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def _init_is_better(self, mode, threshold, threshold_mode):
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.mode_worse = inf if mode == "min" else -inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode

    def _is_better(self, figure, best):
        sign = -1.0 if self.mode == "min" else 1.0
        if self.threshold_mode == "rel":
            goal = best * (1.0 + sign * self.threshold)
        else:
            goal = best + sign * self.threshold
        return figure < goal if self.mode == "min" else figure > goal

    @property
    def in_cooldown(self):
        """Whether bad steps are not counted yet after the last reduction."""
        return self.cooldown_counter > 0

    def step(self, metrics, epoch=None):
        """Takes one figure, and lowers the rate if it is time to."""
        figure = float(metrics)
        if epoch is not None:
            warnings.warn(
                "The epoch parameter in `scheduler.step()` is not necessary and is deprecated.",
                stacklevel=2,
            )
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(figure, self.best):
            self.best = figure
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = of_groups(self.optimizer, "lr")

    def _reduce_lr(self, epoch):
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}): set `min_lrs` to one "
                    "value for each group"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, lowest in zip(groups, self.min_lrs):
            before = float(group["lr"])
            after = max(before * self.factor, lowest)
            if before - after > self.eps:
                put(group, "lr", after)

    def load_state_dict(self, state_dict):
        vars(self).update(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)
