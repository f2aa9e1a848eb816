"""freeze: a scripted module whose attributes do not change any more."""

from prong.jit.archive import to_bytes
from prong.jit.loading import from_bytes
from prong.jit.modules import ScriptModule


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """A copy of a scripted module in evaluation mode; later changes of the original do not reach it."""
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input: give torch.jit.freeze what torch.jit.script gave"
        )
    if mod.training:
        raise RuntimeError("Freezing needs a module in eval mode: call .eval() before freezing")
    # The attributes as they are now, not as they were when the module was scripted.
    return from_bytes(to_bytes(mod)).eval()


def optimize_for_inference(mod, other_methods=None):
    """The frozen module: Prong optimizes at the first call."""
    return freeze(mod.eval()) if mod.training else mod
