"""Optimizer: groups of parameters, their state, hooks around the step. Base of all optimizers."""

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from copy import deepcopy

import prong
from prong import Tensor, _core
from prong.autograd.profiler import record_function
from prong.nn.hooks import add_hook

_all_pre_hooks: OrderedDict = OrderedDict()
_all_post_hooks: OrderedDict = OrderedDict()


class _Required:
    def __repr__(self):
        return "<required parameter>"


required = _Required()


def register_optimizer_step_pre_hook(hook):
    """Calls ``hook(optimizer, args, kwargs)`` before each step of every optimizer."""
    return add_hook(_all_pre_hooks, hook)


def register_optimizer_step_post_hook(hook):
    """Calls ``hook(optimizer, args, kwargs)`` after each step of every optimizer."""
    return add_hook(_all_post_hooks, hook)


def check_rate(lr):
    """Raises for a rate that is no single number, or negative."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not lr >= 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")


def check_not_negative(**values):
    """Raises for a negative value: ``Invalid weight_decay value: -1``."""
    for name, value in values.items():
        if not value >= 0.0:
            raise ValueError(f"Invalid {name} value: {value}")


def check_betas(betas):
    """Raises unless both are in [0, 1)."""
    for i in range(2):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


def check_fused(fused, foreach, differentiable):
    """Raises where flags exclude each other."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def number(value):
    """A setting of a group as a Python number."""
    return value.item() if isinstance(value, Tensor) else value


def scalar(value, group):
    """A tensor for a number that belongs to a parameter, such as its count of steps."""
    double = prong.get_default_dtype() is prong.float64 and not group.get("fused")
    return prong.tensor(float(value), dtype=prong.float64 if double else prong.float32)


def _with_hooks(step):
    @functools.wraps(step)
    def hooked(self, *args, **kwargs):
        if not (
            self._optimizer_step_pre_hooks
            or self._optimizer_step_post_hooks
            or _all_pre_hooks
            or _all_post_hooks
            or _core._profile_is_on()
        ):
            return step(self, *args, **kwargs)
        with record_function(f"Optimizer.step#{type(self).__name__}.step"):
            for hook in [*_all_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()]:
                result = hook(self, (self, *args), kwargs)
                if result is None:
                    continue
                if not isinstance(result, tuple) or len(result) != 2:
                    raise RuntimeError(
                        f"{step} must return None or a tuple of (new_args, new_kwargs), "
                        f"but got {result}."
                    )
                (self, *args), kwargs = result
            out = step(self, *args, **kwargs)
            for hook in [*self._optimizer_step_post_hooks.values(), *_all_post_hooks.values()]:
                hook(self, (self, *args), kwargs)
            return out

    hooked.hooked = True
    return hooked


