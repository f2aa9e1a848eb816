"""trace: not there yet; says so."""


class TracerWarning(Warning):
    """Kept for programs that filter it."""


def trace(func, example_inputs=None, **options):
    """Records a call; not available yet."""
    raise NotImplementedError(
        "prong has no torch.jit.trace yet: use torch.jit.script, which compiles the source and keeps its control flow"
    )


def trace_module(mod, inputs, **options):
    """Records calls of methods; not available yet."""
    raise NotImplementedError("prong has no torch.jit.trace_module yet: use torch.jit.script")
