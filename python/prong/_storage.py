"""Storages as Python objects: the memory that views share. Used by pickle and deepcopy."""

import mmap
import weakref

from prong import _core

_alive: "weakref.WeakValueDictionary[int, UntypedStorage]" = weakref.WeakValueDictionary()


class UntypedStorage:
    """Bytes of memory. One object stands for one memory while it lives: identity means sharing."""

    _is_prong_storage = True

    def __init__(self, tensor):
        self._bytes = _core.Tensor._on_storage(
            tensor, 0, [tensor._storage_bytes()], [1], _core.uint8
        )

    @classmethod
    def of(cls, tensor) -> "UntypedStorage":
        """The storage object of a tensor's memory."""
        key = tensor._storage_ptr()
        found = _alive.get(key)
        if found is None or found.nbytes() != tensor._storage_bytes():
            found = cls(tensor)
            if key:
                _alive[key] = found
        return found

    @classmethod
    def over(cls, memory) -> "UntypedStorage":
        """A storage of these bytes of a uint8 tensor's memory only."""
        made = object.__new__(cls)
        made._bytes = memory
        return made

    @classmethod
    def from_file(cls, filename, shared: bool = False, nbytes: int = 0) -> "UntypedStorage":
        """The first bytes of a file, read page by page; what is written reaches the file if ``shared``."""
        if nbytes == 0:
            return cls.over(_core.functions["empty"](0, dtype=_core.uint8))
        if shared:
            with open(filename, "ab") as file:
                if file.tell() < nbytes:
                    file.truncate(nbytes)
        with open(filename, "r+b" if shared else "rb") as file:
            access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
            memory = memoryview(mmap.mmap(file.fileno(), nbytes, access=access))
        return cls.over(_core._from_buffer(memory, _core.uint8, 0, nbytes))

    def nbytes(self) -> int:
        return self._bytes.numel()

    size = nbytes
    __len__ = nbytes

    def data_ptr(self) -> int:
        return self._bytes.data_ptr()

    @property
    def device(self):
        return self._bytes.device

    def tolist(self) -> list:
        return self._bytes.tolist()

    def __getitem__(self, index):
        if isinstance(index, slice):
            return UntypedStorage.over(self._bytes[index])
        return self._bytes[index].item()

    def __setitem__(self, index, value):
        self._bytes[index] = value

    def untyped(self) -> "UntypedStorage":
        return self

    def clone(self) -> "UntypedStorage":
        return UntypedStorage(self._bytes.clone())

    def copy_(self, source, non_blocking: bool = False) -> "UntypedStorage":
        """Takes over the bytes of another storage."""
        self._bytes.copy_(source._bytes)
        return self

    def fill_(self, value: int) -> "UntypedStorage":
        """The same byte everywhere."""
        self._bytes.fill_(value)
        return self

    def cpu(self) -> "UntypedStorage":
        return self

    def element_size(self) -> int:
        return 1

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = self.clone()
        return memo[id(self)]

    def __reduce__(self):
        return rebuild_storage, (self._bytes.numpy().tobytes(),)

    def __repr__(self):
        return f"<prong.UntypedStorage of {self.nbytes()} bytes at {self.data_ptr():#x}>"


def rebuild_storage(data: bytes) -> UntypedStorage:
    """Unpickles a storage."""
    memory = _core.tensor([], dtype=_core.uint8)
    if data:
        memory = _core._from_buffer(memoryview(bytearray(data)), _core.uint8, 0, len(data))
    return UntypedStorage(memory)
