"""In-place changes of how a tensor looks at its memory."""

import prong
from prong import Tensor

from .registering import FUNCTIONS, METHODS


def _in_place(name: str):
    view = getattr(Tensor, name)

    def change(self: Tensor, *args, **kwargs) -> Tensor:
        return self._become(view(self, *args, **kwargs))

    change.__name__ = change.__qualname__ = name + "_"
    change.__doc__ = f"In place: this tensor becomes what {name} would give."
    METHODS[name + "_"] = change


for _name in ("t", "transpose", "swapaxes", "swapdims", "squeeze", "unsqueeze", "as_strided"):
    _in_place(_name)


def as_strided_(input: Tensor, size, stride, storage_offset: int | None = None) -> Tensor:
    """In place: other sizes and strides over the same memory."""
    return input.as_strided_(size, stride, storage_offset)


def resize_as_(input: Tensor, the_template: Tensor, *, memory_format=None) -> Tensor:
    """In place: the shape of another tensor."""
    return input.resize_(the_template.shape)


def set_(self: Tensor, source=None, storage_offset: int = 0, size=None, stride=None) -> Tensor:
    """In place: the memory, sizes and strides of another tensor, or of a storage."""
    if source is None:
        return self._become(prong.empty(0, dtype=self.dtype))
    if isinstance(source, Tensor):
        if source.dtype is not self.dtype:
            raise RuntimeError(
                f"Could not set tensor of type {source.dtype} to a tensor of type {self.dtype}"
            )
        view = (
            source
            if size is None
            else source.as_strided(size, stride or _dense(size), storage_offset)
        )
        return self._become(view)
    owner = source._bytes
    count = source.nbytes() // self.element_size()
    sizes = [count - storage_offset] if size is None else list(size)
    return self._become(
        Tensor._on_storage(owner, storage_offset, sizes, list(stride or _dense(sizes)), self.dtype)
    )


def _dense(sizes) -> list[int]:
    strides: list[int] = []
    step = 1
    for size in reversed(list(sizes)):
        strides.insert(0, step)
        step *= max(size, 1)
    return strides


METHODS["resize_as_"] = resize_as_
METHODS["set_"] = set_
FUNCTIONS["as_strided_"] = as_strided_
FUNCTIONS["resize_as_"] = resize_as_