class Optimizer:
    """Base of all optimizers.

    A subclass of ours says which state a parameter has (``_new_state``) and makes the step of one
    group with one op over lists (``_step_group``); a subclass of a user's own overrides ``step``.
    """

    _HOOKS = (
        "_optimizer_step_pre_hooks",
        "_optimizer_step_post_hooks",
        "_optimizer_state_dict_pre_hooks",
        "_optimizer_state_dict_post_hooks",
        "_optimizer_load_state_dict_pre_hooks",
        "_optimizer_load_state_dict_post_hooks",
    )

    def __init__(self, params, defaults):
        self.defaults = defaults
        for name in self._HOOKS:
            setattr(self, name, OrderedDict())
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {prong.typename(params)}"
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    # ── the step ──

    def step(self, closure=None):
        """Updates the parameters by their gradients; ``closure`` computes the loss anew."""
        if type(self)._step_group is Optimizer._step_group:
            raise NotImplementedError
        loss = None
        if closure is not None:
            with prong.enable_grad():
                loss = closure()
        for group in self.param_groups:
            self._step_group(group)
        return loss

    def _step_group(self, group):
        raise NotImplementedError

    def _new_state(self, group, param) -> dict:
        raise NotImplementedError

    def _gather(self, group, names):
        """Parameters with gradients, the gradients, and a list for each name of state, in lists."""
        if group["differentiable"]:
            raise NotImplementedError(
                "prong.optim: differentiable=True (gradients through the step) is not there yet"
            )
        if group.get("capturable"):
            raise AssertionError(
                "If capturable=True, params and state_steps must be on supported devices: "
                "['cuda', 'xpu', 'hpu', 'privateuseone', 'xla']."
            )
        lists = _core._gather_state(group["params"], self.state, names)
        if lists is None:
            for param in group["params"]:
                if param.grad is not None and not self.state[param]:
                    self.state[param].update(self._new_state(group, param))
            lists = _core._gather_state(group["params"], self.state, names)
            if lists is None:
                raise KeyError(self._missing(group, names))
        return lists

    def _missing(self, group, names):
        for param in group["params"]:
            for name in names:
                if param.grad is not None and name not in self.state[param]:
                    return name

    @staticmethod
    def profile_hook_step(func):
        """A step function with the hooks and the profile's span around it."""
        return _with_hooks(func)

    def _patch_step_function(self):
        cls = type(self)
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{cls.__name__}.zero_grad"
        if not getattr(cls.step, "hooked", False):
            cls.step = self.profile_hook_step(cls.step)

    def zero_grad(self, set_to_none=True):
        """Takes the gradients away, or sets them to zero."""
        for group in self.param_groups:
            if set_to_none:
                _core._clear_gradients(group["params"])
                continue
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    # ── groups ──

    def add_param_group(self, param_group):
        """Adds parameters with settings of their own."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        self._set_params(param_group, list(params))
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization parameter "
                    f"{name}"
                )
            param_group.setdefault(name, default)
        self._check_group(param_group)
        self.param_groups.append(param_group)

    def _set_params(self, group, params):
        names = [p[0] for p in params if isinstance(p, tuple)]
        if names and len(names) != len(params):
            group["params"] = [p[1] if isinstance(p, tuple) else p for p in params]
            raise ValueError(
                "all optimizer params should be with/without names. Some param names are missing"
            )
        group["params"] = [p[1] for p in params] if names else params
        if names:
            group["param_names"] = names
        for param in group["params"]:
            if not isinstance(param, Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is "
                    + prong.typename(param)
                )
            if not self.defaults.get("differentiable") and not (
                param.is_leaf or param.retains_grad
            ):
                raise ValueError("can't optimize a non-leaf Tensor")

    def _check_group(self, param_group):
        params = set(param_group["params"])
        if len(params) != len(param_group["params"]):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error; see github.com/pytorch/pytorch/issues/40967 for more "
                "information",
                stacklevel=4,
            )
        for group in self.param_groups:
            if ("param_names" in param_group) != ("param_names" in group):
                how = "with names" if "param_names" in param_group else "without names"
                raise ValueError(
                    "all optimizer param groups should be with/without names. "
                    f"cannot add param group {how} to the optimizer"
                )
            if not params.isdisjoint(group["params"]):
                raise ValueError("some parameters appear in more than one parameter group")

    def __repr__(self):
        text = f"{type(self).__name__} ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for key in sorted(group):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"

    # ── hooks ──

    def register_step_pre_hook(self, hook):
        """Calls ``hook(optimizer, args, kwargs)`` before each step; it may give new ones."""
        return add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook):
        """Calls ``hook(optimizer, args, kwargs)`` after each step."""
        return add_hook(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """Calls ``hook(optimizer)`` before the state dict is made."""
        return add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """Calls ``hook(optimizer, state_dict)`` with the state dict; it may give another."""
        return add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """Calls ``hook(optimizer, state_dict)`` before loading; it may give another."""
        return add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """Calls ``hook(optimizer)`` after loading."""
        return add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # ── state dicts ──

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        for name in self._HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)
        # Files of old have fewer settings, and counts of steps that are plain numbers.
        for group in self.param_groups:
            for name in ("amsgrad", "maximize", "capturable", "differentiable"):
                if name in self.defaults:
                    group.setdefault(name, False)
            for name, value in self.defaults.items():
                group.setdefault(name, value)
            for param in group["params"]:
                for name in ("step", "mu_product", "eta", "mu"):
                    have = self.state[param].get(name) if param in self.state else None
                    if have is not None and not isinstance(have, Tensor):
                        self.state[param][name] = scalar(have, group)

    def state_dict(self):
        """The settings and the state, with numbers in place of the parameters."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        places: dict[int, int] = {}
        groups, start = [], 0
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            for i, param in enumerate(group["params"], start):
                places.setdefault(id(param), i)
            packed["params"] = [places[id(param)] for param in group["params"]]
            start += len(group["params"])
            groups.append(packed)
        state = {
            (places[id(key)] if isinstance(key, Tensor) else key): value
            for key, value in self.state.items()
        }
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            replaced = hook(self, result)
            if replaced is not None:
                result = replaced
        return result

    def load_state_dict(self, state_dict):
        """Takes over the settings and the state that ``state_dict`` gave."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            replaced = hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        groups, saved = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of "
                "optimizer's group"
            )
        params, settings = {}, {}
        for group, old in zip(groups, saved, strict=True):
            for key, param in zip(old["params"], group["params"], strict=True):
                params[key], settings[key] = param, old
        state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = _like_param(value, params[key], settings[key])
            else:
                state[key] = value
        for group, new in zip(groups, saved, strict=True):
            new["params"] = group["params"]
            if "param_names" in group:
                new.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)


def _like_param(value, param, group, key=None):
    # State has the dtype of its parameter; counts of steps keep their own.
    if isinstance(value, Tensor):
        if key == "step":
            is_single = group.get("capturable") or group.get("fused")
            return value.to(dtype=prong.float32) if is_single else value
        return value.to(dtype=param.dtype) if param.is_floating_point() else value
    if isinstance(value, dict):
        return {k: _like_param(v, param, group, k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return type(value)(_like_param(v, param, group) for v in value)
    return value
