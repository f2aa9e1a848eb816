"""AveragedModel: a copy of a model whose parameters are means of what the model's were."""

import copy
import itertools

import prong
from prong.nn.module import Module
from prong.nn.normalization import _BatchNorm


def _check_decay(decay):
    if decay < 0.0 or decay > 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def get_ema_avg_fn(decay=0.999):
    """The average that forgets: decay * average + (1 - decay) * now."""
    _check_decay(decay)

    @prong.no_grad()
    def updated(ema_param, current_param, num_averaged):
        return decay * ema_param + (1 - decay) * current_param

    return updated


def get_swa_avg_fn():
    """The mean of all."""

    @prong.no_grad()
    def updated(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return updated


def get_ema_multi_avg_fn(decay=0.999):
    """The average that forgets, for lists of parameters, in place."""
    _check_decay(decay)

    @prong.no_grad()
    def update(ema_param_list, current_param_list, num_averaged):
        for average, current in zip(ema_param_list, current_param_list, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(current, 1 - decay)
            else:
                average.copy_(average * decay + current * (1 - decay))

    return update


def get_swa_multi_avg_fn():
    """The mean of all, for lists of parameters, in place."""

    @prong.no_grad()
    def update(averaged_param_list, current_param_list, num_averaged):
        weight = 1.0 / (float(num_averaged) + 1)
        for average, current in zip(averaged_param_list, current_param_list, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(current, weight)
            else:
                average.copy_(average + (current - average) * weight)

    return update


class AveragedModel(Module):
    """A copy of ``model``; ``update_parameters(model)`` takes the model's parameters into the average."""

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", prong.tensor(0, dtype=prong.long))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def _averaged(self, module):
        if self.use_buffers:
            return itertools.chain(module.parameters(), module.buffers())
        return module.parameters()

    def update_parameters(self, model):
        """Takes the parameters of ``model``, as they are now, into the average."""
        averages = [p.detach() for p in self._averaged(self.module)]
        currents = [p.detach() for p in self._averaged(model)]
        with prong.no_grad():
            if self.n_averaged.item() == 0:
                for average, current in zip(averages, currents):
                    average.copy_(current)
            elif self.avg_fn is not None:
                for average, current in zip(averages, currents):
                    average.copy_(self.avg_fn(average, current, self.n_averaged))
            else:
                update = self.multi_avg_fn or get_swa_multi_avg_fn()
                update(averages, currents, self.n_averaged)
            if not self.use_buffers:
                for mine, theirs in zip(self.module.buffers(), model.buffers(), strict=True):
                    mine.copy_(theirs)
            self.n_averaged.add_(1)


@prong.no_grad()
def update_bn(loader, model, device=None):
    """Takes the running statistics of all batch norms anew, from one pass over ``loader``."""
    norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    was_training = model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the mean over all batches
    for input in loader:
        input = input[0] if isinstance(input, (list, tuple)) else input
        model(input if device is None else input.to(device))
    for norm, momentum in zip(norms, momenta):
        norm.momentum = momentum
    model.train(was_training)
