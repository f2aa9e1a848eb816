"""Schedulers made of others: one after another, or all at once."""

from bisect import bisect_right

from .plateau import ReduceLROnPlateau
from .scheduler import LRScheduler, of_groups, put


class _Joined(LRScheduler):
    """Checks and state of a list of schedulers of one optimizer."""

    def _take(self, schedulers, optimizer, kind):
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name} expects at least one scheduler{kind}, but got no scheduler.")
        optimizer = optimizer or schedulers[0].optimizer
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional "
                    "kwargs to be specified when calling `step`, but got one at index "
                    f"{i} in the given schedulers sequence."
                )
            if optimizer is not scheduler.optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {i} has {scheduler.optimizer}, which is "
                    f"different from {type(optimizer).__name__}."
                )
        self._schedulers = schedulers
        self.optimizer = optimizer

    def state_dict(self):
        state = super().state_dict()
        state["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return state

    def load_state_dict(self, state_dict):
        vars(self).update({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(_Joined):
    """One scheduler until each milestone, then the next."""

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        self._take(schedulers, optimizer, "")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the "
                f"number of milestone points, but got number of schedulers {len(schedulers)} and the "
                f"number of milestones to be equal to {len(milestones)}"
            )
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        # Each scheduler took its first step when it was made: undone, and taken by the first one only.
        for group in optimizer.param_groups:
            put(group, "lr", group["initial_lr"])
        _undo_step(self)
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self):
        """One step of the scheduler whose turn it is."""
        self.last_epoch += 1
        index = 0
        while index < len(self._milestones) and self._milestones[index] <= self.last_epoch:
            index += 1
        scheduler = self._schedulers[index]
        if index > 0 and self._milestones[index - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


def _undo_step(scheduler):
    if hasattr(scheduler, "_schedulers"):
        for part in scheduler._schedulers:
            _undo_step(part)
    elif hasattr(scheduler, "last_epoch"):
        scheduler.last_epoch -= 1


class ChainedScheduler(_Joined):
    """Steps all its schedulers, one on the rates of the other."""

    def __init__(self, schedulers, optimizer=None):
        self._take(schedulers, optimizer, " to be chained")
        self._last_lr = of_groups(self.optimizer, "lr")

    def step(self):
        """One step of each."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = of_groups(self.optimizer, "lr")
