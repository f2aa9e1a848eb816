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

fail_on_recompile_limit_hit = False  # so does one of a function that has recompile_limit plans
disable = False  # compiled functions run plainly

# These are how capture works here, so another value has no effect.
accumulated_cache_size_limit = accumulated_recompile_limit = 256
verbose = False
dynamic_shapes = True
assume_static_by_default = False
automatic_dynamic_shapes = True
capture_scalar_outputs = True
capture_dynamic_output_shape_ops = True
capture_func_transforms = True
capture_autograd_function = True
guard_nn_modules = True
inline_inbuilt_nn_modules = True
specialize_int = False
specialize_float = False
allow_rnn = True
allow_unspec_int_on_nn_module = True
force_parameter_static_shapes = False
force_nn_module_property_static_shapes = False
optimize_ddp = False
compiled_autograd = False
log_compilation_metrics = False
trace_numpy = False
trace_autograd_ops = True
minimum_call_count = 1
verify_correctness = False
dead_code_elimination = True
replay_side_effects = True
skip_nnmodule_hook_guards = False
skip_fsdp_guards = True
skip_torchrec = True
guard_nn_modules_using_dict_tags = True
report_guard_failures = True
prepare_freezing = False
rewrite_assert_with_torch_assert = False
enable_trace_contextlib = True
enable_cpp_guard_manager = True
prefer_deferred_runtime_asserts_over_guards = False
do_not_emit_runtime_asserts = False
skip_code_recursive_on_recompile_limit_hit = False
only_allow_pt2_compliant_ops = False
nested_graph_breaks = True
allow_ignore_mark_dynamic = True
cprofile = False
log_file_name = None
replay_record_enabled = False
repro_after = None
repro_level = 2
repro_forward_only = False
repro_tolerance = 1e-3
base_dir = debug_dir_root = ""
numpy_default_float = "float64"
numpy_default_complex = "complex128"
numpy_default_int = "int64"
use_numpy_random_stream = False
error_on_nested_fx_trace = False
error_on_nested_jit_trace = False
raise_on_ctx_manager_usage = False
reorderable_logging_functions: set = set()
ignore_logging_functions: set = set()
traceable_tensor_subclasses: set = set()
fake_tensor_cache_enabled = False
capture_profiler_record_function = True
run_gc_after_compile = False
use_lazy_graph_module = False
suppress_warnings = False

_SWITCHES = {
    "error_on_recompile": _core.capture_set_recompile_is_error,
    "fail_on_recompile_limit_hit": _core.capture_set_limit_is_error,
    "disable": _core.capture_set_off,
}
_LIMITS = ("recompile_limit", "cache_size_limit")
WORKING = frozenset({*_SWITCHES, *_LIMITS, "suppress_errors"})


class _Config(types.ModuleType):
    """A module that hears of assignments to its settings."""

    def __setattr__(self, name, value):
        if name.startswith("_"):
            return super().__setattr__(name, value)
        if name not in vars(self):
            raise AttributeError(f"{__name__}.{name} does not exist")
        if name in _LIMITS:
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise TypeError(
                    f"{__name__}.{name} takes a number of plans, 0 or more, not {value!r}"
                )
            _core.capture_set_plan_limit(value)
            for each in _LIMITS:
                super().__setattr__(each, value)
            return None
        if name in _SWITCHES:
            _SWITCHES[name](bool(value))
        elif name not in WORKING and value != vars(self)[name]:
            warnings.warn(
                f"{__name__}.{name} has no effect here: compile() behaves as if it were {vars(self)[name]!r}",
                stacklevel=3 if sys._getframe(1).f_code is patch.__enter__.__code__ else 2,
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
        for name in self._settings:
            if name not in vars(module) or name.startswith("_"):
                raise AttributeError(f"{__name__}.{name} does not exist")
        self._before = {name: getattr(module, name) for name in self._settings}
        for name, value in self._settings.items():
            setattr(module, name, value)

    def __exit__(self, *error):
        for name, value in self._before.items():
            setattr(sys.modules[__name__], name, value)


def __getattr__(name):
    raise AttributeError(f"{__name__}.{name} does not exist")


sys.modules[__name__].__class__ = _Config
