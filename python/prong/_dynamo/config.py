"""torch._dynamo.config: settings that programs set; none is needed here, so none has an effect."""

cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = 256
suppress_errors = False
verbose = False
dynamic_shapes = True
assume_static_by_default = False
automatic_dynamic_shapes = True
capture_scalar_outputs = True
capture_dynamic_output_shape_ops = True
guard_nn_modules = True
