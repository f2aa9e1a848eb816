"""GradScaler: scales a loss up so that small gradients survive low precision, and the gradients back down."""

import warnings

import prong
from prong import Tensor

_READY, _UNSCALED, _STEPPED = "READY", "UNSCALED", "STEPPED"


class GradScaler:
    """On the CPU it does what it does elsewhere; for a device that is not here it lets all through."""

    def __init__(
        self,
        device="cuda",
        init_scale=2.0**16,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self._device = device
        self._enabled = enabled
        if enabled and device != "cpu":
            warnings.warn(
                f"torch.{device}.amp.GradScaler is enabled, but {device.upper()} is not available.  "
                "Disabling.",
                stacklevel=2,
            )
            self._enabled = False
        if self._enabled:
            if growth_factor <= 1.0:
                raise AssertionError("The growth factor must be > 1.0.")
            if backoff_factor >= 1.0:
                raise AssertionError("The backoff factor must be < 1.0.")
            self._init_scale = init_scale
            self._growth_factor = growth_factor
            self._backoff_factor = backoff_factor
            self._growth_interval = growth_interval
            self._scale = None
            self._init_growth_tracker = 0
            self._growth_tracker = 0
            self._records = ()

    def _scale_tensor(self):
        if self._scale is None:
            self._scale = prong.tensor(self._init_scale, dtype=prong.float32)
            self._growth_tracker = self._init_growth_tracker
        return self._scale

    # (optimizer, stage, found_inf) of those that were unscaled or stepped since the last update: a
    # tuple, which is replaced and never changed, so that compiled steps can follow it.
    def _record(self, optimizer):
        for known, stage, found_inf in self._records:
            if known is optimizer:
                return stage, found_inf
        return _READY, None

    def _note(self, optimizer, stage, found_inf):
        others = [r for r in self._records if r[0] is not optimizer]
        self._records = (*others, (optimizer, stage, found_inf))

    @property
    def _per_optimizer_states(self):
        return {id(o): {"stage": stage, "found_inf": found} for o, stage, found in self._records}

    def scale(self, outputs):
        """A tensor, or all tensors of lists and tuples, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale_tensor().to(
                prong.promote_types(outputs.dtype, prong.float32)
            )
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(value) for value in outputs)
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer):
        """Divides the gradients of the optimizer's parameters by the scale, for clipping them."""
        if not self._enabled:
            return
        stage, _ = self._record(optimizer)
        if stage == _UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if stage == _STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        if self._scale is None:
            raise AssertionError(
                "Attempted unscale_() but _scale is None.  This may indicate your script did not use "
                "scaler.scale(loss or outputs) earlier in the iteration."
            )
        gradients = []
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                if parameter.grad.dtype is prong.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                gradients.append(parameter.grad)
        found_inf = False
        with prong.no_grad():
            # Asked before anything is written: what a compiled step has written cannot be undone.
            finite = [prong.isfinite(g).all() for g in gradients]
            if finite and not prong.stack(finite).all():
                found_inf = True
            inverse = (1.0 / self._scale.double()).item()
            for g in gradients:
                g.mul_(inverse)
        self._note(optimizer, _UNSCALED, found_inf)

    def step(self, optimizer, *args, **kwargs):
        """optimizer.step(), unless a gradient is not finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        stage, found_inf = self._record(optimizer)
        if stage == _STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if stage == _READY:
            self.unscale_(optimizer)
            _, found_inf = self._record(optimizer)
        if found_inf is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None if found_inf else optimizer.step(*args, **kwargs)
        self._note(optimizer, _STEPPED, found_inf)
        return result

    def update(self, new_scale=None):
        """Lowers the scale after a step with gradients that were not finite, raises it after many without."""
        if not self._enabled:
            return
        scale = self._scale_tensor()
        if new_scale is not None:
            scale.fill_(new_scale.item() if isinstance(new_scale, Tensor) else new_scale)
        else:
            found = [found_inf for _, _, found_inf in self._records if found_inf is not None]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            if any(found):
                scale.mul_(self._backoff_factor)
                self._growth_tracker = 0
            else:
                self._growth_tracker += 1
                if self._growth_tracker == self._growth_interval:
                    grown = scale * self._growth_factor
                    scale.copy_(prong.where(prong.isfinite(grown), grown, scale))
                    self._growth_tracker = 0
        self._records = ()

    def get_scale(self):
        """The scale as a number."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self):
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        self._growth_interval = new_interval

    def _get_growth_tracker(self):
        return self._init_growth_tracker if self._scale is None else self._growth_tracker

    def is_enabled(self):
        """Whether it does anything."""
        return self._enabled

    def state_dict(self):
        """The scale and how it changes; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict):
        """Goes on where ``state_dict`` was taken."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance "
                "of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = self._growth_tracker = state_dict["_growth_tracker"]

    def __getstate__(self):
        if self._enabled and self._records:
            raise AssertionError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at the "
                "end after scaler.update()."
            )
        state = dict(vars(self))
        if self._enabled:
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = None
        return state
