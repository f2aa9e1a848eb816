"""Reads what torch.save wrote before PyTorch 1.6: pickles one after another, then the storages' bytes."""

from pickle import UnpicklingError

import prong

from .allowed import Granted
from .opcodes import PickleReader
from .rebuild import LoadedStorage
from .storages import StorageType, place

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001


def _no_persistent(identity):
    raise UnpicklingError("a persistent id where none may be")


def load_legacy(file, granted: Granted, map_location):
    """The object in a file of the old format, which begins at the file's position."""
    magic = PickleReader(file, granted, _no_persistent).load()
    if magic != _MAGIC:
        raise RuntimeError("Invalid magic number; corrupt file?")
    protocol = PickleReader(file, granted, _no_persistent).load()
    if protocol != _PROTOCOL:
        raise RuntimeError(f"Invalid protocol version: {protocol}")
    system = PickleReader(file, granted, _no_persistent).load()
    if isinstance(system, dict) and system.get("little_endian") is False:
        raise NotImplementedError("prong reads no old-format files of big-endian machines")
    storages: dict[str, LoadedStorage] = {}

    def storage(identity):
        if not isinstance(identity, tuple) or len(identity) != 6 or identity[0] != "storage":
            raise UnpicklingError("an unknown kind of persistent id")
        _, kind, key, location, count, view = identity
        if not isinstance(kind, StorageType) or type(count) is not int or count < 0:
            raise UnpicklingError("a storage's description is damaged")
        if key not in storages:
            # Its bytes come at the end of the file: as many as are still there at most.
            _check_left(file, count * kind.dtype.itemsize)
            data = prong.empty(count * kind.dtype.itemsize, dtype=prong.uint8)
            place(location, map_location, data)
            storages[key] = LoadedStorage(data, kind.dtype)
        if view is None:
            return storages[key]
        _, offset, view_count = view
        size = kind.dtype.itemsize
        data = storages[key].data[offset * size : (offset + view_count) * size]
        return LoadedStorage(data, kind.dtype)

    result = PickleReader(file, granted, storage).load()
    keys = PickleReader(file, granted, _no_persistent).load()
    if not isinstance(keys, list):
        raise UnpicklingError("the list of storages is damaged")
    for key in keys:
        if key not in storages:
            raise UnpicklingError(f"a storage {key!r} that no tensor uses")
        _fill(file, storages[key])
    return result


def _check_left(file, count):
    here = file.tell()
    left = file.seek(0, 2) - here
    file.seek(here)
    if count > left:
        raise UnpicklingError(f"a storage of {count} bytes in a file with {left} bytes left")


def _fill(file, storage):
    count = int.from_bytes(file.read(8), "little", signed=True)
    if count * storage.dtype.itemsize != storage.data.numel():
        raise UnpicklingError("a storage's size is not what its tensors say")
    if storage.data.numel():
        view = memoryview(storage.data.numpy())
        if file.readinto(view) != len(view):
            raise UnpicklingError("unexpected EOF, the file is shorter than its storages: corrupt?")
