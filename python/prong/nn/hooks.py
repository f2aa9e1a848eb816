"""Handles of registered hooks, so that they can be taken away again."""

import itertools
from collections import OrderedDict

_ids = itertools.count()


class RemovableHandle:
    """What ``register_*_hook`` returns; ``remove()`` or leaving a ``with`` block takes the hook away."""

    def __init__(self, hooks):
        self.hooks = hooks
        self.id = next(_ids)

    def remove(self):
        self.hooks.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()


def add_hook(hooks, hook, prepend=False):
    """Puts ``hook`` into the ordered dict ``hooks``, at its front if asked; gives its handle."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


class GlobalHooks:
    """The hooks that hold for all modules, by kind."""

    def __init__(self):
        self.forward: OrderedDict = OrderedDict()
        self.forward_pre: OrderedDict = OrderedDict()
        self.backward: OrderedDict = OrderedDict()
        self.backward_pre: OrderedDict = OrderedDict()
        self.parameter_registration: OrderedDict = OrderedDict()
        self.buffer_registration: OrderedDict = OrderedDict()
        self.module_registration: OrderedDict = OrderedDict()


global_hooks = GlobalHooks()


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """A forward hook on every module."""
    if with_kwargs or always_call:
        raise NotImplementedError(
            "prong has no global forward hooks with_kwargs or always_call: register them on modules"
        )
    return add_hook(global_hooks.forward, hook)


def register_module_forward_pre_hook(hook):
    """A forward pre-hook on every module."""
    return add_hook(global_hooks.forward_pre, hook)


def register_module_full_backward_hook(hook):
    """A full backward hook on every module."""
    return add_hook(global_hooks.backward, hook)


def register_module_full_backward_pre_hook(hook):
    """A full backward pre-hook on every module."""
    return add_hook(global_hooks.backward_pre, hook)


def register_module_parameter_registration_hook(hook):
    """``hook(module, name, parameter)`` when a parameter is registered; may give another one."""
    return add_hook(global_hooks.parameter_registration, hook)


def register_module_buffer_registration_hook(hook):
    """``hook(module, name, buffer)`` when a buffer is registered; may give another one."""
    return add_hook(global_hooks.buffer_registration, hook)


def register_module_module_registration_hook(hook):
    """``hook(module, name, submodule)`` when a submodule is registered; may give another one."""
    return add_hook(global_hooks.module_registration, hook)
