"""torch._dynamo.config: settings that programs set. Those in WORKING do something; setting another one says that it
does not.
"""

import contextlib
import sys
import types
import warnings

from prong import _core

recompile_limit = cache_size_limit = 8  # plans of one function; other calls are evaluated each time
error_on_recompile = False  # a call that no plan fits raises RuntimeError
suppress_errors = False  # where a back end written in Python raises, its graph runs as it is

# These are how capture works here, so another value has no effect.
accumulated_cache_size_limit = accumulated_recompile_limit = 256
verbose = False
dynamic_shapes = True
assume_static_by_default = False
automatic_dynamic_shapes = True
capture_scalar_outputs = True
capture_dynamic_output_shape_ops = True
capture_func_transforms = True
guard_nn_modules = True
inline_inbuilt_nn_modules = True
specialize_int = False
specialize_float = False
allow_rnn = True
force_parameter_static_shapes = False
optimize_ddp = False
compiled_autograd = False
log_compilation_metrics = False

WORKING = frozenset(
    {"recompile_limit", "cache_size_limit", "error_on_recompile", "suppress_errors"}
)


class _Config(types.ModuleType):
    """A module that hears of assignments to its settings."""

    def __setattr__(self, name, value):
        if name.startswith("_"):
            return super().__setattr__(name, value)
        if name not in vars(self):
            raise AttributeError(f"{__name__}.{name} does not exist")
        if name in ("recompile_limit", "cache_size_limit"):
            _core.capture_set_plan_limit(int(value))
            super().__setattr__("recompile_limit", value)
            return super().__setattr__("cache_size_limit", value)
        if name == "error_on_recompile":
            _core.capture_set_recompile_is_error(bool(value))
        elif name not in WORKING and value != vars(self)[name]:
            warnings.warn(
                f"{__name__}.{name} has no effect here: compile() behaves as if it were {vars(self)[name]!r}",
                stacklevel=2,
            )
            return None
        return super().__setattr__(name, value)


class patch(contextlib.ContextDecorator):
    """Settings for a with block or a function: patch(recompile_limit=16), patch("suppress_errors", True)."""

    def __init__(self, name=None, value=None, **settings):
        self._settings = dict(settings)
        if isinstance(name, dict):
            self._settings.update(name)
        elif name is not None:
            self._settings[name] = value

    def __enter__(self):
        module = sys.modules[__name__]
        self._before = {name: getattr(module, name) for name in self._settings}
        for name, value in self._settings.items():
            setattr(module, name, value)

    def __exit__(self, *error):
        for name, value in self._before.items():
            setattr(sys.modules[__name__], name, value)


sys.modules[__name__].__class__ = _Config
