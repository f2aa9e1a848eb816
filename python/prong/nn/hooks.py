"""Handles of registered hooks, so that they can be taken away again."""

import itertools

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
