"""How a composition becomes prong.name, Tensor.name, Tensor.name_ and takes out=."""

import functools

from prong._out import takes_out as with_out

FUNCTIONS: dict = {}  # prong.name
METHODS: dict = {}  # Tensor.name
REPLACED: dict = {}  # prong.name, more than the op of that name


def composition(
    *, function=True, method=False, inplace=False, takes_out=True, name=None, replaces=False
):
    """Decorates a function over ops. In-place forms are methods that write the result into self."""

    def decorate(f):
        own = name or f.__name__
        made = with_out(f) if takes_out else f
        if function:
            (REPLACED if replaces else FUNCTIONS)[own] = made
        if method:
            METHODS[own] = f
        if inplace:
            METHODS[own + "_"] = _inplace(f, own + "_")
        return made

    return decorate


def _inplace(f, name):
    @functools.wraps(f)
    def write(self, *args, **kwargs):
        result = f(self, *args, **kwargs)
        if result.shape != self.shape:
            raise RuntimeError(
                f"output with shape {list(self.shape)} doesn't match the broadcast shape "
                f"{list(result.shape)}"
            )
        return self.copy_(result)

    write.__name__ = write.__qualname__ = name
    write.__doc__ = f"In place: {f.__doc__}"
    return write
