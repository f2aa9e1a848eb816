"""Grad modes as context managers and decorators. Forked tasks inherit them."""

import functools

from prong import _core
from prong._core import is_grad_enabled, is_inference_mode_enabled

__all__ = [
    "enable_grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_grad_enabled",
]

_CO_GENERATOR = 0x20  # inspect.CO_GENERATOR, without loading inspect


class _Mode:
    """Saves the modes on entry and puts them back on exit; `_enter` changes them."""

    _saved = None  # of the block around it, and the modes before

    def __enter__(self):
        self._saved = (self._saved, _core._get_modes())
        self._enter()
        return None

    def __exit__(self, *exception):
        self._saved, modes = self._saved
        _core._set_modes(modes)
        return False

    def clone(self):
        return type(self)()

    def __call__(self, function):
        if isinstance(function, type):
            function.__init__ = self(function.__init__)
            return function
        if getattr(function, "__code__", None) and function.__code__.co_flags & _CO_GENERATOR:
            return self._wrap_generator(function)

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)

        return wrapped

    def _wrap_generator(self, function):
        # The mode holds inside the generator's own code only, not while its consumer runs.
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            generator = function(*args, **kwargs)
            send, value = generator.send, None
            while True:
                try:
                    with self.clone():
                        item = send(value)
                except StopIteration as stop:
                    return stop.value
                try:
                    send, value = generator.send, (yield item)
                except GeneratorExit:
                    with self.clone():
                        generator.close()
                    raise
                except BaseException as error:
                    send, value = generator.throw, error

        return wrapped


class _PlainMode(_Mode):
    """A mode without arguments: also a decorator without parentheses."""

    def __new__(cls, function=None):
        return object.__new__(cls) if function is None else object.__new__(cls)(function)

    def __init__(self, function=None):
        pass


class no_grad(_PlainMode):
    """Gradients are not recorded."""

    def _enter(self):
        _core._set_grad_enabled(False)


class enable_grad(_PlainMode):
    """Gradients are recorded again inside no_grad; in inference mode it changes nothing."""

    def _enter(self):
        if not is_inference_mode_enabled():
            _core._set_grad_enabled(True)


class set_grad_enabled(_Mode):
    """Takes effect when made, and until the end of the with block if there is one."""

    def __init__(self, mode: bool):
        if not isinstance(mode, bool):
            raise TypeError(
                f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not "
                f"{type(mode).__name__}"
            )
        self.mode = mode
        self._before = _core._get_modes()
        _core._set_grad_enabled(mode)

    def __call__(self, function):
        _core._set_modes(self._before)  # as a decorator it holds inside the function only
        return super().__call__(function)

    def __enter__(self):
        self._saved = (self._saved, self._before)
        _core._set_grad_enabled(self.mode)

    def clone(self):
        made = object.__new__(set_grad_enabled)
        made.mode, made._before = self.mode, _core._get_modes()
        return made


class inference_mode(_Mode):
    """No gradients, nor later for what is made inside; inference_mode(False) leaves it."""

    def __new__(cls, mode=True):
        if isinstance(mode, bool):
            return object.__new__(cls)
        made = object.__new__(cls)
        made.mode = True
        return made(mode)

    def __init__(self, mode: bool = True):
        self.mode = mode

    def _enter(self):
        if self.mode:
            _core._enter_inference_mode()
        else:
            _core._set_modes(0)

    def clone(self):
        return inference_mode(self.mode)
