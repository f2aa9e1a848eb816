"""LRScheduler: counts steps and writes what `get_lr` says into the optimizer's groups. Base of the others."""

import functools
import warnings
import weakref
from contextlib import contextmanager

from prong import Tensor


def copied(value):
    """A value of a group that later steps leave alone."""
    return value.clone() if isinstance(value, Tensor) else value


def of_groups(optimizer, key):
    """The value under `key` of each group, copied."""
    return [copied(group[key]) for group in optimizer.param_groups]


def put(group, key, value):
    """Sets a value of a group; a tensor stays the same tensor."""
    if isinstance(group[key], Tensor):
        group[key].fill_(value.item() if isinstance(value, Tensor) else value)
    else:
        group[key] = value


def one_a_group(name, optimizer, value):
    """A list with a value for each group, from such a list or from one value for all."""
    groups = optimizer.param_groups
    if not isinstance(value, (list, tuple)):
        return [copied(value) for _ in groups]
    if len(value) != len(groups):
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. "
            f"{name} has {len(value)} values, param_groups has {len(groups)}."
        )
    return [copied(v) for v in value]


def check_optimizer(optimizer):
    """Raises for what has no groups to write to."""
    if not isinstance(getattr(optimizer, "param_groups", None), list):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def functions_state(functions):
    """What a state dict keeps of callables: the attributes of objects, nothing of plain functions."""
    plain = type(functions_state)
    return [None if isinstance(f, plain) else dict(vars(f)) for f in functions]


def _notice_steps(optimizer):
    # step() leaves a mark on the optimizer, so that a scheduler that runs ahead of it can be told.
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    function, weak = optimizer.step.__func__, weakref.ref(optimizer)

    @functools.wraps(function)
    def step(*args, **kwargs):
        owner = weak()
        owner._opt_called = True
        return function(owner, *args, **kwargs)

    step._wrapped_by_lr_sched = True
    optimizer.step = step


class LRScheduler:
    """Base of the schedulers: a subclass gives the rates of the step `last_epoch` in `get_lr`."""

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer, last_epoch=-1):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler "
                    "with last_epoch >= 0: load the optimizer's state first"
                )
        self.base_lrs = of_groups(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _notice_steps(optimizer)
        self._initial_step()

    def _initial_step(self):
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self):
        """All attributes but the optimizer."""
        return {key: value for key, value in vars(self).items() if key != "optimizer"}

    def load_state_dict(self, state_dict):
        """Goes on where `state_dict` was taken."""
        vars(self).update(state_dict)

    def get_last_lr(self):
        """The rates that were set last, one a group."""
        return self._last_lr

    def get_lr(self):
        """The rates of this step, from those of the step before."""
        raise NotImplementedError

    def step(self, epoch=None):
        """Goes one step on (or to the step `epoch`) and sets the rates."""
        optimizer = self.optimizer
        is_ahead = not (
            hasattr(optimizer.step, "_wrapped_by_lr_sched")
            and getattr(optimizer, "_opt_called", False)
        )
        if is_ahead and self._step_count == 1:  # in this order: else a plan depends on the count
            self._warn_if_ahead()
        self._step_count += 1
        if epoch is not None:
            warn_of_epoch()
        self._update_lr(epoch)

    def _warn_if_ahead(self):
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            warnings.warn(
                "`optimizer.step()` has been overridden after the learning rate scheduler was made; "
                "make sure to call `optimizer.step()` before `lr_scheduler.step()`.",
                stacklevel=3,
            )
        else:
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In the other order "
                "no value of the schedule is skipped.",
                stacklevel=3,
            )

    def _update_lr(self, epoch=None):
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", self.get_lr)
                rates = closed()
        finally:
            self._get_lr_called_within_step = False
        self._write(rates)

    def _write(self, rates):
        groups = self.optimizer.param_groups
        for i in range(len(groups)):  # compiled steps follow numbers by index, not through zip
            put(groups[i], "lr", rates[i])
        self._last_lr = of_groups(self.optimizer, "lr")

    @contextmanager
    def _stepping(self):
        self._get_lr_called_within_step = True
        try:
            yield
        finally:
            self._get_lr_called_within_step = False

    def _check_stepping(self):
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                stacklevel=3,
            )

    def _unchanged(self):
        return of_groups(self.optimizer, "lr")

    def _scaled(self, factor):
        return [group["lr"] * factor for group in self.optimizer.param_groups]


def warn_of_epoch():
    """Says that step() needs no number."""
    warnings.warn(
        "The epoch parameter in `scheduler.step()` is not necessary and is deprecated; "
        "please use `scheduler.step()`.",
        stacklevel=4,
    )


class _LRScheduler(LRScheduler):
    """The old name of the base."""
