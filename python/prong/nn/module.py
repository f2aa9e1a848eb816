"""Module: the base of everything that has parameters, buffers and submodules."""

import functools
from collections import OrderedDict, namedtuple

import prong
from prong import Tensor, _core

from .backward_hooks import call_with_backward_hooks, first_tensor
from .hooks import (  # noqa: F401 (found here by programs)
    add_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from .hooks import global_hooks as _global_hooks
from .parameter import Buffer, Parameter
from .state import StateDict, load_into, load_own_tensors, text_of_modules


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def _replaced(changed, value):
    return value if changed is None else changed


class Module:
    """Base class of all models; assign parameters, buffers and modules as attributes and write ``forward``.

    The interface, names and order of ``state_dict`` are PyTorch's.
    """

    training: bool
    dump_patches = False
    _version = 1
    _compiled_call_impl = None  # of the instances that compile() was called on

    def __init__(self, *args, **kwargs):
        if args or kwargs:
            given = (
                f"{len(args)} positional and {len(kwargs)} keyword"
                if args and kwargs
                else (
                    f"keyword argument '{next(iter(kwargs))}'"
                    if kwargs
                    else f"{len(args)} positional"
                )
            )
            raise TypeError(
                f"{type(self).__name__}.__init__() takes no arguments of its own, but got {given}"
            )
        put = super().__setattr__
        put("training", True)
        put("_parameters", {})
        put("_buffers", {})
        put("_non_persistent_buffers_set", set())
        put("_modules", {})
        for kind in _HOOK_KINDS:
            put(kind, OrderedDict())
        put("_is_full_backward_hook", None)
        put("_forward_hooks_with_kwargs", set())
        put("_forward_pre_hooks_with_kwargs", set())
        put("_forward_hooks_always_called", set())

    def forward(self, *args, **kwargs):
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    # ── calling ──

    def __call__(self, *args, **kwargs):
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        if not (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or _on_forward
            or _on_forward_pre
            or _on_backward
            or _on_backward_pre
        ):
            return self.forward(*args, **kwargs)
        return self._call_with_hooks(args, kwargs)

    def _call_impl(self, *args, **kwargs):
        return self._call_with_hooks(args, kwargs)

    def compile(self, *args, **kwargs):
        """Has calls of this module compiled; the arguments are those of ``prong.compile``. The module stays what it
        is, and so do the names of its state; copies of it are not compiled.
        """
        self.__dict__["_compiled_call_impl"] = prong.compile(self._call_impl, *args, **kwargs)

    def _call_with_hooks(self, args, kwargs):
        for key, hook in [*_global_hooks.forward_pre.items(), *self._forward_pre_hooks.items()]:
            if key in self._forward_pre_hooks_with_kwargs:
                changed = hook(self, args, kwargs)
                if changed is not None:
                    if not (isinstance(changed, tuple) and len(changed) == 2):
                        raise RuntimeError(
                            "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                            f"but got {changed}."
                        )
                    args, kwargs = changed
            else:
                changed = hook(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        pre_hooks = [*_global_hooks.backward_pre.values(), *self._backward_pre_hooks.values()]
        hooks = [*_global_hooks.backward.values()]
        if self._is_full_backward_hook is not False:
            hooks += self._backward_hooks.values()
        if not hooks and not pre_hooks:
            result = self._call_forward(args, kwargs)
        else:
            result = call_with_backward_hooks(
                self, hooks, pre_hooks, lambda given: self._call_forward(given, kwargs), args
            )
        if self._is_full_backward_hook is False:
            self._hook_last_step(result)
        return result

    def _hook_last_step(self, result):
        # The old kind of hook: it sees the gradients of the last step of the call only.
        tensor = first_tensor(result)
        step = None if tensor is None else tensor.grad_fn
        if step is not None:
            for hook in self._backward_hooks.values():
                step.register_hook(functools.partial(hook, self))

    def _call_forward(self, args, kwargs):
        result, done = None, set()
        hooks = [*_global_hooks.forward.items(), *self._forward_hooks.items()]
        try:
            result = self.forward(*args, **kwargs)
            for key, hook in hooks:
                done.add(key)
                result = self._run_forward_hook(key, hook, args, kwargs, result)
        except Exception:
            for key, hook in hooks:
                if key in self._forward_hooks_always_called and key not in done:
                    self._run_forward_hook(key, hook, args, kwargs, result)
            raise
        return result

    def _run_forward_hook(self, key, hook, args, kwargs, result):
        if key in self._forward_hooks_with_kwargs:
            changed = hook(self, args, kwargs, result)
        else:
            changed = hook(self, args, result)
        return result if changed is None else changed

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """``hook(module, args)`` runs before forward and may give new arguments."""
        handle = add_hook(self._forward_pre_hooks, hook, prepend)
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs.add(handle.id)
        return handle

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """``hook(module, args, output)`` runs after forward and may give a new output."""
        handle = add_hook(self._forward_hooks, hook, prepend)
        if with_kwargs:
            self._forward_hooks_with_kwargs.add(handle.id)
        if always_call:
            self._forward_hooks_always_called.add(handle.id)
        return handle

    def register_full_backward_hook(self, hook, prepend=False):
        """``hook(module, grad_input, grad_output)`` sees, and may replace, the gradients of the inputs."""
        self._check_hook_kind(True)
        return add_hook(self._backward_hooks, hook, prepend)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """``hook(module, grad_output)`` sees, and may replace, the gradients of the outputs."""
        return add_hook(self._backward_pre_hooks, hook, prepend)

    def register_backward_hook(self, hook):
        """The old kind: sees the gradients of the last step of forward only."""
        self._check_hook_kind(False)
        return add_hook(self._backward_hooks, hook)

    def _check_hook_kind(self, is_full):
        if self._is_full_backward_hook is (not is_full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. "
                "Please use only one of them."
            )
        self._is_full_backward_hook = is_full

    def register_state_dict_post_hook(self, hook):
        """``hook(module, state_dict, prefix, local_metadata)`` runs when the state dict is made."""
        return add_hook(self._state_dict_hooks, hook)

    _register_state_dict_hook = register_state_dict_post_hook

    def register_state_dict_pre_hook(self, hook):
        """``hook(module, prefix, keep_vars)`` runs before the state dict is made."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook):
        """``hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)`` runs before loading."""
        return add_hook(self._load_state_dict_pre_hooks, lambda *args: hook(self, *args))

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        return add_hook(
            self._load_state_dict_pre_hooks,
            (lambda *args: hook(self, *args)) if with_module else hook,
        )

    def register_load_state_dict_post_hook(self, hook):
        """``hook(module, incompatible_keys)`` runs after loading."""
        return add_hook(self._load_state_dict_post_hooks, hook)

    # ── registering ──

    def register_parameter(self, name, param):
        """Adds a parameter under ``name``; None reserves the name."""
        self._check_new_name(name, "parameter", self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{type(param).__name__}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        for hook in _global_hooks.parameter_registration.values():
            param = _replaced(hook(self, name, param), param)
        self._parameters[name] = param

    def register_buffer(self, name, tensor, persistent=True):
        """Adds a buffer: saved with the module unless ``persistent=False``, but no parameter."""
        self._check_new_name(name, "buffer", self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{type(tensor).__name__}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        for hook in _global_hooks.buffer_registration.values():
            tensor = _replaced(hook(self, name, tensor), tensor)
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name, module):
        """Adds a child module under ``name``."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        self._check_new_name(name, "module", self._modules)
        for hook in _global_hooks.module_registration.values():
            module = _replaced(hook(self, name, module), module)
        self._modules[name] = module

    register_module = add_module

    def _check_new_name(self, name, kind, registered):
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(
                f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else "")
            )
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in registered:
            raise KeyError(f"attribute '{name}' already exists")

    # ── attributes ──

    def __getattr__(self, name):
        # What C++ puts in its place at the end of this file does, too: each call comes here.
        for store in ("_parameters", "_buffers", "_modules"):
            found = self.__dict__.get(store)
            if found is not None and name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        own = self.__dict__
        if isinstance(value, Parameter):
            self._take_name(name, "parameters", "_buffers", "_modules")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if "_modules" not in own:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._take_name(name, "modules", "_parameters", "_buffers")
            for hook in _global_hooks.module_registration.values():
                value = _replaced(hook(self, name, value), value)
            own["_modules"][name] = value
        elif name in own.get("_parameters", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            own["_parameters"][name] = None
        elif name in own.get("_modules", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as child module '{name}' "
                    "(torch.nn.Module or None expected)"
                )
            own["_modules"][name] = None
        elif name in own.get("_buffers", ()) or isinstance(value, Buffer):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as buffer '{name}' "
                    "(torch.nn.Buffer, torch.Tensor or None expected)"
                )
            if name not in own["_buffers"]:
                self._take_name(name, "buffers", "_parameters", "_modules")
                self.register_buffer(name, value, getattr(value, "persistent", True))
            own["_buffers"][name] = value
        else:
            super().__setattr__(name, value)

    def _take_name(self, name, kind, *others):
        own = self.__dict__
        if "_parameters" not in own:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        own.pop(name, None)
        for store in others:
            own[store].pop(name, None)

    def __delattr__(self, name):
        for store in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(store, ()):
                del self.__dict__[store][name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self):
        names = {*super().__dir__(), *self._parameters, *self._buffers, *self._modules}
        return sorted(name for name in names if not name[0].isdigit())

    def __getstate__(self):
        return {k: v for k, v in self.__dict__.items() if k != "_compiled_call_impl"}

    def __setstate__(self, state):
        self.__dict__.update(state)
        for kind in _HOOK_KINDS:
            self.__dict__.setdefault(kind, OrderedDict())

    # ── walking ──

    def _named_members(self, members_of, prefix="", recurse=True, remove_duplicate=True):
        seen = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for module_name, module in modules:
            for name, value in members_of(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield (f"{module_name}." if module_name else "") + name, value

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        return self._named_members(
            lambda m: m._parameters.items(), prefix, recurse, remove_duplicate
        )

    def parameters(self, recurse=True):
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        return self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_children(self):
        seen = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self):
        for _, module in self.named_children():
            yield module

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        if memo is None:
            yield from self._modules_below(set(), prefix, remove_duplicate)
            return
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(
                    memo, f"{prefix}.{name}" if prefix else name, remove_duplicate
                )

    def _modules_below(self, seen, prefix, remove_duplicate):
        # By id: compiled functions follow a set of numbers, not one ordered by where objects lie.
        if id(self) in seen:
            return
        if remove_duplicate:
            seen.add(id(self))
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                below = f"{prefix}.{name}" if prefix else name
                yield from module._modules_below(seen, below, remove_duplicate)

    def modules(self):
        for _, module in self.named_modules():
            yield module

    def get_submodule(self, target):
        """The module at a dotted path."""
        module = self
        for name in filter(None, target.split(".")):
            if not hasattr(module, name):
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target, module, strict=False):
        """Replaces (or, unless ``strict``, adds) the module at a dotted path."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
        setattr(parent, name, module)

    def _get_tensor(self, target, kind, store):
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        if name not in getattr(module, store):
            raise AttributeError(f"`{name}` is not {kind}")
        return getattr(module, name)

    def get_parameter(self, target):
        return self._get_tensor(target, "an nn.Parameter", "_parameters")

    def get_buffer(self, target):
        return self._get_tensor(target, "a buffer", "_buffers")

    # ── changing everything below ──

    def apply(self, fn):
        """Calls ``fn(module)`` on every submodule, children first, then on this one."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def _apply(self, fn, recurse=True):
        if recurse:
            for child in self.children():
                child._apply(fn)
        for parameter in self._parameters.values():
            if parameter is not None:
                with prong.no_grad():
                    parameter.data = fn(parameter.data)
                    if parameter.grad is not None:
                        parameter.grad = fn(parameter.grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args, **kwargs):
        """Moves or converts parameters and buffers; only floating-point ones change dtype. Signatures of Tensor.to."""
        dtype = kwargs.get("dtype")
        for given in args:
            if isinstance(given, prong.dtype):
                dtype = given
            elif isinstance(given, Tensor):
                dtype = given.dtype
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )
        device = kwargs.get(
            "device", next((a for a in args if isinstance(a, (str, prong.device))), None)
        )
        if device is not None:
            prong.empty(0, device=device)  # raises for a device that is not there
        return (
            self
            if dtype is None
            else self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)
        )

    def float(self):
        return self.to(prong.float32)

    def double(self):
        return self.to(prong.float64)

    def half(self):
        return self.to(prong.float16)

    def bfloat16(self):
        return self.to(prong.bfloat16)

    def type(self, dst_type):
        return self._apply(lambda t: t.type(dst_type))

    def cpu(self):
        return self

    def to_empty(self, *, device, recurse=True):
        """New memory for all parameters and buffers, with whatever it holds."""
        return self._apply(lambda t: prong.empty_like(t, device=device), recurse)

    def cuda(self, device=None):
        return self.to("cuda")

    def xpu(self, device=None):
        return self.to("xpu")

    def ipu(self, device=None):
        return self.to("ipu")

    def mtia(self, device=None):
        return self.to("mtia")

    def share_memory(self):
        raise NotImplementedError("prong has no shared-memory tensors yet")

    def requires_grad_(self, requires_grad=True):
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        for parameter in self.parameters():
            if parameter.grad is not None:
                if set_to_none:
                    parameter.grad = None
                else:
                    parameter.grad = prong.zeros_like(parameter.grad)

    def train(self, mode=True):
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self):
        return self.train(False)

    # ── state ──

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """All parameters and persistent buffers by dotted name, sharing memory; detached unless ``keep_vars``."""
        if args:
            destination = args[0]
            prefix = args[1] if len(args) > 1 else prefix
            keep_vars = args[2] if len(args) > 2 else keep_vars
        if destination is None:
            destination = StateDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook in self._state_dict_hooks.values():
            changed = hook(self, destination, prefix, local_metadata)
            destination = destination if changed is None else changed
        return destination

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, tensor in [*self._parameters.items(), *self._buffers.items()]:
            if tensor is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = tensor if keep_vars else tensor.detach()
        extra = self._extra_state()
        if extra is not None:
            destination[f"{prefix}_extra_state"] = extra

    def _extra_state(self):
        return (
            self.get_extra_state()
            if type(self).get_extra_state is not Module.get_extra_state
            else None
        )

    def get_extra_state(self):
        raise RuntimeError("get_extra_state() was called on a module that does not override it")

    def set_extra_state(self, state):
        raise RuntimeError(
            "set_extra_state() was called on a module that does not override it; "
            "the state dict holds '_extra_state' for it"
        )

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copies (``assign``: takes over) the tensors of ``state_dict``; ``strict``: the names must match."""
        missing, unexpected = load_into(self, state_dict, strict, assign)
        return _IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        load_own_tensors(
            self,
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    # ── text ──

    def extra_repr(self):
        return ""

    def _get_name(self):
        return type(self).__name__

    def __repr__(self):
        return text_of_modules(self)


# Looked at by every call, so by the shortest way.
_on_forward, _on_forward_pre = _global_hooks.forward, _global_hooks.forward_pre
_on_backward, _on_backward_pre = _global_hooks.backward, _global_hooks.backward_pre
_HOOK_KINDS = (
    "_backward_hooks",
    "_backward_pre_hooks",
    "_forward_hooks",
    "_forward_pre_hooks",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


_core._install_module_getattr(Module)
