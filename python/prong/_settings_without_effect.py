"""Modules of settings that mean nothing here (_inductor.config): they take what is assigned, and say so once."""

import contextlib
import types
import warnings


class _Settings(types.ModuleType):
    def __setattr__(self, name, value):
        if not name.startswith("_") and name not in vars(self):
            warnings.warn(f"{self.__name__}.{name} has no effect here: {self._why}", stacklevel=2)
        super().__setattr__(name, value)

    def __getattr__(self, name):
        raise AttributeError(
            f"{self.__name__}.{name} is not set, and has no effect here: {self._why}"
        )

    @contextlib.contextmanager
    def patch(self, name=None, value=None, **settings):
        """Settings for a with block or a function."""
        if isinstance(name, dict):
            settings.update(name)
        elif name is not None:
            settings[name] = value
        before = {k: vars(self)[k] for k in settings if k in vars(self)}
        for k, v in settings.items():
            setattr(self, k.replace(".", "_"), v)
        try:
            yield
        finally:
            for k in settings:
                vars(self).pop(k.replace(".", "_"), None)
            vars(self).update(before)


def without_effect(module, why):
    """Makes a module one that takes any setting; `why` it has no effect."""
    module.__dict__["_why"] = why
    module.__class__ = _Settings
